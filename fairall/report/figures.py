"""Figures of the report: what each shows, how it is drawn, and its files."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fairall.config.choices import shown
from fairall.errors import FairAllError
from fairall.metrics import Quantity
from fairall.report import labels
from fairall.report.comparable import grouped
from fairall.report.plan import Planned, missing_runs
from fairall.report.tables import reference_measure
from fairall.results.figures import BLUE, GREY, has_level, principal
from fairall.results.finished import Run
from fairall.results.page import PageFigure, legend_below
from fairall.results.paper import synthetic_readings
from fairall.results.references import REFERENCES

COLUMN = 3.4  # inches, width of a column of the paper
TITLE = 42  # bold characters in a line of that width
# conf/model/ has colours, from the palette of Okabe and Ito for the paper's methods and Tol's muted one for
# others, and marks; distinct lines and marks are for readers who see no colours.
LINES = {
    "fairall_I_II": "-",
    "fairall_II": "--",
    "fairlab_I_II": "-.",
    "fairlog": (0, (4, 1, 1, 1, 1, 1)),
    "unfairlog": ":",
    "opt_fair": (0, (6, 2)),
    "opt_unfair": (0, (1, 2)),
}
REFERENCE_LINES = {"accept_all": (0, (3, 3)), "oracle": "-", "oracle_fair": (0, (5, 1, 1, 1))}
ORACLES = {"oracle": "*", "oracle_fair": "P"}
# Tol's muted palette, equally safe, for all that is no method.
ROSE, OLIVE, TEAL, SAND, WINE = "#CC6677", "#999933", "#44AA99", "#DDCC77", "#AA4499"
OTHERS = [ROSE, TEAL, OLIVE, WINE, SAND, "#88CCEE", "#117733", "#882255"]
STYLES = ["-", "--", "-.", ":", (0, (4, 1, 1, 1, 1, 1))]
BAND = "Mean over seeds; the band is one standard deviation."
LEVELS = (
    "Thin lines, where they were measured: accept everybody, and a classifier fitted to every training "
    "label, without and with equal acceptance rates."
)
CURVES = f"Measured on test people from acceptance probabilities. {BAND} {LEVELS}"
DEFAULT_POLICY = "z_dec"  # of FairAll (I+II), in its colour
SMOOTH = 10  # time steps of the moving average over applicants' acceptance, which 64 people make noisy
BOTH = "Utility by the proxy label and demographic-parity unfairness"
UTILITY_AND_DPU = labels.measures("utility", "dpu")
# Labels as matplotlib typesets them.
POLICIES = {
    "z_dec": r"$\pi^Z_\mathrm{dec}$", "z_clf": r"$\pi^Z_\mathrm{clf}$", "z_label": r"$\pi^Z_\mathrm{label}$",
    "clf": r"$\pi_\mathrm{clf}$", "dec": r"$\pi_\mathrm{dec}$",
}  # fmt: skip

Space = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Latent means of shape (N, Z), s in {−1, +1} of shape (N,), and labels in {0, 1} of shape (N,)."""


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
            _figure(
                f"{dataset}_{initial_policy}", f"{labels.dataset(dataset)}, {policy}",
                f"{BOTH} over time steps. {CURVES}", "Figures: methods over time",
                own, partial(draw_over_time, _by_model(own), UTILITY_AND_DPU),
            )
            for dataset, own in _by_dataset(planned).items()
        ),
        _figure(
            f"plane_{initial_policy}", f"Utility against unfairness, {policy}",
            "Means over the time steps of evaluation.window on test people, with 95 % intervals over seeds "
            "(Student's t). The dashed line joins the methods that no other beats in both (Pareto front). In "
            "grey, where it was measured, a classifier fitted to every training label.",
            "Figures: utility against unfairness", planned, lambda: draw_plane(_runs(planned)),
        ),
        _figure(
            f"acceptance_{initial_policy}", f"Acceptance by group, {policy}",
            "Share of each step's applicants of either group who were accepted, averaged over "
            f"{SMOOTH} steps. {BAND}",
            "Figures: acceptance by group", measured, lambda: draw_acceptance(_runs(measured)),
        ),
    ]  # fmt: skip


