"""Figures of the leaderboard: utility against unfairness, aggregates over tasks, and comparisons of pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

from fairall.display import GREY, PageFigure, legend_below
from fairall.report import dataset_label, look_of
from fairall.results import LEVELS, REFERENCES
from reproduction.aggregates import Estimate, Pair
from reproduction.board import BETTER, DPU, UTILITY, Board
from reproduction.figures import draw_planes, mark_of
from reproduction.items import figure_of, grid_of, name_rows
from reproduction.plan import row_label
from reproduction.words import words_of

WORDS = words_of("leaderboard")
# From orange by white to blue, light enough for black digits.
TINTS = LinearSegmentedColormap.from_list("tints", ["#F0A860", "#FFFFFF", "#7DB4DC"])


def board_figures(own: Board) -> list[PageFigure]:
    """Figures of a board; those that need more than there is cannot be drawn."""
    planes = {
        f"{dataset_label(task.dataset)}, {task.initial_policy} initial policy": task.runs
        for task in own.tasks
    }
    drawn = {
        "aggregates": (lambda: draw_aggregates(own), own.standings["share"].notna().any()),
        "plane": (lambda: draw_planes(planes, own.methods, DPU, UTILITY, columns=2), len(own.standings)),
        "pairs": (lambda: draw_pairs(own), own.better[UTILITY.name]),
    }
    return [
        figure_of(
            f"leaderboard_{key}", draw=draw, planned=own.planned, drawn=bool(enough), wide=True, **words
        )
        for (key, (draw, enough)), words in zip(drawn.items(), WORDS["figures"].values(), strict=True)
    ]


def draw_aggregates(own: Board) -> Figure:
    """Draw an interval per method: shares of the oracle's utility, DPU, probabilities of being better."""
    standings, titles = own.standings[::-1], WORDS["panels"]
    figure, ((*panels,),) = grid_of(1, len(titles), 0.17 * len(standings) + 0.6, sharey=True)
    handles: dict[str, Any] = {}
    for axes, (key, title) in zip(panels, titles.items(), strict=True):
        ends = 100 * standings[[key, f"{key}_low", f"{key}_high"]].astype(float)
        for height, (method, value, low, high) in enumerate(ends.itertuples(name=None)):
            if low < high:  # not where all scores are equal
                axes.barh(height, high - low, 0.5, low, color=look_of(method)["color"], alpha=0.5, lw=0)
            axes.plot(value, height, clip_on=False, **mark_of(method))
        axes.set_title(title)
        axes.grid(axis="x", lw=0.3, color=GREY, alpha=0.5)
        axes.set_axisbelow(True)
        axes.tick_params(axis="y", length=0)
        levels = own.references.get(key, own.references["share"] * np.nan).astype(float)
        for policy, level in levels[["accept_all", "oracle_fair"]].dropna().items():
            look: dict[str, Any] = {"color": GREY, "ls": LEVELS[str(policy)], "lw": 0.8, "zorder": 0}
            handles[REFERENCES[str(policy)]] = axes.axvline(100 * level, **look)
        if key in BETTER.values():
            handles["as good"] = axes.axvline(50, color=GREY, lw=0.8, zorder=0)
            axes.set_xlim(-3, 103)
    stars = ["*" * (n < len(own.tasks)) for n in standings["tasks"]]
    name_rows(panels[0], [*map("".join, zip(map(row_label, standings.index), stars, strict=True))])
    legend_below(figure, handles, 3)
    return figure


def draw_pairs(own: Board) -> Figure:
    """Draw a matrix of probabilities of earning more, and one of being fairer."""
    names = [*own.standings.index]
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
    for pair, estimate in better.items():
        row, column = map(names.index, pair)
        values[row, column] = estimate.value
        text = f"{100 * estimate.value:.0f}"
        look: dict[str, Any] = {"ha": "center", "va": "center", "color": "black"}
        weight = "bold" if {pair, pair[::-1]} & surely else "normal"
        axes.text(column, row, text, fontsize=4.5 if text == "100" else 5.5, fontweight=weight, **look)
    axes.imshow(values, cmap=TINTS, vmin=0.0, vmax=1.0, aspect="auto")
    axes.set_xticks(range(len(names)), map(row_label, names), rotation=90)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
