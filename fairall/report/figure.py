"""Style of the report's figures: a colour, line and mark per method, light and dark."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fairall.results.style import BLUE, GREEN, GREY, ORANGE
from fairall.storage.files import atomic

COLUMN = 3.4  # inches, width of a column of the paper
DPI = 300
VERMILION, SKY = "#D55E00", "#56B4E9"
# Palette of Okabe and Ito; distinct lines for readers who see no colours.
COLOURS = {
    "fairall_I_II": BLUE, "fairall_II": SKY, "fairlab_I_II": GREEN, "fairlog": ORANGE, "unfairlog": VERMILION,
    "opt_fair": GREY, "opt_unfair": GREY,
    "z_dec": BLUE,  # the default policy of FairAll (I+II)
}  # fmt: skip
LINES = {
    "fairall_I_II": "-", "fairall_II": "--", "fairlab_I_II": "-.", "fairlog": (0, (4, 1, 1, 1, 1, 1)),
    "unfairlog": ":", "opt_fair": (0, (6, 2)), "opt_unfair": (0, (1, 2)),
}  # fmt: skip
MARKS = {"fairall_I_II": "o", "fairall_II": "s", "fairlab_I_II": "^", "fairlog": "D", "unfairlog": "X"}
# Tol's muted palette, equally safe, for all that is no method.
ROSE, OLIVE, TEAL, SAND, WINE = "#CC6677", "#999933", "#44AA99", "#DDCC77", "#AA4499"
OTHERS = [ROSE, TEAL, OLIVE, WINE, SAND, "#88CCEE", "#117733", "#882255"]
STYLES = ["-", "--", "-.", ":", (0, (4, 1, 1, 1, 1, 1))]
BASE = {
    "font.size": 7,
    "axes.titlesize": 7,
    "legend.fontsize": 6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "lines.linewidth": 1.1,
    "legend.frameon": False,
    "pdf.fonttype": 42,
    # Without a fixed salt the files of two equal reports would differ.
    "svg.hashsalt": "fairall",
}
LIGHT = {"figure.facecolor": "white", "axes.facecolor": "white"}
INK, NIGHT = "#d7dae0", "#15181d"
DARKENED = ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color")
DARK = {"figure.facecolor": NIGHT, "axes.facecolor": NIGHT} | dict.fromkeys(DARKENED, INK)


@dataclass(frozen=True)
class ReportFigure:
    """A figure of the report.

    Attributes:
        key: name of its files.
        title: one line.
        text: caption and alternative text.
        section: of the page.
        draw: creates the figure; None where all runs are missing.
        commands: to make the missing runs.
    """

    key: str
    title: str
    text: str
    section: str
    draw: Callable[[], Figure] | None
    commands: list[str]


def save(figure: ReportFigure, folder: Path) -> tuple[bytes, bytes]:
    """Write PNG and PDF; return a light and a dark PNG for the page."""
    assert figure.draw is not None
    with _style(LIGHT):
        drawn = figure.draw()
        with atomic(folder / f"{figure.key}.pdf") as temporary:
            drawn.savefig(temporary, metadata={"CreationDate": None, "Producer": None, "Creator": None})
        light = _png(drawn)
    with atomic(folder / f"{figure.key}.png") as temporary:
        temporary.write_bytes(light)
    with _style(DARK):
        return light, _png(figure.draw())


@contextmanager
def _style(colours: dict[str, str]) -> Iterator[None]:
    with mpl.rc_context(BASE | colours):
        yield


def _png(figure: Figure) -> bytes:
    content = io.BytesIO()
    figure.savefig(
        content, format="png", dpi=DPI, facecolor=figure.get_facecolor(), metadata={"Software": None}
    )
    return content.getvalue()


def legend_below(figure: Figure, handles: Mapping[str, Any], columns: int) -> None:
    """Add one legend for all panels below them; the figure grows by its height.

    Args:
        figure: with a constrained layout.
        handles: matplotlib's artists, by label.
        columns: at most; fewer where the legend would be wider than the figure. Labels too long for a single
            column are wrapped.
    """
    labels = list(handles)
    widest = max(map(len, labels))
    while True:
        legend = figure.legend(list(handles.values()), labels, loc="outside lower center", ncols=columns)
        extent = legend.get_window_extent()
        if extent.width <= figure.bbox.width or widest == 1:
            break
        legend.remove()
        if columns > 1:
            columns -= 1
        else:
            widest = min(widest - 1, int(widest * figure.bbox.width / extent.width))
            labels = [textwrap.fill(label, max(1, widest)) for label in handles]
    figure.set_figheight(figure.get_figheight() + extent.height / figure.dpi)


def handles_of(panels: Iterable[Axes]) -> dict[str, Any]:
    """Artists of some panels by label, each label once."""
    handles: dict[str, Any] = {}
    for axes in panels:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    return handles