def synthetic_figure(
    planned: Sequence[Planned], optimal: Sequence[Planned], initial_policy: str
) -> PageFigure:
    """Four measures of every method on synthetic data, with lines of the optimal policies."""

    def lines() -> dict[str, tuple[str, dict[str, float]]]:
        found = {}
        for one in optimal:
            label = labels.method(one.model)
            if one.run is not None:
                last = {measure.name: one.run.last(measure.name) for measure in labels.SYNTHETIC}
                found[one.model] = label, {key: float(v.mean()) for key, v in last.items() if len(v)}
            else:
                readings = synthetic_readings(initial_policy, one.model)
                heights = {key: (low + high) / 2 for key, (low, high) in readings.items()}
                found[one.model] = f"{label} (printed)", heights
        return found

    return _figure(
        f"synthetic_{initial_policy}", f"Synthetic data, {initial_policy} initial policy",
        "Utility by the proxy label and by the ground truth, demographic-parity and counterfactual "
        f"unfairness over time steps, and the levels of the optimal fair and unfair policies. {CURVES}",
        "Figures: synthetic data",
        planned, lambda: draw_over_time(_by_model(planned), labels.SYNTHETIC, optimal=lines()), optimal,
    )  # fmt: skip


def cost_figure(planned: Sequence[Planned]) -> PageFigure:
    """Effective utility and DPU of FairAll against the cost of a positive decision."""
    return _figure(
        "costs", "FairAll (I+II) at other costs, harsh initial policy",
        "Effective utility and DPU after the last time step against the cost c. "
        "Mean and standard deviation over seeds. Thin lines, where they were measured: a classifier fitted "
        "to every training label, on those same people.",
        "Figures: costs and policies", planned, lambda: draw_against_cost(planned, labels.EFFECTIVE),
    )  # fmt: skip


def policy_figures(planned: Sequence[Planned]) -> list[PageFigure]:
    """Utility and DPU over time of FairAll with each of its policies, a figure per data set."""

    def drawn(own: Sequence[Planned]) -> Figure:
        runs = {one.config["model"]["policy"]: one.run for one in own if one.run is not None}
        return draw_over_time(runs, UTILITY_AND_DPU, labels=POLICIES)

    return [
        _figure(
            f"policies_{dataset}",
            f"FairAll (I+II) with other policies, {labels.dataset(dataset)}, harsh initial policy",
            f"{BOTH} over time steps. {CURVES}", "Figures: costs and policies",
            own, partial(drawn, own),
        )
        for dataset, own in _by_dataset(planned).items()
    ]  # fmt: skip


def latent_figures(planned: Sequence[Planned]) -> list[PageFigure]:
    """Latent spaces of methods that have one, a figure per data set.

    Runs without a usable policy count as missing.
    """
    figures = []
    for dataset, own in _by_dataset(planned).items():
        having = [one for one in own if "latent_size" in one.config["model"]]
        found = {one.model: latent_space(one.run) for one in having if one.run is not None}
        spaces = {model: space for model, space in found.items() if space is not None}
        shown = [one if one.model in spaces else replace(one, run=None) for one in having]
        figures.append(_figure(
            f"latents_{dataset}", f"Latent spaces, {labels.dataset(dataset)}, harsh initial policy",
            "Latent means of test people by the first seed's policy at the end, on their two leading "
            "principal axes: left by the sensitive attribute, right by the proxy label. A fair latent mixes "
            "the groups on the left.",
            "Figures: latent spaces", shown, partial(draw_latents, spaces),
        ))  # fmt: skip
    return figures


def _figure(
    key: str, title: str, note: str, section: str,
    planned: Sequence[Planned], draw: Callable[[], Figure], besides: Sequence[Planned] = (),
) -> PageFigure:  # fmt: skip
    """A figure of some runs, and of further ones without which it can be drawn."""
    possible = any(one.run is not None for one in planned)
    lacking = missing_runs([*planned, *besides])
    drawn = draw if possible else None
    wide = key.startswith("acceptance")
    return PageFigure(
        key=key, title=title, note=note, section=section, draw=drawn, lacking=lacking, wide=wide
    )


