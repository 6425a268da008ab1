"""Figures of an evaluation, or of two policies that are compared."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from fairall.display.page import PageFigure
from fairall.display.style import BLUE, COLUMN, GREEN, GREY, ORANGE, date_axis, legend_below
from fairall.evaluate.estimated.bounds import LARGEST_GAMMA
from fairall.evaluate.estimated.fairness import MEASURES
from fairall.evaluate.evaluation import Evaluation
from fairall.evaluate.judged.monitor import RATES
from fairall.evaluate.judged.scorecard import EVERYBODY
from fairall.evaluate.shown.panels import POLICIES, VALUES, fairness_on, lines_of, lines_of_views, value_on
from fairall.evaluate.shown.sentences import (
    CALIBRATION,
    CHOICES,
    DATA,
    DISCRIMINATION,
    LIMITS,
    STABILITY,
    VALUE,
    Shown,
    both,
)

MOST_GROUPS = 8  # shown, the largest
BINS = 20  # of propensities
SIDE_BY_SIDE = 4  # panels
ON_PLANE = ("dpu", "equal_opportunity")
SENSITIVE = ("utility", "equal_opportunity", "predictive_parity", "false_positive")
CURVES = {"value": "utility", "dpu": "DPU", "equal_opportunity": "equal-opportunity gap"}
SCORED = {"accepted": "accepted alone", "dr": "everybody", "bounds": "no assumption"}
VIEWS_TOLD = (
    "naive: among accepted people with a label; IPS, DR: of all people, from labels weighted by inverse "
    "propensity, and doubly robust."
)
DRAWN = "With 95 % intervals; hollow: estimates without one."
NOTES = {
    "plane": "Doubly robust, with 95 % intervals. Upper left is better.",
    "estimators": f"{DRAWN} no assumption: whatever the missing labels are.",
    "overlap": "People by the propensity of the past decisions, accepted and rejected; the line is the mean "
    "acceptance probability of the policy among people of a bin. Where it is high and nobody was accepted, "
    "labels are missing.",
    "gaps": f"{VIEWS_TOLD} {DRAWN} Thin lines: whatever the missing labels are.",
    "sensitivity": "Bounds if the odds of a positive label of rejected people differ from those of accepted "
    "people of equal features by a factor up to Γ. At the turning point the 95 % limits reach 0. "
    "Red: the Γ that would arise if the feature that matters most were hidden.",
    "ranks": "People of either label with a score above a threshold, by all people above it. On the accepted "
    "alone; of everybody, doubly robust; and what is possible whatever the missing labels are. A band covers "
    "a whole curve with 95 %.",
    "monitor": "Of the rows until each moment, doubly robust, with 95 % confidence sequences, which cover at "
    "all moments at once. Dashed: valid from the first row on if the propensities are right. Dotted: first "
    "moment at which the gap is above ε for certain.",
    "curves": "Of accepting everybody whose score is at least the threshold, doubly robust. A band covers "
    "the whole curve with 95 %.",
    "reliability": "Mean label, doubly robust, among people of a bin of the probability of a positive label, "
    "with 95 % intervals; on the diagonal if the probability is right. Larger dots: more people.",
}
Evaluations: TypeAlias = Mapping[str, Evaluation]  # by the name of the policy


def draw_value(evaluations: Evaluations) -> Figure:
    """Draw each policy's value by estimator with its interval, the guaranteed interval, and the bounds."""
    figure, (axes,), _ = _grid(1, height=0.2 + 0.17 * len(VALUES) * len(evaluations) ** 0.7)
    value_on(axes, [one.intervals_of_value for one in evaluations.values()])
    if len(evaluations) > 1:
        legend_below(figure, lines_of(_coloured(evaluations)), 2)
    return figure


def draw_fairness(evaluations: Evaluations) -> Figure:
    """Draw each measure naive, by IPS and by DR, with intervals, and its bounds; a panel for each policy."""
    figure = Figure(figsize=(COLUMN * len(evaluations), 0.6 + 0.27 * len(MEASURES)), layout="constrained")
    panels = figure.subplots(1, len(evaluations), sharey=True, squeeze=False)[0]
    for axes, (name, one) in zip(panels, evaluations.items(), strict=True):
        fairness_on(axes, one.fairness, one.bounds)
        axes.set_title(name if len(evaluations) > 1 else "")
    legend_below(figure, lines_of_views(), 4)
    return figure


