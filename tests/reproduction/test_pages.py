"""Blocks of pages that are written by hand."""

import re
import shutil
from dataclasses import replace
from functools import cache
from pathlib import Path

import pandas as pd
import pytest
from matplotlib.figure import Figure

from fairall import FairAllError, places
from fairall.display import Cell, PageFigure, PageTable, Row, frame_of, records_of
from reproduction.findings import GROUP, MEAN, cell, numbers
from reproduction.fingerprint import CHANGED, NAMED_IN, OF, fingerprint
from reproduction.items import as_shown
from reproduction.pages import BEGIN, BESIDE, BLOCK, DOCS, SETTING, publish, read_table, refuse
from reproduction.plan import LEADERBOARD, grid
from reproduction.report import contents
from reproduction.rivals import STUDIES

PAGE = """# By hand

<!-- begin: tables/one -->
old
<!-- end: tables/one -->

![A picture](figures/picture.png) stays by hand.

<!-- begin: two -->
kept
<!-- end: two -->

<!-- begin: one -->
<!-- end: one -->
"""
LINK = r"\[One\\_two\]\(tables/one.csv\)\. \*Made 20.*; Python .*; fairall .*\.\*\n"
ROWS = [
    Row("COMPAS", "FairLog", [Cell("1.0 (0.2)", "1.1, −0.5 sd", best=True, marks="F+"), "a, b"]),
    Row("COMPAS", "Greedy", [Cell("2.0"), ""]),
]


@pytest.fixture
def page(tmp_path: Path) -> Path:
    (tmp_path / "page.md").write_text(PAGE)
    return tmp_path / "page.md"


def published(page: Path) -> None:
    """A table, and two figures that are there already."""
    frame, records = frame_of(["mean ↑", "front"], ROWS), records_of([{"model": "fairlog"}])
    table = PageTable(key="one", title="One_two", note="Units.", frame=frame, records=records)
    picture = PageFigure(key="picture", title="Picture", note="", draw=Figure)
    items = [table, picture, replace(picture, key="other"), replace(picture, key="updated")]
    config = replace(places([]), outputs_dir=str(page.parent), preset="full")
    publish("report", "Title", {"": items}, config, into=[page], known=lambda: ["two"])


def test_blocks_are_replaced_with_files_beside_the_page_and_all_else_stays(page: Path) -> None:
    (page.parent / "figures").mkdir()
    (page.parent / "figures" / "updated.png").touch()
    for _ in range(2):  # the second time over what is there
        published(page)
        linked, kept, shown = dict(BLOCK.findall(page.read_text())).values()
        assert re.match(LINK, linked)
        assert kept == "kept\n"
        assert OF.findall(linked) == OF.findall(shown) == [("report", fingerprint("report"))]
        assert "| COMPAS | FairLog | **1.0 (0.2)** F+ *1.1, −0.5 sd* | a, b |" in shown
        assert page.read_text().replace(linked, "old\n").replace(shown, "") == PAGE
        assert (page.parent / "tables" / "one.csv").read_text().splitlines() == [
            "group,name,measure,shown",
            'COMPAS,FairLog,mean ↑,"1.0 (0.2)* F+ (1.1, −0.5 sd)"',
            'COMPAS,FairLog,front,"a, b"',
            "COMPAS,Greedy,mean ↑,2.0",
            "COMPAS,Greedy,front,",
        ]
    beside = [*page.parent.glob("tables/*"), *page.parent.glob("figures/*")]
    assert {path.name for path in beside if path.stat().st_size} == {"one.csv", "picture.png", "updated.png"}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("two", "on"), "no table or figure on, did you mean one?"),
        (("<!-- end: two -->", ""), "the block two has no <!-- end: two -->"),
    ],
)
def test_a_wrong_block_is_one_line_and_nothing_is_written(
    page: Path, change: tuple[str, str], said: str
) -> None:
    page.write_text(PAGE.replace(*change))
    with pytest.raises(FairAllError) as error:
        published(page)
    assert str(error.value) == f"--into {page}: {said}"
    assert page.read_text() == PAGE.replace(*change)
    with pytest.raises(FairAllError, match=r"none\.md: no such page"):
        refuse([page.with_name("none.md")], places([]))


def test_files_of_the_documentation_are_as_a_command_writes_them() -> None:
    blocks = [block for page in DOCS.rglob("*.md") for block in BLOCK.findall(page.read_text())]
    files = {f"{BESIDE}{path.stem}": path for path in (DOCS / BESIDE).iterdir()}
    assert {*files} == {key for key, content in blocks if BESIDE in key and content}
    for path in files.values():
        table = read_table(path.stem)
        shown = table.reset_index() if "measure" in table else as_shown(table)
        assert shown.to_csv(index=False, lineterminator="\n") == path.read_text(), path.name


@pytest.mark.whole
def test_blocks_of_the_documentation_can_be_made() -> None:
    made = {SETTING, "logs", *STUDIES, *(item.key for item in contents([], [])[0])}
    made |= {f"{study}_by_seed" for study in ("report", "leaderboard")}
    for key, axis in {"leaderboard": "dataset", "method": "model"}.items():
        made |= {f"{key}_{name}" for sweep in LEADERBOARD for name in grid(sweep)[axis].split(",")}
    made |= {f"leaderboard{of}" for of in ("", "_short", "_alike", "_fairall_I_II_adopt", "_care")}
    written = "results leaderboard leaderboard_tables reproduction rivals logs"
    pages = [*(DOCS / f"{name}.md" for name in written.split()), *DOCS.glob("methods/*.md")]
    assert {key.removeprefix(BESIDE) for page in pages for key in BEGIN.findall(page.read_text())} <= made


