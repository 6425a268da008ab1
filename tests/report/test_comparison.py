"""Runs side by side: tables, figure and page."""

from dataclasses import replace
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from fairall import FairAllError, Result
from fairall.display import CAUTION, STYLE, PageTable, page
from fairall.report import UNTESTED, chosen_runs, compare, draw_over_time, measures
from tests.conftest import files_of, succeeded, typed
from tests.made_up import lay_down, made_up

CREDIT = ("model=fairlog", "dataset=credit", "seeds=10")
MARKS = ("**", "F+", "F−", "R+", "R−", "ignificant")
LONG = "12 a_method_of_my_own_with_a_name_that_goes_on, 0123456789ab and a note in brackets (like this one)"


@pytest.fixture(autouse=True)
def _coarse_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "DPI", 20)


def run(*words: str, number: int, preset: str | None = None, **options: object) -> Result:
    config = {} if preset is None else {"preset": preset}
    return made_up(*words, number=number, config=config, path=Path(f"{number:012x}"), **options)  # type: ignore[arg-type]


def compared(folder: Path, *runs: Result) -> dict[str, PageTable]:
    numbered = {str(i): one for i, one in enumerate(runs, start=1)}
    return {table.key: table for table in compare(numbered, ["a: broken"], folder)}


def test_a_better_run_is_marked_and_differing_keys_are_listed(tmp_path: Path) -> None:
    first = run(*CREDIT, shift=0.1, number=1)
    tables = compared(tmp_path, first, run(*CREDIT, "model.lambda_=8", shift=0.3, number=2))
    better = tables["measures"].frame.iloc[1]
    assert [better.iloc[k].marks for k in (1, 2)] == ["F+ R+", "F− R−"]
    assert "mean acceptance rate" in tables["further"].frame
    assert "mean acceptance rate" not in tables["measures"].frame
    (index, *values) = next(tables["configuration"].frame.itertuples())
    assert (index[1], [one.text for one in values]) == ("model.lambda_", ["2.0", "8.0"])
    written = {path.name for path in tmp_path.rglob("*.*")}
    assert written >= {"index.html", "curves.pdf", "configuration.tex", "measures.csv"}
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
        (credit, "1 FairLog, 000000000001"),
        (credit, "3 FairLog, 000000000003"),
        (credit, "accept everybody"),
        (compas, "2 FairLog, 000000000002"),
        ("German Credit, c = 0.7, harsh initial policy", "4 FairLog, 000000000004"),
        (f"{credit}, preset fast", "5 FairLog, 000000000005"),
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
    assert set(table.records["preset"]) == {"quick"}
    assert not table.records["best"].any()
    assert "p_against_first" not in table.records
    text = (tmp_path / "index.html").read_text()
    assert UNTESTED in text
    assert not [mark for mark in MARKS if mark in (tmp_path / "tables" / "measures.md").read_text()]


def test_runs_are_chosen_by_folder_or_id(tmp_path: Path) -> None:
    folder = tmp_path / "outputs" / "runs"
    first, second = (lay_down(tmp_path, "seeds=2", *CREDIT[:2], number=k) for k in (1, 0x2A0000000000))
    first.with_suffix(".lock").write_text("process 1 on here")
    runs, left_out = chosen_runs([str(first), str(first.with_suffix(".lock")), "2a0"], folder)
    assert {number: one.path for number, one in runs.items()} == {"1": first, "2": second}
    assert left_out == []
    quick = lay_down(tmp_path, *CREDIT[:2], "seeds=2", "preset=quick", number=3)
    runs, left_out = chosen_runs([str(first), str(second), str(quick)], folder)
    assert len(runs) == 2
    assert left_out == [f"{quick}: {CAUTION}"]
    for words, said in (
        (["one"], "at least two"),
        (["one", "two"], "one: no such run"),
        ([str(first), str(first)], "is named twice"),
        ([str(first), str(quick)], "at least two runs that can be compared"),
        ([str(first), str(first.parent)], "not the folder of a run"),
    ):
        with pytest.raises(FairAllError, match=said):
            chosen_runs(words, folder)


def panels(figure: Figure) -> list[Axes]:
    return [axes for axes in figure.get_axes() if axes.axison]


def levels(axes: Axes) -> list[float]:
    """Heights of the horizontal lines of a panel."""
    found = [np.asarray(line.get_ydata()) for line in axes.get_lines()]
    return [round(float(y[0]), 6) for y in found if len(y) == 2]


def looks(*names: str) -> dict[str, dict[str, str]]:
    return {name: {"label": f"run {name}", "color": "C0", "ls": "-"} for name in names}