def draw_overlap(evaluations: Evaluations) -> Figure:
    """Draw the propensities of accepted and rejected people, acceptance by policies; a panel per group."""
    models = next(iter(evaluations.values())).models
    log, propensity = models.log, models.acceptance
    known, sizes = np.isfinite(propensity), np.bincount(log.group, minlength=len(log.groups))
    codes = sorted(sorted(models.shown, key=lambda code: -sizes[code])[:MOST_GROUPS])
    figure, panels, handles = _grid(len(codes), height=1.5)
    edges = np.linspace(0.0, 1.0, BINS + 1)
    for at, (axes, code) in enumerate(zip(panels, codes, strict=True)):
        members = known & (log.group == code)
        for label, chosen, colour in (
            ("rejected", members & ~log.accepted, GREY),
            ("accepted", members & log.accepted, GREEN),
        ):
            share = np.histogram(propensity[chosen], edges)[0] / max(members.sum(), 1)
            handles[label] = axes.stairs(share, edges, fill=True, color=colour, alpha=0.45)
        right = axes.twinx()
        people = np.histogram(propensity[members], edges)[0]
        for name, colour, one in _coloured(evaluations):
            wanted = np.histogram(propensity[members], edges, weights=one.target[members])[0]
            mean = np.divide(wanted, people, out=np.full(BINS, np.nan), where=people > 0)
            (handles[f"acceptance, {name}"],) = right.plot(
                (edges[1:] + edges[:-1]) / 2, mean, color=colour, marker="o", ms=2, lw=0.9
            )
        last = at == len(codes) - 1 or (at + 1) % SIDE_BY_SIDE == 0
        right.set(ylim=(0.0, 1.02), yticks=[0.0, 0.5, 1.0], ylabel="acceptance by the policy" if last else "")
        right.spines["right"].set_visible(True)
        right.tick_params(labelright=last)
        axes.set(title=log.groups[code], xlabel="propensity", xlim=(0.0, 1.0), xticks=[0.0, 0.5, 1.0])
        axes.set_ylabel("share of the group" if at % SIDE_BY_SIDE == 0 else "")
    legend_below(figure, handles, 4)
    return figure


def draw_reliability(evaluations: Evaluations) -> Figure:
    """Draw the mean label by the probability of a positive label, with intervals; a panel per group."""
    found = next(one.calibration for one in evaluations.values() if one.calibration)["groups"]
    groups = next(iter(evaluations.values())).groups
    names = sorted(sorted(found, key=lambda name: -groups[name]["people"])[:MOST_GROUPS])
    figure, panels, _ = _grid(len(names), height=1.5, sharey=True)
    for axes, name in zip(panels, names, strict=True):
        x, share, y, low, high = found[name]["bins"].to_numpy().T
        axes.plot([0, 1], [0, 1], color=GREY, lw=0.5)
        axes.errorbar(x, y, yerr=[y - low, high - y], fmt="none", lw=0.8, color=BLUE)
        axes.scatter(x, y, s=2 + 60 * share, color=BLUE, lw=0)
        axes.set(
            title=name, xlim=(-0.03, 1.03), ylim=(-0.05, 1.05), xlabel="probability", xticks=[0.0, 0.5, 1.0]
        )
    panels[0].set_ylabel("mean label")
    return figure


