"""Value and gaps for other thresholds of a score, and the value for other costs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import comb

import numpy as np

from fairall.evaluate.analysis import CHOICES as SECTION
from fairall.evaluate.analysis import INTERVALS, Analysis, Record, of_each
from fairall.evaluate.estimated.estimates import Interval, Z, gap_interval, joint_normal
from fairall.evaluate.estimated.estimators import People
from fairall.evaluate.estimated.fairness import rates
from fairall.evaluate.judgement import Judgement

LEAST_LEVELS = 10  # thresholds below which a score has none
QUANTILES = np.linspace(0.05, 0.95, 19)  # of the score, where the thresholds are
COSTS = np.linspace(0.1, 0.9, 9).tolist()
GAPS = ("dpu", "equal_opportunity")


def thresholds(judgement: Judgement) -> Iterator[Record]:
    """Value and gaps of accepting everybody whose score is at least a threshold, doubly robust.

    The score is the given one, else the policy's acceptance probability; thresholds are its `QUANTILES`
    without repetitions. The intervals of a measure are simultaneous: they cover at all thresholds with 95 %
    (Bonferroni's inequality).

    Yields:
        Records with `measure`: `acceptance`, `value`, and `GAPS`. None for a score with fewer than
        `LEAST_LEVELS` thresholds, and where labels of all people cannot be estimated.
    """
    models = judgement.models
    score = judgement.target if models.score is None else models.score
    levels = np.unique(np.quantile(score, QUANTILES))
    if len(levels) < LEAST_LEVELS or not judgement.doubt("equal_opportunity", "dr")[0]:
        return
    k = joint_normal(len(levels))
    k_gaps = joint_normal(len(levels) * comb(len(models.shown), 2))
    for level in levels.tolist():
        people = judgement.with_target(score >= level)
        of_groups = rates("dr", people, judgement.by_group)
        values = {"acceptance": people.target.mean(), "value": _value(judgement, people, k)}
        values |= {name: gap_interval(of_groups[name][models.shown], k=k_gaps) for name in GAPS}
        for measure, value in values.items():
            yield {"threshold": level, "choice": f"score ≥ {level:.3f}", "measure": measure, "value": value}


def costs(judgement: Judgement) -> Iterator[Record]:
    """The doubly robust value for costs c of 0.1 to 0.9; none with amounts, or without a value."""
    if judgement.log.cost is None or judgement.refused_estimator("dr"):
        return
    for cost in COSTS:
        value = _value(judgement, replace(judgement.people, break_even=np.full(len(judgement.log), cost)))
        yield {"choice": f"c = {cost:g}", "cost": cost, "measure": "value", "value": value}


def _value(judgement: Judgement, people: People, k: float = Z) -> Interval:
    return rates("dr", people, judgement.sample.everybody)["utility_gap"].interval(0, k)


def choices(judgement: Judgement) -> list[Record]:
    """Those of `thresholds` and `costs`."""
    return [*thresholds(judgement), *costs(judgement)]


CHOICES = Analysis(
    key="choices",
    section=SECTION,
    title="Other thresholds and costs ×100",
    note=(
        f"Doubly robust, {INTERVALS}. score: of accepting everybody whose score is at least the threshold; "
        "the intervals of a column cover at all thresholds together with 95 %. c: the policy's utility if "
        "an acceptance costs c."
    ),
    records=of_each(choices),
    line="choice",
    column="measure",
    columns={
        "acceptance": "acceptance",
        "value": "utility",
        "dpu": "DPU",
        "equal_opportunity": "equal-opportunity gap",
    },
)
