"""Figures of the paper's runs: over time, utility against unfairness, costs, acceptance, latent spaces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from fairall import Result
from fairall.display import BLUE, COLUMN, GREY, ORANGE, PALETTE, PageFigure, handles_of, legend_below
from fairall.metrics import Quantity
from fairall.report import (
    STYLES,
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
from reproduction.plan import EFFECTIVE, ON_SYNTHETIC, Planned, by_model, runs_of
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
ROSE, TEAL, OLIVE, WINE = PALETTE[:4]
BAND = "Mean over seeds; the band is one standard deviation."
CURVES = f"Measured on test people from acceptance probabilities. {BAND} Grey: levels of the references."
DEFAULT_POLICY = "z_dec"  # of FairAll (I+II), in its colour
SMOOTH = 10  # time steps of the moving average over applicants' acceptance, which 64 people make noisy
BOTH = "Utility by the proxy label and demographic-parity unfairness"
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


def real_figures(planned: Sequence[Planned], initial_policy: str) -> list[PageFigure]:
    """Measures over time on every data set, utility against unfairness, and acceptance by group."""
    # Runs that did not measure acceptance by group count as missing.
    measured = [
        one if one.run is None or len(one.run.curve("acceptance_rate_advantaged")) else replace(one, run=None)
        for one in planned
    ]
    policy = f"{initial_policy} initial policy"
    return [
        *(
            figure_of(
                f"{dataset}_{initial_policy}",
                f"{dataset_label(dataset)}, {policy}",
                f"{BOTH} over time steps. {CURVES}",
                partial(_methods_over_time, own, UTILITY_AND_DPU),
                own,
                section="Figures: methods over time",
            )
            for dataset, own in by_dataset(planned).items()
        ),
        figure_of(
            f"plane_{initial_policy}",
            f"Utility against unfairness, {policy}",
            "Means over the time steps of evaluation.window on test people, with 95 % intervals over seeds "
            "(Student's t). The dashed line joins the methods that no other beats in both (Pareto front). In "
            "grey, where it was measured, a classifier fitted to every training label.",
            lambda: draw_plane(_runs(planned)),
            planned,
            section="Figures: utility against unfairness",
        ),
        figure_of(
            f"acceptance_{initial_policy}",
            f"Acceptance by group, {policy}",
            "Share of each step's applicants of either group who were accepted, averaged over "
            f"{SMOOTH} steps. {BAND}",
            lambda: draw_acceptance(_runs(measured)),
            measured,
            section="Figures: acceptance by group",
            wide=True,
        ),
    ]


def synthetic_figure(
    planned: Sequence[Planned], optimal: Sequence[Planned], initial_policy: str
) -> PageFigure:
    """Four measures of every method on synthetic data, with lines of the optimal policies."""

    def lines() -> dict[str, dict[str, float]]:
        found = {}
        for one in optimal:
            label = method_label(one.model)
            if one.run is not None:
                last = {measure.name: one.run.last(measure.name) for measure in ON_SYNTHETIC}
                found[label] = {key: float(v.mean()) for key, v in last.items() if len(v)}
            else:
                readings = synthetic_readings(initial_policy, one.model)
                heights = {key: (low + high) / 2 for key, (low, high) in readings.items()}
                found[f"{label} (printed)"] = heights
        return found

    return figure_of(
        f"synthetic_{initial_policy}",
        f"Synthetic data, {initial_policy} initial policy",
        "Utility by the proxy label and by the ground truth, demographic-parity and counterfactual "
        f"unfairness over time steps, and the levels of the optimal fair and unfair policies. {CURVES}",
        lambda: _methods_over_time(planned, ON_SYNTHETIC, lines=lines()),
        planned,
        section="Figures: synthetic data",
        besides=optimal,
    )


def cost_figure(planned: Sequence[Planned]) -> PageFigure:
    """Effective utility and DPU of FairAll against the cost of a positive decision."""
    return figure_of(
        "costs",
        "FairAll (I+II) at other costs, harsh initial policy",
        "Effective utility and DPU after the last time step against the cost c. "
        "Mean and standard deviation over seeds. Thin lines, where they were measured: a classifier fitted "
        "to every training label, on those same people.",
        lambda: draw_against_cost(planned, EFFECTIVE),
        planned,
        section="Figures: costs and policies",
    )


def policy_figures(planned: Sequence[Planned]) -> list[PageFigure]:
    """Utility and DPU over time of FairAll with each of its policies, a figure per data set."""

    def drawn(own: Sequence[Planned]) -> Figure:
        runs = {one.config.model["policy"]: one.run for one in own if one.run is not None}
        looks = {
            name: {
                "label": POLICIES[name],
                "color": BLUE if name == DEFAULT_POLICY else PALETTE[i % len(PALETTE)],
                "ls": STYLES[i % len(STYLES)],
            }
            for i, name in enumerate(runs)
        }
        return draw_over_time(runs, UTILITY_AND_DPU, looks)

    return [
        figure_of(
            f"policies_{dataset}",
            f"FairAll (I+II) with other policies, {dataset_label(dataset)}, harsh initial policy",
            f"{BOTH} over time steps. {CURVES}",
            partial(drawn, own),
            own,
            section="Figures: costs and policies",
        )
        for dataset, own in by_dataset(planned).items()
    ]


def latent_figures(planned: Sequence[Planned]) -> list[PageFigure]:
    """Latent spaces of methods that have one, a figure per data set.

    Runs without a usable policy count as missing.
    """
    figures = []
    for dataset, own in by_dataset(planned).items():
        having = [one for one in own if "latent_size" in one.config.model]
        found = {one.model: latent_space(one.run) for one in having if one.run is not None}
        spaces = {model: space for model, space in found.items() if space is not None}
        shown = [one if one.model in spaces else replace(one, run=None) for one in having]
        figures.append(
            figure_of(
                f"latents_{dataset}",
                f"Latent spaces, {dataset_label(dataset)}, harsh initial policy",
                "Latent means of test people by the first seed's policy at the end, on their two leading "
                "principal axes: left by the sensitive attribute, right by the proxy label. A fair latent "
                "mixes the groups on the left.",
                partial(draw_latents, spaces),
                shown,
                section="Figures: latent spaces",
            )
        )
    return figures


def curve_figures(planned: Sequence[Planned]) -> list[PageFigure]:
    """Utility and DPU over time of each method after both initial policies, a figure per method."""
    own = [one for one in planned if one.dataset in CURVE_DATASETS]
    return [
        figure_of(
            f"curve_{name}",
            method_label(name),
            "Utility and demographic-parity unfairness of the policy on test people. "
            f"{BAND} Grey: a classifier fitted to every training label.",
            partial(draw_curves, some),
            some,
            section="Methods over time",
            wide=True,
        )
        for name in dict.fromkeys(one.model for one in own)
        if (some := [one for one in own if one.model == name])
    ]


def _runs(planned: Sequence[Planned]) -> dict[str, dict[str, Result]]:
    """Finished runs by data set and method."""
    return {name: runs for name, own in by_dataset(planned).items() if (runs := by_model(own))}


def _methods_over_time(
    planned: Sequence[Planned],
    of: Sequence[Quantity],
    *,
    lines: Mapping[str, Mapping[str, float]] | None = None,
) -> Figure:
    runs = by_model(planned)
    looks = {
        name: {"label": method_label(name), "color": look_of(name)["color"], "ls": LINES[name]}
        for name in runs
    }
    return draw_over_time(runs, of, looks, lines=lines)


def draw_against_cost(planned: Sequence[Planned], of: Sequence[Quantity]) -> Figure:
    """Draw measures at the last step against c, a line per data set, with standard deviations."""
    figure, (panels,) = grid_of(1, len(of), 1.85, width=COLUMN)
    finished = by_dataset([one for one in planned if one.run is not None])
    for axes, measure in zip(panels, of, strict=True):
        for i, (dataset, own) in enumerate(finished.items()):
            ordered = sorted(runs_of(own), key=lambda run: run.config.cost.value)
            look: dict[str, Any] = {"color": PALETTE[i], "ls": STYLES[i], "marker": "osD"[i % 3], "ms": 2.5}
            values = pd.DataFrame({run.config.cost.value: 100 * run.values(measure.name) for run in ordered})
            means, stds = values.mean().to_numpy(), values.std().to_numpy()
            reach = [np.fmin(means - 100 * measure.bounds[0], stds), stds]
            axes.errorbar(
                values.columns, means, np.stack(reach), capsize=1.5, label=dataset_label(dataset), **look
            )
            for policy in ORACLES:
                found = {run.config.cost.value: run.reference(policy, measure.name) for run in ordered}
                heights = {cost: 100 * one.mean for cost, one in found.items() if one}
                if heights:
                    line: dict[str, Any] = {"ls": LEVELS[policy], "lw": 0.6}
                    axes.plot([*heights], [*heights.values()], color=PALETTE[i], **line)
                    axes.plot([], [], color=GREY, label=REFERENCES[policy], **line)
        axes.set(title=measure.heading, xlabel="cost c", ylabel="×100")
    legend_below(figure, handles_of(panels[:1]), 3)
    return figure


def draw_plane(runs_by_dataset: Mapping[str, Mapping[str, Result]]) -> Figure:
    """Draw mean utility against mean DPU with 95 % intervals, and the Pareto front."""
    figure, panels = grid_of(len(runs_by_dataset), 1, 1.75 * len(runs_by_dataset) + 0.1, width=COLUMN)
    handles: dict[str, Any] = {}
    for axes, (dataset, runs) in zip(panels[:, 0], runs_by_dataset.items(), strict=True):
        points = []
        for name, run in runs.items():
            dpu, utility = run.spread("mean_dpu"), run.spread("mean_utility")
            if dpu is not None and utility is not None:
                points.append((100 * dpu.mean, 100 * utility.mean))
                handles[method_label(name)] = interval(axes, dpu, utility, ms=4, **look_of(name))
        for policy, mark in ORACLES.items():
            x, y = (first_reference(runs.values(), policy, name) for name in ("mean_dpu", "mean_utility"))
            if x and y:
                (handles[REFERENCES[policy]],) = axes.plot(
                    100 * x.mean, 100 * y.mean, color=GREY, marker=mark, ms=4, ls="none"
                )
        if points:
            front = zip(*pareto(points), strict=True)
            (handles["Pareto front"],) = axes.plot(*front, color=GREY, ls="--", lw=0.9, zorder=0)
        axes.set(title=dataset_label(dataset), ylabel="mean test utility (×100)")
        axes.set_xlim(left=0)
    label_grid(panels, "mean test DPU (×100), less is fairer")
    legend_below(figure, handles, 3)
    return figure


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


def draw_acceptance(runs_by_dataset: Mapping[str, Mapping[str, Result]]) -> Figure:
    """Draw acceptance of applicants of either group over time: a row per data set, a column per method."""
    methods = list(dict.fromkeys(name for runs in runs_by_dataset.values() for name in runs))
    n, height = len(runs_by_dataset), 1.3 * len(runs_by_dataset) + 0.3
    figure, panels = grid_of(n, len(methods), height, sharex=True, sharey="row")
    sides = (("", "S = +1", TEAL, "-"), ("dis", "S = −1", ROSE, "--"))
    for row, (dataset, runs) in zip(panels, runs_by_dataset.items(), strict=True):
        row[0].set_ylabel(f"{dataset_label(dataset)}\naccepted (%)")
        for axes, name in zip(row, methods, strict=True):
            if name not in runs:
                axes.set_axis_off()
                continue
            for side, label, colour, line in sides:
                curve = runs[name].curve(f"acceptance_rate_{side}advantaged")
                smooth = curve.rolling(SMOOTH, min_periods=1, center=True).mean()
                band(axes, smooth, label=label, color=colour, ls=line)
            axes.set_ylim(0, 100)
    label_grid(panels, "time step t", titles=map(method_label, methods))
    legend_below(figure, handles_of([next(axes for axes in panels[0] if axes.axison)]), 2)
    return figure


def draw_latents(spaces: Mapping[str, Space]) -> Figure:
    """Draw latent means of the first seed on their two leading principal axes, by s and by the label."""
    figure, panels = grid_of(len(spaces), 2, 1.5 * len(spaces) + 0.5, width=COLUMN)
    for (left, right), (name, (z, s, label)) in zip(panels, spaces.items(), strict=True):
        points, _ = principal(z)
        for axes, positive, words, hues in (
            (left, s > 0, ("S = −1", "S = +1"), (ROSE, TEAL)),
            (right, label > 0, ("ỹ = 0", "ỹ = 1"), (OLIVE, WINE)),
        ):
            # In shuffled order, so that neither group covers the other.
            order = np.random.default_rng(0).permutation(len(points))
            colours = np.where(positive, hues[1], hues[0])[order]
            axes.scatter(*points[order].T, s=2, c=colours, alpha=0.6, lw=0, rasterized=True)
            for word, hue in zip(words, hues, strict=True):
                axes.scatter([], [], s=8, color=hue, label=word)
            axes.legend(loc="upper right", handletextpad=0.1, borderpad=0.1)
            axes.set(xticks=[], yticks=[])
        left.set_ylabel(f"{method_label(name)}\nsecond axis of z")
    label_grid(panels, "first axis of z")
    return figure


def draw_curves(planned: Sequence[Planned]) -> Figure:
    """Draw utility and DPU of a method over time: a row per measure, a column per data set."""
    runs = runs_of(planned)
    datasets = [name for name in CURVE_DATASETS if any(run.name("dataset") == name for run in runs)]
    figure, panels = grid_of(len(UTILITY_AND_DPU), len(datasets), 2.4, sharex=True)
    for row, measure in zip(panels, UTILITY_AND_DPU, strict=True):
        for axes, dataset in zip(row, datasets, strict=True):
            own = [run for run in runs if run.name("dataset") == dataset]
            for run in own:
                policy = run.name("initial_policy")
                look = BY_POLICY.get(policy, {"color": GREY})
                band(axes, run.curve(measure.name), label=f"{policy} initial policy", **look)
            for policy in ORACLES:
                reference = own[0].reference(policy, measure.mean().name)
                if reference is not None:
                    level(axes, policy, measure, reference.mean)
    ylabels = [f"{measure.label} ×100" for measure in UTILITY_AND_DPU]
    label_grid(panels, "time step t", titles=map(dataset_label, datasets), ylabels=ylabels)
    legend_below(figure, handles_of([panels[0][0]]), 4)
    return figure
