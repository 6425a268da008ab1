"""Figure of a study: trials by their objectives, and importances of the hyperparameters."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fairall.results.figures import BLUE, GREEN, GREY, ORANGE, STYLE
from fairall.storage.files import atomic
from fairall.tuning.objectives import Objective, Trial, pareto_set, selected


def draw_sweep(
    trials: Sequence[Trial],
    objectives: Sequence[Objective],
    importances: Mapping[str, Mapping[str, float]],
    path: Path,
    *,
    title: str,
    paper: int | None,
) -> None:
    """A panel for each pair of objectives, or for the only one trial by trial, and one of importances.

    Args:
        trials: the finished ones, at least one.
        objectives: of the study.
        importances: by objective, then by parameter.
        path: PNG to write.
        title: of the figure.
        paper: number of the trial with the hyperparameters of the paper; None where there is none.
    """
    pairs: list[tuple[Objective | None, Objective]] = [*itertools.combinations(objectives, 2)]
    pairs = pairs or [(None, objectives[0])]
    with mpl.rc_context(STYLE):
        known = {name: shares for name, shares in importances.items() if shares}
        figure = Figure(figsize=(4.2 * (len(pairs) + bool(known)), 3.6), layout="constrained")
        panels = figure.subplots(1, len(pairs) + bool(known), squeeze=False)[0]
        for axes, (across, up) in zip(panels, pairs, strict=False):
            _draw_trials(axes, trials, objectives, across, up, paper)
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))
        if known:
            _draw_importances(panels[-1], known)
        figure.suptitle(title, fontsize=10)
        with atomic(path) as temporary:
            figure.savefig(temporary, metadata={"Software": None})


def draw_trials(trials: Sequence[Trial], objectives: Sequence[Objective], path: Path, *, title: str) -> None:
    """A panel per objective, over the values of the only key, or trial by trial; none is selected.

    Args:
        trials: the finished ones, at least one.
        objectives: of the study.
        path: PNG to write.
        title: of the figure.
    """
    across, places = "trial", [float(trial.number) for trial in trials]
    if len(trials[0].point) == 1:
        (key,) = trials[0].point
        values = [trial.point[key] for trial in trials]
        if all(isinstance(value, int | float) for value in values):
            across, places = key, [float(value) for value in values]  # type: ignore[arg-type]
    order = sorted(range(len(trials)), key=places.__getitem__)
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(4.2 * len(objectives), 3.2), layout="constrained")
        panels = figure.subplots(1, len(objectives), squeeze=False)[0]
        for axes, objective in zip(panels, objectives, strict=True):
            axes.errorbar(
                [places[k] for k in order],
                [trials[k].mean(objective) for k in order],
                yerr=[trials[k].standard_error(objective) for k in order],
                fmt="o" if across == "trial" else "o-",
                ms=4,
                lw=0.9,
                color=BLUE,
            )
            axes.set(xlabel=across, ylabel=objective.measure)
        figure.suptitle(title, fontsize=10)
        with atomic(path) as temporary:
            figure.savefig(temporary, metadata={"Software": None})


def _draw_trials(
    axes: Axes,
    trials: Sequence[Trial],
    objectives: Sequence[Objective],
    across: Objective | None,
    up: Objective,
    paper: int | None,
) -> None:
    front = {trial.number for trial in pareto_set(trials, objectives)}
    chosen = selected(trials, objectives)
    assert chosen is not None

    def place(trial: Trial) -> tuple[float, float]:
        return (float(trial.number) if across is None else trial.mean(across), trial.mean(up))

    for label, colour, members in (
        ("other trials", GREY, [trial for trial in trials if trial.number not in front]),
        ("Pareto set", BLUE, [trial for trial in trials if trial.number in front]),
    ):
        places = [place(trial) for trial in members]
        axes.errorbar(
            [x for x, _ in places],
            [y for _, y in places],
            xerr=None if across is None else [trial.standard_error(across) for trial in members],
            yerr=[trial.standard_error(up) for trial in members],
            fmt="o",
            ms=4,
            lw=0.7,
            alpha=0.8,
            color=colour,
            label=label,
        )
    for label, colour, marker, number in (
        ("selected", ORANGE, "*", chosen.number),
        ("the paper's", GREEN, "D", paper),
    ):
        at = [place(trial) for trial in trials if trial.number == number]
        if at:
            axes.plot(*at[0], marker, ms=12, mfc="none", mew=1.8, color=colour, label=label)
    axes.set_xlabel("trial" if across is None else f"{across.measure} ({across.direction})")
    axes.set_ylabel(f"{up.measure} ({up.direction})")


def _draw_importances(axes: Axes, importances: Mapping[str, Mapping[str, float]]) -> None:
    parameters = sorted(next(iter(importances.values())))
    height = 0.8 / len(importances)
    for i, ((name, shares), colour) in enumerate(
        zip(importances.items(), (BLUE, ORANGE, GREEN, GREY), strict=False)
    ):
        at = [k + (i + 0.5) * height - 0.4 for k in range(len(parameters))]
        axes.barh(at, [shares[key] for key in parameters], height, color=colour, label=name)
    axes.set_yticks(range(len(parameters)), parameters)
    axes.invert_yaxis()
    axes.set_xlabel("importance")
    axes.legend(fontsize=8)
