"""Style of all figures, and their common parts."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.figure import Figure
from PIL import Image

from fairall.storage.files import atomic

# Palette of Okabe and Ito, safe for colour-blind readers.
BLUE, ORANGE, GREEN, GREY = "#0072B2", "#E69F00", "#009E73", "#7F7F7F"
PURPLE = "#CC79A7"
# Tol's muted palette, equally safe, for what has no colour of its own.
PALETTE = ("#CC6677", "#44AA99", "#999933", "#AA4499", "#DDCC77", "#88CCEE", "#117733", "#882255")
STYLE = {
    "font.size": 8,
    "axes.titlesize": 8,
    "legend.fontsize": 7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "lines.linewidth": 1.2,
    "legend.frameon": False,
    "figure.dpi": 150,
    "savefig.dpi": "figure",
    "pdf.fonttype": 42,
    # Without a fixed salt the files of two equal figures would differ.
    "svg.hashsalt": "fairall",
}
COLOURS = 256  # of a PNG, as many as a palette has
LABEL = 14  # characters of a label in an inch of a legend
COLUMN = 3.4  # inches, the width of a column of a paper


def handles_of(panels: Iterable[Axes]) -> dict[str, Any]:
    """Artists of some panels by label, each label once."""
    return {
        label: handle
        for axes in panels
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }


def legend_below(figure: Figure, handles: Mapping[str, Any], columns: int) -> None:
    """Add one legend for all panels below them; the figure grows by its height.

    Args:
        figure: with a constrained layout.
        handles: matplotlib's artists, by label; labels longer than the figure is wide are wrapped.
        columns: at most; fewer where the legend would be wider than the figure.
    """
    labels = [textwrap.fill(label, int(LABEL * figure.get_figwidth())) for label in handles]
    for number in range(columns, 0, -1):
        legend = figure.legend(list(handles.values()), labels, loc="outside lower center", ncols=number)
        extent = legend.get_window_extent()
        if extent.width <= figure.bbox.width or number == 1:
            break
        legend.remove()
    figure.set_figheight(figure.get_figheight() + extent.height / figure.dpi)


def date_axis(axes: Axes) -> None:
    """Label an x-axis of dates, few and short."""
    locator = AutoDateLocator(minticks=3, maxticks=7)  # with fewer it has no interval for some ranges
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))


def set_title(figure: Figure, text: str) -> None:
    """Set a title over the whole figure, wrapped to its width."""
    figure.suptitle(textwrap.fill(text, width=int(14 * figure.get_figwidth())), fontsize=9)


def png(figure: Figure) -> bytes:
    """A figure as PNG of `COLOURS` colours, with the same bytes for the same figure."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()  # `savefig` draws a figure with a layout twice
    opaque = Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")
    # A palette takes a third of the bytes.
    reduced = opaque.quantize(COLOURS, Image.Quantize.MAXCOVERAGE)
    file = io.BytesIO()
    reduced.save(file, format="PNG", dpi=(figure.dpi, figure.dpi))
    return file.getvalue()


def save_figure(figure: Figure, path: Path) -> None:
    """Write the `png` of a figure."""
    with atomic(path) as temporary:
        temporary.write_bytes(png(figure))