def draw_sensitivity(evaluations: Evaluations) -> Figure:
    """Draw bounds by the odds ratio Γ, turning points, and the largest benchmark; a panel per measure."""
    figure, panels, handles = _grid(len(SENSITIVE), height=1.6)
    for axes, measure in zip(panels, SENSITIVE, strict=True):
        points = []
        for name, colour, one in _coloured(evaluations):
            found = one.sensitivity
            if found is None or measure not in found["bounds"]:  # refused for lack of overlap
                continue
            bounds = 100 * found["bounds"][measure]
            gamma = bounds["gamma"] / 100
            handles[name] = axes.fill_between(
                gamma, bounds["low"], bounds["high"], color=colour, alpha=0.3, lw=0
            )
            for end in ("interval_low", "interval_high"):
                (handles["95 % limits"],) = axes.plot(gamma, bounds[end], color=colour, ls="--", lw=0.7)
            turning = found["turning_points"][measure]
            points.append(f"> {LARGEST_GAMMA:g}" if turning is None else f"{turning:.2f}")
            if turning is not None and turning <= gamma.max():
                handles["turning point"] = axes.axvline(turning, color=colour, ls=":", lw=1.2)
            hidden = next(iter(found["benchmarks"].items()), None)
            if hidden is not None and hidden[1] <= gamma.max():
                handles[f"hiding {hidden[0]}"] = axes.axvline(hidden[1], color="tab:red", lw=0.7)
        axes.axhline(0.0, color=GREY, lw=0.5)
        label = "utility" if measure == "utility" else MEASURES[measure].label
        told = f"turning point {', '.join(points)}" if points else "refused"
        axes.set(title=f"{label}\n{told}", xlabel="odds ratio Γ", ylabel="×100" if axes is panels[0] else "")
    legend_below(figure, handles, 4)
    return figure


def draw_thresholds(evaluations: Evaluations) -> Figure:
    """Draw value and gaps by the threshold of a score, with simultaneous bands; a panel each."""
    figure, panels, handles = _grid(len(CURVES), height=1.6)
    for axes, (key, label) in zip(panels, CURVES.items(), strict=True):
        for name, colour, one in _coloured(evaluations):
            if one.thresholds:
                levels = [row["threshold"] for row in one.thresholds]
                own = pd.DataFrame([row[key] for row in one.thresholds])
                handles[name] = _band(axes, levels, own["estimate"], own["low"], own["high"], colour)
        axes.axhline(0.0, color=GREY, lw=0.5)
        axes.set(title=f"{label} ×100", xlabel="threshold")
    if len(evaluations) > 1:
        legend_below(figure, handles, 2)
    return figure


def draw_score(evaluations: Evaluations) -> Figure:
    """Draw the shares of people above thresholds of the score, by label; a panel per view."""
    found = next(iter(evaluations.values())).scorecard
    assert found is not None
    gini = found[EVERYBODY]["gini"]
    figure, panels, handles = _grid(len(SCORED), height=1.7, sharey=True)
    for axes, (view, name) in zip(panels, SCORED.items(), strict=True):
        of_view = found["curves"][found["curves"]["view"] == view]
        for label, colour in (("positive", BLUE), ("negative", ORANGE)):
            own = of_view[of_view["label"] == label].sort_values("acceptance")
            if len(own):
                x = 100 * own["acceptance"]
                handles[f"people with a {label} label"] = _band(
                    axes, x, own["estimate"], own["low"], own["high"], colour
                )
        ends = gini[view].interval if view == "bounds" else gini[view]
        told = f"Gini {both(ends)}" if len(of_view) else "refused"
        axes.set(title=f"{name}\n{told}", xlabel="people above the threshold ×100")
    panels[0].set_ylabel("above the threshold ×100")
    legend_below(figure, handles, 2)
    return figure


def draw_monitor(evaluations: Evaluations) -> Figure:
    """Draw value and gaps with their confidence sequences, ε, and first alarms; a panel each."""
    figure, panels, handles = _grid(1 + len(RATES), height=1.7)
    for name, colour, one in _coloured(evaluations):
        watched = one.monitor
        assert watched is not None
        courses = {"utility": watched.value} | {MEASURES[key].label: own for key, own in watched.gaps.items()}
        alarms = [None, *watched.alarms.values()]
        for axes, (label, own), alarm in zip(panels, courses.items(), alarms, strict=True):
            handles[name] = _band(axes, watched.moments, own.estimate, own.low, own.high, colour)
            axes.set_title(f"{label} ×100")
            if alarm is None:
                for end in (watched.guarantee.low, watched.guarantee.high):
                    if not np.isnan(end).all():
                        (handles["guaranteed"],) = axes.plot(
                            watched.moments, 100 * end, color=colour, ls="--", lw=0.7
                        )
                continue
            handles["ε"] = axes.axhline(100 * one.models.largest_gap, color=GREY, lw=0.7)
            if alarm.time is not None:
                handles["first alarm"] = axes.axvline(alarm.time, color=colour, ls=":", lw=1.2)
        if watched.moments.dtype.kind == "M":
            for axes in panels:
                date_axis(axes)
    legend_below(figure, handles, 4)
    return figure


