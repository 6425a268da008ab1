"""What missing labels could change: bounds without assumption, by odds ratio and by decision makers."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fairall.display.progress import doing
from fairall.evaluate.analysis import LIMITS, NO_ASSUMPTION, Analysis, Picture, Record
from fairall.evaluate.estimated.bounds import (
    GAMMAS,
    LARGEST_GAMMA,
    SENSITIVE,
    Limits,
    greatest_benchmark,
    turning_point,
)
from fairall.evaluate.estimated.fairness import MEASURES
from fairall.evaluate.estimated.officers import OFFICERS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from fairall.evaluate.analysis import Shown
    from fairall.evaluate.judgement import Judgement

DRAWN = ("utility", *SENSITIVE[:3])
COLUMNS = ("no assumption", OFFICERS, "Γ = 1.5", "Γ = 2", "Γ = 3", "turning point", "greatest benchmark")
LABELS = {name: measure.label for name, measure in MEASURES.items()}
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


class Sensitivity(NamedTuple):
    """What unrevealed labels could change, by name of the utility or a measure.

    Attributes:
        bounds: for each Γ of `GAMMAS`.
        turning_points: as of `bounds.turning_point`.
        benchmark: feature whose hiding would make the greatest odds ratio, and this Γ; None without features.
    """

    bounds: dict[str, list[Limits]]
    turning_points: dict[str, float | None]
    benchmark: tuple[str, float] | None


def sensitivity(evaluation: Judgement) -> Sensitivity | None:
    """Bounds by odds ratio, and where signs turn; None where the value is refused or has no interval."""
    outcome = evaluation.models.outcome
    if evaluation.refused_value is not None or outcome is None or evaluation.few is not None:
        return None
    doing("what a hidden feature could change")

    def limits(name: str, gamma: float) -> Limits:
        return evaluation.bounded(gamma, [name])[name]

    answered = [name for name in SENSITIVE if evaluation.doubt(name, "dr") == (True, None)]
    names = ["utility", *answered]
    bounds = {name: [limits(name, gamma) for gamma in GAMMAS] for name in names}
    points = {name: turning_point(partial(limits, name)) for name in names}
    return Sensitivity(bounds, points, greatest_benchmark(evaluation.log, outcome.probability))


def answers(shown: Shown) -> dict[str, Sensitivity]:
    """Those of policies that have one, by name."""
    known = {name: evaluation.once(sensitivity) for name, evaluation in shown.evaluations.items()}
    return {name: found for name, found in known.items() if found is not None}


def records(shown: Shown) -> Iterator[Record]:
    """A row for each policy, measure and assumption; of Γ with the number as `gamma`."""
    found = answers(shown)
    for policy, evaluation in shown.evaluations.items():
        for view, possible in (("no assumption", evaluation.bounds), (OFFICERS, evaluation.officers)):
            yield from (_record(policy, measure, view, limits) for measure, limits in possible.items())
        if policy not in found:
            continue
        by_gamma, turning_points, benchmark = found[policy]
        for measure, point in turning_points.items():
            for gamma, limits in zip(GAMMAS, by_gamma[measure], strict=True):
                yield _record(policy, measure, f"Γ = {gamma:g}", limits, gamma)
            yield _record(policy, measure, "turning point", turning(point), point)
        if benchmark is not None:
            feature, gamma = benchmark
            yield _record(policy, "utility", "greatest benchmark", f"{gamma:.2f} ({feature})", gamma)
    difference = shown.difference
    for view, possible in difference.bounds.items() if difference else ():
        for name, limits in possible.items():
            measure = MEASURES[name].rate if name in MEASURES else name
            yield _record("B − A", measure, view, limits)
    if difference and "Γ = 2" in difference.bounds:
        point = difference.turning_point
        yield _record("B − A", "utility", "turning point", turning(point), point)


def _record(policy: str, measure: str, view: str, value: Any, gamma: float | None = None) -> Record:
    return {"policy": policy, "measure": measure, "view": view, "gamma": gamma, "value": value}


def answered(shown: Shown) -> bool:
    """Whether a policy has bounds by odds ratio."""
    return bool(answers(shown))


def up_to(point: float | None) -> str:
    """Up to which odds ratio Γ a sign is certain."""
    if point == 1.0:
        return "for no Γ, not even 1"
    return f"for every Γ up to {LARGEST_GAMMA:g}" if point is None else f"up to Γ = {point:.2f}"


def turning(point: float | None) -> str:
    """A turning point as it is shown; None is above the largest Γ that was tried."""
    return f"> {LARGEST_GAMMA:g}" if point is None else f"{point:.2f}"


def told(shown: Shown) -> Iterator[str]:
    """What Γ is, and why decision makers bound something, or nothing."""
    models = shown.first.models
    if answered(shown):
        yield "Γ: odds ratio of positive labels between accepted and rejected people of equal features"
    for policy, (_, turning_points, benchmark) in answers(shown).items():
        point = turning_points["utility"]
        if benchmark is not None and point != 1.0:  # at 1 the sign is open already
            could = "could" if point is not None and point <= benchmark[1] else "could not"
            yield (
                f"{policy}: a hidden feature that matters as {benchmark[0]} does (Γ = {benchmark[1]:.2f}) "
                f"{could} change the sign of the utility, which is certain {up_to(point)}"
            )
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

    found = answers(shown)
    figure, panels = drawing.grid(len(DRAWN), height=1.6)
    handles: dict[str, Any] = {}
    for axes, measure in zip(panels, DRAWN, strict=True):
        points = []
        for policy, colour, _ in drawing.coloured(shown.evaluations):
            if policy not in found or measure not in found[policy].bounds:
                continue
            point = found[policy].turning_points[measure]
            low, high, *limits = (
                100 * np.array([of_gamma[:4] for of_gamma in found[policy].bounds[measure]]).T
            )
            handles[policy] = axes.fill_between(GAMMAS, low, high, color=colour, alpha=0.3, lw=0)
            handles["95 % limits"], _ = axes.plot(GAMMAS, np.transpose(limits), color=colour, ls="--", lw=0.7)
            handles["turning point"] = axes.axvline(point or np.nan, color=colour, ls=":", lw=1.2)
            for feature, hidden in filter(None, [found[policy].benchmark]):
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
        key="sensitivity",
        title="Sensitivity",
        note=f"Bounds if {HIDDEN}. At the turning point the 95 % limits reach 0. Red: the Γ that would arise "
        "if the feature that matters most were hidden.",
        draw=draw,
        there=answered,
    ),
    told=told,
)