def latent_space(run: Run, seed: int | None = None) -> Space | None:
    """Latent means of the people of `evaluation.split`, their s and labels, by the policy of a seed.

    Args:
        run: finished.
        seed: whose policy; the first of the run by default.

    Returns:
        None for a method without a latent, a policy that is missing or of another version, missing data, and
        a seed that has diverged.
    """
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    from fairall.config.compose import compose_config
    from fairall.config.schema import ScalerRows
    from fairall.config.stored import undownloaded
    from fairall.config.target import require_trusted
    from fairall.config.validation import checked_dataset
    from fairall.data.dataset import dataset
    from fairall.policy import Policy
    from fairall.results.latent_quality import latent

    folder: Path = run.path / "policy"
    if not (folder / "weights.safetensors").exists():
        return None
    try:
        policy = Policy.load(folder)
        require_trusted(run.config["dataset"], "dataset", ())
        composed = compose_config(f"dataset={run.name('dataset')}")
        composed.dataset = OmegaConf.merge(composed.dataset, undownloaded(run.config["dataset"]))
        data = dataset(checked_dataset(composed)).prepare(scaler=ScalerRows[run.config["protocol"]["scaler"]])
    except (FairAllError, OmegaConfBaseException, KeyError, RuntimeError):
        return None
    people = getattr(data, run.config["evaluation"]["split"])
    z = latent(policy.learner, people, len(run.seeds))
    k = 0 if seed is None else run.seeds.index(seed)
    if z is None or not np.isfinite(z[k]).all():
        return None
    return z[k], people.s.numpy(), people.label.numpy()


def _by_model(planned: Iterable[Planned]) -> dict[str, Run]:
    return {one.model: one.run for one in planned if one.run is not None}


def _by_dataset(planned: Iterable[Planned]) -> dict[str, list[Planned]]:
    found: dict[str, list[Planned]] = {}
    for one in planned:
        found.setdefault(one.dataset, []).append(one)
    return found


def _runs(planned: Iterable[Planned]) -> dict[str, dict[str, Run]]:
    """Finished runs by data set and method."""
    return {name: _by_model(own) for name, own in _by_dataset(planned).items() if _by_model(own)}


def draw_over_time(
    runs: Mapping[str, Run],
    measures: Sequence[Quantity],
    *,
    optimal: Mapping[str, tuple[str, Mapping[str, float]]] | None = None,
    labels: Mapping[str, str] | None = None,
) -> Figure:
    """Draw measures over time steps: mean over seeds, and a band of one standard deviation.

    Runs that are not comparable have separate panels. Thin lines are the levels of the references that a run
    has measured.

    Args:
        runs: by name of the method, or another distinct name.
        measures: one panel each, of metrics.csv.
        optimal: horizontal lines: by reference its label, and by measure its level, plain units.
        labels: of the runs; by default names of methods.
    """
    groups = grouped(runs)
    titles = [textwrap.wrap(group.title, TITLE) for group in groups] if len(groups) > 1 else []
    looks = {name: _look(name, i, labels) for i, name in enumerate(runs)}
    rows, columns = (len(measures) + 1) // 2, min(2, len(measures))
    height = 1.35 * rows * len(groups) + 0.15 * sum(map(len, titles)) + 0.35
    figure = Figure(figsize=(COLUMN, height), layout="constrained")
    shown: list[Axes] = []
    parts = figure.subfigures(len(groups), 1, squeeze=False)[:, 0]
    for part, lines in zip(parts, titles, strict=False):
        part.suptitle("\n".join(lines), fontweight="bold")
    for part, group in zip(parts, groups, strict=True):
        panels = part.subplots(rows, columns, squeeze=False).ravel()
        for axes, measure in zip(panels, measures, strict=False):
            for name, run in group.runs.items():
                label, look = looks[name]
                curve, lowest = 100 * run.curve(measure.name), 100 * measure.bounds[0]
                _band(axes, curve, lowest, label=label, **look)
            for reference, (label, heights) in (optimal or {}).items():
                if measure.name in heights:
                    height = 100 * heights[measure.name]
                    axes.axhline(height, color=GREY, ls=LINES[reference], lw=1, label=label)
            for policy, line in REFERENCE_LINES.items():
                level = reference_measure(group.runs.values(), policy, f"mean_{measure.name}")
                if level is not None and has_level(policy, measure):
                    look = {"color": GREY, "ls": line, "lw": 0.6, "label": REFERENCES[policy]}
                    axes.axhline(100 * level["mean"], **look)
            axes.set(title=measure.heading, ylabel="×100", xlabel="time step t")
        shown.append(panels[0])
    handles = handles_of(shown)
    of_runs = {label: handles[label] for label, _ in looks.values()}
    legend_below(figure, of_runs | handles, 3)
    return figure


