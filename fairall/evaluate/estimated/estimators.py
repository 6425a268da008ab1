"""Estimators of a policy's value from a log of another policy's decisions.

The value is V = E[a·s·(y − b)], the utility per person of the log: a is the probability that the policy
accepts a person, y the label in {0, 1}, s the stake and b the break-even probability of a positive label (1
and c, or gain + loss and loss/(gain + loss) with amounts). A rejection is worth 0, with or without a label,
so that only accepted people need weights: w = r/p, where r is whether the logged decision revealed the
label, and p = π·ℓ its probability: π of acceptance, ℓ of a known label given acceptance. q = E[y | x,
accepted] is the prediction of an outcome model.

All estimators assume that labels are revealed at random given the columns of the log (no unobserved
confounding), and p > 0 wherever a > 0 (overlap). Models are cross-fitted (Chernozhukov et al. 2018). The
doubly robust estimators, which are to be read first, have intervals with models of any kind: the error of the
models enters them only as the product of two errors. For the others it enters directly, so that they have an
interval only where the propensities are recorded, or the model is a logistic regression, whose theory
`estimates` adds.

References:
    Horvitz, D. and Thompson, D. (1952). A generalization of sampling without replacement from a finite
        universe. Journal of the American Statistical Association.
    Robins, J., Rotnitzky, A. and Zhao, L. (1994). Estimation of regression coefficients when some regressors
        are not always observed. Journal of the American Statistical Association.
    Dudík, M., Langford, J. and Li, L. (2011). Doubly robust policy evaluation and learning. ICML.
    Swaminathan, A. and Joachims, T. (2015). The self-normalized estimator for counterfactual learning.
        NeurIPS.
    Thomas, P. and Brunskill, E. (2016). Data-efficient off-policy policy evaluation for reinforcement
        learning. ICML.
    Chernozhukov, V. et al. (2018). Double/debiased machine learning for treatment and structural parameters.
        Econometrics Journal.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from fairall.evaluate.estimated.estimates import Column, Estimate, Sample, Support
from fairall.measuring.sequences import LEVEL


@dataclass(frozen=True)
class People:
    """What estimates need of each of the N people of a log.

    Attributes:
        target: a, shape (N,); of the logged decisions the decisions themselves.
        revealed: r, shape (N,), bool.
        label: y, 0 where not revealed, shape (N,).
        weight: w = r/p.
        kept: w·a; of the logged decisions r/ℓ, whatever the propensities.
        outcome: q; None without a model.
        stake: s, shape (N,).
        break_even: b, shape (N,).
    """

    target: np.ndarray
    revealed: np.ndarray
    label: np.ndarray
    weight: Column
    kept: Column
    outcome: Column | None
    stake: np.ndarray
    break_even: np.ndarray

    @property
    def pseudo_label(self) -> Column:
        """Q + w·(y − q), of expectation E[y | x] if p or q is right (Robins et al. 1994)."""
        assert self.outcome is not None
        return self.outcome + self.weight * (self.label - self.outcome)

    @property
    def accepted_pseudo_label(self) -> Column:
        """Pseudo-label times the policy's acceptance probability a: a·q + kept·(y − q)."""
        assert self.outcome is not None
        return self.outcome * self.target + self.kept * (self.label - self.outcome)


def ips(people: People, sample: Sample) -> Estimate:
    """Inverse propensity scoring, mean of kept·s·(y − b) (Horvitz & Thompson 1952).

    Unbiased if p is right.
    """
    return sample.mean(people.kept * (people.stake * (people.label - people.break_even)))


def snips(people: People, sample: Sample) -> Estimate:
    """Self-normalised IPS, mean(a)·mean(kept·s·(y − b)) / mean(kept) (Swaminathan & Joachims 2015).

    The share of people whom the policy accepts, which needs no label, times a weighted mean over the
    accepted. Consistent where p is right up to a factor.
    """
    return sample.mean(people.target) * (ips(people, sample) / sample.mean(people.kept))


