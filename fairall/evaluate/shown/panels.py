"""Value and fairness of policies as panels of a figure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from fairall.display.style import BLUE, GREY, ORANGE
from fairall.evaluate.estimated.bounds import Limits
from fairall.evaluate.estimated.estimators import LABELS
from fairall.evaluate.estimated.fairness import MEASURES, View
from fairall.evaluate.estimated.gaps import Interval

VIEWS = {"naive": GREY, "ips": ORANGE, "dr": BLUE}
NAMES = {"naive": "naive", "ips": "IPS", "dr": "DR"}
POLICIES = (BLUE, ORANGE)
VALUES = [*LABELS.values(), "guaranteed interval", "no assumption"]


def value_on(axes: Axes, policies: Sequence[Sequence[Interval]]) -> None:
    """Draw the values of at most two policies, each the intervals of `VALUES` in order."""
    for k, (colour, intervals) in enumerate(zip(POLICIES, policies, strict=False)):
        for row, interval in enumerate(intervals):
            _point(axes, interval, row + (k - (len(policies) - 1) / 2) * 0.22, colour)
    axes.axvline(0.0, color=GREY, lw=0.5, zorder=0)
    _rows(axes, VALUES)
    axes.set_xlabel("utility per person ×100")


def fairness_on(
    axes: Axes, fairness: Mapping[str, Mapping[View, Interval]], bounds: Mapping[str, Limits]
) -> None:
    """Draw the gaps of a policy by measure in each view, and their bounds where there are any."""
    for row, measure in enumerate(MEASURES):
        for k, (view, interval) in enumerate(fairness[measure].items()):
            _point(axes, interval, row + 0.2 * (k - 1.5), VIEWS[view])
        if measure in bounds:
            _point(axes, bounds[measure].interval, row + 0.3, GREY, lw=0.6)
    _rows(axes, [measure.label for measure in MEASURES.values()])
    axes.set_xlabel("unfairness ×100")
    axes.set_xlim(left=0.0)


def lines_of_views() -> dict[str, Any]:
    """What the legend of `fairness_on` shows."""
    names = zip(NAMES.values(), VIEWS.values(), strict=True)
    return lines_of(names) | {"no assumption": Line2D([], [], color=GREY, lw=0.6)}


def lines_of(names: Iterable[Sequence[Any]]) -> dict[str, Any]:
    """What a legend shows of names and their colours, the first two of each sequence."""
    return {name: Line2D([], [], color=colour, marker="o", ms=3) for name, colour, *_ in names}


def _point(axes: Axes, interval: Interval, y: float, colour: str, lw: float = 1.0) -> None:
    """An estimate ×100 with its interval, hollow without one; an interval without an estimate as a line."""
    ends, hollow = np.array([100 * interval.low, 100 * interval.high]), np.isnan(interval.low)
    marker = "|" if np.isnan(interval.estimate) else ""
    axes.plot(ends, [y, y], color=colour, lw=lw, marker=marker, ms=3)
    fill = "none" if hollow else colour
    axes.plot(100 * interval.estimate, y, "o", ms=2.5, color=colour, mfc=fill, mew=0.7)


def _rows(axes: Axes, labels: Sequence[str]) -> None:
    axes.set_yticks(range(len(labels)), labels)
    axes.set_ylim(len(labels) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
