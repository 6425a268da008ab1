"""What missing labels could change: bounds without assumption, by odds ratio and by decision makers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from fairall.evaluate.analyses.fairness import GAPS
from fairall.evaluate.analysis import LIMITS, NO_ASSUMPTION, Analysis, Picture, Record
from fairall.evaluate.estimated.bounds import GAMMAS, LARGEST_GAMMA, greatest_benchmark
from fairall.evaluate.estimated.officers import OFFICERS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from fairall.evaluate.analysis import Shown
    from fairall.evaluate.judgement import Judgement

HIDDEN = (
    "the odds of a positive label of rejected people differ from those of accepted people of equal features "
    "by a factor up to Γ"
)


def records(shown: Shown) -> Iterator[Record]:
    """A row for each policy, measure and assumption; of Γ with the number as `gamma`."""
    for policy, answer in shown.judged.items():
        views: list[Any] = [(assumption, None, limits) for assumption, limits in answer.bounds.items()]
        views += [(f"Γ = {gamma:g}", gamma, limits) for gamma, limits in answer.by_odds.items()]
        if answer.by_odds:
            point = answer.turning_point
            views.append(("turning point", point, {"utility": up_to(point)}))
        for view, gamma, values in views:
            for measure, value in values.items():
                yield {"policy": policy, "measure": measure, "view": view, "gamma": gamma, "value": value}


def benchmark(evaluation: Judgement) -> tuple[float, str] | None:
    """The greatest Γ that hiding a feature would make, and the feature; None without features."""
    outcome = evaluation.models.outcome
    return None if outcome is None else greatest_benchmark(evaluation.log, outcome.probability)


def up_to(point: float | None) -> str:
    """Up to which odds ratio Γ a sign is certain."""
    return f"for every Γ up to {LARGEST_GAMMA:g}" if point is None else f"up to Γ = {point:.2f}"


def told(shown: Shown) -> Iterator[str]:
    """What a hidden feature could change, and why decision makers bound nothing."""
    if greatest := shown.first.once(benchmark):
        gamma, feature = greatest
        for policy, evaluation in shown.evaluations.items():
            if evaluation.by_odds:
                yield (
                    f"{policy}: the sign of the utility is certain {up_to(evaluation.turning_point)}; a "
                    f"hidden feature that matters as {feature} does makes Γ = {gamma:.2f}"
                )
    if (why := shown.first.models.why_no_officers) and shown.log.decision_maker is not None:
        yield f"No bounds by decision makers: {why}"


def draw(shown: Shown) -> Figure:
    """Draw limits of the utility by the odds ratio Γ, and the greatest benchmark."""
    from fairall.display.style import GREY, legend_below
    from fairall.evaluate.drawing import POLICIES, grid

    figure, (axes,) = grid(1, height=2.0)
    handles: dict[str, Any] = {}
    for (policy, evaluation), colour in zip(shown.evaluations.items(), POLICIES, strict=False):
        if evaluation.by_odds:
            ends = [limits["utility"].interval[1:3] for limits in evaluation.by_odds.values()]
            handles[policy] = axes.fill_between(GAMMAS, *100 * np.transpose(ends), color=colour, alpha=0.3)
    if greatest := shown.first.once(benchmark):
        gamma, feature = greatest
        handles[f"hiding {feature}"] = axes.axvline(gamma, color="tab:red")
    axes.axhline(0.0, color=GREY)
    axes.set(xlabel="odds ratio Γ", ylabel="utility per person ×100", xlim=(GAMMAS[0], GAMMAS[-1]))
    legend_below(figure, handles, 2)
    return figure


SENSITIVITY = Analysis(
    key="sensitivity",
    section=LIMITS,
    title="What is possible ×100",
    note=(
        f"{NO_ASSUMPTION} {OFFICERS}: the same by their different strictness, if cases are assigned to them "
        f"at random given the features. Γ: if {HIDDEN}. turning point: the Γ up to which the 95 % limits "
        "exclude 0. B − A: the same labels count for both policies, so that little depends on those of "
        "people on whom they agree."
    ),
    records=records,
    line="measure",
    column="view",
    lines=GAPS.lines,
    columns={
        view: view for view in ("no assumption", OFFICERS, "Γ = 1.5", "Γ = 2", "Γ = 3", "turning point")
    },
    picture=Picture(
        "sensitivity",
        "Sensitivity",
        f"95 % limits of the utility if {HIDDEN}; up to the turning point they exclude 0. Red: the Γ that "
        "would arise if the feature that matters most were hidden.",
        draw,
        there=lambda shown: any(policy.by_odds for policy in shown.evaluations.values()),
        wide=lambda _: False,
    ),
    told=told,
)
