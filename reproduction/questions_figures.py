"""Figures of the studies of open questions."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fairall import load_dataset
from fairall.display import BLUE, GREEN, GREY, ORANGE, handles_of, legend_below
from fairall.report import dataset_label, look_of, method_label, paired_difference
from fairall.results import REFERENCES, band, interval
from reproduction.items import grid_of, label_grid
from reproduction.plan import Planned
from reproduction.values import CONSTANT, LATENT, RULES, Facts, by_words, words

NOTHING, RATES, OPPORTUNITY = RULES.values()
COLOURS = {NOTHING: GREY, LATENT: BLUE, RATES: ORANGE, OPPORTUNITY: GREEN}
EQUAL = "oracle_fair"  # the reference whose DPU on test people is their noise
WRAPPED = 3  # panels side by side
STYLES = {"none": "-", "epsilon": "--"}  # by exploration
KNOWN = "P(ỹ | score, group) known, no fairness rule"
COST = "by one cost"
WAYS = "by amounts", COST
Beside = dict[tuple[Any, ...], dict[Any, Any]]
"""Planned runs that differ in one fact alone."""


def draw_truth(runs: list[Facts]) -> Figure:
    """Draw a panel per world: ground-truth utility against CFU, a mark per tool."""
    gaps, biases = (sorted({run[name] for run in runs}) for name in ("gap", "bias"))
    figure, panels = grid_of(len(gaps), len(biases), 1.5 * len(gaps) + 0.6, sharex=True, sharey=True)
    titled: dict[Axes, str] = {}
    for run in runs:
        axes = panels[gaps.index(run["gap"]), biases.index(run["bias"])]
        titled[axes] = words("truth gap {gap:g}, label bias {bias:g}", run)
        colour = COLOURS[run["tool"]]
        for measure, filled in (("mean_cfu", True), ("mean_cfu_y_held", False)):
            label = run["tool"] if filled else None
            _mark(axes, run, measure, "mean_ground_truth_utility", label=label, **_look(colour, filled))
    for axes, title in titled.items():
        axes.set_title(title)
        axes.axhline(0, color=GREY, lw=0.4)
    label_grid(panels, "CFU ×100", ylabels=["ground-truth\nutility ×100"] * len(gaps))
    legend_below(figure, handles_of(panels.ravel()), 4)
    return figure


def draw_groups(runs: list[Facts]) -> Figure:
    """Draw a panel per groups: utility against DPU, a mark per method."""
    settings = by_words(runs, "{dataset!d}, {groups} groups")
    n = len(settings)
    n_rows = -(-n // WRAPPED)
    figure, grid = grid_of(n_rows, WRAPPED, 1.7 * n_rows + 0.3)
    panels = grid.ravel()
    for axes, (title, own) in zip(panels, settings.items(), strict=False):
        for run in own:
            look = {key: look_of(run["model"])[key] for key in ("color", "marker")}
            inside = "white" if run["alike"] else None
            _mark(axes, run, "mean_dpu", "mean_utility", label=run["tool"], ms=4, mfc=inside, **look)
        x, y = (own[0]["planned"].run.reference(EQUAL, name) for name in ("mean_dpu", "mean_utility"))
        if x is not None and y is not None:
            interval(axes, x, y, label=REFERENCES[EQUAL], color=GREY, marker="*", ms=5)
        axes.set_title(title)
        axes.set_xlim(left=0)
    for axes in panels[n:]:
        axes.set_axis_off()
    for axes in panels[max(0, n - WRAPPED) : n]:
        axes.set_xlabel("DPU ×100")
    for axes in panels[:n:WRAPPED]:
        axes.set_ylabel("utility ×100")
    legend_below(figure, handles_of(panels), 5)
    return figure


def _look(colour: str, filled: bool) -> dict[str, Any]:
    return {"color": colour, "mfc": colour if filled else "white", "marker": "o", "ms": 4}


def _mark(axes: Axes, run: Facts, x: str, y: str, **look: Any) -> None:
    """Draw the means of two measures with their intervals, if the run has both."""
    spreads = [run["planned"].run.spread(name) for name in (x, y)]
    if None not in spreads:
        interval(axes, *spreads, **look)


def beside(runs: list[Facts], keys: tuple[str, ...], fact: str, reference: Any) -> Beside:
    """Runs that differ in one fact alone, by the others and that fact, where one has `reference`."""
    found: Beside = {}
    for run in runs:
        found.setdefault(tuple(run[key] for key in keys), {})[run[fact]] = run["planned"]
    return {key: own for key, own in found.items() if reference in own and len(own) > 1}


def losses(runs: list[Facts]) -> Beside:
    """Runs by data set, exploration and method, and by Γ, where that without hidden reasons is among them."""
    return beside(runs, ("dataset", "exploration", "method"), "gamma", 1.0)


def earnings(runs: list[Facts]) -> Beside:
    """Runs by terms and method, and by way to decide, where both ways are there."""
    return beside(runs, ("dataset", "interest", "model"), "way", COST)


def draw_loss(runs: list[Facts]) -> Figure:
    """Draw a panel per data set and method: utility over time less that without hidden reasons."""
    datasets, methods = (list(dict.fromkeys(run[name] for run in runs)) for name in ("dataset", "method"))
    height = 1.5 * len(datasets) + 0.5
    figure, panels = grid_of(len(datasets), len(methods), height, sharex=True, sharey="row")
    for (dataset, exploration, method), of in losses(runs).items():
        axes: Axes = panels[datasets.index(dataset), methods.index(method)]
        gamma = max(of)
        most, without = (of[level].run.curve("utility") for level in (gamma, 1.0))
        label = f"Γ = {gamma:g}, exploration: {exploration}"
        band(axes, most - without, color=look_of(method)["color"], ls=STYLES[exploration], label=label)
        axes.axhline(0, color=GREY, lw=0.4)
    label_grid(
        panels,
        "time step t",
        titles=map(method_label, methods),
        ylabels=[f"{dataset_label(name)}\nchange of utility ×100" for name in datasets],
    )
    legend_below(figure, handles_of(panels.ravel()), 2)
    return figure


def draw_earned(runs: list[Facts]) -> Figure:
    """Draw a panel per terms: money by amounts less that by one cost, a row per method, the first on top."""
    pairs = earnings(runs)
    terms = dict.fromkeys(key[:2] for key in pairs)
    models = [*dict.fromkeys(model for *_, model in pairs)][::-1]
    across = min(2, len(terms))
    down = -(-len(terms) // across)
    figure, panels = grid_of(down, across, down * (0.25 * len(models) + 0.6) + 0.1, sharey=True)
    for axes in panels.flat[len(terms) :]:
        axes.set_axis_off()
    axes_of: dict[tuple[Any, ...], Axes] = dict(zip(terms, panels.flat, strict=False))
    for key, of in pairs.items():
        for measure, shift, filled in (("mean_utility", 0.12, True), ("effective_utility", -0.12, False)):
            spread = paired_difference(*(of[way].run.values(measure) for way in WAYS))
            if spread is not None:
                # `interval` draws coordinates ×100.
                row = (models.index(key[2]) + shift) / 100
                interval(axes_of[key[:2]], spread, row, **_look(look_of(key[2])["color"], filled))
    for (dataset, interest), axes in axes_of.items():
        one = next(run["planned"] for run in runs if (run["dataset"], run["interest"]) == (dataset, interest))
        if one.config.dataset.get("exposures"):
            axes.axvline(100 * known_difference(one), color=GREY, ls="--", lw=1, label=KNOWN)
        axes.axvline(0.0, color=GREY, lw=0.6)
        axes.set_title(f"{dataset_label(dataset)}, interest {100 * interest:g} %")
        axes.set_yticks(range(len(models)), map(method_label, models))
        axes.set_ylim(-0.5, len(models) - 0.5)
        axes.locator_params(axis="x", nbins=6)  # money has long numbers
    label_grid(panels, "difference in money per 100 people")
    if handles := handles_of(panels.flat):
        legend_below(figure, handles, 1)
    return figure


def known_difference(one: Planned) -> float:
    """What deciding by amounts earns beyond one cost where P(ỹ = 1 | score, group) is known, on FICO.

    By amounts everybody is accepted whose expected amount w = p·g − (1 − p)·l is above 0, by the cost c
    everybody with p ≥ c. The expectations are sums over groups, scores and exposures.

    Args:
        one: a run on FICO with `dataset.exposures`.

    Returns:
        Money per person.
    """
    data: Any = load_dataset(one.dataset, *(word for word in one.words if word.startswith("dataset.")))
    scores, exposures = data.scores, np.array(one.config.dataset["exposures"], dtype=float)
    share = (scores.group_share[:, None] * scores.share)[..., None] / len(exposures)
    p = scores.repays[..., None]
    gain, loss = (
        of.get(CONSTANT, 0.0) + of.get("exposure", 0.0) * exposures
        for of in (one.config.amounts or {}).values()
    )
    worth = share * (p * gain - (1 - p) * loss)
    by_cost = worth * (p >= one.config.dataset["cost"])
    return float(worth.clip(min=0).sum() - by_cost.sum())