@pytest.mark.parametrize("n", [2, 8])
@pytest.mark.parametrize("label", [LONG, LONG.replace(" ", "_") * 3])
def test_the_legend_is_inside_the_figure_and_under_the_panels(n: int, label: str) -> None:
    one = run(*CREDIT[:2], "seeds=2", number=1)
    names = [str(i) for i in range(n)]
    of = {name: look | {"label": f"{name} {label}"} for name, look in looks(*names).items()}
    with mpl.rc_context(STYLE):
        figure = draw_over_time(dict.fromkeys(names, one), measures("utility", "dpu"), of)
        FigureCanvasAgg(figure).draw()
    (legend,) = figure.legends
    assert len(legend.get_texts()) == n
    for box in (text.get_window_extent() for text in legend.get_texts()):
        assert 0 <= box.x0 < box.x1 <= figure.bbox.width
        assert box.y0 >= 0
    top = legend.get_window_extent().y1
    for axes in panels(figure):
        with_labels = axes.get_tightbbox()
        assert with_labels is not None
        assert with_labels.y0 >= top - 1


def test_references_are_lines_and_what_is_not_comparable_has_its_panels() -> None:
    words = (*CREDIT[:2], "seeds=2")
    known = {"accept_all": {"mean_utility": 0.18, "mean_dpu": 0.0}, "oracle": {"mean_dpu": 0.3}}
    runs = {
        "1": run(*words, number=1, references=known),
        "2": run(*words, "cost.value=0.7", number=2, references={"accept_all": {"mean_utility": -0.02}}),
        "3": run(*words, "model.lambda_=9", number=3),
    }
    figure = draw_over_time(runs, measures("utility", "dpu"), looks(*runs))
    utility, dpu, other, _ = panels(figure)
    assert [levels(axes) for axes in (utility, dpu, other)] == [[18.0], [30.0], [-2.0]]
    labels = ["run 1", "run 2", "run 3", "accept everybody"]
    assert [line.get_label() for line in utility.get_lines()] == [labels[0], *labels[2:]]
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == labels


def test_a_run_without_a_measure_is_left_out() -> None:
    one = run(*CREDIT[:2], "seeds=2", number=1)
    without = replace(one, steps=one.steps.drop(columns="dpu"))
    figure = draw_over_time({"1": one, "2": without}, measures("utility", "dpu"), looks("1", "2"))
    assert [len(axes.get_lines()) for axes in panels(figure)] == [2, 1]


class CutOff(KeyboardInterrupt):
    """An interruption."""


@pytest.mark.whole
@pytest.mark.parametrize("files", [0, 2, 9])
def test_a_comparison_that_was_cut_off_has_the_same_bytes_afterwards(
    files: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = [run(*CREDIT, shift=0.1 * number, number=number) for number in (1, 4)]
    numbered = {str(i): one for i, one in enumerate(runs, start=1)}
    compare(numbered, [], tmp_path / "whole")
    whole, left = files_of(tmp_path / "whole"), iter(range(files))
    assert len(whole) > files

    def cut(path: Path, text: str) -> None:
        if next(left, None) is None:
            path.with_name(f"{path.name}.half").write_text(text[:10])
            path.with_name(f"{path.name}.half").unlink()
            raise CutOff
        path.write_text(text)

    with monkeypatch.context() as patched:
        patched.setattr(page, "write", cut)
        with pytest.raises(CutOff):
            compare(numbered, [], tmp_path / "cut")
    assert not (tmp_path / "cut" / "index.html").exists()
    monkeypatch.setattr("fairall.display.console.WIDE", 1001)  # another terminal
    compare(numbered, [], tmp_path / "cut")
    assert files_of(tmp_path / "cut") == whole
    compare(numbered, [], tmp_path / "cut")
    assert files_of(tmp_path / "cut") == whole


@pytest.mark.whole
def test_a_page_about_other_runs_is_not_replaced(tmp_path: Path) -> None:
    first, second, third = (lay_down(tmp_path, "seeds=2", *CREDIT[:2], number=k) for k in (1, 2, 3))
    pair, other = [str(first), str(second)], [str(second), str(third)]
    succeeded("compare", *pair, cwd=tmp_path)
    folder = tmp_path / "outputs" / "comparison"
    before = files_of(folder)
    assert before["RUNS"].decode().split() == [first.name, second.name]
    assert typed("compare", *pair, cwd=tmp_path).returncode == 0
    assert files_of(folder) == before

    said = succeeded("compare", *other, cwd=tmp_path)
    assert f"outputs/comparison has another page, about {first.name}, {second.name}\n" in said.stdout
    (beside,) = (tmp_path / "outputs").glob("comparison_*")
    assert f"Comparison: outputs/{beside.name}/index.html\n" in said.stdout
    assert (files_of(folder), files_of(beside)["RUNS"].decode().split()) == (
        before,
        [second.name, third.name],
    )
    again = typed("compare", *other, cwd=tmp_path)
    assert f"Comparison: outputs/{beside.name}/index.html\n" in again.stdout

    refused = typed("compare", *other, "-o", "outputs/comparison", cwd=tmp_path)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr == (
        f"fairall: -o outputs/comparison: it has a page already, about {first.name}, {second.name}; "
        "give another folder, or delete it\n"
    )
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "index.html").write_text("mine")
    refused = typed("compare", *pair, "-o", "mine", cwd=tmp_path)
    assert (refused.returncode, refused.stderr.count("\n")) == (1, 1)
    assert (tmp_path / "mine" / "index.html").read_text() == "mine"
    assert files_of(folder) == before
