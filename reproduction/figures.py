"""Figures of the paper's runs and reference curves: over time, utility against unfairness, and costs."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from fairall import Result
from fairall.display import BLUE, GREY, PALETTE, PageFigure
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
from fairall.results import LEVELS, REFERENCES, interval
from reproduction.items import LINES, figure_of, grid_of
from reproduction.plan import EFFECTIVE, ON_SYNTHETIC, OPTIMAL, Planned, by_model, row_label, runs_of
from reproduction.study_figures import Mark, draw_panels
from reproduction.tables import by_dataset

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
# Of methods over time, and of FairAll's policies.
LOOKS: dict[str, dict[str, Any]] = {
    name: {"label": method_label(name), "color": look_of(name)["color"], "ls": line}
    for name, line in LINES.items()
}
LOOKS |= {
    name: {"label": label, "color": color, "ls": line}
    for (name, label), color, line in zip(POLICIES.items(), (BLUE, *PALETTE), STYLES, strict=False)
}
CURVE_DATASETS = ("credit", "compas", "meps")  # of the reference curves of a method
Point = tuple[int, Spread | float, dict[str, Any]]
"""Index of a row, what is drawn there ×100, and its look."""


def curve_figures(planned: Sequence[Planned], **shown: Any) -> list[PageFigure]:
    """Utility and DPU over time of each method, a figure per method."""
    found = []
    for name in dict.fromkeys(one.model for one in planned):
        own = [one for one in planned if one.model == name and one.dataset in CURVE_DATASETS]
        drawn = partial(_draw_curves, own)
        found.append(figure_of(f"curve_{name}", method_label(name), draw=drawn, planned=own, **shown))
    return found


def _draw_curves(planned: Sequence[Planned]) -> Figure:
    marks = []
    for measure, run in itertools.product(UTILITY_AND_DPU, runs_of(planned)):
        panel = dataset_label(run.name("dataset")), "time step t", f"{measure.label} ×100"
        label, curve = f"{run.name('initial_policy')} initial policy", run.curve(measure.name)
        marks.append(Mark(panel, curve, {"color": BLUE, "label": label}))
        for policy in ORACLES:
            if reference := run.reference(policy, measure.mean().name):
                level = pd.DataFrame({"": reference.mean}, curve.index[[0, -1]])
                marks.append(Mark(panel, level, _thin(policy)))
    return draw_panels(marks)


def _thin(policy: str, color: str = GREY) -> dict[str, Any]:
    """Look of a reference's line."""
    return {"color": color, "ls": LEVELS[policy], "lw": 0.6, "label": REFERENCES[policy]}


def over_time(planned: Sequence[Planned]) -> Figure:
    """Draw methods or FairAll's policies, beside the levels of optimal policies on synthetic data."""
    of_policies, runs, lines = planned[0].sweep == "paper_policies", {}, {}
    for one in planned:
        if one.run is not None and one.model in OPTIMAL:
            levels = {of.name: float(one.run.last(of.name).mean()) for of in ON_SYNTHETIC}
            lines[method_label(one.model)] = levels
        elif one.run is not None:
            runs[one.config.model["policy"] if of_policies else one.model] = one.run
    beside = any(one.model in OPTIMAL for one in planned)
    return draw_over_time(runs, ON_SYNTHETIC if beside else UTILITY_AND_DPU, LOOKS, lines=lines)


def costs(planned: Sequence[Planned]) -> Iterator[Mark]:
    """Effective measures against c: a line per data set."""
    finished = by_dataset(one for one in planned if one.run is not None)
    for measure in EFFECTIVE:
        panel = measure.heading, "cost c", "×100"
        for (dataset, own), color, line in zip(finished.items(), PALETTE, STYLES, strict=False):
            runs = {run.config.cost.value: run for run in runs_of(own)}
            values = pd.DataFrame({cost: run.values(measure.name) for cost, run in runs.items()}).T
            look = {"color": color, "ls": line, "marker": ".", "bounds": measure.bounds}
            yield Mark(panel, values, look | {"label": dataset_label(dataset)})
            for policy in ORACLES:
                of = {cost: run.reference(policy, measure.name) for cost, run in runs.items()}
                heights = pd.Series({cost: spread.mean for cost, spread in of.items() if spread}, dtype=float)
                yield Mark(panel, heights.to_frame(), _thin(policy, color))