def draw_plane(evaluations: Evaluations) -> Figure:
    """Draw value against unfairness with both intervals, doubly robust; a panel per measure."""
    figure = Figure(figsize=(2 * COLUMN, 2.2), layout="constrained")
    panels = figure.subplots(1, len(ON_PLANE), sharey=True)
    for axes, measure in zip(panels, ON_PLANE, strict=True):
        for _, colour, one in _coloured(evaluations):
            gap, value = one.fairness[measure]["dr"], one.values["dr"]
            if not np.isnan([gap.low, value.low]).any():
                (x, *xerr), (y, *yerr) = (
                    (100 * own.estimate, [100 * (own.estimate - own.low)], [100 * (own.high - own.estimate)])
                    for own in (gap, value)
                )
                axes.errorbar(x, y, yerr, xerr, fmt="o", ms=4, color=colour, elinewidth=0.9)
        axes.axhline(0.0, color=GREY, lw=0.5, zorder=0)
        axes.set_xlabel(f"{MEASURES[measure].label} ×100")
        axes.set_xlim(left=0.0)
    panels[0].set_ylabel("utility per person ×100")
    legend_below(figure, lines_of(_coloured(evaluations)), 2)
    return figure


def pictures(shown: Shown) -> list[PageFigure]:
    """All figures that there is something to draw in."""
    evaluations, groups = shown.evaluations.values(), len(shown.first.groups)
    answered = all(one.sensitivity for one in evaluations)
    calibrated = groups > 0 and shown.calibration is not None
    scored = shown.first.scorecard is not None
    of_model = CALIBRATION if scored else DATA
    # Key, title, section, how it is drawn, whether it is wide, and whether there is something to draw.
    known = [
        ("ranks", "What the score tells apart", DISCRIMINATION, draw_score, True, scored),
        ("plane", "Value against unfairness", VALUE, draw_plane, True, bool(shown.difference and answered)),
        ("estimators", "Utility by estimator", VALUE, draw_value, False, True),
        ("overlap", "Overlap", DATA, draw_overlap, groups > 2, groups > 0),
        ("gaps", "What selection hides", "", draw_fairness, len(evaluations) > 1, True),
        ("sensitivity", "Sensitivity", LIMITS, draw_sensitivity, True, answered),
        ("monitor", "Over time", STABILITY, draw_monitor, True, shown.log.time is not None),
        ("curves", "Thresholds", CHOICES, draw_thresholds, True, any(one.thresholds for one in evaluations)),
        ("reliability", "Reliability by group", of_model, draw_reliability, groups > 2, calibrated),
    ]
    return [
        PageFigure(
            key=key,
            title=title,
            note=NOTES[key],
            section=section,
            wide=wide,
            draw=partial(draw, shown.evaluations),
        )
        for key, title, section, draw, wide, there in known
        if there
    ]


def _coloured(evaluations: Evaluations) -> Iterator[tuple[str, str, Evaluation]]:
    return ((name, colour, one) for colour, (name, one) in zip(POLICIES, evaluations.items(), strict=False))


def _band(axes: Axes, x: Any, y: Any, low: Any, high: Any, colour: str) -> Line2D:
    """Draw a curve ×100 with a band."""
    axes.fill_between(x, 100 * low, 100 * high, color=colour, alpha=0.25, lw=0)
    return axes.plot(x, 100 * y, color=colour)[0]


def _grid(n: int, height: float, sharey: bool = False) -> tuple[Figure, list[Axes], dict[str, Any]]:
    """A figure with n panels, `SIDE_BY_SIDE` side by side at most, those panels, and an empty legend."""
    columns = min(n, SIDE_BY_SIDE)
    rows = math.ceil(n / columns)
    width = COLUMN if columns <= 2 else 2 * COLUMN
    figure = Figure(figsize=(width, 0.3 + height * rows), layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False, sharey=sharey).ravel()
    for axes in panels[:n]:
        axes.locator_params(nbins=4)
    for unused in panels[n:]:
        unused.set_axis_off()
    return figure, list(panels[:n]), {}
