"""Figures of the paper's runs: over time, utility against unfairness, costs, acceptance, latent spaces."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from fairall import Result
from fairall.display import BLUE, COLUMN, GREY, ORANGE, PALETTE, PageFigure, handles_of, legend_below
from fairall.metrics import Quantity, Spread
from fairall.report import (
    STYLES,
    WITH_ROW,
    dataset_label,
    draw_over_time,
    first_reference,
    look_of,
    measures,
    method_label,
)
from fairall.results import LEVELS, REFERENCES, band, interval, level, principal
from reproduction.items import figure_of, grid_of, label_grid
from reproduction.latents import Space, latent_space
from reproduction.paper import synthetic_readings
from reproduction.plan import EFFECTIVE, ON_SYNTHETIC, Planned, by_model, row_label, runs_of
from reproduction.tables import by_dataset

# Distinct lines, beside the colours of conf/model/, for readers who see none.
LINES: dict[str, Any] = {
    "fairall_I_II": "-",
    "fairall_II": "--",
    "fairlab_I_II": "-.",
    "fairlog": (0, (4, 1, 1, 1, 1, 1)),
    "unfairlog": ":",
}
ORACLES = {"oracle": "*", "oracle_fair": "P"}
REFERENCE_MARKS = {"accept_all": "+"} | ORACLES
FRONT = "Pareto front"
ROSE, TEAL, OLIVE, WINE = PALETTE[:4]
DEFAULT_POLICY = "z_dec"  # of FairAll (I+II), in its colour
SMOOTH = 10  # time steps of the moving average over applicants' acceptance, which 64 people make noisy
UTILITY_AND_DPU = measures("utility", "dpu")
# Labels as matplotlib typesets them.
POLICIES = {
    "z_dec": r"$\pi^Z_\mathrm{dec}$",
    "z_clf": r"$\pi^Z_\mathrm{clf}$",
    "z_label": r"$\pi^Z_\mathrm{label}$",
    "clf": r"$\pi_\mathrm{clf}$",
    "dec": r"$\pi_\mathrm{dec}$",
}
CURVE_DATASETS = ("credit", "compas", "meps")  # of the reference curves of a method
BY_POLICY = {"harsh": {"color": BLUE, "ls": "-"}, "lenient": {"color": ORANGE, "ls": "--"}}
SIDES = (("", "S = +1", TEAL, "-"), ("dis", "S = −1", ROSE, "--"))  # before `advantaged`


def figures(
    planned: Sequence[Planned],
    draw: str,
    *,
    besides: Sequence[Planned] = (),
    needs: str = "seed",
    **shown: Any,
) -> list[PageFigure]:
    """A figure of some runs.

    Args:
        planned: the runs, finished or missing.
        draw: name of what draws it, of `DRAWN`.
        besides: further runs, without which it can be drawn.
        needs: column of `Result.steps` without which a run counts as missing.
        shown: fields of the figure.
    """
    own = [
        one if one.run is None or needs in one.run.steps.dropna(axis=1, how="all") else replace(one, run=None)
        for one in planned
    ]
    return [figure_of(draw=lambda: DRAWN[draw](own, besides), planned=own, besides=besides, **shown)]


def latent_figures(planned: Sequence[Planned], **shown: Any) -> list[PageFigure]:
    """Latent spaces of methods that have one.

    Runs without a usable policy count as missing.
    """
    having = [one for one in planned if "latent_size" in one.config.model]
    found = {one.model: latent_space(one.run) for one in having if one.run is not None}
    spaces = {model: space for model, space in found.items() if space is not None}
    own = [one if one.model in spaces else replace(one, run=None) for one in having]
    return [figure_of(draw=partial(draw_latents, spaces), planned=own, **shown)]


def curve_figures(planned: Sequence[Planned], **shown: Any) -> list[PageFigure]:
    """Utility and DPU over time of each method after both initial policies, a figure per method."""
    own = [one for one in planned if one.dataset in CURVE_DATASETS]
    return [
        figure_of(f"curve_{name}", method_label(name), draw=partial(draw_curves, some), planned=some, **shown)
        for name in dict.fromkeys(one.model for one in own)
        if (some := [one for one in own if one.model == name])
    ]


def _methods_over_time(planned: Sequence[Planned], besides: Sequence[Planned]) -> Figure:
    """Draw measures of methods over time, on synthetic data with lines of the optimal policies."""
    runs, lines = by_model(planned), {}
    looks = {
        name: {"label": method_label(name), "color": look_of(name)["color"], "ls": LINES[name]}
        for name in runs
    }
    for one in besides:
        label, run = method_label(one.model), one.run
        if run is not None:
            last = {measure.name: run.last(measure.name) for measure in ON_SYNTHETIC}
            lines[label] = {key: float(values.mean()) for key, values in last.items() if len(values)}
        else:
            readings = synthetic_readings(one.name("initial_policy"), one.model)
            lines[f"{label} (printed)"] = {key: sum(ends) / 2 for key, ends in readings.items()}
    synthetic = all(one.dataset == "synthetic" for one in planned)
    return draw_over_time(runs, ON_SYNTHETIC if synthetic else UTILITY_AND_DPU, looks, lines=lines)


def _policies_over_time(planned: Sequence[Planned], besides: Sequence[Planned]) -> Figure:
    """Draw utility and DPU over time of FairAll with each of its policies."""
    runs = {one.config.model["policy"]: one.run for one in planned if one.run is not None}
    colours = dict(zip(runs, PALETTE, strict=False)) | {DEFAULT_POLICY: BLUE}
    looks = {
        name: {"label": POLICIES[name], "color": colours[name], "ls": line}
        for name, line in zip(runs, STYLES, strict=False)
    }
    return draw_over_time(runs, UTILITY_AND_DPU, looks)


def draw_against_cost(planned: Sequence[Planned], besides: Sequence[Planned] = ()) -> Figure:
    """Draw effective measures against c, a line per data set, with standard deviations."""
    figure, (panels,) = grid_of(1, len(EFFECTIVE), 1.85, width=COLUMN)
    finished = by_dataset([one for one in planned if one.run is not None])
    for axes, measure in zip(panels, EFFECTIVE, strict=True):
        for i, (dataset, own) in enumerate(finished.items()):
            runs = {run.config.cost.value: run for run in runs_of(own)}
            values = pd.DataFrame({cost: 100 * runs[cost].values(measure.name) for cost in sorted(runs)})
            means, stds = values.mean(), values.std()
            look: dict[str, Any] = {"color": PALETTE[i], "ls": STYLES[i], "marker": "osD"[i % 3], "ms": 2.5}
            reach = np.stack([np.fmin(means - 100 * measure.bounds[0], stds), stds])
            axes.errorbar(values.columns, means, reach, capsize=1.5, label=dataset_label(dataset), **look)
            for policy in ORACLES:
                of = {cost: runs[cost].reference(policy, measure.name) for cost in values}
                levels = {cost: 100 * spread.mean for cost, spread in of.items() if spread}
                if levels:
                    line: dict[str, Any] = {"ls": LEVELS[policy], "lw": 0.6}
                    axes.plot([*levels], [*levels.values()], color=PALETTE[i], **line)
                    axes.plot([], [], color=GREY, label=REFERENCES[policy], **line)
        axes.set(title=measure.heading, xlabel="cost c", ylabel="×100")
    legend_below(figure, handles_of(panels[:1]), 3)
    return figure


def _test_planes(planned: Sequence[Planned], besides: Sequence[Planned]) -> Figure:
    utility, dpu = (measure.mean() for measure in UTILITY_AND_DPU)
    methods = [one.model for one in planned]
    return draw_planes(_by_label(planned), methods, dpu, utility, of="mean test ", marks=ORACLES)


def draw_planes(
    panels: Mapping[str, Mapping[str, Result]],
    methods: Iterable[str],
    dpu: Quantity,
    utility: Quantity,
    *,
    of: str = "",
    columns: int = 1,
    marks: Mapping[str, str] = REFERENCE_MARKS,
) -> Figure:
    """Draw mean utility against mean DPU with 95 % intervals, and the Pareto front.

    Args:
        panels: runs by row of the leaderboard, by title of their panel.
        methods: rows of the leaderboard in the order of the legend.
        dpu: measure of the horizontal axis.
        utility: measure of the vertical axis.
        of: what labels of the axes begin with, of the policy on test people.
        columns: panels side by side.
        marks: of the references that are drawn.
    """
    rows = math.ceil(len(panels) / columns)
    figure, grid = grid_of(rows, columns, 1.7 * rows + 0.1, width=COLUMN * columns)
    # In the order of the methods, whichever panel is the first to have one.
    names = [*map(row_label, methods), *(REFERENCES[policy] for policy in WITH_ROW), FRONT]
    handles: dict[str, Any] = dict.fromkeys(names)
    for axes, (title, runs) in zip(grid.flat, panels.items(), strict=False):
        points = []
        for name, run in runs.items():
            x, y = (
                Spread.over_seeds(run.values(one.name).to_numpy(), bounds=one.bounds)
                for one in (dpu, utility)
            )
            if x is not None and y is not None:
                points.append((100 * x.mean, 100 * y.mean))
                handles[row_label(name)] = interval(axes, x, y, clip_on=False, **mark_of(name))
        for policy, mark in marks.items():
            x, y = (first_reference(runs.values(), policy, one.name) for one in (dpu, utility))
            # One that loses would compress the axis of all others.
            if x and y and y.mean >= 0:
                look: dict[str, Any] = {"color": GREY, "ms": 5, "ls": "none", "zorder": 1, "clip_on": False}
                (handles[REFERENCES[policy]],) = axes.plot(100 * x.mean, 100 * y.mean, marker=mark, **look)
        if points:
            front = zip(*pareto(points), strict=True)
            (handles[FRONT],) = axes.plot(*front, color=GREY, ls="--", lw=0.8, zorder=0)
        axes.set_xlim(left=0)
        axes.set(title=title, ylabel=f"{of or 'effective '}utility (×100)")
        axes.set_xlabel(f"{of}DPU (×100), less is fairer")
    for axes in grid.flat[len(panels) :]:
        axes.remove()
    legend_below(figure, {name: handle for name, handle in handles.items() if handle}, 3 * columns)
    return figure


def mark_of(method: str) -> dict[str, Any]:
    """Look of a method's point."""
    look = look_of(method)
    # Marks with thin arms look smaller.
    return {**look, "ms": 7.0 if look["marker"] in "*P" else 5.0, "mew": 0.3, "mec": "white"}


