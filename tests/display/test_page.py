"""Files of a page, its figures, and their style."""

from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from PIL import Image

from fairall.display import page
from fairall.display.style import date_axis, legend_below


def drawn() -> Figure:
    figure = Figure(figsize=(2.0, 1.5), layout="constrained")
    axes = figure.subplots()
    axes.plot([0, 1], [0, 1], color="tab:blue", linewidth=5)  # not only pixels at its edges
    axes.axhline(0.5, color="black")
    axes.set(title="title", xlabel="x")
    legend_below(figure, {"line": axes.lines[0]}, 1)
    return figure


def test_equal_figures_have_equal_files_with_their_colours(tmp_path: Path) -> None:
    for name in ("first", "second"):
        page.save(drawn, tmp_path / name)
    for ending in (".png", ".pdf"):
        first, second = ((tmp_path / name).with_suffix(ending).read_bytes() for name in ("first", "second"))
        assert first == second
    with Image.open(tmp_path / "first.png") as picture:
        assert (picture.size[0], picture.mode) == (2 * page.DPI, "P")
        colours = np.unique(np.asarray(picture.convert("RGB"), dtype=float).reshape(-1, 3), axis=0)
    for wanted in (mpl.colors.to_rgb("tab:blue"), (0, 0, 0), (1, 1, 1)):
        assert np.abs(colours - 255 * np.array(wanted)).max(axis=1).min() <= 16


def test_a_page_has_the_opening_beside_a_figure_then_tables(tmp_path: Path) -> None:
    wide = page.PageFigure(key="wide", title="Wide", note="A figure.", draw=drawn, wide=True)
    frame = pd.DataFrame({"a": ["1"]}, index=pd.MultiIndex.from_tuples([("", "row")]))
    missing = [("a run", "its command")]
    table = page.PageTable(
        key="table", title="Table", note="A table.", frame=frame, records=frame, lacking=missing
    )
    page.write_page(tmp_path, "Title", {"": [wide], "Tables": [table]}, opening=["First."], basis=["Basis."])
    text = (tmp_path / "index.html").read_text()
    parts = [
        'class="first"',
        '<a href="figures/wide.png"><img',
        "Basis.",
        "<table",
        "1 missing",
        "its command",
    ]
    places = [text.index(part) for part in parts]
    assert places == sorted(places)


@pytest.mark.parametrize("seconds", [0, 60, 7000, 2.2 * 86400, 40 * 86400, 1000 * 86400])
def test_an_axis_of_any_range_of_dates(seconds: float) -> None:
    figure = Figure(figsize=(7, 2))
    axes, first = figure.subplots(), pd.Timestamp("2025-01-01")
    axes.plot([first, first + pd.Timedelta(seconds=seconds)], [0, 1])
    date_axis(axes)
    figure.canvas.draw()
    assert 2 <= len(axes.get_xticks()) <= 9