def _band(axes: Axes, curve: pd.DataFrame, lowest: float, **look: Any) -> None:
    """Draw the mean of a curve over seeds and a band of one standard deviation, from `lowest` on."""
    mean, std = curve.mean(axis=1), curve.std(axis=1).fillna(0.0)
    axes.plot(mean.index, mean, **look)
    low = (mean - std).clip(lower=lowest)
    axes.fill_between(mean.index, low, mean + std, color=look["color"], alpha=0.15, lw=0)


def draw_against_cost(planned: Sequence[Planned], measures: Sequence[Quantity]) -> Figure:
    """Draw measures at the last step against c, a line per data set, with standard deviations."""
    figure = Figure(figsize=(COLUMN, 1.85), layout="constrained")
    panels = figure.subplots(1, len(measures))
    finished = _by_dataset(one for one in planned if one.run is not None)
    for axes, measure in zip(panels, measures, strict=True):
        for i, (dataset, own) in enumerate(finished.items()):
            ordered = sorted((one.run for one in own if one.run is not None), key=lambda run: run.cost)
            values = pd.DataFrame({run.cost: 100 * run.per_seed(measure.name) for run in ordered})
            means, stds = values.mean(), values.std()
            reach = [np.fmin(means - 100 * measure.bounds[0], stds), stds]
            look: dict[str, Any] = {"color": OTHERS[i], "ls": STYLES[i], "marker": "osD"[i % 3], "ms": 2.5}
            # Not Series: matplotlib would take the float of one of a single cost, which pandas deprecates.
            axes.errorbar(
                means.index, means, np.stack(reach), capsize=1.5, label=labels.dataset(dataset), **look
            )
            for policy in ORACLES:
                found = {run.cost: run.reference(policy, measure.name) for run in ordered}
                level = {cost: 100 * one["mean"] for cost, one in found.items() if one}
                if level:
                    line: dict[str, Any] = {"ls": REFERENCE_LINES[policy], "lw": 0.6}
                    axes.plot([*level], [*level.values()], color=OTHERS[i], **line)
                    axes.plot([], [], color=GREY, label=REFERENCES[policy], **line)
        axes.set(title=measure.heading, xlabel="cost c", ylabel="×100")
    handles = handles_of(panels[:1])
    of_runs = {labels.dataset(dataset): handles[labels.dataset(dataset)] for dataset in finished}
    legend_below(figure, of_runs | handles, 3)
    return figure


