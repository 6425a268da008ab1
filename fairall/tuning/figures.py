"""Figure of a study: its points by their objectives, and importances of the hyperparameters."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fairall.display.style import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    STYLE,
    handles_of,
    legend_below,
    save_figure,
    set_title,
)
from fairall.tuning.objectives import pareto_set
from fairall.tuning.space import Range
from fairall.tuning.study import Study


def draw_study(
    study: Study,
    importances: Mapping[str, Mapping[str, float]],
    path: Path,
    *,
    title: str,
    paper: int | None,
) -> None:
    """A panel for each pair of objectives, or for the only one point by point, and one of importances.

    Of a study that selects nothing, a panel for each objective.

    Args:
        study: with at least one finished point.
        importances: by objective, then by parameter; it may be empty.
        path: PNG to write.
        title: of the figure.
        paper: number of the point with the hyperparameters of the paper; None where there is none.
    """
    pairs: list[tuple[str | None, str]] = [*itertools.combinations(study.objectives, 2)]
    if study.no_selection or not pairs:
        pairs = [(None, measure) for measure in study.objectives]
    with mpl.rc_context(STYLE):
        n_panels = len(pairs) + bool(importances)
        figure = Figure(figsize=(4.2 * n_panels, 3.2), layout="constrained")
        panels = figure.subplots(1, n_panels, squeeze=False)[0]
        for axes, (across, up) in zip(panels, pairs, strict=False):
            _draw_points(axes, study, across, up, paper)
        if importances:
            table = pd.DataFrame(importances).sort_index(ascending=False)
            colours = [BLUE, ORANGE, GREEN, GREY][: len(table.columns)]
            table.plot.barh(ax=panels[-1], color=colours, width=0.8, xlabel="importance")
        if handles := handles_of(panels[: len(pairs)]):
            legend_below(figure, handles, 4)
        set_title(figure, title)
        save_figure(figure, path)


def _draw_points(axes: Axes, study: Study, across: str | None, up: str, paper: int | None) -> None:
    """Points by two objectives, or by one over the values of the only key."""
    means, errors = study.means, study.errors
    x = means.index.to_series() if across is None else means[across]
    axes.set_xlabel("point" if across is None else study.headings[across])
    axes.set_ylabel(study.headings[up])
    groups = {"": (means.index, BLUE)}
    if not study.no_selection:
        front = pareto_set(study.costs).index
        groups = {"other points": (means.index.difference(front), GREY), "Pareto set": (front, BLUE)}
    elif len(study.space.values) == 1:
        ((key, values),) = study.space.values.items()
        if isinstance(values, Range) or all(isinstance(value, int | float) for value in values):
            x = pd.Series([study.point(number)[key] for number in means.index], means.index)
            axes.set_xlabel(key)
    for label, (members, colour) in groups.items():
        look: dict[str, Any] = {"fmt": "o", "ms": 4, "lw": 0.7, "alpha": 0.8, "color": colour}
        width = None if across is None else errors.loc[members, across]
        height = errors.loc[members, up]
        axes.errorbar(
            x[members], means.loc[members, up], xerr=width, yerr=height, label=label or None, **look
        )
    marks = {"selected": (study.selected, ORANGE, "*"), "the paper's": (paper, GREEN, "D")}
    for label, (number, colour, marker) in marks.items():
        if number in means.index:
            place = (x[number], means.loc[number, up])
            axes.plot(*place, marker, ms=12, mfc="none", mew=1.8, color=colour, label=label)
