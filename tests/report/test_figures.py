import warnings
from dataclasses import replace
from functools import partial
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from fairall.results.finished import Run, read_run
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from fairall.report import figures, labels
from fairall.results import page
from tests.report.conftest import MakeRun, add_references, lay_down, planned

LONG = "12 a_method_of_my_own_with_a_name_that_goes_on, 0123456789ab and a note in brackets (like this one)"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run whose measures are so near to 0 that a standard deviation reaches below it."""
    folder = tmp_path_factory.mktemp("drawn")
    made = read_run(lay_down(folder, "model=fairlog", "dataset=credit", "seeds=5", shift=0.0))
    unfairness = {name: made.table[name].abs() for name in ("dpu", "cfu")}
    return replace(made, table=made.table.assign(**unfairness))


def panels(figure: Figure) -> list[Axes]:
    return [axes for axes in figure.get_axes() if axes.axison]


def levels(axes: Axes) -> list[float]:
    """Heights of the horizontal lines of a panel."""
    found = [np.asarray(line.get_ydata()) for line in axes.get_lines()]
    return [round(float(y[0]), 6) for y in found if len(y) == 2]


@pytest.mark.parametrize("n", [2, 4, 8])
@pytest.mark.parametrize("label", ["3 FairLog, 0123456789ab", LONG, LONG.replace(" ", "_") * 3])
def test_the_legend_is_inside_the_figure_and_under_the_panels(n: int, label: str, run: Run) -> None:
    runs = {str(i): run for i in range(n)}
    labels = {name: f"{name} {label}" for name in runs}
    with mpl.rc_context(page.BASE):
        figure = figures.draw_over_time(runs, figures.UTILITY_AND_DPU, labels=labels)
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
        assert axes.bbox.height > 0.7 * figure.dpi  # a panel is no smaller for a longer legend


def test_bands_of_what_cannot_be_negative_end_at_0(run: Run) -> None:
    assert (run.curve("dpu").mean(axis=1) < run.curve("dpu").std(axis=1)).any()
    figure = figures.draw_over_time({"fairlog": run}, labels.SYNTHETIC)
    lowest = {
        measure.name: np.asarray(axes.collections[0].get_paths()[0].vertices)[:, 1].min()
        for axes, measure in zip(panels(figure), labels.SYNTHETIC, strict=True)
    }
    assert lowest["dpu"] == 0.0
    assert lowest["cfu"] == 0.0
    assert lowest["utility"] < 0
    assert lowest["ground_truth_utility"] < 0


def test_accept_everybody_is_a_line_in_panels_of_utility(make_run: MakeRun) -> None:
    words = ["dataset=synthetic", "seeds=2"]
    without = read_run(make_run("model=unfairlog", *words, number=1))
    path = make_run("model=fairlog", *words, number=2)
    references = {"mean_utility": 0.14, "mean_ground_truth_utility": 0.08, "mean_dpu": 0.0}
    with_line = read_run(add_references(path, **references))
    both = {"fairlog": with_line, "unfairlog": without}
    drawn = [levels(axes) for axes in panels(figures.draw_over_time(both, labels.SYNTHETIC))]
    assert drawn == [[14.0], [8.0], [], []]
    without_lines = figures.draw_over_time({"unfairlog": without}, labels.SYNTHETIC)
    assert [levels(axes) for axes in panels(without_lines)] == [[], [], [], []]


def add_oracles(path: Path, *, utility: str, dpu: str) -> Path:
    """Give a run measures of the classifier that knows every label, under the given keys."""
    add_references(path, "oracle", **{utility: 0.25, dpu: 0.3})
    return add_references(path, "oracle_fair", **{utility: 0.2, dpu: 0.01})


def test_what_every_label_is_worth_is_a_line_in_all_panels(make_run: MakeRun) -> None:
    path = add_references(
        make_run("model=fairlog", "dataset=credit", "seeds=2"), mean_utility=0.1, mean_dpu=0
    )
    known = read_run(add_oracles(path, utility="mean_utility", dpu="mean_dpu"))
    figure = figures.draw_over_time({"fairlog": known}, figures.UTILITY_AND_DPU)
    assert [levels(axes) for axes in panels(figure)] == [[10.0, 25.0, 20.0], [30.0, 1.0]]
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == [
        "FairLog", "accept everybody", "knows every label", "knows every label, with parity",
    ]  # fmt: skip
    points = figures.draw_plane({"credit": {"fairlog": known}}).get_axes()[0].get_lines()
    assert [
        (float(line.get_xdata()[0]), float(line.get_ydata()[0]))  # type: ignore[arg-type]
        for line in points
        if line.get_marker() in figures.ORACLES.values()
    ] == [(30.0, 25.0), (1.0, 20.0)]


def test_a_single_cost_is_drawn_without_warnings(make_run: MakeRun) -> None:
    run = read_run(make_run("model=fairall_I_II", "dataset=credit", "initial_policy=harsh"))
    any_cost = next(one for one in planned("costs") if one.dataset == "credit")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figures.draw_against_cost([replace(any_cost, run=run)], labels.EFFECTIVE)


def test_what_every_label_is_worth_at_each_cost(make_run: MakeRun) -> None:
    words = ["model=fairall_I_II", "dataset=credit", "initial_policy=harsh"]
    runs = [make_run(*words, f"cost.value={cost}", number=i) for i, cost in enumerate((0.4, 0.6))]
    read = [read_run(path) for path in runs]
    any_cost = next(one for one in planned("costs") if one.dataset == "credit")
    requested = [replace(any_cost, run=run) for run in read]
    before = figures.draw_against_cost(requested, labels.EFFECTIVE).get_axes()[0].get_lines()
    known = [
        replace(one, run=read_run(add_oracles(path, utility="effective_utility", dpu="effective_dpu")))
        for one, path in zip(requested, runs, strict=True)
    ]
    figure = figures.draw_against_cost(known, labels.EFFECTIVE)
    added = [
        [list(map(float, line.get_ydata())) for line in axes.get_lines()]  # type: ignore[arg-type]
        for axes in figure.get_axes()
    ]
    assert len(added[0]) == len(before) + 4
    assert [25.0, 25.0] in added[0]
    assert [1.0, 1.0] in added[1]
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == [
        "German Credit", "knows every label", "knows every label, with parity",
    ]  # fmt: skip


def test_runs_that_are_not_comparable_have_panels_of_their_own(tmp_path: Path) -> None:
    made = partial(lay_down, tmp_path, "model=fairlog", "dataset=credit", "seeds=2")
    runs = {
        "1": read_run(add_references(made(number=1), mean_utility=0.18)),
        "2": read_run(add_references(made("cost.value=0.7", number=2), mean_utility=-0.02)),
        "3": read_run(made("model.lambda_=9", number=3)),
    }
    names = {name: f"run {name}" for name in runs}
    figure = figures.draw_over_time(runs, figures.UTILITY_AND_DPU, labels=names)
    first, _, second, _ = panels(figure)
    assert levels(first) == [18.0]
    assert levels(second) == [-2.0]
    assert [line.get_label() for line in first.get_lines()] == ["run 1", "run 3", "accept everybody"]
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["run 1", "run 2", "run 3", "accept everybody"]
