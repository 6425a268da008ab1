"""What figures of analyses are drawn with; imports matplotlib."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fairall.display.style import BLUE, COLUMN, ORANGE
from fairall.evaluate.estimated.estimates import Interval

POLICIES = (BLUE, ORANGE)  # colours of the first and of the second
SIDE_BY_SIDE = 4  # panels


def grid(n: int, height: float, sharey: bool = False) -> tuple[Figure, list[Axes]]:
    """A figure with n panels, `SIDE_BY_SIDE` side by side at most."""
    columns = min(n, SIDE_BY_SIDE)
    rows = math.ceil(n / SIDE_BY_SIDE)
    figure = Figure(figsize=(COLUMN * min(columns, 2), 0.3 + height * rows), layout="constrained")
    panels = [*figure.subplots(rows, columns, squeeze=False, sharey=sharey).flat]
    for place, axes in enumerate(panels):
        axes.locator_params(nbins=4)
        axes.set_visible(place < n)
    return figure, panels[:n]


def points(axes: Axes, rows: Sequence[str], series: Sequence[tuple[str, str, Iterable[Interval]]]) -> None:
    """Draw estimates ×100 with their intervals in named rows; hollow without interval.

    Args:
        axes: of the panel.
        rows: their names.
        series: name, colour, and an interval for each row.
    """
    for k, (name, colour, intervals) in enumerate(series):
        estimate, low, high = 100 * np.array([interval[:3] for interval in intervals]).T
        y = np.arange(len(rows)) + 0.2 * (k - (len(series) - 1) / 2)
        axes.plot([low, high], [y, y], color=colour, lw=1.0, label=name)
        fill = np.where(np.isnan(low), "none", colour)
        axes.scatter(estimate, y, s=6.0, edgecolors=colour, facecolors=fill, linewidths=0.7)
    axes.set(yticks=range(len(rows)), yticklabels=rows, ylim=(len(rows) - 0.4, -0.6))
    axes.tick_params(axis="y", length=0)
