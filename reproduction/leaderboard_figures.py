"""Figures of the leaderboard: utility against unfairness, aggregates over tasks, and comparisons of pairs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

from fairall.display import GREY, PageFigure, legend_below
from fairall.metrics import Quantity, Spread
from fairall.report import WITH_ROW, dataset_label, look_of
from fairall.results import LEVELS, REFERENCES, interval
from reproduction.aggregates import Estimate, Pair
from reproduction.board import BASELINE, DPU, UTILITY, Board, Task
from reproduction.figures import ORACLES, pareto
from reproduction.items import figure_of, grid_of, name_rows
from reproduction.plan import row_label

REFERENCE_MARKS = {"accept_all": "+"} | ORACLES
FRONT = "Pareto front"
# From orange by white to blue, light enough for black digits.
TINTS = LinearSegmentedColormap.from_list("tints", ["#F0A860", "#FFFFFF", "#7DB4DC"])


def board_figures(own: Board) -> list[PageFigure]:
    """Figures of a board; those that need more than there is cannot be drawn."""
    return [
        figure_of(f"leaderboard_{key}", title, note, draw, own.planned, drawn=bool(enough), wide=True)
        for key, title, draw, enough, note in (
            (
                "aggregates",
                "Aggregates over tasks",
                lambda: draw_aggregates(own),
                any(one.estimates["share"] for one in own.standings),
                "Interquartile means over replicates and tasks, and the probability that the method is "
                f"better than {row_label(BASELINE)} in the same replicate, averaged over data sets; bars are "
                "95 % intervals for other data sets. A star marks methods that lack a task. Thin lines: "
                "references.",
            ),
            (
                "plane",
                "Utility against unfairness",
                lambda: draw_planes(own.tasks),
                own.standings,
                "Effective utility and DPU of all time steps together, with 95 % intervals over seeds "
                "(Student's t). The dashed line joins the methods that no other beats in both (Pareto "
                "front). In grey: references that earn no less than accepting nobody.",
            ),
            (
                "pairs",
                "Pairs of methods",
                lambda: draw_pairs(own),
                own.better[UTILITY.name],
                "Probability in per cent that the method in the row is better than the one in the column in "
                "the same replicate, averaged over data sets; bold where it differs from one half for other "
                "replicates on these data sets, corrected for all pairs.",
            ),
        )
    ]


# Panels of the aggregates by key.
AGGREGATES = {
    "share": "share of the oracle's\nutility ↑ (IQM, %)",
    "test_share": "the same of test\nutility ↑ (IQM, %)",
    "dpu": "DPU ↓\n(IQM, ×100)",
    UTILITY.name: "P(earns more than\n{}), %",
    DPU.name: "P(fairer than\n{}), %",
}


def draw_aggregates(own: Board) -> Figure:
    """Draw an interval per method: shares of the oracle's utility, DPU, probabilities of being better."""
    standings = own.standings[::-1]
    figure, ((*panels,),) = grid_of(1, len(AGGREGATES), 0.17 * len(standings) + 0.6, sharey=True)
    references = {policy: own.reference_levels(policy) for policy in ("accept_all", "oracle_fair")}
    handles: dict[str, Any] = {}
    for axes, (key, title) in zip(panels, AGGREGATES.items(), strict=True):
        compared = own.better.get(key)
        for height, one in enumerate(standings):
            pair = one.method, BASELINE
            estimate = one.estimates[key] if compared is None else compared.get(pair)
            if estimate is not None:
                _estimate(axes, height, estimate, one.method)
        axes.set_title(title.format(row_label(BASELINE)))
        axes.grid(axis="x", lw=0.3, color=GREY, alpha=0.5)
        axes.set_axisbelow(True)
        axes.tick_params(axis="y", length=0)
        for policy, levels in references.items():
            if (level := levels.get(key)) is not None:
                look: dict[str, Any] = {"color": GREY, "ls": LEVELS[policy], "lw": 0.8, "zorder": 0}
                handles[REFERENCES[policy]] = axes.axvline(100 * level, **look)
        if compared is not None:
            handles["as good"] = axes.axvline(50, color=GREY, lw=0.8, zorder=0)
            axes.set_xlim(-3, 103)
    complete = len(own.tasks)
    name_rows(panels[0], [row_label(one.method) + "*" * (one.tasks < complete) for one in standings])
    legend_below(figure, handles, 3)
    return figure


def _estimate(axes: Axes, height: int, estimate: Estimate, method: str) -> None:
    """Draw an interval as a bar, and the mark of the method at the aggregate."""
    value, low, high = (100 * of for of in estimate)
    if low < high:  # not where all scores are equal
        axes.barh(height, high - low, 0.5, low, color=look_of(method)["color"], alpha=0.5, lw=0)
    axes.plot(value, height, clip_on=False, **_mark(method))


