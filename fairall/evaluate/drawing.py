"""What figures of analyses are drawn with; imports matplotlib."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from fairall.display.style import BLUE, COLUMN, ORANGE
from fairall.evaluate.estimated.estimates import Interval
from fairall.evaluate.judgement import Judgement

POLICIES = (BLUE, ORANGE)
SIDE_BY_SIDE = 4  # panels


def coloured(evaluations: Mapping[str, Judgement]) -> Iterator[tuple[str, str, Judgement]]:
    """Name and colour of each policy."""
    return ((name, colour, one) for colour, (name, one) in zip(POLICIES, evaluations.items(), strict=False))


def band(axes: Axes, x: Any, y: Any, low: Any, high: Any, colour: str) -> Line2D:
    """Draw a curve ×100 with a band."""
    axes.fill_between(x, 100 * low, 100 * high, color=colour, alpha=0.25, lw=0)
    return axes.plot(x, 100 * y, color=colour)[0]


def grid(n: int, height: float, sharey: bool = False) -> tuple[Figure, list[Axes]]:
    """A figure with n panels, `SIDE_BY_SIDE` side by side at most."""
    columns, rows = min(n, SIDE_BY_SIDE), math.ceil(n / SIDE_BY_SIDE)
    width = COLUMN if columns <= 2 else 2 * COLUMN
    figure = Figure(figsize=(width, 0.3 + height * rows), layout="constrained")
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
