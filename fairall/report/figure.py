"""How the report's figures look: a colour and a mark per method, for paper and for screens."""

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

from fairall.results.figures import BLUE, GREEN, GREY, ORANGE
from fairall.storage.files import atomic

COLUMN = 3.4  # inches: the width of a column of the paper's
DPI = 300
VERMILION, SKY = "#D55E00", "#56B4E9"
# Okabe and Ito's palette, and a line of its own for who sees no colour at all.
COLOURS = {
    "fairall_I_II": BLUE, "fairall_II": SKY, "fairlab_I_II": GREEN, "fairlog": ORANGE, "unfairlog": VERMILION,
    "opt_fair": GREY, "opt_unfair": GREY,
    "z_dec": BLUE,  # the policy of FairAll (I+II) itself, among its others
}  # fmt: skip
LINES = {
    "fairall_I_II": "-", "fairall_II": "--", "fairlab_I_II": "-.", "fairlog": (0, (4, 1, 1, 1, 1, 1)),
    "unfairlog": ":", "opt_fair": (0, (6, 2)), "opt_unfair": (0, (1, 2)),
}  # fmt: skip
MARKS = {"fairall_I_II": "o", "fairall_II": "s", "fairlab_I_II": "^", "fairlog": "D", "unfairlog": "X"}
# From Tol's muted palette, as safe: what is no method has none of a method's colours.
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
    # Without it the file would differ between two equal reports.
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
        title: in one line.
        text: what it shows, for who reads and for who cannot see it.
        section: of the page.
        draw: makes it; None where runs are missing.
        commands: that make the runs it lacks.
    """

    key: str
    title: str
    text: str
    section: str
    draw: Callable[[], Figure] | None
    commands: list[str]


def save(figure: ReportFigure, folder: Path) -> tuple[bytes, bytes]:
    """Writes PNG and PDF; returns a light and a dark PNG for the page."""
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
    """One legend for all panels, under them; the figure grows by its height.

    Args:
        figure: with a constrained layout.
        handles: matplotlib's artists, by label.
        columns: the most there may be. Fewer where the legend would be wider than the figure; labels that are
            too long for a single column are wrapped.
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
    """What a legend of some panels shows: artists by label, each label once."""
    found: dict[str, Any] = {}
    for axes in panels:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    return found
