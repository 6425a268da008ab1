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
    columns = min(n, SIDE_BY_SIDE)
    rows = math.ceil(n / columns)
    width = COLUMN if columns <= 2 else 2 * COLUMN
    figure = Figure(figsize=(width, 0.3 + height * rows), layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False, sharey=sharey).ravel()
    for axes in panels[:n]:
        axes.locator_params(nbins=4)
    for unused in panels[n:]:
        unused.set_axis_off()
    return figure, list(panels[:n])


def lines_of(names: Iterable[Sequence[Any]]) -> dict[str, Any]:
    """What a legend shows of names and their colours, the first two of each sequence."""
    return {name: Line2D([], [], color=colour, marker="o", ms=3) for name, colour, *_ in names}


def point(axes: Axes, interval: Interval, y: float, colour: str, lw: float = 1.0) -> None:
    """Draw an estimate ×100 with its interval, hollow without one; an interval without estimate as a line."""
    ends, hollow = np.array([100 * interval.low, 100 * interval.high]), np.isnan(interval.low)
    marker = "|" if np.isnan(interval.estimate) else ""
    axes.plot(ends, [y, y], color=colour, lw=lw, marker=marker, ms=3)
    fill = "none" if hollow else colour
    axes.plot(100 * interval.estimate, y, "o", ms=2.5, color=colour, mfc=fill, mew=0.7)


def rows_of(axes: Axes, labels: Sequence[str]) -> None:
    """Name the rows of a panel of points."""
    axes.set_yticks(range(len(labels)), labels)
    axes.set_ylim(len(labels) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
