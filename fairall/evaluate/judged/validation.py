"""Acceptance ratios, and whether weights balance features."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from fairall.evaluate.estimated.estimators import People
from fairall.evaluate.estimated.gaps import NOTHING, Interval, ratio_interval
from fairall.evaluate.log import DecisionLog
from fairall.evaluate.plain import ByName

if TYPE_CHECKING:
    from fairall.evaluate.evaluation import Evaluation

UNBALANCED = 0.1  # standardised difference of means from which a feature is unbalanced (Austin 2009)


def acceptance_ratio(judgement: Evaluation) -> Interval:
    """Smallest acceptance rate by the largest, below 0.8 a sign of adverse impact (four-fifths rule).

    References:
        Uniform guidelines on employee selection procedures, 29 CFR 1607.4 D (1978).
    """
    shown = judgement.models.shown
    if len(shown) < 2:
        return NOTHING.without_ends(judgement.doubt("dpu", "dr")[1])
    ratio = ratio_interval(judgement.rates["dr"]["dpu"][shown])
    return ratio.without_ends("nobody is accepted" if np.isnan(ratio.estimate) else None)


def _imbalance(log: DecisionLog, weight: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Mean inputs of some rows by weight (N,), less their plain mean, in standard deviations, shape (D,)."""
    design, weight = log.design[rows], weight[rows]
    difference = (weight @ design) / max(weight.sum(), 1e-300) - design.mean(0)
    return difference / np.maximum(design.std(0), np.finfo(np.float32).tiny)


def balance(judgement: Evaluation) -> ByName | None:
    """Whether weighted people with labels are like all people, and propensities those of the decisions.

    By group: for each feature the standardised difference of means of its inputs (the largest in absolute
    value), before and after weighting by 1/p; and the number of accepted people by the sum of propensities.

    References:
        Austin, P. (2009). Balance diagnostics for comparing the distribution of baseline covariates between
        treatment groups. Statistics in Medicine.
    """
    log, groups = judgement.log, {}
    if not log.revealed.any():
        return None
    weights = {"before": judgement.people.revealed.astype(float), "after": judgement.people.weight.value}
    names = pd.Series(log.input_names, dtype=object).replace("", np.nan)  # the group has no name
    for code in judgement.models.shown:
        rows = log.group == code
        known = rows & np.isfinite(judgement.models.acceptance)
        inputs = pd.DataFrame({when: _imbalance(log, weight, rows) for when, weight in weights.items()})
        groups[log.groups[code]] = {
            "accepted_by_expected": log.accepted[known].sum()
            / max(judgement.models.acceptance[known].sum(), 1e-300),
            "features": inputs.groupby(names, sort=False)
            .agg(lambda column: max(column, key=abs))
            .to_dict("index"),
        }
    return groups


def worst_balance(log: DecisionLog, people: People) -> str:
    """The feature that weighting balances least, in words; empty where all are balanced."""
    after = np.abs(_imbalance(log, people.weight.value, np.ones(len(log), dtype=bool)))
    if after.max() < UNBALANCED:
        return ""
    name = log.input_names[int(after.argmax())] or "the group"
    return f" in {name} (by {after.max():.2f} standard deviations)"
