"""Figures of the leaderboard: utility against unfairness, aggregates over tasks, and comparisons of pairs."""

from __future__ import annotations

from functools import partial
from typing import Any

from matplotlib.figure import Figure

from fairall.display import GREY, PageFigure, handles_of, legend_below
from fairall.report import dataset_label
from fairall.results import LEVELS, REFERENCES
from reproduction.aggregates import shares_won
from reproduction.board import BETTER, DPU, UTILITY, Board
from reproduction.figures import draw_rows, mark_of, plane
from reproduction.items import figure_of, grid_of
from reproduction.plan import row_label
from reproduction.study_figures import Mark, draw_panels
from reproduction.words import words_of

WORDS = words_of("leaderboard")
TINTS = "RdBu"  # light enough for black digits at half its strength


def board_figures(own: Board) -> list[PageFigure]:
    """Figures of a board, which can be drawn from two methods on."""
    draws = {"aggregates": draw_aggregates, "plane": draw_plane, "pairs": draw_pairs}
    shared: dict[str, Any] = {"planned": own.planned, "drawn": len(own.standings) > 1, "wide": True}
    return [
        figure_of(f"leaderboard_{key}", draw=partial(draw, own), **shared, **WORDS["figures"][key])
        for key, draw in draws.items()
    ]


def draw_plane(own: Board) -> Figure:
    """Draw utility against unfairness, a panel per task."""
    marks = list[Mark]()
    for dataset, runs in own.runs.items():
        title = f"{dataset_label(dataset)}, {own.policies[dataset]} initial policy"
        marks += plane(title, runs, DPU, UTILITY)
    return draw_panels(marks)


def draw_aggregates(own: Board) -> Figure:
    """Draw an interval per method: shares of the oracle's utility, DPU, probabilities of being better."""
    standings, titles = own.standings, WORDS["panels"]
    every = f"{len(own.runs)} of {len(own.runs)}"
    names = [row_label(name) + "*" * (of["tasks"] != every) for name, of in standings.items()]
    points = {
        title: [
            (row, of[key], mark_of(name)) for row, (name, of) in enumerate(standings.items()) if of.get(key)
        ]
        for key, title in titles.items()
    }
    figure = draw_rows(names, points, len(points))
    for axes, key in zip(figure.axes, titles, strict=True):
        if key in BETTER:
            axes.axvline(50, color=GREY, label="as good")
            continue
        for policy in ("accept_all", "oracle_fair"):
            level = 100 * own.references[policy][key]
            axes.axvline(level, color=GREY, ls=LEVELS[policy], label=REFERENCES[policy], zorder=0)
    legend_below(figure, handles_of(figure.axes), 3)
    return figure


def draw_pairs(own: Board) -> Figure:
    """Draw a matrix of probabilities of earning more, and one of being fairer."""
    names = [*own.standings]
    figure, ((*panels,),) = grid_of(1, 2, 0.19 * len(names) + 1.1, sharey=True)
    titles = {UTILITY.name: "row earns more than column", DPU.name: "row is fairer than column"}
    for axes, (measure, title) in zip(panels, titles.items(), strict=True):
        values = shares_won(own.apart[measure])
        for pair, value in values.items():
            row, column = map(names.index, pair)
            weight = "bold" if {pair, pair[::-1]} & own.surely[measure] else "normal"
            text = f"{100 * value:.0f}"
            axes.text(column, row, text, ha="center", va="center", fontsize=4.5, fontweight=weight)
        axes.imshow(
            values.unstack().loc[names, names], cmap=TINTS, alpha=0.5, vmin=0.0, vmax=1.0, aspect="auto"
        )
        axes.set_xticks(range(len(names)), map(row_label, names), rotation=90)
        axes.set_title(title)
    panels[0].set_yticks(range(len(names)), map(row_label, names))
    return figure
