"""Files of a page, its figures, and their style."""

import re
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


def test_equal_figures_have_equal_files(tmp_path: Path) -> None:
    pngs = [page.save(drawn, tmp_path / name) for name in ("first", "second")]
    for ending, png in ((".png", pngs[0]), (".pdf", (tmp_path / "first.pdf").read_bytes())):
        assert (tmp_path / "first").with_suffix(ending).read_bytes() == png
        assert (tmp_path / "second").with_suffix(ending).read_bytes() == png


def test_a_picture_has_its_size_and_a_palette_that_keeps_its_colours(tmp_path: Path) -> None:
    page.save(drawn, tmp_path / "figure")
    with Image.open(tmp_path / "figure.png") as picture:
        assert picture.size[0] == 2 * page.DPI
        assert (picture.mode, picture.info.get("transparency")) == ("P", None)
        colours = np.unique(np.asarray(picture.convert("RGB"), dtype=float).reshape(-1, 3), axis=0)
    for wanted in (mpl.colors.to_rgb("tab:blue"), (0, 0, 0), (1, 1, 1)):
        assert np.abs(colours - 255 * np.array(wanted)).max(axis=1).min() <= 16


def test_a_wide_figure_shrinks_and_a_wide_table_shows_that_it_scrolls(tmp_path: Path) -> None:
    wide = page.PageFigure(key="wide", title="Wide", note="A figure.", draw=drawn, wide=True)
    frame = pd.DataFrame({"a": ["1"]}, index=pd.MultiIndex.from_tuples([("", "row")]))
    table = page.PageTable(key="table", title="Table", note="A table.", frame=frame, records=frame)
    page.write_page(tmp_path, "Title", {"": [wide], "Tables": [table]}, opening=["First."], basis=["Basis."])
    text = (tmp_path / "index.html").read_text()
    rules = dict(re.findall(r"^([^{}@\n]+) \{([^}]*)\}", text, re.MULTILINE))
    assert "min-width" not in "".join(rule for element, rule in rules.items() if "img" in element)
    assert rules[".scroll"].count("no-repeat local") == rules[".scroll"].count("no-repeat scroll") == 2
    assert '<a href="figures/wide.png"><img' in text
    assert text.index('class="first"') < text.index("<img") < text.index("Basis.") < text.index("<table")


@pytest.mark.parametrize("seconds", [0, 60, 7000, 2.2 * 86400, 40 * 86400, 1000 * 86400])
def test_an_axis_of_any_range_of_dates(seconds: float) -> None:
    figure = Figure(figsize=(7, 2))
    axes, first = figure.subplots(), pd.Timestamp("2025-01-01")
    axes.plot([first, first + pd.Timedelta(seconds=seconds)], [0, 1])
    date_axis(axes)
    figure.canvas.draw()
    assert 2 <= len(axes.get_xticks()) <= 9
