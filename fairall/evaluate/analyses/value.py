"""What is a policy worth: the utility per person by all estimators, and what is possible without them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from fairall.evaluate.analysis import (
    INTERVALS,
    NO_ASSUMPTION,
    VALUE,
    Analysis,
    Picture,
    Record,
    Shown,
)
from fairall.evaluate.comparison import Difference
from fairall.evaluate.estimated.estimators import LABELS
from fairall.evaluate.estimated.officers import OFFICERS
from fairall.evaluate.judgement import Judgement

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LINES = LABELS | {"guaranteed": "guaranteed interval", "no assumption": "no assumption"}
BY_OFFICERS = (
    f"{OFFICERS}, where the log names them: the same by their different strictness, if cases are assigned to "
    "them at random given the features."
)


def records(shown: Shown) -> Iterator[Record]:
    """By estimator, with the guaranteed interval and bounds of each policy."""
    for policy, judged in shown.judged.items():
        guarantee = {} if isinstance(judged, Difference) else {"guaranteed": judged.guarantee}
        possible = {assumption: limits["utility"] for assumption, limits in judged.bounds.items()}
        for estimator, value in {**judged.values, **guarantee, **possible}.items():
            yield {"policy": policy, "measure": "utility", "estimator": estimator, "value": value}


def draw(shown: Shown) -> Figure:
    """Draw each policy's utility by estimator with its interval, the guaranteed interval, and the bounds."""
    from fairall.display.style import handles_of, legend_below
    from fairall.evaluate.drawing import grid

    figure, (axes,) = grid(1, height=0.7 + 0.7 * len(shown.evaluations))
    draw_on(axes, shown.evaluations)
    if shown.difference is not None:
        legend_below(figure, handles_of([axes]), 2)
    return figure


def draw_on(axes: Axes, evaluations: Mapping[str, Judgement]) -> None:
    """Draw the utility of at most two policies by estimator."""
    from fairall.display.style import GREY
    from fairall.evaluate.drawing import POLICIES, points

    series = [
        (name, colour, [*one.values.values(), one.guarantee, one.bounds["no assumption"]["utility"].interval])
        for (name, one), colour in zip(evaluations.items(), POLICIES, strict=False)
    ]
    points(axes, [*LINES.values()], series)
    axes.axvline(0.0, color=GREY, lw=0.5, zorder=0)
    axes.set_xlabel("utility per person ×100")


def told(shown: Shown) -> Iterator[str]:
    """How many equally weighted labels those of each policy count as."""
    for policy, evaluation in shown.evaluations.items():
        labels, effective = shown.log.revealed.sum(), round(evaluation.effective())
        if effective < labels:
            yield f"Overlap, {policy}: the {labels} labels count as {effective} equally weighted ones"


VALUES = Analysis(
    key="value",
    section=VALUE,
    title="Utility per person of the log ×100",
    note=(
        "An acceptance gains y − c with the label y and one cost c, or else gain or costs loss, in the unit "
        f"of these columns; a rejection 0. Estimates {INTERVALS}; guaranteed interval: valid at any sample "
        f"size if the propensities are right; {NO_ASSUMPTION} {BY_OFFICERS} P: level at which a one-sided "
        "interval of a difference ends at 0."
    ),
    records=records,
    line="estimator",
    column="measure",
    lines=LINES,
    picture=Picture(
        "estimators",
        "Utility by estimator",
        "With 95 % intervals; hollow: estimates without one. no assumption: whatever the missing labels are.",
        draw,
        wide=lambda _: False,
    ),
    told=told,
)
