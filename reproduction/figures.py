"""Figures of the paper's runs and reference curves: over time, utility against unfairness, and costs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from fairall import Result
from fairall.display import BLUE, COLUMN, GREY, PALETTE, PageFigure, handles_of, legend_below
from fairall.metrics import Quantity, Spread
from fairall.report import (
    STYLES,
    dataset_label,
    draw_over_time,
    first_reference,
    look_of,
    measures,
    method_label,
)
from fairall.results import LEVELS, REFERENCES, band, interval, level
from reproduction.items import figure_of, grid_of, label_grid
from reproduction.paper import synthetic_readings
from reproduction.plan import EFFECTIVE, METHODS, ON_SYNTHETIC, Planned, by_model, row_label, runs_of
from reproduction.tables import by_dataset

# Distinct lines, beside the colours of conf/model/, for readers who see none.
LINES: dict[str, Any] = dict(zip(METHODS, STYLES, strict=True))
ORACLES = {"oracle": "*", "oracle_fair": "P"}
REFERENCE_MARKS = {"accept_all": "+"} | ORACLES
ROSE, TEAL = PALETTE[:2]
UTILITY_AND_DPU = measures("utility", "dpu")
# Labels as matplotlib typesets them.
POLICIES = {
    "z_dec": r"$\pi^Z_\mathrm{dec}$",
    "z_clf": r"$\pi^Z_\mathrm{clf}$",
    "z_label": r"$\pi^Z_\mathrm{label}$",
    "clf": r"$\pi_\mathrm{clf}$",
    "dec": r"$\pi_\mathrm{dec}$",
}
Point = tuple[int, Spread | float, dict[str, Any]]
"""Index of a row, what is drawn there ×100, and its look."""

CURVE_DATASETS = ("credit", "compas", "meps")  # of the reference curves of a method


def figure(
    planned: Sequence[Planned], draw: str, *, besides: Sequence[Planned] = (), **shown: Any
) -> PageFigure:
    """A figure of some runs.

    Args:
        planned: the runs, finished or missing.
        draw: name of what draws it, of `DRAWN`.
        besides: further runs, without which it can be drawn.
        shown: fields of the figure.
    """
    drawn = partial(DRAWN[draw], planned, besides)
    return figure_of(draw=drawn, planned=planned, besides=besides, **shown)


def curve_figures(planned: Sequence[Planned], **shown: Any) -> list[PageFigure]:
    """Utility and DPU over time of each method, a figure per method."""
    own: dict[str, list[Planned]] = {}
    for one in planned:
        if one.dataset in CURVE_DATASETS:
            own.setdefault(one.model, []).append(one)
    return [
        figure_of(f"curve_{name}", method_label(name), draw=partial(_curves, some), planned=some, **shown)
        for name, some in own.items()
    ]


def _methods_over_time(planned: Sequence[Planned], besides: Sequence[Planned]) -> Figure:
    """Draw measures of methods over time, on synthetic data with lines of the optimal policies."""
    lines = {}
    looks = {
        name: {"label": method_label(name), "color": look_of(name)["color"], "ls": line}
        for name, line in LINES.items()
    }
    for one in besides:
        label = method_label(one.model)
        if one.run is not None:
            lines[label] = {of.name: float(one.run.last(of.name).mean()) for of in ON_SYNTHETIC}
        else:
            readings = synthetic_readings(one.name("initial_policy"), one.model)
            lines[f"{label} (printed)"] = {key: sum(ends) / 2 for key, ends in readings.items()}
    synthetic = all(one.dataset == "synthetic" for one in planned)
    shown = ON_SYNTHETIC if synthetic else UTILITY_AND_DPU
    return draw_over_time(by_model(planned), shown, looks, lines=lines)


def _policies_over_time(planned: Sequence[Planned], besides: Sequence[Planned]) -> Figure:
    """Draw utility and DPU over time of FairAll with each of its policies."""
    runs = {one.config.model["policy"]: one.run for one in planned if one.run is not None}
    looks = {
        name: {"label": POLICIES[name], "color": color, "ls": line}
        for name, color, line in zip(POLICIES, (BLUE, *PALETTE), STYLES, strict=False)
    }
    return draw_over_time(runs, UTILITY_AND_DPU, looks)


def _against_cost(planned: Sequence[Planned], besides: Sequence[Planned]) -> Figure:
    """Draw effective measures against c, a line per data set, with a band of one standard deviation."""
    figure, (panels,) = grid_of(1, len(EFFECTIVE), 1.85, width=COLUMN)
    finished = by_dataset(one for one in planned if one.run is not None)
    for axes, measure in zip(panels, EFFECTIVE, strict=True):
        for (dataset, own), color, line in zip(finished.items(), PALETTE, STYLES, strict=False):
            runs = {run.config.cost.value: run for run in runs_of(own)}
            values = pd.DataFrame({cost: run.values(measure.name) for cost, run in runs.items()}).T
            look: dict[str, Any] = {"color": color, "ls": line, "marker": "."}
            band(axes, values, bounds=measure.bounds, label=dataset_label(dataset), **look)
            for policy in ORACLES:
                of = {cost: run.reference(policy, measure.name) for cost, run in runs.items()}
                heights = pd.Series({cost: 100 * spread.mean for cost, spread in of.items() if spread})
                axes.plot(heights, color=color, ls=LEVELS[policy], lw=0.6, label=REFERENCES[policy])
        axes.set(title=measure.heading, xlabel="cost c", ylabel="×100")
    legend_below(figure, handles_of(panels[:1]), 3)
    return figure


def _test_planes(planned: Sequence[Planned], besides: Sequence[Planned]) -> Figure:
    panels = {dataset_label(name): by_model(own) for name, own in by_dataset(planned).items()}
    utility, dpu = (measure.mean() for measure in UTILITY_AND_DPU)
    return draw_planes({name: runs for name, runs in panels.items() if runs}, dpu, utility, ORACLES)


def draw_planes(
    panels: Mapping[str, Mapping[str, Result]],
    dpu: Quantity,
    utility: Quantity,
    marks: Mapping[str, str] = REFERENCE_MARKS,
) -> Figure:
    """Draw mean utility against mean DPU with 95 % intervals, and the Pareto front.

    Args:
        panels: runs by row of the leaderboard, by title of their panel.
        dpu: measure of the horizontal axis.
        utility: measure of the vertical axis.
        marks: of the references that are drawn.
    """
    rows = math.ceil(len(panels) / 2)
    figure, grid = grid_of(rows, 2, 1.7 * rows + 0.1)
    for axes, (title, runs) in zip(grid.flat, panels.items(), strict=False):
        points = {}
        for name, run in runs.items():
            x, y = run.spread(dpu.name), run.spread(utility.name)
            if x and y:
                points[name] = 100 * x.mean, 100 * y.mean
                interval(axes, x, y, clip_on=False, label=row_label(name), **mark_of(name))
        for policy, mark in marks.items():
            x, y = (first_reference(runs.values(), policy, one.name) for one in (dpu, utility))
            # One that loses would compress the axis of all others.
            if x and y and y.mean >= 0:
                label = REFERENCES[policy]
                interval(axes, x.mean, y.mean, clip_on=False, marker=mark, color=GREY, ms=5, label=label)
        front = sorted({*undominated(points).values()})
        axes.plot(*zip(*front, strict=True), color=GREY, ls="--", lw=0.8, zorder=0, label="Pareto front")
        axes.set_xlim(left=0)
        axes.set(title=title, xlabel=f"{dpu.heading} ×100", ylabel=f"{utility.heading} ×100")
    for axes in grid.flat[len(panels) :]:
        axes.remove()
    legend_below(figure, handles_of(figure.axes), 6)
    return figure


def draw_rows(
    names: Sequence[str], panels: Mapping[str, Iterable[Point]], columns: int
) -> tuple[Figure, np.ndarray]:
    """Draw points with intervals, a row per name, the first on top.

    Args:
        names: of the rows.
        panels: points by title.
        columns: panels side by side.

    Returns:
        The figure without a legend, and its panels of shape (rows, columns).
    """
    lines = math.ceil(len(panels) / columns)
    figure, grid = grid_of(lines, columns, lines * (0.17 * len(names) + 0.6), sharey=True)
    for axes, (title, points) in zip(grid.flat, panels.items(), strict=False):
        for row, x, look in points:
            interval(axes, x, -row / 100, clip_on=False, **look)
        axes.set_title(title)
        axes.grid(axis="x", lw=0.3, alpha=0.5)
    for axes in grid[:, 0]:
        axes.set_yticks(range(0, -len(names), -1), names)
    return figure, grid


def mark_of(method: str) -> dict[str, Any]:
    """Look of a method's point."""
    return {**look_of(method), "ms": 5.0, "mew": 0.3, "mec": "white"}


