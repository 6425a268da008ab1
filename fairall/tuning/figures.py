"""Figure of a study: its trials by their objectives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from fairall.display.format import marked
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
from fairall.tuning.study import Study

USUAL = {"linestyle": "none", "marker": "o", "ms": 4, "elinewidth": 0.7}
LOOKS: Sequence[Mapping[str, Any]] = [
    {"color": GREY},
    {"color": BLUE},
    {"color": ORANGE, "marker": "*", "ms": 14, "mfc": "none"},
    {"color": GREEN, "marker": "D", "ms": 9, "mfc": "none"},
]


def draw_study(study: Study, groups: Mapping[str, Sequence[int]], path: Path) -> None:
    """A panel for each objective but the first, by the first one, with standard errors over seeds.

    Of a single objective, or of a study that selects nothing, a panel for each objective by the first key.

    Args:
        study: with at least one finished trial.
        groups: at most four lists of places in `study.finished`, by the label in the legend.
        path: PNG to write.
    """
    means, errors = study.seeds.mean(), study.seeds.sem()
    across, *others = study.objectives
    if study.no_selection or not others:
        others, across = [*study.objectives], next(iter(study.space))
        means[across] = [trial.params[across] for trial in study.finished]
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(4.2 * len(others), 3.2), layout="constrained")
        panels = figure.subplots(1, len(others), squeeze=False)[0]
        for axes, up in zip(panels, others, strict=True):
            axes.set(xlabel=across, ylabel=up)
            for (label, numbers), look in zip(groups.items(), LOOKS, strict=False):
                x, y = means.loc[numbers, across], means.loc[numbers, up]
                xerr = errors.loc[numbers, across] if across in errors else None
                look = {**USUAL, "label": label, **look}
                axes.errorbar(x, y, errors.loc[numbers, up], xerr, **look)
        legend_below(figure, handles_of(panels), 4)
        set_title(figure, marked(f"{study.name}, validation people", study.settings.get("preset")))
        save_figure(figure, path)
