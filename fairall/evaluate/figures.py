"""Figures of an evaluation, or of two policies that are compared."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from fairall.evaluate.bounds import LARGEST_GAMMA
from fairall.evaluate.estimators import LABELS
from fairall.evaluate.evaluation import Evaluation
from fairall.evaluate.fairness import MEASURES
from fairall.results.figures import BLUE, GREEN, GREY, ORANGE
from fairall.results.page import legend_below

COLUMN = 3.4  # inches
VIEWS = {"naive": GREY, "ips": ORANGE, "dr": BLUE}
NAMES = {"naive": "naive", "ips": "IPS", "dr": "DR"}
POLICIES = (BLUE, ORANGE)
MOST_GROUPS = 8  # shown, the largest
BINS = 20  # of propensities
PANELS = 4  # side by side
ON_PLANE = ("dpu", "equal_opportunity")
SENSITIVE = ("utility", "equal_opportunity", "predictive_parity", "false_positive")
CURVES = {"value": "utility", "dpu": "DPU", "equal_opportunity": "equal-opportunity gap"}
ENDS = ("estimate", "low", "high")
FAILURES = ("acceptance", "failure", "failure_low", "failure_high")
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
    "people of equal features by a factor up to Γ. At the turning point the 95 % limits reach 0. The "
    "triangle is the Γ that would arise if the feature that matters most were hidden.",
    "contraction": "Failures (accepted, negative label) per person, with 95 % intervals: the policy among "
    "the people of the most lenient decision maker, and each decision maker among their own (Lakkaraju et "
    "al. 2017).",
    "curves": "Of accepting everybody whose score is at least the threshold, doubly robust. A band covers "
    "the whole curve with 95 %.",
    "reliability": "Mean label, doubly robust, among people of a bin of the probability of a positive label, "
    "with 95 % intervals; on the diagonal if the probability is right. Larger dots: more people.",
}
Plain = Mapping[str, Any]
Plains = Mapping[str, Plain]  # content of evaluation.json by the name of the policy


def draw_value(plains: Plains) -> Figure:
    """Draw each policy's value by estimator with its interval, the guaranteed interval, and the bounds."""
    labels = [*LABELS.values(), "guaranteed interval", "no assumption"]
    figure = Figure(figsize=(COLUMN, 0.5 + 0.17 * len(labels) * len(plains) ** 0.7), layout="constrained")
    axes = figure.subplots()
    for k, (_, colour, plain) in enumerate(_coloured(plains)):
        own = [*plain["value"].values(), plain["guarantee"], _outer(plain["bounds"]["utility"])]
        for row, estimate in enumerate(own):
            shift = (k - (len(plains) - 1) / 2) * 0.22
            _point(axes, estimate, row + shift, colour)
    axes.axvline(0.0, color=GREY, lw=0.5, zorder=0)
    _rows(axes, labels)
    axes.set_xlabel("utility per person ×100")
    if len(plains) > 1:
        legend_below(figure, _lines(plains), 2)
    return figure


def draw_fairness(plains: Plains) -> Figure:
    """Draw each measure naive, by IPS and by DR, with intervals, and its bounds; a panel for each policy."""
    labels = [one.label for one in MEASURES.values()]
    figure = Figure(figsize=(COLUMN * len(plains), 0.6 + 0.27 * len(labels)), layout="constrained")
    panels = figure.subplots(1, len(plains), sharey=True, squeeze=False)[0]
    for axes, (name, plain) in zip(panels, plains.items(), strict=True):
        for row, measure in enumerate(MEASURES):
            for k, (view, colour) in enumerate(VIEWS.items()):
                _point(axes, plain["fairness"][measure][view], row + 0.2 * (k - 1.5), colour)
            if measure in plain["bounds"]:
                _point(axes, _outer(plain["bounds"][measure]), row + 0.3, GREY, lw=0.6)
        axes.set_xlabel("unfairness ×100")
        axes.set_xlim(left=0.0)
        axes.set_title(name if len(plains) > 1 else "")
    _rows(panels[0], labels)
    handles = {NAMES[view]: Line2D([], [], color=colour, marker="o", ms=3) for view, colour in VIEWS.items()}
    legend_below(figure, handles | {"no assumption": Line2D([], [], color=GREY, lw=0.6)}, 4)
    return figure


