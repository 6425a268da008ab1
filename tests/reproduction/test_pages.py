"""Blocks of pages that are written by hand."""

import re
import shutil
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from fairall import FairAllError, places
from fairall.display import Cell, PageTable, Row, frame_of, records_of
from reproduction.findings import GROUP, MEAN, cell, numbers
from reproduction.fingerprint import CHANGED, NAMED_IN, OF, SIMULATED, fingerprint
from reproduction.pages import (
    BEGIN,
    BESIDE,
    BLOCK,
    DOCS,
    SETTING,
    copy_figures,
    fill,
    publish,
    read_table,
    refuse,
    shown_csv,
)
from reproduction.plan import ABLATION, LEADERBOARD, WORLDS, grid
from reproduction.report import CLAIMS, contents
from reproduction.rivals import studies

PAGE = """# By hand

<!-- begin: one -->
old
<!-- end: one -->

![A picture](figures/picture.png) stays by hand.

<!-- begin: two -->
kept
<!-- end: two -->
"""


@pytest.fixture
def page(tmp_path: Path) -> Path:
    (tmp_path / "page.md").write_text(PAGE)
    return tmp_path / "page.md"


def test_blocks_with_new_contents_are_replaced_and_all_else_stays(page: Path) -> None:
    fill(page, {"one": "new\n", "three": "not on the page\n"}, lambda: ["two"])
    assert page.read_text() == PAGE.replace("\nold\n", "\nnew\n")
    fill(page, {"one": "old\n", "two": "kept\n"}, list)
    assert page.read_text() == PAGE


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
        fill(page, {"one": "new\n"}, list)
    assert str(error.value) == f"--into {page}: {said}"
    assert page.read_text() == PAGE.replace(*change)
    with pytest.raises(FairAllError, match=r"none\.md: no such page"):
        refuse([page.with_name("none.md")], places([]))


def test_figures_that_a_page_names_are_copied(page: Path) -> None:
    made, beside = page.parent / "made", page.parent / "figures"
    made.mkdir()
    for name in ("picture", "other", "updated"):
        (made / f"{name}.png").write_bytes(name.encode())
    beside.mkdir()
    (beside / "updated.png").write_bytes(b"old")
    copy_figures(page, made)
    found = {path.name: path.read_bytes() for path in beside.iterdir()}
    assert found == {"picture.png": b"picture", "updated.png": b"updated"}


def test_a_linked_table_is_a_file_beside_the_page(page: Path) -> None:
    rows = [
        Row("COMPAS", "FairLog", [Cell("1.0 (0.2)", "1.1, −0.5 sd", best=True, marks="F+"), "a, b"]),
        Row("COMPAS", "Greedy", [Cell("2.0"), ""]),
    ]
    table = PageTable(
        key="one",
        title="One_two",
        note="Units.",
        frame=frame_of(["mean ↑", "front"], rows),
        records=records_of([{"model": "fairlog"}]),
    )
    page.write_text(PAGE.replace(": one", ": tables/one").replace(": two", ": one"))
    outputs = replace(places([]), outputs_dir=str(page.parent), preset="full")
    for _ in range(2):  # the second time over what is there
        publish("report", "Title", {"": [table]}, outputs, into=[page])
        linked, shown = dict(BLOCK.findall(page.read_text())).values()
        assert re.match(
            r"\[One\\_two\]\(tables/one.csv\)\. \*Made 20.*; Python .*; fairall .*\.\*$", linked, re.M
        )
        assert OF.findall(linked) == OF.findall(shown) == [("report", fingerprint("report"))]
        assert "| COMPAS | FairLog | **1.0 (0.2)** F+ *1.1, −0.5 sd* | a, b |" in shown
        assert (page.parent / "tables" / "one.csv").read_text().splitlines() == [
            "group,name,measure,shown",
            'COMPAS,FairLog,mean ↑,"1.0 (0.2)* F+ (1.1, −0.5 sd)"',
            'COMPAS,FairLog,front,"a, b"',
            "COMPAS,Greedy,mean ↑,2.0",
            "COMPAS,Greedy,front,",
        ]
    assert [path.name for path in (page.parent / "tables").iterdir()] == ["one.csv"]


