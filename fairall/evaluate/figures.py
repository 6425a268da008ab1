"""Figures of an evaluation, or of two policies that are compared."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from fairall.evaluate.bounds import LARGEST_GAMMA
from fairall.evaluate.estimators import LABELS
from fairall.evaluate.evaluation import Evaluation
from fairall.evaluate.fairness import MEASURES
from fairall.results.figures import BLUE, GREEN, GREY, ORANGE, PURPLE
from fairall.results.page import legend_below

COLUMN = 3.4  # inches
VIEWS = {"naive": GREY, "ips": ORANGE, "dr": BLUE}
NAMES = {"naive": "naive", "ips": "IPS", "dr": "DR"}
POLICIES = (BLUE, ORANGE)
GROUPS = (BLUE, ORANGE, GREEN, PURPLE, GREY)
STYLES = ("-", "--", ":", "-.")
MOST_GROUPS = 8  # shown, the largest
BINS = 20  # of propensities
PANELS = 4  # side by side
ON_PLANE = ("dpu", "equal_opportunity")
SENSITIVE = ("utility", "equal_opportunity", "predictive_parity", "false_positive")
Plains = Mapping[str, Mapping[str, Any]]  # content of evaluation.json by the name of the policy


def draw_value(plains: Plains) -> Figure:
    """Draw each policy's value by estimator with its interval, the guaranteed interval, and the bounds."""
    labels = [*LABELS.values(), "guaranteed interval", "no assumption"]
    figure = Figure(figsize=(COLUMN, 0.5 + 0.17 * len(labels) * len(plains) ** 0.7), layout="constrained")
    axes = figure.subplots()
    handles = {}
    for k, (name, plain) in enumerate(plains.items()):
        shift, colour = _shift(k, len(plains)), POLICIES[k]
        for row, (estimator, own) in enumerate(plain["value"].items()):
            assert LABELS[estimator] == labels[row]
            _point(axes, own, row + shift, colour)
        for row, own in ((len(LABELS), plain["guarantee"]), (len(LABELS) + 1, plain["bounds"]["utility"])):
            _line(axes, own, row + shift, GREY if len(plains) == 1 else colour)
        handles[name] = Line2D([], [], color=colour, marker="o", ms=3)
    axes.axvline(0.0, color=GREY, lw=0.5, zorder=0)
    _rows(axes, labels)
    axes.set_xlabel("utility per person ×100")
    if len(plains) > 1:
        legend_below(figure, handles, 2)
    return figure


def draw_fairness(plains: Plains) -> Figure:
    """Draw each measure naive, by IPS and by DR, with intervals, and its bounds; a panel for each policy."""
    labels = [one.label for one in MEASURES.values()]
    figure = Figure(figsize=(COLUMN * len(plains), 0.6 + 0.27 * len(labels)), layout="constrained")
    panels = figure.subplots(1, len(plains), sharey=True, squeeze=False)[0]
    for axes, (name, plain) in zip(panels, plains.items(), strict=True):
        for row, measure in enumerate(MEASURES):
            for k, (view, colour) in enumerate(VIEWS.items()):
                _point(axes, plain["fairness"][measure][view], row + _shift(k, 3), colour)
            _line(axes, plain["bounds"][measure], row + 0.42, GREY, lw=0.6)
        axes.set_xlabel("unfairness ×100")
        axes.set_xlim(left=0.0)
        if len(plains) > 1:
            axes.set_title(name)
    _rows(panels[0], labels)
    handles = {NAMES[view]: Line2D([], [], color=colour, marker="o", ms=3) for view, colour in VIEWS.items()}
    legend_below(figure, handles | {"no assumption": Line2D([], [], color=GREY, lw=0.6)}, 4)
    return figure


def draw_overlap(evaluations: Mapping[str, Evaluation]) -> Figure:
    """Draw the propensities of accepted and rejected people, acceptance by policies; a panel per group."""
    first = next(iter(evaluations.values()))
    log, propensity = first.log, first.evaluator.acceptance_propensity
    known = np.isfinite(propensity)
    names = _largest(np.bincount(log.group, minlength=len(log.groups)))
    figure, panels = _grid(len(names), height=1.5)
    edges = np.linspace(0.0, 1.0, BINS + 1)
    handles: dict[str, Any] = {}
    for at, (axes, code) in enumerate(zip(panels, names, strict=True)):
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
        right.set_ylim(0.0, 1.02)
        right.spines["right"].set_visible(True)
        last = at == len(names) - 1 or (at + 1) % PANELS == 0
        right.set_ylabel("acceptance by the policy" if last else "")
        right.tick_params(labelright=last)
        axes.set(title=log.groups[code], xlabel="propensity", xlim=(0.0, 1.0))
        axes.set_ylabel("share of the group" if at % PANELS == 0 else "")
    legend_below(figure, handles, 4)
    return figure


