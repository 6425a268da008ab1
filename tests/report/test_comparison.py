"""Runs side by side: tables, figure and page."""

from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import pytest

from fairall import FairAllError, Result
from fairall.display import CAUTION, PageTable, page
from fairall.report import UNTESTED, chosen_runs, compare, draw_over_time, measures
from fairall.report.place import place
from tests.conftest import files_of
from tests.made_up import lay_down, made_up

CREDIT = ("model=fairlog", "dataset=credit", "seeds=10")
MARKS = ("**", "F+", "F−", "R+", "R−", "ignificant")


@pytest.fixture(autouse=True)
def _coarse_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "DPI", 20)


def run(*words: str, number: int, preset: str | None = None, **options: object) -> Result:
    config = {} if preset is None else {"preset": preset}
    return made_up(*words, number=number, config=config, path=Path(f"{number:012x}"), **options)  # type: ignore[arg-type]


def named(*runs: Result) -> dict[str, Result]:
    return {f"{i} {run.identity}": run for i, run in enumerate(runs, start=1)}


def compared(folder: Path, *runs: Result) -> dict[str, PageTable]:
    return {table.key: table for table in compare(named(*runs), ["a: broken"], folder)}


def test_a_better_run_is_marked_and_differing_keys_are_listed(tmp_path: Path) -> None:
    first = run(*CREDIT, shift=0.1, number=1)
    tables = compared(tmp_path, first, run(*CREDIT, "model.lambda_=8", shift=0.3, number=2))
    better = tables["measures"].frame.iloc[1]
    assert [better.iloc[k].marks for k in (1, 2)] == ["F+ R+", "F− R−"]
    assert "mean acceptance rate" in tables["further"].frame
    assert "mean acceptance rate" not in tables["measures"].frame
    (index, *values) = next(tables["configuration"].frame.itertuples())
    assert (index[1], values) == ("model.lambda_", ["2.0", "8.0"])
    written = {path.name for path in tmp_path.rglob("*.*")}
    assert written >= {"index.html", "curves_1.pdf", "configuration.tex", "measures.csv"}
    assert "a: broken" in (tmp_path / "index.html").read_text()


def test_only_comparable_runs_are_compared(tmp_path: Path) -> None:
    levels = {"accept_all": {"effective_utility": 0.8, "mean_utility": 0.9, "mean_dpu": 0.0}}
    table = compared(
        tmp_path,
        run(*CREDIT, shift=0.1, number=1),
        run("model=fairlog", "dataset=compas", "seeds=10", shift=0.5, number=2),
        run(*CREDIT, "model.lambda_=9", shift=0.3, number=3, references=levels),
        run(*CREDIT, "cost.value=0.7", shift=0.6, number=4),
        run(*CREDIT, shift=0.7, number=5, preset="fast"),
    )["measures"]
    credit, compas = (f"{name}, c = 0.5, harsh initial policy" for name in ("German Credit", "COMPAS"))
    rows = [(group.removesuffix(", preset none"), name) for group, name in table.frame.index]
    assert rows == [
        (credit, "1 000000000001"),
        (credit, "3 000000000003"),
        (credit, "accept everybody"),
        (compas, "2 000000000002"),
        ("German Credit, c = 0.7, harsh initial policy", "4 000000000004"),
        (f"{credit}, preset fast", "5 000000000005"),
    ]
    # The third earns the most of its group and is the only one that differs significantly from another.
    shown = [(cell.best, "F+" in cell.marks) for cell in table.frame.iloc[:, 1]]
    assert shown == [(False, False), (True, True), *[(False, False)] * 4]
    utility = table.records[table.records["measure"] == "effective_utility"].set_index("run")
    assert set(utility.index[utility["p_against_best_other"].notna()]) == {"000000000001", "000000000003"}
    assert utility.loc["accept_all", "mean"] == 0.8
    assert utility.loc["accept_all", "group"] == utility.loc["000000000001", "group"]