def draw_overlap(evaluations: Mapping[str, Evaluation]) -> Figure:
    """Draw the propensities of accepted and rejected people, acceptance by policies; a panel per group."""
    models = next(iter(evaluations.values())).models
    log, propensity = models.log, models.acceptance
    known, sizes = np.isfinite(propensity), np.bincount(log.group, minlength=len(log.groups))
    codes = sorted(sorted(models.shown, key=lambda code: -sizes[code])[:MOST_GROUPS])
    figure, panels = _grid(len(codes), height=1.5)
    edges = np.linspace(0.0, 1.0, BINS + 1)
    handles: dict[str, Any] = {}
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
        for (name, one), colour in zip(evaluations.items(), POLICIES, strict=False):
            wanted = np.histogram(propensity[members], edges, weights=one.target[members])[0]
            mean = np.divide(wanted, people, out=np.full(BINS, np.nan), where=people > 0)
            (handles[f"acceptance, {name}"],) = right.plot(
                (edges[1:] + edges[:-1]) / 2, mean, color=colour, marker="o", ms=2, lw=0.9
            )
        right.set(ylim=(0.0, 1.02), yticks=[0.0, 0.5, 1.0])
        right.spines["right"].set_visible(True)
        last = at == len(codes) - 1 or (at + 1) % PANELS == 0
        right.set_ylabel("acceptance by the policy" if last else "")
        right.tick_params(labelright=last)
        axes.set(title=log.groups[code], xlabel="propensity", xlim=(0.0, 1.0), xticks=[0.0, 0.5, 1.0])
        axes.set_ylabel("share of the group" if at % PANELS == 0 else "")
    legend_below(figure, handles, 4)
    return figure


def draw_reliability(plains: Plains) -> Figure:
    """Draw the mean label by the probability of a positive label, with intervals; a panel per group."""
    found = next(one["calibration"] for one in plains.values() if one["calibration"])["groups"]
    people = {name: one["people"] for name, one in next(iter(plains.values()))["groups"].items()}
    names = sorted(sorted(found, key=lambda name: -people[name])[:MOST_GROUPS])
    figure, panels = _grid(len(names), height=1.5, sharey=True)
    for axes, name in zip(panels, names, strict=True):
        bins = found[name]["bins"]
        x, y, low, high, share = (
            np.array([one[key] for one in bins]) for key in ("score", "estimate", "low", "high", "share")
        )
        axes.plot([0, 1], [0, 1], color=GREY, lw=0.5)
        axes.errorbar(x, y, yerr=[y - low, high - y], fmt="none", lw=0.8, color=BLUE)
        axes.scatter(x, y, s=2 + 60 * share, color=BLUE, lw=0)
        # Doubly robust means of small bins may leave [0, 1].
        axes.set(
            title=name, xlim=(-0.03, 1.03), ylim=(-0.05, 1.05), xlabel="probability", xticks=[0.0, 0.5, 1.0]
        )
    panels[0].set_ylabel("mean label")
    return figure


def draw_sensitivity(plains: Plains) -> Figure:
    """Draw bounds by the odds ratio Γ, turning points, and the largest benchmark; a panel per measure."""
    figure, panels = _grid(len(SENSITIVE), height=1.6)
    handles: dict[str, Any] = {}
    for axes, measure in zip(panels, SENSITIVE, strict=True):
        points = []
        for name, colour, plain in _coloured(plains):
            found = plain["sensitivity"]
            if measure not in found["bounds"]:  # refused for lack of overlap
                continue
            rows = found["bounds"][measure]
            gamma = [row["gamma"] for row in rows]
            handles[name] = axes.fill_between(
                gamma, _column(rows, "low"), _column(rows, "high"), color=colour, alpha=0.3, lw=0
            )
            for end in ("interval_low", "interval_high"):
                (handles["95 % limits"],) = axes.plot(
                    gamma, _column(rows, end), color=colour, ls="--", lw=0.7
                )
            turning = found["turning_points"][measure]
            points.append(f"> {LARGEST_GAMMA:g}" if turning is None else f"{turning:.2f}")
            if turning is not None and turning <= gamma[-1]:
                handles["turning point"] = axes.axvline(turning, color=colour, ls=":", lw=1.2)
            hidden = next(iter(found["benchmarks"].items()), None)
            if hidden is not None and hidden[1] <= gamma[-1]:
                (handles[f"hiding {hidden[0]}"],) = axes.plot(
                    hidden[1], 0.0, marker="^", color="tab:red", ls="", transform=axes.get_xaxis_transform(),
                    ms=4, clip_on=False, zorder=4,
                )  # fmt: skip
        axes.axhline(0.0, color=GREY, lw=0.5)
        label = "utility" if measure == "utility" else MEASURES[measure].label
        told = f"turning point {', '.join(points)}" if points else "refused"
        axes.set_title(f"{label}\n{told}")
        axes.set(xlabel="odds ratio Γ", ylabel="×100" if axes is panels[0] else "")
    legend_below(figure, handles, 4)
    return figure


def draw_contraction(plains: Plains) -> Figure:
    """Draw failure rates by acceptance rate, of policies with a band, and of decision makers."""
    figure = Figure(figsize=(COLUMN, 2.3), layout="constrained")
    axes = figure.subplots()
    handles: dict[str, Any] = {}
    for name, colour, plain in _coloured(plains):
        curve = plain["contraction"]["policy"]
        x, y, low, high = (_column(curve, key) for key in FAILURES)
        handles[name] = _band(axes, x, y, low, high, colour)
        x, y, low, high = (_column(plain["contraction"]["decision_makers"], key) for key in FAILURES)
        handles["decision makers"] = axes.errorbar(
            x, y, yerr=[y - low, high - y], fmt="o", ms=3, lw=0.8, color=GREY, zorder=3
        )
    axes.set(xlabel="acceptance rate ×100", ylabel="failures per person ×100")
    axes.set_xlim(left=0.0)
    axes.set_ylim(bottom=0.0)
    legend_below(figure, handles, 3)
    return figure


