"""Figures of studies: panels of points with intervals, or of curves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from fairall import load_dataset
from fairall.display import BLUE, GREEN, GREY, ORANGE, handles_of, legend_below
from fairall.metrics import Spread
from fairall.report import WITH_ROW, look_of, method_label, paired_difference
from fairall.results import LEVELS, REFERENCES, band, interval
from reproduction.items import LINES, grid_of
from reproduction.plan import Planned
from reproduction.values import CONSTANT, LATENT, RULES, Facts, by_words, words

ACROSS = 3  # panels side by side
SMOOTH = 10  # time steps that curves are averaged over
COLOURS = dict(zip((*RULES.values(), LATENT), (GREY, ORANGE, GREEN, BLUE), strict=True))
EQUAL = "oracle_fair"  # the reference whose DPU on test people is their noise
STYLES = {"none": "-", "epsilon": "--"}  # by exploration
KNOWN = "P(ỹ | score, group) known, no fairness rule"
COST = "by one cost"
EFFECTIVE = "effective_utility"
# Panels of worlds by sweep: title, label of x, and label of y.
STEP = "time step t"
EARNED = "effective utility ×100"
WORLDS = {
    "worlds_capacity": ("Few places", "places per applicant", EARNED),
    "worlds_delay": ("Late labels", "delay of labels, time steps", EARNED),
    "worlds_noise": ("False labels of the disadvantaged", "good labels shown as bad", EARNED),
    "worlds_shift": ("A shift at time step 100", STEP, "utility ×100"),
    "worlds_feedback": ("What groups become, by credit scores", STEP, "change of score ×100"),
}


class Mark(NamedTuple):
    """What is drawn on a panel: a point, or a curve with a row per x and a column per seed."""

    panel: tuple[str, str, str]  # title, label of x, and label of y
    of: tuple[Spread | float | None, Spread | float | None] | pd.DataFrame
    look: dict[str, Any]


def draw_panels(marks: Iterable[Mark]) -> Figure:
    """Draw a panel for each that marks name; a point without a coordinate is left out."""
    panels: dict[tuple[str, str, str], list[Mark]] = {}
    for mark in marks:
        panels.setdefault(mark.panel, []).append(mark)
    rows = -(-len(panels) // ACROSS)
    figure, grid = grid_of(rows, min(ACROSS, len(panels)), 1.8 * rows + 0.3)
    for axes in grid.flat[len(panels) :]:
        axes.set_axis_off()
    for axes, ((title, xlabel, ylabel), own) in zip(grid.flat, panels.items(), strict=False):
        axes.set(title=title, xlabel=xlabel, ylabel=ylabel)
        axes.locator_params(axis="x", nbins=6)  # money has long numbers
        for _, of, look in own:
            if isinstance(of, pd.DataFrame):
                band(axes, of, **look)
            elif None not in of:
                interval(axes, *of, **look)
    legend_below(figure, handles_of(grid.flat), 4)
    return figure


def truth(runs: list[Facts]) -> Iterator[Mark]:
    """A panel per world: ground-truth utility against CFU, and against CFU with Y held (hollow)."""
    for run in sorted(runs, key=lambda run: (run["gap"], run["bias"])):
        title, of = words("truth gap {gap:g}, label bias {bias:g}", run), run["planned"].run.spread
        panel, y = (title, "CFU ×100", "ground-truth utility ×100"), of("mean_ground_truth_utility")
        look = {"color": COLOURS[run["tool"]], "marker": "o", "ms": 4}
        yield Mark(panel, (of("mean_cfu"), y), look | {"label": run["tool"]})
        yield Mark(panel, (of("mean_cfu_y_held"), y), look | {"mfc": "white"})


def groups(runs: list[Facts]) -> Iterator[Mark]:
    """A panel per groups: utility against DPU, of methods and of a reference."""
    for title, own in by_words(runs, "{dataset!d}, {groups} groups").items():
        panel, measures = (title, "DPU ×100", "utility ×100"), ("mean_dpu", "mean_utility")
        for run in own:
            x, y = map(run["planned"].run.spread, measures)
            look = look_of(run["model"]) | {"label": run["tool"], "ms": 4}
            yield Mark(panel, (x, y), look | {"mfc": "white" if run["alike"] else look["color"]})
        x, y = (own[0]["planned"].run.reference(EQUAL, measure) for measure in measures)
        yield Mark(panel, (x, y), {"label": REFERENCES[EQUAL], "color": GREY, "marker": "*", "ms": 5})


def loss(runs: list[Facts]) -> Iterator[Mark]:
    """A panel per data set and method: utility over time less that without hidden reasons."""
    for own in by_words(runs, "{dataset} {method} {exploration}").values():
        of = {run["gamma"]: run["planned"].run.curve("utility") for run in own}
        run, greatest = own[0], max(of)
        if greatest > 1.0 in of:
            panel = words("{dataset!d}, {method!m}", run), STEP, "change of utility ×100"
            label = f"Γ = {greatest:g}, exploration: {run['exploration']}"
            look = {
                "color": look_of(run["method"])["color"],
                "ls": STYLES[run["exploration"]],
                "label": label,
            }
            yield Mark(panel, of[greatest] - of[1.0], look)
            yield Mark(panel, 0 * of[1.0], {"color": GREY, "lw": 0.4})


def earned(runs: list[Facts]) -> Iterator[Mark]:
    """A panel per terms: money by amounts less that by one cost, of applicants against test people."""
    for title, own in by_words(runs, "{dataset!d}, interest {interest!c:g} %").items():
        panel = title, "test people: money per 100", "applicants: money per 100"
        for pair in by_words(own, "{model}").values():
            of = {run["way"]: run["planned"].run for run in pair}
            if len(of) > 1:
                cost, (amounts,) = of.pop(COST), of.values()
                x, y = (
                    paired_difference(amounts.values(name), cost.values(name))
                    for name in ("mean_utility", EFFECTIVE)
                )
                label = method_label(pair[0]["model"])
                yield Mark(panel, (x, y), look_of(pair[0]["model"]) | {"label": label, "ms": 4})
        yield Mark(panel, (0.0, 0.0), {"label": COST, "color": GREY, "marker": "+"})
        if own[0]["planned"].config.dataset.get("exposures"):
            known = known_difference(own[0]["planned"])
            yield Mark(panel, (known, known), {"label": KNOWN, "color": GREY, "marker": "*", "ms": 5})


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
    return float((worth.clip(min=0) - worth * (p >= one.config.dataset["cost"])).sum())


def worlds(runs: list[Facts]) -> Iterator[Mark]:
    """A panel per part of the world: policies by its level, or over time."""
    for own in by_words(runs, "{sweep} {model}").values():
        name, panel, run = own[0]["model"], WORLDS[own[0]["sweep"]], own[0]["planned"].run
        look = {"color": look_of(name)["color"], "ls": (LINES | LEVELS)[name], "label": method_label(name)}
        if own[0]["sweep"] == "worlds_shift":
            yield Mark(panel, run.curve("utility").rolling(SMOOTH, center=True, min_periods=1).mean(), look)
        elif own[0]["sweep"] == "worlds_feedback":
            for group, width in (("advantaged", 1.1), ("disadvantaged", 0.6)):
                scores = run.curve(f"mean_score_{group}").mean(axis=1).to_frame()
                yield Mark(panel, scores - scores.head(1).sum(), look | {"lw": width})
        else:
            by_level = {one["level"]: one["planned"].run for one in own}
            yield Mark(panel, pd.DataFrame({x: of.values(EFFECTIVE) for x, of in by_level.items()}).T, look)
            for policy in WITH_ROW:
                of = {x: run.reference(policy, EFFECTIVE) for x, run in by_level.items()}
                line = pd.Series({x: level.mean for x, level in of.items() if level}, dtype=float).to_frame()
                thin = {"color": GREY, "lw": 0.6, "ls": LEVELS[policy]}
                yield Mark(panel, line, thin | {"label": REFERENCES[policy]})


MARKS: dict[str, Callable[[list[Facts]], Iterator[Mark]]] = {
    "questions_truth_map": truth,
    "questions_groups_map": groups,
    "questions_hidden_loss": loss,
    "questions_amounts": earned,
    "worlds": worlds,
}
"""What figures show, by key."""