def draw_plane(by_dataset: Mapping[str, Mapping[str, Run]]) -> Figure:
    """Draw mean utility against mean DPU with 95 % intervals, and the Pareto front."""
    figure = Figure(figsize=(COLUMN, 1.75 * len(by_dataset) + 0.1), layout="constrained")
    panels = np.atleast_1d(figure.subplots(len(by_dataset), 1))
    handles: dict[str, Any] = {}
    for axes, (dataset, runs) in zip(panels, by_dataset.items(), strict=True):
        points = []
        for name, run in runs.items():
            dpu, utility = (run.summary["aggregate"][f"mean_{measure}"] for measure in ("dpu", "utility"))
            x, y = 100 * dpu["mean"], 100 * utility["mean"]
            points.append((x, y))
            look: dict[str, Any] = {**look_of(name), "ms": 4, "ls": "none"}
            handles[labels.method(name)] = axes.errorbar(
                x, y, xerr=_reach(dpu), yerr=_reach(utility), capsize=1.5, lw=0.9, **look
            )
        for policy, mark in ORACLES.items():
            x, y = (
                reference_measure(runs.values(), policy, f"mean_{measure}") for measure in ("dpu", "utility")
            )
            if x and y:
                level = 100 * x["mean"], 100 * y["mean"]
                (handles[REFERENCES[policy]],) = axes.plot(*level, color=GREY, marker=mark, ms=4, ls="none")
        front = zip(*pareto(points), strict=True)
        (handles["Pareto front"],) = axes.plot(*front, color=GREY, ls="--", lw=0.9, zorder=0)
        axes.set(title=labels.dataset(dataset), ylabel="mean test utility (×100)")
        axes.set_xlim(left=0)
    panels[-1].set_xlabel("mean test DPU (×100), less is fairer")
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


def draw_acceptance(by_dataset: Mapping[str, Mapping[str, Run]]) -> Figure:
    """Draw acceptance of applicants of either group over time: a row per data set, a column per method."""
    methods = list(dict.fromkeys(name for runs in by_dataset.values() for name in runs))
    figure = Figure(figsize=(2 * COLUMN, 1.3 * len(by_dataset) + 0.3), layout="constrained")
    panels = figure.subplots(len(by_dataset), len(methods), sharex=True, sharey="row", squeeze=False)
    sides = (("", "S = +1", TEAL, "-"), ("dis", "S = −1", ROSE, "--"))
    for row, (dataset, runs) in zip(panels, by_dataset.items(), strict=True):
        row[0].set_ylabel(f"{labels.dataset(dataset)}\naccepted (%)")
        for axes, name in zip(row, methods, strict=True):
            if name not in runs:
                axes.set_axis_off()
                continue
            for side, label, colour, line in sides:
                curve = 100 * runs[name].curve(f"acceptance_rate_{side}advantaged")
                smooth = curve.rolling(SMOOTH, min_periods=1, center=True).mean()
                _band(axes, smooth, -np.inf, label=label, color=colour, ls=line)
            axes.set_ylim(0, 100)
    for axes, name in zip(panels[0], methods, strict=True):
        axes.set_title(labels.method(name))
    for axes in panels[-1]:
        axes.set_xlabel("time step t")
    legend_below(figure, handles_of([next(axes for axes in panels[0] if axes.axison)]), 2)
    return figure


def draw_latents(spaces: Mapping[str, Space]) -> Figure:
    """Draw latent means of the first seed on their two leading principal axes, by s and by the label."""
    figure = Figure(figsize=(COLUMN, 1.5 * len(spaces) + 0.5), layout="constrained")
    panels = figure.subplots(len(spaces), 2, squeeze=False)
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
        left.set_ylabel(f"{labels.method(name)}\nsecond axis of z")
    for axes in panels[-1]:
        axes.set_xlabel("first axis of z")
    return figure


def _look(name: str, i: int, named: Mapping[str, str] | None) -> tuple[str, dict[str, Any]]:
    if named is None:
        return labels.method(name), {"color": shown(name)["colour"], "ls": LINES[name]}
    colour = BLUE if name == DEFAULT_POLICY else OTHERS[i % len(OTHERS)]
    return named[name], {"color": colour, "ls": STYLES[i % len(STYLES)]}


def look_of(method: str) -> dict[str, str]:
    """Colour and mark of a method's point."""
    known = shown(method)
    return {"color": known["colour"], "marker": known["mark"]}


def _reach(spread: Mapping[str, Any]) -> list[list[float]]:
    """Error bars from a mean to its 95 % interval, ×100."""
    low, high = spread["interval"] or (spread["mean"],) * 2
    return [[100 * (spread["mean"] - low)], [100 * (high - spread["mean"])]]


def handles_of(panels: Iterable[Axes]) -> dict[str, Any]:
    """Artists of some panels by label, each label once."""
    handles: dict[str, Any] = {}
    for axes in panels:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    return handles
