"""What is a policy worth: the utility per person by all estimators, and what is possible without them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from fairall.evaluate.analysis import INTERVALS, NO_ASSUMPTION, VALUE, Analysis, Picture, Record
from fairall.evaluate.estimated.estimators import LABELS
from fairall.evaluate.estimated.officers import OFFICERS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from fairall.evaluate.analysis import Shown
    from fairall.evaluate.judgement import Judgement

LINES = LABELS | {"guaranteed": "guaranteed interval", "no assumption": "no assumption"}
BY_OFFICERS = (
    f" {OFFICERS}: the same by their different strictness, if cases are assigned to them at random given the "
    "features."
)


def records(shown: Shown) -> Iterator[Record]:
    """By estimator, with the guaranteed interval and bounds of each policy."""
    for policy, evaluation in shown.evaluations.items():
        known = evaluation.values | {"guaranteed": evaluation.guarantee}
        bounds = {"no assumption": evaluation.bounds["utility"]}
        if evaluation.officers:
            bounds[OFFICERS] = evaluation.officers["utility"]
        for estimator, value in (known | bounds).items():
            yield {"policy": policy, "measure": "utility", "estimator": estimator, "value": value}
    if shown.difference is not None:
        for estimator, value in shown.difference.values.items():
            yield {"policy": "B − A", "measure": "utility", "estimator": estimator, "value": value}


def note(shown: Shown) -> str:
    """Units, and what the lines are."""
    gain = "gain or costs loss, in the unit of these columns"
    if shown.log.cost is not None:
        gain = f"y − c with the label y and c = {shown.log.cost:g}"
    by_officers = BY_OFFICERS if shown.first.officers else ""
    return (
        f"An acceptance gains {gain}, a rejection 0. Estimates {INTERVALS}; guaranteed interval: valid at "
        f"any sample size if the propensities are right; {NO_ASSUMPTION}{by_officers} "
        "P: level at which a one-sided interval of a difference ends at 0."
    )


def draw(shown: Shown) -> Figure:
    """Draw each policy's utility by estimator with its interval, the guaranteed interval, and the bounds."""
    from fairall.display.style import legend_below
    from fairall.evaluate.drawing import coloured, grid, lines_of

    figure, (axes,) = grid(1, height=0.2 + 0.17 * len(LINES) * len(shown.evaluations) ** 0.7)
    draw_on(axes, shown.evaluations.values())
    if shown.difference is not None:
        legend_below(figure, lines_of(coloured(shown.evaluations)), 2)
    return figure


def draw_on(axes: Axes, evaluations: Iterable[Judgement]) -> None:
    """Draw the utility of at most two policies by estimator."""
    from fairall.display.style import GREY
    from fairall.evaluate.drawing import POLICIES, point, rows_of

    evaluations = [*evaluations]
    for k, (evaluation, colour) in enumerate(zip(evaluations, POLICIES, strict=False)):
        bounds = evaluation.bounds["utility"].interval
        for row, value in enumerate([*evaluation.values.values(), evaluation.guarantee, bounds]):
            point(axes, value, row + (k - (len(evaluations) - 1) / 2) * 0.22, colour)
    axes.axvline(0.0, color=GREY, lw=0.5, zorder=0)
    rows_of(axes, [*LINES.values()])
    axes.set_xlabel("utility per person ×100")


def told(shown: Shown) -> Iterator[str]:
    """How many equally weighted labels those of each policy count as."""
    for policy, evaluation in shown.evaluations.items():
        labels, effective = np.sum(shown.log.revealed), evaluation.effective()
        if round(effective) < labels:
            yield f"Overlap, {policy}: the {labels} labels count as {effective:.0f} equally weighted ones"


VALUES = Analysis(
    key="value",
    section=VALUE,
    title="Utility per person of the log ×100",
    note=note,
    records=records,
    line="estimator",
    column="measure",
    lines=LINES,
    picture=Picture(
        "estimators",
        "Utility by estimator",
        "With 95 % intervals; hollow: estimates without one. no assumption: whatever the missing labels are.",
        draw,
        wide=False,
    ),
    told=told,
)