def draw_reliability(plains: Plains) -> Figure:
    """Draw the share of positive labels by acceptance probability; a panel per policy and view."""
    groups = _shown_groups(plains)
    views = [view for view in VIEWS if any(view in one["reliability"] for one in groups.values())]
    figure = Figure(figsize=(0.7 * COLUMN * len(views), 0.4 + 1.9 * len(plains)), layout="constrained")
    panels = figure.subplots(len(plains), len(views), squeeze=False, sharex=True, sharey=True)
    handles: dict[str, Any] = {}
    for row, (name, plain) in zip(panels, plains.items(), strict=True):
        for axes, view in zip(row, views, strict=True):
            axes.plot([0, 1], [0, 1], color=GREY, lw=0.5)
            for k, group in enumerate(groups):
                curve = plain["groups"][group]["reliability"].get(view, [])
                known = [bin_ for bin_ in curve if bin_["label"] is not None]
                x, y = ([bin_[of] for bin_ in known] for of in ("score", "label"))
                look: dict[str, Any] = {"color": GROUPS[k % len(GROUPS)], "ls": STYLES[k // len(GROUPS)]}
                (handles[group],) = axes.plot(x, y, lw=0.9, **look)
                axes.scatter(x, y, s=[2 + 40 * bin_["share"] for bin_ in known], color=look["color"], lw=0)
            axes.set_title(f"{name}, {NAMES[view]}" if len(plains) > 1 else NAMES[view])
            # Doubly robust means of small bins may leave [0, 1].
            axes.set(xlim=(-0.03, 1.03), ylim=(-0.05, 1.05))
        row[0].set_ylabel("share of positive labels")
    for axes in panels[-1]:
        axes.set_xlabel("acceptance probability")
    legend_below(figure, handles, 4)
    return figure


def draw_sensitivity(plains: Plains) -> Figure:
    """Draw bounds by the odds ratio Γ, with the turning points; a panel per measure."""
    figure, panels = _grid(len(SENSITIVE), height=1.6)
    handles: dict[str, Any] = {}
    for axes, measure in zip(panels, SENSITIVE, strict=True):
        points = []
        for (name, plain), colour in zip(plains.items(), POLICIES, strict=False):
            if measure not in plain["sensitivity"]["bounds"]:  # refused for lack of overlap
                continue
            table = plain["sensitivity"]["bounds"][measure]
            known = [row for row in table if row["low"] is not None]
            gamma, low, high = (np.array([row[key] for row in known]) for key in ("gamma", "low", "high"))
            handles[name] = axes.fill_between(gamma, 100 * low, 100 * high, color=colour, alpha=0.3, lw=0.8)
            turning = plain["sensitivity"]["turning_points"].get(measure)
            points.append(f"> {LARGEST_GAMMA:g}" if turning is None else f"{turning:.2f}")
            if turning is not None and turning <= table[-1]["gamma"]:
                axes.axvline(turning, color=colour, ls=":", lw=1.2)
        axes.axhline(0.0, color=GREY, lw=0.5)
        label = "utility" if measure == "utility" else MEASURES[measure].label
        told = f"turning point Γ: {', '.join(points)}" if points else "refused"
        axes.set_title(f"{label}\n{told}")
        axes.set(xlabel="odds ratio Γ", ylabel="×100" if axes is panels[0] else "")
    if len(plains) > 1:
        legend_below(figure, handles, 2)
    return figure


def draw_contraction(plains: Plains) -> Figure:
    """Draw the failure rate by the acceptance rate, of policies and of decision makers."""
    figure = Figure(figsize=(COLUMN, 2.3), layout="constrained")
    axes = figure.subplots()
    handles: dict[str, Any] = {}
    for (name, plain), colour in zip(plains.items(), POLICIES, strict=False):
        curve = plain["contraction"]["policy"]
        rates = [[100 * row[of] for row in curve] for of in ("acceptance", "failure")]
        (handles[name],) = axes.plot(*rates, color=colour)
        makers = plain["contraction"]["decision_makers"]
        known = [maker for maker in makers if maker["failure"] is not None]
        x, y = ([100 * maker[of] for maker in known] for of in ("acceptance", "failure"))
        handles["decision makers"] = axes.scatter(x, y, s=10, color=GREY, zorder=3)
    axes.set(xlabel="acceptance rate ×100", ylabel="failures per person ×100")
    axes.set_xlim(left=0.0)
    axes.set_ylim(bottom=0.0)
    legend_below(figure, handles, 3)
    return figure


def draw_plane(plains: Plains) -> Figure:
    """Draw value against unfairness with both intervals, doubly robust; a panel per measure."""
    figure = Figure(figsize=(2 * COLUMN, 2.2), layout="constrained")
    panels = figure.subplots(1, len(ON_PLANE), sharey=True)
    handles: dict[str, Any] = {}
    for axes, measure in zip(panels, ON_PLANE, strict=True):
        for (name, plain), colour in zip(plains.items(), POLICIES, strict=False):
            gap, value = plain["fairness"][measure]["dr"], plain["value"]["dr"]
            if gap["estimate"] is None:
                continue
            ends = {"xerr": _ends(gap), "yerr": _ends(value)}
            handles[name] = axes.errorbar(
                100 * gap["estimate"], 100 * value["estimate"], **ends, fmt="o", ms=4, lw=1, color=colour
            )
        axes.axhline(0.0, color=GREY, lw=0.5, zorder=0)
        axes.set_xlabel(f"{MEASURES[measure].label} ×100")
        axes.set_xlim(left=0.0)
    panels[0].set_ylabel("utility per person ×100")
    legend_below(figure, handles, 2)
    return figure


def _point(axes: Axes, own: Mapping[str, float | None], y: float, colour: str) -> None:
    """An estimate ×100 with its interval."""
    if own["estimate"] is not None:
        x = 100 * own["estimate"]
        axes.errorbar(x, y, xerr=_ends(own), fmt="o", ms=2.5, lw=1, color=colour)


def _line(axes: Axes, own: Mapping[str, float | None], y: float, colour: str, lw: float = 1.0) -> None:
    """An interval ×100 without an estimate."""
    if own["low"] is not None and own["high"] is not None:
        axes.plot([100 * own["low"], 100 * own["high"]], [y, y], color=colour, lw=lw, marker="|", ms=3)


def _ends(own: Mapping[str, Any]) -> np.ndarray:
    """Distances ×100 from an estimate to the ends of its interval, shape (2, 1), for error bars."""
    if own["low"] is None:
        return np.zeros((2, 1))
    middle = own["estimate"]
    return 100 * np.array([[max(middle - own["low"], 0.0)], [max(own["high"] - middle, 0.0)]])


def _rows(axes: Axes, labels: Sequence[str]) -> None:
    axes.set_yticks(range(len(labels)), labels)
    axes.set_ylim(len(labels) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)


def _shift(k: int, n: int) -> float:
    """Place of the k-th of n points in a row of height 1."""
    return (k - (n - 1) / 2) * 0.22


def _grid(n: int, height: float) -> tuple[Figure, list[Axes]]:
    """A figure with n panels, `PANELS` side by side at most, and those panels."""
    columns = min(n, PANELS)
    rows = math.ceil(n / columns)
    width = 2 * COLUMN * max(columns, 2) / PANELS
    figure = Figure(figsize=(width, 0.3 + height * rows), layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    for unused in panels[n:]:
        unused.set_axis_off()
    return figure, list(panels[:n])


def _largest(people: np.ndarray) -> list[int]:
    """Codes of the `MOST_GROUPS` largest groups, in order."""
    return sorted(np.argsort(-people, kind="stable")[:MOST_GROUPS].tolist())


def _shown_groups(plains: Plains) -> dict[str, Any]:
    groups = next(iter(plains.values()))["groups"]
    names = list(groups)
    return {
        names[code]: groups[names[code]] for code in _largest(np.array([groups[n]["people"] for n in names]))
    }
