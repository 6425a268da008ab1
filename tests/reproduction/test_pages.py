"""Blocks of pages that are written by hand."""

from pathlib import Path

import pytest

from fairall import FairAllError
from fairall.results import Cell, Row, Table, frame_of, records_of
from reproduction.leaderboard import CLAIMS
from reproduction.pages import BEGIN, block_of, copy_figures, fill, refuse
from reproduction.plan import LEADERBOARD, WORLDS, plan
from reproduction.report import contents
from reproduction.rivals import studies

DOCS = Path(__file__).parents[2] / "docs"
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
    before = page.read_text()
    with pytest.raises(FairAllError) as error:
        fill(page, {"one": "new\n"}, list)
    assert str(error.value) == f"--into {page}: {said}"
    assert page.read_text() == before


def test_a_page_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(FairAllError, match=r"none\.md: no such page"):
        refuse([tmp_path / "none.md"], {})


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


def test_a_block_says_when_it_was_made() -> None:
    frame = frame_of(["mean"], [Row("COMPAS", "FairLog", [Cell("1.0", best=True)])])
    table = Table(key="one", title="One", note="Units.", frame=frame, records=records_of([]))
    text = block_of(table, "made 2026-01-01 00:00; Python 3; fairall 0; torch 1")
    assert "| COMPAS | FairLog | **1.0** |" in text
    assert text.endswith("*Made 2026-01-01 00:00; Python 3; fairall 0.*\n")


@pytest.mark.whole
def test_blocks_of_the_documentation_can_be_made() -> None:
    names = ("results", "leaderboard", "leaderboard_tables")
    of_page = {name: BEGIN.findall((DOCS / f"{name}.md").read_text()) for name in names}
    assert set(of_page["results"]) - {"setting"} <= {
        item.key for item in contents([], ["model=fairall_I_II"]).items
    }
    datasets = {f"leaderboard_{one.dataset}" for one in plan(LEADERBOARD, ["model=greedy"])}
    assert set(of_page["leaderboard"]) == {"leaderboard_short", "leaderboard_fairall_I_II_adopt", "setting"}
    assert set(of_page["leaderboard_tables"]) == datasets | {"leaderboard", "leaderboard_care"}
    of_methods = [key for path in DOCS.glob("methods/*.md") for key in BEGIN.findall(path.read_text())]
    assert sorted(of_methods) == sorted({f"method_{one.model}" for one in plan(LEADERBOARD, [])})
    assert set(BEGIN.findall((DOCS / "reproduction.md").read_text())) == {
        f"{key}_{policy}" for key in CLAIMS for policy in ("harsh", "lenient")
    }
    assert set(BEGIN.findall((DOCS / "worlds_results.md").read_text())) == {"setting", *WORLDS}
    assert set(BEGIN.findall((DOCS / "rivals.md").read_text())) == {"setting", *studies()}
    assert BEGIN.findall((DOCS / "logs.md").read_text()) == ["setting", "logs"]