def undominated(points: Mapping[str, tuple[float, float]]) -> dict[str, tuple[float, float]]:
    """Points (unfairness, utility) that no other is better than in both.

    Examples:
        >>> [*undominated({"a": (0.3, 0.2), "b": (0.1, 0.1), "c": (0.4, 0.1)})]
        ['a', 'b']
    """
    every = {*points.values()}
    return {
        name: (x, y)
        for name, (x, y) in points.items()
        if not any(a <= x and b >= y for a, b in every - {(x, y)})
    }


def _curves(planned: Sequence[Planned]) -> Figure:
    """Draw utility and DPU of a method over time: a row per measure, a column per data set."""
    runs = runs_of(planned)
    figure, panels = grid_of(len(UTILITY_AND_DPU), len(runs), 2.4, sharex=True)
    for row, measure in zip(panels, UTILITY_AND_DPU, strict=True):
        for axes, run in zip(row, runs, strict=True):
            label = f"{run.name('initial_policy')} initial policy"
            band(axes, run.curve(measure.name), label=label, color=BLUE)
            for policy in ORACLES:
                if reference := run.reference(policy, measure.mean().name):
                    level(axes, policy, measure, reference.mean)
    label_grid(
        panels,
        "time step t",
        titles=[dataset_label(run.name("dataset")) for run in runs],
        ylabels=[f"{measure.label} ×100" for measure in UTILITY_AND_DPU],
    )
    legend_below(figure, handles_of([panels[0][0]]), 4)
    return figure


DRAWN: dict[str, Callable[[Sequence[Planned], Sequence[Planned]], Figure]] = {
    "methods over time": _methods_over_time,
    "policies over time": _policies_over_time,
    "costs": _against_cost,
    "planes": _test_planes,
}
"""What draws runs, and further ones, by name."""
