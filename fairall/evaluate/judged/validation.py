"""What a model validation asks for: acceptance ratios, calibration, balance, thresholds, a range of costs."""

from __future__ import annotations

from dataclasses import replace
from math import comb
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from fairall.display.progress import doing
from fairall.evaluate.estimated.estimators import ESTIMATORS, People, value_support
from fairall.evaluate.estimated.fairness import rates
from fairall.evaluate.estimated.gaps import (
    NOTHING,
    Interval,
    gap_interval,
    interval,
    joint_normal,
    ratio_interval,
)
from fairall.evaluate.log import DecisionLog
from fairall.evaluate.plain import ByName

if TYPE_CHECKING:
    from fairall.evaluate.evaluation import Evaluation

BINS = 10  # of equal width on [0, 1], of probabilities
UNBALANCED = 0.1  # standardised difference of means from which a feature is unbalanced (Austin 2009)
QUANTILES = np.linspace(0.05, 0.95, 19)  # of the score, thresholds
COSTS = np.linspace(0.1, 0.9, 9)
ON_CURVE = ("dpu", "equal_opportunity")


def acceptance_ratio(of: Evaluation) -> Interval:
    """Smallest acceptance rate by the largest, below 0.8 a sign of adverse impact (four-fifths rule).

    References:
        Uniform guidelines on employee selection procedures, 29 CFR 1607.4 D (1978).
    """
    shown = of.models.shown
    if len(shown) < 2:
        return NOTHING.without_ends(of.doubt("dpu", "dr")[1])
    found = ratio_interval(of.rates["dr"]["dpu"][shown])
    return found.without_ends("nobody is accepted" if np.isnan(found.estimate) else None)


def calibration(of: Evaluation) -> ByName | None:
    """By group, the mean label less the mean probability of a positive label, and the same by bins of it.

    The probability is the given score's, else the outcome model's; labels are doubly robust, so that all
    people count. None where labels of all people cannot be estimated.

    References:
        Van Calster, B. et al. (2016). A calibration hierarchy for risk models was defined: from utopia to
        empirical data. Journal of Clinical Epidemiology.
    """
    models, log, people = of.models, of.log, of.people
    if models.outcome is None or of.refused_rates is not None:
        return None
    score = models.outcome.probability if models.score is None else models.score
    label, by_group = people.pseudo_label, of.by_group
    size = by_group.mean(np.ones(len(log)))
    weight = people.weight.value
    least, error, most = (by_group.mean(column) / size for column in (-score, label - score, 1.0 - score))
    error = error.on(by_group.support(weight, lowest=least.value, highest=most.value, cut=False))
    bin_ = np.minimum((score * BINS).astype(int), BINS - 1)
    cell = log.group * BINS + bin_
    by_cell = of.sample.by(cell, len(log.groups) * BINS)
    one = by_cell.mean(np.ones(len(log)))
    scores, labels = (by_cell.mean(column) / one for column in (score, label))
    labels = labels.on(by_cell.support(weight))
    known = np.bincount(cell[log.revealed], minlength=by_cell.groups)
    found: ByName = {}
    for code in models.shown:
        may, why = of.doubt("equal_opportunity", "dr", code)
        bins = [
            (scores.value[b], one.value[b] / size.value[code], *interval(labels, b)[:3])
            for b in range(code * BINS, (code + 1) * BINS)
            if known[b] >= models.smallest_cell
        ]
        found[log.groups[code]] = {
            "error": (interval(error, code) if may else NOTHING).without_ends(why),
            "bins": pd.DataFrame(bins, columns=["score", "share", "estimate", "low", "high"], dtype=float),
        }
    return {"of": "outcome model" if models.score is None else "score", "groups": found}