def planes(planned: Sequence[Planned]) -> Iterator[Mark]:
    """Utility against unfairness on test people: a panel per data set."""
    utility, dpu = (measure.mean() for measure in UTILITY_AND_DPU)
    for dataset, own in by_dataset(planned).items():
        if runs := by_model(own):
            yield from plane(dataset_label(dataset), runs, dpu, utility, ORACLES)


def plane(
    title: str,
    runs: Mapping[str, Result],
    dpu: Quantity,
    utility: Quantity,
    references: Mapping[str, str] = REFERENCE_MARKS,
) -> Iterator[Mark]:
    """Mean utility against mean DPU with 95 % intervals, and the Pareto front.

    Args:
        title: of the panel.
        runs: by row of the leaderboard.
        dpu: measure of the horizontal axis.
        utility: measure of the vertical axis.
        references: marks of those that are drawn.
    """
    panel = title, f"{dpu.heading} ×100", f"{utility.heading} ×100"
    spreads = {name: (run.spread(dpu.name), run.spread(utility.name)) for name, run in runs.items()}
    for name, of in spreads.items():
        yield Mark(panel, of, mark_of(name) | {"label": row_label(name)})
    for policy, mark in references.items():
        x, y = (first_reference(runs.values(), policy, one.name) for one in (dpu, utility))
        # One that loses would compress the axis of all others.
        if y and y.mean >= 0:
            yield Mark(panel, (x, y), {"marker": mark, "color": GREY, "ms": 5, "label": REFERENCES[policy]})
    known = [(100 * x.mean, y.mean) for x, y in spreads.values() if x and y]
    means = pd.DataFrame(known, columns=[0, 1], dtype=float)
    front = means.loc[undominated(means[0], means[1])].sort_values([0, 1]).set_index(0)
    yield Mark(panel, front, {"color": GREY, "ls": "--", "lw": 0.8, "zorder": 0, "label": "Pareto front"})


def draw_rows(names: Sequence[str], panels: Mapping[str, Sequence[Point]], columns: int) -> Figure:
    """Draw points with intervals, a row per name, the first on top.

    Args:
        names: of the rows.
        panels: points by title.
        columns: panels side by side.

    Returns:
        The figure without a legend.
    """
    lines = math.ceil(len(panels) / columns)
    figure, grid = grid_of(lines, columns, lines * (0.17 * len(names) + 0.6), sharey=True)
    for axes, (title, points) in zip(grid.flat, panels.items(), strict=False):
        for row, x, look in points:
            interval(axes, x, -row / 100, clip_on=False, **look)
        axes.set_title(title)
        axes.grid(axis="x", lw=0.3, alpha=0.5)
        axes.set_yticks(range(0, -len(names), -1), names)
    return figure


def mark_of(method: str) -> dict[str, Any]:
    """Look of a method's point."""
    return {**look_of(method), "ms": 5.0, "mew": 0.3, "mec": "white"}


def undominated(unfairness: pd.Series, utility: pd.Series) -> list[Any]:
    """Index of the points that no other is better than in both.

    Examples:
        >>> undominated(pd.Series([0.3, 0.1, 0.4]), pd.Series([0.2, 0.1, 0.1]))
        [0, 1]
    """
    x, y = unfairness.to_numpy()[:, None], utility.to_numpy()[:, None]
    beaten = (x >= x.T) & (y <= y.T) & ((x != x.T) | (y != y.T))
    return [*unfairness.index[~beaten.any(axis=1)]]
