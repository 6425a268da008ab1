"""What missing labels could change: bounds without assumption, by odds ratio and by decision makers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from fairall.evaluate.analysis import LIMITS, NO_ASSUMPTION, Analysis, Picture, Record
from fairall.evaluate.estimated.bounds import GAMMAS, LARGEST_GAMMA, SENSITIVE, Limits
from fairall.evaluate.estimated.fairness import MEASURES
from fairall.evaluate.estimated.officers import OFFICERS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from fairall.evaluate.page import Shown

DRAWN = ("utility", *SENSITIVE[:3])
COLUMNS = ("no assumption", OFFICERS, "Γ = 1.5", "Γ = 2", "Γ = 3", "turning point", "greatest benchmark")
LABELS = {name: measure.label for name, measure in MEASURES.items()}
NOTHING: dict[str, dict[str, Any]] = {"bounds": {}, "turning_points": {}, "benchmarks": {}}
DEPENDS = 0.01  # p below which the assignment of cases is said to depend on features
HIDDEN = (
    "the odds of a positive label of rejected people differ from those of accepted people of equal features "
    "by a factor up to Γ"
)
NOTE = (
    f"{NO_ASSUMPTION} {OFFICERS}: the same by their different strictness, if cases are assigned to them at "
    f"random given the features. Γ: if {HIDDEN}. turning point: the largest Γ for which the 95 % limits "
    "exclude 0. greatest benchmark: the Γ that would arise if that feature were hidden. B − A: the same "
    "labels count for both policies, so that little depends on those of people on whom they agree; rates are "
    "of all people."
)
RANDOM = {
    False: "no sign that cases were assigned by features",
    True: "the bounds allow for cases that were assigned by the features, and for no other assignment",
}


def records(shown: Shown) -> Iterator[Record]:
    """A row for each policy, measure and assumption; of Γ with the number as `gamma`."""
    for policy, evaluation in shown.evaluations.items():
        found = evaluation.sensitivity or NOTHING
        for view, bounds in (("no assumption", evaluation.bounds), (OFFICERS, evaluation.officers)):
            yield from (_record(policy, measure, view, limits) for measure, limits in bounds.items())
        for measure, frame in found["bounds"].items():
            for gamma, *limits in frame.itertuples(index=False):
                yield _record(policy, measure, f"Γ = {gamma:g}", Limits(*limits), gamma)
            point = found["turning_points"][measure]
            yield _record(policy, measure, "turning point", turning(point), point)
        for feature, gamma in found["benchmarks"].items():
            yield _record(policy, "utility", "greatest benchmark", f"{gamma:.2f} ({feature})", gamma)
    difference = shown.difference
    for view, bounds in difference.bounds.items() if difference else ():
        for name, limits in bounds.items():
            measure = MEASURES[name].rate if name in MEASURES else name
            yield _record("B − A", measure, view, limits)
    if difference and "Γ = 2" in difference.bounds:
        point = difference.turning_point
        yield _record("B − A", "utility", "turning point", turning(point), point)


def _record(policy: str, measure: str, view: str, value: Any, gamma: float | None = None) -> Record:
    return {"policy": policy, "measure": measure, "view": view, "gamma": gamma, "value": value}


def answered(shown: Shown) -> bool:
    """Whether a policy has bounds by odds ratio."""
    return any(evaluation.sensitivity for evaluation in shown.evaluations.values())


def turning(point: float | None) -> str:
    """A turning point as it is shown; None is above the largest Γ that was tried."""
    return f"> {LARGEST_GAMMA:g}" if point is None else f"{point:.2f}"


def told(shown: Shown) -> Iterator[str]:
    """What Γ is, and why decision makers bound something, or nothing."""
    models = shown.first.models
    if answered(shown):
        yield "Γ: odds ratio of positive labels between accepted and rejected people of equal features"
    if models.officers is not None and models.why_no_officers is None:
        levels, p = models.officers.levels, models.officers.p_assignment
        yield (
            f"Decision makers as an instrument, {levels} levels of strictness: {RANDOM[p < DEPENDS]} "
            f"(p = {p:.2g})"
        )
    elif models.log.decision_maker is not None:
        yield f"Bounds by decision makers: none, {models.why_no_officers}"


def draw(shown: Shown) -> Figure:
    """Draw bounds by the odds ratio Γ, turning points, and the greatest benchmark; a panel per measure."""
    from fairall.display.style import GREY, legend_below
    from fairall.evaluate import drawing

    figure, panels = drawing.grid(len(DRAWN), height=1.6)
    handles: dict[str, Any] = {}
    for axes, measure in zip(panels, DRAWN, strict=True):
        points = []
        for policy, colour, evaluation in drawing.coloured(shown.evaluations):
            found = evaluation.sensitivity or NOTHING
            if measure not in found["bounds"]:
                continue
            frame, point = found["bounds"][measure], found["turning_points"][measure]
            gamma = frame["gamma"]
            handles[policy] = axes.fill_between(
                gamma, 100 * frame["low"], 100 * frame["high"], color=colour, alpha=0.3, lw=0
            )
            limits = 100 * frame[["interval_low", "interval_high"]]
            handles["95 % limits"], _ = axes.plot(gamma, limits, color=colour, ls="--", lw=0.7)
            handles["turning point"] = axes.axvline(point or np.nan, color=colour, ls=":", lw=1.2)
            for feature, hidden in found["benchmarks"].items():
                handles[f"hiding {feature}"] = axes.axvline(hidden, color="tab:red", lw=0.7)
            points.append(turning(point))
        axes.axhline(0.0, color=GREY, lw=0.5)
        title = f"turning point {', '.join(points)}" if points else "refused"
        axes.set(
            title=f"{LABELS.get(measure, measure)}\n{title}",
            xlabel="odds ratio Γ",
            xlim=(GAMMAS[0], GAMMAS[-1]),
        )
    panels[0].set_ylabel("×100")
    legend_below(figure, handles, 4)
    return figure


SENSITIVITY = Analysis(
    key="sensitivity",
    section=LIMITS,
    title="What is possible ×100",
    note=NOTE,
    records=records,
    line="measure",
    column="view",
    lines=LABELS,
    columns={view: view for view in COLUMNS},
    picture=Picture(
        title="Sensitivity",
        note=f"Bounds if {HIDDEN}. At the turning point the 95 % limits reach 0. Red: the Γ that would arise "
        "if the feature that matters most were hidden.",
        draw=draw,
        there=answered,
    ),
    told=told,
)