def _differences(log: DecisionLog, people: People, rows: np.ndarray) -> list[np.ndarray]:
    """Mean inputs of those with labels less those of all `rows`, plain and weighted by r/p, shape (D,)."""
    design, weights = log.design[rows], (people.revealed.astype(float), people.weight.value)
    deviation = np.maximum(design.std(0), np.finfo(np.float32).tiny)
    everyone = design.mean(0)
    means = ((weight @ design) / max(weight.sum(), 1e-300) for weight in (one[rows] for one in weights))
    return [(mean - everyone) / deviation for mean in means]


def balance(of: Evaluation) -> ByName | None:
    """Whether weighted people with labels are like all people, and propensities those of the decisions.

    By group: for each feature the standardised difference of means of its inputs (the largest in absolute
    value), before and after weighting by 1/p; and the number of accepted people by the sum of propensities.

    References:
        Austin, P. (2009). Balance diagnostics for comparing the distribution of baseline covariates between
        treatment groups. Statistics in Medicine.
    """
    log = of.log
    if not log.revealed.any():
        return None
    found, names = {}, np.array(log.input_names)
    for code in of.models.shown:
        rows = log.group == code
        expected = of.models.acceptance[rows]
        known = ~np.isnan(expected)
        by_time = dict(zip(("before", "after"), _differences(log, of.people, rows), strict=True))
        found[log.groups[code]] = {
            "accepted_by_expected": log.accepted[rows][known].sum() / max(expected[known].sum(), 1e-300),
            "features": {
                name: {when: max(own[names == name], key=abs) for when, own in by_time.items()}
                for name in dict.fromkeys(filter(None, log.input_names))
            },
        }
    return found


def worst_balance(log: DecisionLog, people: People) -> str:
    """The feature that weighting balances least, in words; empty where all are balanced."""
    after = np.abs(_differences(log, people, np.ones(len(log), dtype=bool))[1])
    if after.max() < UNBALANCED:
        return ""
    name = log.input_names[int(after.argmax())] or "the group"
    return f" in {name} (by {after.max():.2f} standard deviations)"


def thresholds(of: Evaluation) -> list[ByName] | None:
    """Value and gaps of accepting everybody whose score is above a threshold, doubly robust.

    The score is the given one, else the policy's acceptance probability; thresholds are its quantiles. The
    intervals of a curve are simultaneous: they cover the whole curve with 95 % (Bonferroni's inequality).
    None for a score with fewer than `BINS` values, and where labels of all people cannot be estimated.
    """
    doing("values and gaps over thresholds")
    models = of.models
    score = of.target if models.score is None else models.score
    levels = np.unique(np.quantile(score, QUANTILES))
    refused = of.refused_rates or models.outcome is None or (of.logged and models.score is None)
    if refused or len(levels) < BINS or not all(of.doubt(name, "dr")[0] for name in ON_CURVE):
        return None
    k, of_gaps = (joint_normal(len(levels) * many) for many in (1, comb(len(models.shown), 2)))
    rows = []
    for level in levels:
        people = of.with_target((score >= level).astype(float))
        support = value_support(people, people.kept.value, of.sample)
        value, found = ESTIMATORS["dr"](people, of.sample).on(support), rates("dr", people, of.by_group)
        rows.append(
            {"threshold": level, "acceptance": float(people.target.mean()), "value": interval(value, k=k)}
            | {name: gap_interval(found[name][models.shown], k=of_gaps) for name in ON_CURVE}
        )
    return rows


def costs(of: Evaluation) -> pd.DataFrame | None:
    """The doubly robust value for other costs c than the log's; None with amounts, or without a value."""
    if of.log.cost is None or of.refused_value is not None or of.models.outcome is None:
        return None
    people = of.people
    rows = []
    for cost in COSTS:
        own = replace(people, break_even=np.full(len(of.log), cost))
        value = ESTIMATORS["dr"](own, of.sample).on(value_support(own, own.kept.value, of.sample))
        rows.append((cost, *interval(value)[:3]))
    return pd.DataFrame(rows, columns=["cost", "estimate", "low", "high"])
