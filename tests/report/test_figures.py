from dataclasses import replace
from functools import partial
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from fairall.report import figures, labels
from fairall.results.finished import Run, read_run
from tests.report.conftest import MakeRun, add_references, lay_down

LONG = "12 a_method_of_my_own_with_a_name_that_goes_on, 0123456789ab (quick: numbers mean nothing)"


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
    with mpl.rc_context(figures.BASE):
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