def _mark(method: str) -> dict[str, Any]:
    """Look of a method's point."""
    look = look_of(method)
    # Marks with thin arms look smaller.
    size = 7.0 if look["marker"] in "*P" else 5.0
    return {**look, "ms": size, "mew": 0.3, "mec": "white"}


def draw_planes(tasks: Sequence[Task]) -> Figure:
    """Draw effective utility against DPU: a panel per task, two in a row."""
    rows = math.ceil(len(tasks) / 2)
    figure, grid = grid_of(rows, 2, 1.7 * rows + 0.1)
    panels = grid.flatten()
    handles: dict[str, Any] = {}
    for axes, task in zip(panels, tasks, strict=False):
        handles |= _plane(axes, task)
        axes.set_xlim(left=0)
        title = f"{dataset_label(task.dataset)}, {task.initial_policy} initial policy"
        axes.set(title=title, ylabel="effective utility (×100)", xlabel="DPU (×100), less is fairer")
    for axes in panels[len(tasks) :]:
        axes.remove()
    # In the order of the methods, whichever panel is the first to have one.
    methods = [name for task in tasks for name in task.planned]
    order = [*map(row_label, (*methods, *WITH_ROW)), FRONT]
    legend_below(figure, {name: handles[name] for name in order if name in handles}, 6)
    return figure


def _plane(axes: Axes, task: Task) -> dict[str, Any]:
    """Draw a task; return artists by label."""
    handles: dict[str, Any] = {}
    utility, dpu = (task.values(one) for one in (UTILITY, DPU))
    points = []
    for name in utility:
        if name not in dpu:
            continue
        x, y = _spread(dpu[name], DPU), _spread(utility[name], UTILITY)
        points.append((100 * x.mean, 100 * y.mean))
        handles[row_label(name)] = interval(axes, x, y, clip_on=False, **_mark(name))
    for policy, mark in REFERENCE_MARKS.items():
        unfairness, earned = (task.reference(policy, one) for one in (DPU, UTILITY))
        # One that loses would compress the axis of all others.
        if unfairness is not None and earned is not None and earned >= 0:
            look: dict[str, Any] = {"color": GREY, "ms": 5, "ls": "none", "zorder": 1, "clip_on": False}
            (handles[REFERENCES[policy]],) = axes.plot(100 * unfairness, 100 * earned, marker=mark, **look)
    if points:
        front = zip(*pareto(points), strict=True)
        (handles[FRONT],) = axes.plot(*front, color=GREY, ls="--", lw=0.8, zorder=0)
    return handles


def _spread(values: pd.Series, measure: Quantity) -> Spread:
    """Mean and interval over seeds."""
    spread = Spread.over_seeds(values.to_numpy(), bounds=measure.bounds)
    assert spread is not None  # values are finite, and there are some
    return spread


def draw_pairs(own: Board) -> Figure:
    """Draw a matrix of probabilities of earning more, and one of being fairer."""
    names = [one.method for one in own.standings]
    figure, ((*panels,),) = grid_of(1, 2, 0.19 * len(names) + 1.1, sharey=True)
    titles = {UTILITY.name: "row earns more than column", DPU.name: "row is fairer than column"}
    for axes, (measure, title) in zip(panels, titles.items(), strict=True):
        _matrix(axes, names, own.better[measure], own.surely[measure])
        axes.set_title(title)
    panels[0].set_yticks(range(len(names)), map(row_label, names))
    return figure


def _matrix(
    axes: Axes, names: Sequence[str], better: Mapping[Pair, Estimate], surely: AbstractSet[Pair]
) -> None:
    """Draw the probability for each ordered pair of methods, those of `surely` bold."""
    values = np.full((len(names), len(names)), np.nan)
    for (row, column), estimate in better.items():
        values[names.index(row), names.index(column)] = estimate.value
    axes.imshow(values, cmap=TINTS, vmin=0.0, vmax=1.0, aspect="auto")
    for (row, column), estimate in better.items():
        sure = bool({(row, column), (column, row)} & surely)
        text = f"{100 * estimate.value:.0f}"
        axes.text(
            names.index(column),
            names.index(row),
            text,
            ha="center",
            va="center",
            fontsize=4.5 if text == "100" else 5.5,
            color="black",
            fontweight="bold" if sure else "normal",
        )
    axes.set_xticks(range(len(names)), map(row_label, names), rotation=90)
    axes.tick_params(length=0)
    for side in axes.spines.values():
        side.set_visible(False)