def test_a_block_names_the_configuration_that_it_is_of() -> None:
    outdated = []
    today = cache(fingerprint)
    for page in sorted(DOCS.rglob("*.md")):
        for key, content in BLOCK.findall(page.read_text()):
            # Simulations have no configuration, and findings are of the tables of other pages.
            if not content or key == SETTING or page.stem in ("evidence", "scorecard", "findings"):
                continue
            command, known = OF.findall(content)[-1]
            if (known != today(command)) is not (CHANGED in content):
                outdated.append(f"{page.name}, {key}: make it anew, or say in it what {CHANGED}")
    assert outdated == []


CHANGES = [
    ("hparams/parity_ensemble.yaml", "quantile: 0.75", "quantile: 0.8"),
    ("model/greedy.yaml", "updates: ", "updates: 1"),  # which the ensemble begins with
    ("dataset/credit.yaml", "cost: 0.5", "cost: 0.6"),
    ("config.yaml", "time_steps: 200", "time_steps: 100"),
    ("protocol/corrected/_fairall_II.yaml", "kl_samples: 20", "kl_samples: 30"),
]


def test_a_fingerprint_changes_with_values_and_not_with_comments_and_keys_that_are_off(
    tmp_path: Path,
) -> None:
    conf = tmp_path / "conf"
    for folder in ("conf", "reproduction"):
        shutil.copytree(DOCS.parent / folder, tmp_path / folder)
    for path in conf.rglob("*.yaml"):
        path.write_text("# A comment.\n" + path.read_text())
    with (conf / "config.yaml").open("a") as file:
        file.write("\nnew: null\nanother: {of: false, rule: none}\n")
    assert [fingerprint(one, tmp_path) for one in NAMED_IN] == [fingerprint(one) for one in NAMED_IN]
    found = {fingerprint("leaderboard")}
    for name, old, new in CHANGES:
        (conf / name).write_text((conf / name).read_text().replace(old, new))
        found.add(fingerprint("leaderboard", tmp_path))
    assert len(found) == 1 + len(CHANGES)


TABLE = re.compile(r"^(\|.*(?:utility|DPU).*\n)((?:^\|.*\n)+)", re.MULTILINE)
NUMBER = re.compile(r"\| \**−?\d+[ .*]")
MONTHS = "January|February|March|April|May|June|July|August|September|October|November|December"


def test_a_table_of_results_is_filled_by_a_command_or_has_a_date() -> None:
    undated = []
    for page in DOCS.rglob("*.md"):
        for section in re.split(r"^#+ ", BLOCK.sub("", page.read_text()), flags=re.MULTILINE):
            tables = [head for head, rows in TABLE.findall(section) if len(NUMBER.findall(rows)) > 3]
            if not re.search(rf"\b\d{{1,2}} ({MONTHS}) 20", section):
                undated += [(page.name, head) for head in tables]
    assert undated == []


def test_what_the_page_of_the_frontier_says_of_the_leaderboard() -> None:
    keys = [f"leaderboard_{name}" for name in grid(LEADERBOARD[0]).dataset.split(",")]
    measures = ("effective utility ↑", "DPU ↓", "test utility ↑", "test DPU ↓")
    earned, dpu, tested, gaps = (
        pd.DataFrame({key[12:]: numbers(MEAN, key, measure)[0].loc[GROUP] for key in keys})
        for measure in measures
    )
    ours, oracle, fairall = "Parity stacked", "knows every label, with parity", "FairAll (I+II)"
    utility, test = ((100 * of.loc[ours] / of.loc[oracle]).round().astype(int) for of in (earned, tested))
    gains = (earned.loc[ours] - earned.loc[fairall]).round(1)
    gap, best = gaps.drop(columns="credit").loc[[ours, oracle]].to_numpy()
    assert (gains.idxmin(), gains.idxmax()) == ("meps", "credit")
    page = " ".join((DOCS / "frontier.md").read_text().split())
    for said in (
        f"with less DPU on {(dpu.loc[ours] < dpu.loc[fairall]).sum()}.",
        f"On the front on {[cell(key, GROUP, ours, 'on the front') for key in keys].count('yes')} of 7",
        f"{utility['adult']} % on Adult, {utility['meps']} % on COMPAS and MEPS, "
        f"99 to {utility[['law', 'fico', 'synthetic']].max()} %",
        f"{utility['credit']} % on German Credit",
        f"utility is {test.min()} to {test.max()} % of that oracle's",
        f"by {min(gap)} to {max(gap)} points and on German Credit, with 150 test people, by "
        f"{gaps['credit'][ours]}. Those of the oracle differ by {min(best)} to {max(best)}, and by "
        f"{gaps['credit'][oracle]}",
        f"is {gains.min()}, on MEPS",
        f"{gains.max()}, on German Credit",
    ):
        assert said in page