def test_files_of_the_documentation_are_as_a_command_writes_them() -> None:
    blocks = [block for page in DOCS.rglob("*.md") for block in BLOCK.findall(page.read_text())]
    linked = {key for key, content in blocks if BESIDE in key and content}
    files = sorted((DOCS / BESIDE).iterdir())
    assert {f"{BESIDE}{path.stem}" for path in files} == linked
    for path in files:
        columns = path.read_text().splitlines()[0].split(",")
        assert columns[:3] == ["group", "name", "measure"]
        assert columns[3:] == ["shown"] or path.stem.endswith("_by_seed")
        frame = read_table(path.stem)
        table = PageTable(key=path.stem, title="", note="", frame=frame, records=records_of([]))
        assert shown_csv(table) == path.read_text(), path.name


@pytest.mark.whole
def test_blocks_of_the_documentation_can_be_made() -> None:
    sweeps = [grid(sweep) for sweep in LEADERBOARD]
    models, names = ({one for of in sweeps for one in of[axis].split(",")} for axis in ("model", "dataset"))
    made = {item.key for item in contents([], ["model=fairall_I_II"])[0]} | {*WORLDS, *studies()}
    made |= {f"{key}_{policy}" for key in (*CLAIMS, "temporal_splits") for policy in ("harsh", "lenient")}
    made |= {f"leaderboard_{name}" for name in names} | {f"method_{model}" for model in models}
    made |= {f"{study}_by_seed" for study in ("report", "leaderboard", "ablation", "worlds")}
    made |= {f"ablation_{name}" for name in grid(ABLATION[0]).dataset.split(",")}
    further = "setting leaderboard leaderboard_short leaderboard_alike leaderboard_fairall_I_II_adopt logs "
    further += "leaderboard_care ablation ablation_bias ablation_bias_effects ablation_worlds"
    written = "results leaderboard leaderboard_tables reproduction worlds_results ablation rivals logs"
    pages = [*(DOCS / f"{name}.md" for name in written.split()), *DOCS.glob("methods/*.md")]
    keys = {key.removeprefix(BESIDE) for page in pages for key in BEGIN.findall(page.read_text())}
    assert keys <= made | {*further.split(), "ablation_worlds_effects"}
    assert {one for one in made if one.startswith(("method_", "leaderboard_", "ablation_"))} <= keys


def test_a_block_names_the_configuration_that_it_is_of() -> None:
    outdated = []
    today = {of: fingerprint(of) for of in (*NAMED_IN, *(f"simulations_{name}" for name in SIMULATED))}
    for page in sorted(DOCS.rglob("*.md")):
        for key, content in BLOCK.findall(page.read_text()):
            # Simulations have no configuration, and findings are of the tables of other pages.
            if not content or key == SETTING or page.stem in ("evidence", "scorecard", "findings"):
                continue
            command, known = OF.findall(content)[-1]
            if (known != today[command]) is not (CHANGED in content):
                outdated.append(f"{page.name}, {key}: make it anew, or say in it what {CHANGED}")
    assert outdated == []


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """What a fingerprint is of, to be changed."""
    for folder in ("conf", "reproduction/sweeps"):
        shutil.copytree(DOCS.parent / folder, tmp_path / folder)
    for name in ("rivals.yaml", "reject_inference.yaml"):
        shutil.copy(DOCS.parent / "reproduction" / name, tmp_path / "reproduction")
    return tmp_path


@pytest.mark.parametrize(
    ("file", "change"),
    [
        ("hparams/parity_ensemble.yaml", ("quantile: 0.75", "quantile: 0.8")),
        ("model/greedy.yaml", ("updates: ", "updates: 1")),  # which the ensemble begins with
        ("dataset/credit.yaml", ("cost: 0.5", "cost: 0.6")),
        ("config.yaml", ("time_steps: 200", "time_steps: 100")),
        ("protocol/corrected.yaml", ("kl: density", "kl: cdf")),
        ("protocol/corrected/_fairall_II.yaml", ("kl_samples: 20", "kl_samples: 30")),
    ],
)
def test_a_changed_value_changes_the_fingerprint(file: str, change: tuple[str, str], checkout: Path) -> None:
    assert fingerprint("leaderboard", checkout) == fingerprint("leaderboard")
    path = checkout / "conf" / file
    assert change[0] in path.read_text()
    path.write_text(path.read_text().replace(*change))
    assert fingerprint("leaderboard", checkout) != fingerprint("leaderboard")