def test_quick_runs_are_not_compared(tmp_path: Path) -> None:
    runs = [run(*CREDIT, shift=0.1 * number, number=number, preset="quick") for number in (1, 4)]
    table = compared(tmp_path, *runs)["measures"]
    assert CAUTION in table.title
    assert not table.records["best"].any()
    assert "p_against_first" not in table.records
    text = (tmp_path / "index.html").read_text()
    assert UNTESTED in text
    assert not [mark for mark in MARKS if mark in (tmp_path / "tables" / "measures.md").read_text()]


def test_runs_are_chosen_by_folder_or_id(tmp_path: Path) -> None:
    folder = tmp_path / "outputs" / "runs"
    first, second = (lay_down(tmp_path, "seeds=2", *CREDIT[:2], number=k) for k in (1, 0x2A0000000000))
    quick = lay_down(tmp_path, *CREDIT[:2], "seeds=2", "preset=quick", number=3)
    runs, left_out = chosen_runs([str(first), f"{first}.lock", "2a0", str(quick)], folder)
    assert {name[:9]: run.path for name, run in runs.items()} == {"1 FairLog": first, "2 FairLog": second}
    assert left_out == [f"{quick}: {CAUTION}"]
    for words, reason in (
        (["one", "two"], "one: no such run"),
        ([str(first), str(first)], "at least two runs"),
        ([str(first), str(quick)], f"at least two runs.*{CAUTION}"),
        ([str(first), str(first.parent)], "not the folder of a run"),
    ):
        with pytest.raises(FairAllError, match=reason):
            chosen_runs(words, folder)


def looks(*names: str) -> dict[str, dict[str, str]]:
    return {name: {"label": f"run {name}", "color": "C0", "ls": "-"} for name in names}


def test_references_are_lines_and_a_run_without_a_measure_is_left_out() -> None:
    known = {"accept_all": {"mean_utility": 0.18, "mean_dpu": 0.0}, "oracle": {"mean_dpu": 0.3}}
    first = run(*CREDIT[:2], "seeds=2", number=1, references=known)
    other = replace(first, steps=first.steps.drop(columns="dpu"))
    figure = draw_over_time({"1": first, "2": other}, measures("utility", "dpu"), looks("1", "2"))
    drawn = [{line.get_label(): line.get_ydata() for line in axes.get_lines()} for axes in figure.axes]
    assert [[*lines] for lines in drawn] == [
        ["run 1", "run 2", "accept everybody"],
        ["run 1", "knows every label"],
    ]
    assert {*drawn[0]["accept everybody"]} == {18.0}
    assert {*drawn[1]["knows every label"]} == {30.0}
    (legend,) = figure.legends
    assert {text.get_text() for text in legend.get_texts()} == {*drawn[0], *drawn[1]}


@pytest.mark.whole
@pytest.mark.parametrize("files", [0, 2, 9])
def test_a_comparison_that_was_cut_off_has_the_same_bytes_afterwards(
    files: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = named(*(run(*CREDIT, shift=0.1 * number, number=number) for number in (1, 4)))
    compare(runs, [], tmp_path / "whole")
    writes = Mock(side_effect=[*[None] * files, KeyboardInterrupt])
    with monkeypatch.context() as patched:
        patched.setattr(page, "write", lambda path, text: writes() or path.write_text(text[:10]))
        with pytest.raises(KeyboardInterrupt):
            compare(runs, [], tmp_path / "cut")
    assert not (tmp_path / "cut" / "index.html").exists()
    monkeypatch.setattr("fairall.display.console.WIDE", 1001)  # another terminal
    for _ in range(2):
        compare(runs, [], tmp_path / "cut")
        assert files_of(tmp_path / "cut") == files_of(tmp_path / "whole")


def test_a_page_has_a_folder_of_its_own_and_replaces_none(tmp_path: Path) -> None:
    default, runs = tmp_path / "comparison", ["a", "b"]
    folder = place(None, default, runs)
    assert folder == place(None, default, runs) != place(None, default, runs[::-1])
    assert folder.parent == tmp_path
    assert place(str(tmp_path), default, runs) == tmp_path
    (tmp_path / "index.html").write_text("mine")
    with pytest.raises(FairAllError, match="it has a page already; give another folder"):
        place(str(tmp_path), default, runs)