def pareto(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Points (unfairness, utility) not dominated by another, in order of unfairness.

    Examples:
        >>> pareto([(0.3, 0.2), (0.1, 0.1), (0.4, 0.1)])
        [(0.1, 0.1), (0.3, 0.2)]
    """
    return [
        (x, y)
        for x, y in sorted(set(points))
        if not any((a <= x and b >= y) and (a, b) != (x, y) for a, b in points)
    ]


def _acceptance(planned: Sequence[Planned], besides: Sequence[Planned]) -> Figure:
    """Draw acceptance of applicants of either group over time: a row per data set, a column per method."""
    by_label = _by_label(planned)
    methods = list(dict.fromkeys(name for runs in by_label.values() for name in runs))
    n, height = len(by_label), 1.3 * len(by_label) + 0.3
    figure, panels = grid_of(n, len(methods), height, sharex=True, sharey="row")
    for row, runs in zip(panels, by_label.values(), strict=True):
        for axes, name in zip(row, methods, strict=True):
            if name not in runs:
                axes.set_axis_off()
                continue
            for side, label, colour, line in SIDES:
                curve = runs[name].curve(f"acceptance_rate_{side}advantaged")
                smooth = curve.rolling(SMOOTH, min_periods=1, center=True).mean()
                band(axes, smooth, label=label, color=colour, ls=line)
            axes.set_ylim(0, 100)
    ylabels = [f"{label}\naccepted (%)" for label in by_label]
    label_grid(panels, "time step t", titles=map(method_label, methods), ylabels=ylabels)
    legend_below(figure, handles_of([next(axes for axes in panels[0] if axes.axison)]), 2)
    return figure


def draw_curves(planned: Sequence[Planned]) -> Figure:
    """Draw utility and DPU of a method over time: a row per measure, a column per data set."""
    finished = by_dataset([one for one in planned if one.run is not None])
    datasets = [name for name in CURVE_DATASETS if name in finished]
    figure, panels = grid_of(len(UTILITY_AND_DPU), len(datasets), 2.4, sharex=True)
    for row, measure in zip(panels, UTILITY_AND_DPU, strict=True):
        for axes, dataset in zip(row, datasets, strict=True):
            runs = runs_of(finished[dataset])
            for run in runs:
                policy = run.name("initial_policy")
                look = BY_POLICY.get(policy, {"color": GREY})
                band(axes, run.curve(measure.name), label=f"{policy} initial policy", **look)
            for policy in ORACLES:
                if reference := runs[0].reference(policy, measure.mean().name):
                    level(axes, policy, measure, reference.mean)
    ylabels = [f"{measure.label} ×100" for measure in UTILITY_AND_DPU]
    label_grid(panels, "time step t", titles=map(dataset_label, datasets), ylabels=ylabels)
    legend_below(figure, handles_of([panels[0][0]]), 4)
    return figure


def draw_latents(spaces: Mapping[str, Space]) -> Figure:
    """Draw latent means of the first seed on their two leading principal axes, by s and by the label."""
    figure, panels = grid_of(len(spaces), 2, 1.5 * len(spaces) + 0.5, width=COLUMN)
    for row, (name, (z, s, label)) in zip(panels, spaces.items(), strict=True):
        points, _ = principal(z)
        # In shuffled order, so that neither group covers the other.
        order = np.random.default_rng(0).permutation(len(points))
        sides = (s > 0, {"S = +1": TEAL, "S = −1": ROSE}), (label > 0, {"ỹ = 1": WINE, "ỹ = 0": OLIVE})
        for axes, (positive, hues) in zip(row, sides, strict=True):
            colours = np.where(positive, *hues.values())[order]
            axes.scatter(*points[order].T, s=2, c=colours, alpha=0.6, lw=0, rasterized=True)
            for word, hue in reversed(hues.items()):
                axes.scatter([], [], s=8, color=hue, label=word)
            axes.legend(loc="upper right", handletextpad=0.1, borderpad=0.1)
            axes.set(xticks=[], yticks=[])
        row[0].set_ylabel(f"{method_label(name)}\nsecond axis of z")
    label_grid(panels, "first axis of z")
    return figure


def _by_label(planned: Sequence[Planned]) -> dict[str, dict[str, Result]]:
    """Finished runs by method, by label of their data set."""
    found = {dataset_label(name): by_model(own) for name, own in by_dataset(planned).items()}
    return {name: runs for name, runs in found.items() if runs}


DRAWN: dict[str, Callable[[Sequence[Planned], Sequence[Planned]], Figure]] = {
    "methods over time": _methods_over_time,
    "policies over time": _policies_over_time,
    "costs": draw_against_cost,
    "planes": _test_planes,
    "acceptance": _acceptance,
}
"""What draws runs, and further ones, by name."""