def dm(people: People, sample: Sample) -> Estimate:
    """Direct method, mean of a·s·(q − b). Consistent where the outcome model is right."""
    assert people.outcome is not None
    return sample.mean((people.outcome - people.break_even) * (people.target * people.stake))


def dr(people: People, sample: Sample) -> Estimate:
    """Doubly robust, direct method + mean of kept·s·(y − q) (Robins et al. 1994; Dudík et al. 2011).

    Consistent where p or the outcome model is right.
    """
    gain = people.accepted_pseudo_label - people.target * people.break_even
    return sample.mean(gain * people.stake)


def sndr(people: People, sample: Sample) -> Estimate:
    """Self-normalised DR, direct method + mean(a)·mean(kept·s·(y − q)) / mean(kept).

    Consistent as `dr`, with a bounded correction; the weighted DR of Thomas & Brunskill (2016).
    """
    direct = dm(people, sample)
    return direct + sample.mean(people.target) * ((dr(people, sample) - direct) / sample.mean(people.kept))


def value_support(people: People, change: np.ndarray, weight: np.ndarray, sample: Sample) -> Support:
    """What a value, or a difference of two, rests on.

    Args:
        people: of the log.
        change: acceptance probabilities, or by how much the second ones are greater, shape (N,).
        weight: of each outcome, shape (N,).
        sample: of the people.
    """
    gain = change * people.stake
    ends = np.sort([-gain * people.break_even, gain * (1.0 - people.break_even)], 0).mean(1)
    return sample.support(weight, lowest=ends[0], highest=ends[1], cut=False)


ESTIMATORS = {estimator.__name__: estimator for estimator in (dr, sndr, ips, snips, dm)}
LABELS = {
    "dr": "doubly robust",
    "sndr": "self-normalised DR",
    "ips": "IPS",
    "snips": "self-normalised IPS",
    "dm": "direct method",
}
CLIP = 10.0  # largest a/π of the guaranteed interval, fixed before any log is seen


def guaranteed_interval(people: People) -> tuple[float, float]:
    """An interval that covers the value with at least `LEVEL` at any sample size, if propensities are right.

    The lower end is an empirical-Bernstein bound (Maurer & Pontil 2009, theorem 4) on the mean of
    s·(min(kept, M)·y − b·a), whose expectation is at most V; the upper end one on the mean of
    s·(a·(1 − b) − min(kept, M)·(1 − y)), whose expectation is at least V. Clipping at M bounds the range of
    both, as in high-confidence off-policy evaluation (Thomas et al. 2015). If propensities are wrong, the
    lower end may be above the upper one, and no value is possible. The range of s must be known beforehand,
    so that there is no such interval with amounts.

    Args:
        people: with weights from recorded propensities, all of whose accepted have labels.

    Returns:
        Lower and upper end; NaN where no value is possible.

    References:
        Maurer, A. and Pontil, M. (2009). Empirical Bernstein bounds and sample variance penalization. COLT.
        Thomas, P., Theocharous, G. and Ghavamzadeh, M. (2015). High-confidence off-policy evaluation. AAAI.
    """
    gains, least = np.stack(clipped_gains(people)), -people.break_even[0]
    n, log = gains.shape[1], math.log(4.0 / (1.0 - LEVEL))  # of either end
    further = 7.0 * (CLIP + np.array([-least, 1.0 + least])) * log / (3.0 * (n - 1))
    deviation = np.sqrt(2.0 * gains.var(1, ddof=1) * log / n) + further
    low, high = map(float, gains.mean(1) + (-1.0, 1.0) * deviation)
    return (max(low, least), min(high, 1.0 + least)) if low <= high else (math.nan, math.nan)


def clipped_gains(people: People) -> tuple[np.ndarray, np.ndarray]:
    """The two variables of `guaranteed_interval`, of expectations at most V and at least V, shape (N,) each.

    The first is at least −c, the second at most 1 − c.
    """
    kept, cost = np.minimum(people.kept.value, CLIP), people.break_even[0]
    lower = kept * people.label - cost * people.target
    return lower, people.target * (1.0 - cost) - kept * (1.0 - people.label)