def test_comments_and_keys_that_are_off_leave_the_fingerprint_as_it_is(checkout: Path) -> None:
    for path in (checkout / "conf").rglob("*.yaml"):
        path.write_text("# A comment.\n" + path.read_text())
    path = checkout / "conf" / "config.yaml"
    path.write_text(path.read_text() + "\nnew: null\nanother: {of: false, rule: none}\n")
    assert [fingerprint(one, checkout) for one in NAMED_IN] == [fingerprint(one) for one in NAMED_IN]


TABLE = re.compile(r"(?:^\|.*\n)+", re.MULTILINE)
DATED = re.compile(
    r"\b\d{1,2} (January|February|March|April|May|June|July|August|September|October|November|December) 20"
)


def undated(text: str) -> list[str]:
    """First lines of tables of results outside blocks whose section, to the next heading, has no date."""
    found = []
    for section in re.split(r"^#+ ", BLOCK.sub("", text), flags=re.MULTILINE):
        for table in TABLE.findall(section):
            head, _, *rows = table.splitlines()
            numbers = [cell for row in rows for cell in row.split("|") if re.match(r" \**−?\d+[ .*]", cell)]
            if re.search("utility|DPU", head) and len(numbers) > 3 and not DATED.search(section):
                found.append(head)
    return found


def test_a_table_of_results_is_filled_by_a_command_or_has_a_date() -> None:
    table = "| | test utility |\n|---|---|\n" + "| FairLog | 1.0 (0.2) |\n" * 4
    block = f"<!-- begin: one -->\n{table}<!-- end: one -->\n"
    assert undated(f"# Page\n{table}\n## Section\nOf 3 May 2026.\n{table}\n{block}") == ["| | test utility |"]
    assert {
        page.name: undated(page.read_text()) for page in DOCS.rglob("*.md") if undated(page.read_text())
    } == {}


def test_what_the_page_of_the_frontier_says_of_the_leaderboard() -> None:
    names = ("credit", "compas", "meps", "synthetic", "adult", "law", "fico")

    def of(method: str, heading: str) -> pd.Series:
        found = {name: numbers(MEAN, f"leaderboard_{name}", heading)[0] for name in names}
        return pd.Series({name: values[GROUP, method] for name, values in found.items()})

    ours, oracle, fairall = "Parity stacked", "knows every label, with parity", "FairAll (I+II)"
    utility, test = (
        (100 * of(ours, key) / of(oracle, key)).round().astype(int)
        for key in ("effective utility ↑", "test utility ↑")
    )
    fairer = of(ours, "DPU ↓") < of(fairall, "DPU ↓")
    gains = (of(ours, "effective utility ↑") - of(fairall, "effective utility ↑")).round(1)
    gap, best_gap = (of(one, "test DPU ↓") for one in (ours, oracle))
    credit, best_credit = gap.pop("credit"), best_gap.pop("credit")
    fronts = [cell(f"leaderboard_{name}", GROUP, ours, "on the front") for name in names]
    assert (gains > 0).all()
    assert (gains.idxmin(), gains.idxmax()) == ("meps", "credit")
    page = " ".join((DOCS / "frontier.md").read_text().split())
    for said in (
        f"with less DPU on {fairer.sum()}.",
        f"On the front on {fronts.count('yes')} of 7",
        f"{utility['adult']} % on Adult, {utility['meps']} % on COMPAS and MEPS, "
        f"99 to {utility[['law', 'fico', 'synthetic']].max()} %",
        f"{utility['credit']} % on German Credit",
        f"utility is {test.min()} to {test.max()} % of that oracle's",
        f"by {gap.min()} to {gap.max()} points and on German Credit, with 150 test people, by {credit}",
        f"differ by {best_gap.min()} to {best_gap.max()}, and by {best_credit}",
        f"is {gains.min()}, on MEPS",
        f"{gains.max()}, on German Credit",
    ):
        assert said in page
