"""Common parts of all figures, and the figure of a run."""

from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from fairall.display.style import STYLE, legend_below
from fairall.metrics import Spread
from fairall.results import figures
from fairall.results.figures import band, draw_learning, interval
from tests.made_up import made_up


def test_a_band_is_the_mean_and_one_deviation_within_bounds() -> None:
    axes = Figure().subplots()
    curve = pd.DataFrame({0: [0.0, 0.2], 1: [0.1, 0.4]}, index=[1, 2])
    band(axes, curve, bounds=(0.0, 0.4), color="black")
    (line,), (area,) = axes.lines, axes.collections
    np.testing.assert_allclose(np.asarray(line.get_xydata()), [[1, 5], [2, 30]])
    edges = np.asarray(area.get_paths()[0].vertices)[:, 1]
    assert (edges.min(), edges.max()) == pytest.approx((0.0, 40.0))
    assert np.isclose(edges, 30 - 100 * np.std([0.2, 0.4], ddof=1)).any()


def test_an_interval_reaches_to_its_ends() -> None:
    axes = Figure().subplots()
    drawn = interval(axes, Spread(0.1, 0.05, (0.0, 0.3)), 0.5, color="black", marker="o")
    assert drawn.lines[0].get_xydata().tolist() == [[10.0, 50.0]]
    (bars,) = drawn.lines[2]
    assert bars.get_segments()[0][:, 0] == pytest.approx([0.0, 30.0])


@pytest.mark.parametrize("label", ["short", "a_name_that_goes_on_and_on " * 4, "x" * 150])
def test_a_legend_is_inside_the_figure_and_below_its_panels(label: str) -> None:
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(3.4, 2.0), layout="constrained")
        axes = figure.subplots()
        handles = {f"{k} {label}": axes.plot([0, 1], [0, k])[0] for k in range(4)}
        legend_below(figure, handles, 3)
        FigureCanvasAgg(figure).draw()
    (legend,) = figure.legends
    assert legend.get_window_extent().width <= figure.bbox.width
    with_labels = axes.get_tightbbox()
    assert with_labels is not None
    assert with_labels.y0 >= legend.get_window_extent().y1 - 1
    assert axes.bbox.height > 0.7 * figure.dpi  # not smaller for a longer legend


def test_a_run_has_a_panel_for_each_measure_with_values(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[Figure] = []
    monkeypatch.setattr(figures, "save_figure", lambda figure, path: drawn.append(figure))
    levels = {
        "oracle": {"mean_utility": 0.2, "mean_dpu": 0.04},
        "accept_all": {"mean_utility": 0.18, "mean_dpu": 0.0},
    }
    made = made_up("model=fairall_I_II", "dataset=credit", "seeds=3", references=levels)
    made.steps["cfu"] = np.nan
    draw_learning(made.steps, made.measures, made.summary(), Path("learning.png"), title="a run")
    panels = {axes.get_title(): axes for axes in drawn[0].axes}
    assert len(panels) == len(made.figures) - 1

    def heights(title: str) -> list[float]:
        """Of lines with one height."""
        flat = (np.unique(np.asarray(line.get_ydata())) for line in panels[title].lines)
        return sorted(round(float(y[0]), 6) for y in flat if len(y) == 1)

    assert heights("utility ↑ ×100") == [18.0, 18.8, 20.0]  # with the printed one
    assert heights("DPU ↓ ×100") == [4.0, 5.0]  # accepting everybody is fair by definition
