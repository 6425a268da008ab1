"""Value and gaps for other thresholds of a score, and the value for other costs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import comb
from typing import TYPE_CHECKING

import numpy as np

from fairall.display.progress import doing
from fairall.evaluate.analysis import CHOICES as SECTION
from fairall.evaluate.analysis import INTERVALS, Analysis, Record
from fairall.evaluate.estimated.estimates import Interval, Z, gap_interval, joint_normal
from fairall.evaluate.estimated.estimators import ESTIMATORS, People, value_support
from fairall.evaluate.estimated.fairness import rates

if TYPE_CHECKING:
    from fairall.evaluate.analysis import Shown
    from fairall.evaluate.judgement import Judgement

LEAST_LEVELS = 10  # thresholds below which a score has none
COSTS = np.linspace(0.1, 0.9, 9)
GAPS = ("dpu", "equal_opportunity")


def levels_of(score: np.ndarray) -> np.ndarray:
    """Thresholds of a score (N,): its quantiles 5 %, 10 %, ..., 95 % without repetitions, at most 19."""
    return np.unique(np.quantile(score, np.linspace(0.05, 0.95, 19)))


def _value(judgement: Judgement, people: People, k: float = Z) -> Interval:
    """The doubly robust value of some people."""
    support = value_support(people, people.kept.value, judgement.sample)
    return ESTIMATORS["dr"](people, judgement.sample).on(support).interval(k=k)


def thresholds(judgement: Judgement) -> Iterator[Record]:
    """Value and gaps of accepting everybody whose score is at least a threshold, doubly robust.

    The score is the given one, else the policy's acceptance probability. The intervals of a measure are
    simultaneous: they cover at all thresholds with 95 % (Bonferroni's inequality).

    Yields:
        Records with `measure`: `acceptance`, `value`, and `GAPS`. None for a score with fewer than
        `LEAST_LEVELS` thresholds, and where labels of all people cannot be estimated.
    """
    models = judgement.models
    score = judgement.target if models.score is None else models.score
    levels = levels_of(score)
    refused = judgement.refused_rates or models.outcome is None or (judgement.logged and models.score is None)
    if refused or len(levels) < LEAST_LEVELS or not all(judgement.doubt(name, "dr")[0] for name in GAPS):
        return
    k, k_gaps = (joint_normal(len(levels) * many) for many in (1, comb(len(models.shown), 2)))
    for level in levels.tolist():
        people = judgement.with_target((score >= level).astype(float))
        by_measure = rates("dr", people, judgement.by_group)
        values = {"acceptance": float(people.target.mean()), "value": _value(judgement, people, k)}
        values |= {name: gap_interval(by_measure[name][models.shown], k=k_gaps) for name in GAPS}
        for measure, value in values.items():
            yield {"choice": f"score ≥ {level:.3f}", "threshold": level, "measure": measure, "value": value}


def costs(judgement: Judgement) -> Iterator[Record]:
    """The doubly robust value for costs c of 0.1 to 0.9; none with amounts, or without a value."""
    if judgement.log.cost is None or judgement.refused_value is not None or judgement.models.outcome is None:
        return
    for cost in COSTS.tolist():
        value = _value(judgement, replace(judgement.people, break_even=np.full(len(judgement.log), cost)))
        yield {"choice": f"c = {cost:g}", "cost": cost, "measure": "value", "value": value}


def _records(shown: Shown) -> Iterator[Record]:
    doing("values and gaps over thresholds")
    for name, evaluation in shown.evaluations.items():
        for record in (*thresholds(evaluation), *costs(evaluation)):
            yield {"policy": name} | record


CHOICES = Analysis(
    key="choices",
    section=SECTION,
    title="Other thresholds and costs ×100",
    note=(
        f"Doubly robust, {INTERVALS}. score: of accepting everybody whose score is at least the threshold; "
        "the intervals of a column cover at all thresholds together with 95 %. c: the policy's utility if "
        "an acceptance costs c."
    ),
    records=_records,
    line="choice",
    column="measure",
    columns={
        "acceptance": "acceptance",
        "value": "utility",
        "dpu": "DPU",
        "equal_opportunity": "equal-opportunity gap",
    },
)