def draw_thresholds(plains: Plains) -> Figure:
    """Draw value and gaps by the threshold of a score, with simultaneous bands; a panel each."""
    figure, panels = _grid(len(CURVES), height=1.6)
    handles: dict[str, Any] = {}
    for axes, (key, label) in zip(panels, CURVES.items(), strict=True):
        for name, colour, plain in _coloured(plains):
            rows = plain["thresholds"] or []
            x = [row["threshold"] for row in rows]
            mean, low, high = (_column([row[key] for row in rows], end) for end in ENDS)
            if rows:
                handles[name] = _band(axes, x, mean, low, high, colour)
        axes.axhline(0.0, color=GREY, lw=0.5)
        axes.set(title=f"{label} ×100", xlabel="threshold")
    if len(plains) > 1:
        legend_below(figure, handles, 2)
    return figure


def draw_plane(plains: Plains) -> Figure:
    """Draw value against unfairness with both intervals, doubly robust; a panel per measure."""
    figure = Figure(figsize=(2 * COLUMN, 2.2), layout="constrained")
    panels = figure.subplots(1, len(ON_PLANE), sharey=True)
    for axes, measure in zip(panels, ON_PLANE, strict=True):
        for _, colour, plain in _coloured(plains):
            gap, value = plain["fairness"][measure]["dr"], plain["value"]["dr"]
            if gap["low"] is not None:
                ends = {"xerr": _ends(gap), "yerr": _ends(value)}
                x, y = 100 * gap["estimate"], 100 * value["estimate"]
                axes.errorbar(x, y, **ends, fmt="o", ms=4, lw=1, color=colour)
        axes.axhline(0.0, color=GREY, lw=0.5, zorder=0)
        axes.set_xlabel(f"{MEASURES[measure].label} ×100")
        axes.set_xlim(left=0.0)
    panels[0].set_ylabel("utility per person ×100")
    legend_below(figure, _lines(plains), 2)
    return figure


def _coloured(plains: Plains) -> Iterator[tuple[str, str, Plain]]:
    return ((name, colour, plain) for colour, (name, plain) in zip(POLICIES, plains.items(), strict=False))


def _lines(plains: Plains) -> dict[str, Any]:
    return {name: Line2D([], [], color=colour, marker="o", ms=3) for name, colour, _ in _coloured(plains)}


def _column(rows: Sequence[Plain], key: str) -> np.ndarray:
    """A number of each row ×100, NaN where there is none."""
    return 100 * np.array([row[key] for row in rows], dtype=float)


def _band(axes: Axes, x: Any, y: Any, low: Any, high: Any, colour: str) -> Line2D:
    axes.fill_between(x, low, high, color=colour, alpha=0.25, lw=0)
    return axes.plot(x, y, color=colour)[0]


def _point(axes: Axes, own: Plain, y: float, colour: str, lw: float = 1.0) -> None:
    """An estimate ×100 with its interval, hollow without one; an interval without an estimate as a line."""
    estimate, low, high = (own.get(key) for key in ENDS)
    if low is not None and high is not None:
        axes.plot(
            [100 * low, 100 * high], [y, y], color=colour, lw=lw, marker="|" if estimate is None else "", ms=3
        )
    if estimate is not None:
        axes.plot(
            100 * estimate, y, "o", ms=2.5, color=colour, mfc=colour if low is not None else "none", mew=0.7
        )


def _ends(own: Plain) -> np.ndarray:
    """Distances ×100 from an estimate to the ends of its interval, shape (2, 1), for error bars."""
    return 100 * np.abs([[own["estimate"] - own["low"]], [own["high"] - own["estimate"]]])


def _outer(bounds: Plain) -> dict[str, Any]:
    return {"low": bounds["interval_low"], "high": bounds["interval_high"]}


def _rows(axes: Axes, labels: Sequence[str]) -> None:
    axes.set_yticks(range(len(labels)), labels)
    axes.set_ylim(len(labels) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)


def _grid(n: int, height: float, sharey: bool = False) -> tuple[Figure, list[Axes]]:
    """A figure with n panels, `PANELS` side by side at most, and those panels."""
    columns = min(n, PANELS)
    rows = math.ceil(n / columns)
    width = COLUMN if columns <= 2 else 2 * COLUMN
    figure = Figure(figsize=(width, 0.3 + height * rows), layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False, sharey=sharey).ravel()
    for axes in panels[:n]:
        axes.locator_params(nbins=4)
    for unused in panels[n:]:
        unused.set_axis_off()
    return figure, list(panels[:n])
