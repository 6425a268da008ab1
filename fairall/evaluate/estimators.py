"""Estimators of a policy's value from a log of another policy's decisions.

The value is V = E[a·(y − c)], the utility per person of the log: a is the probability that the policy accepts
a person, y the label in {0, 1}, c the cost of acceptance. A rejection is worth 0, with or without a label, so
that only accepted people need weights: w = a/p, where p is the probability that the logged decision revealed
the label, r whether it did, and q = E[y | x, accepted] the prediction of an outcome model.

All estimators assume that labels are revealed at random given the columns of the log (no unobserved
confounding), and p > 0 wherever a > 0 (overlap).

References:
    Horvitz, D. and Thompson, D. (1952). A generalization of sampling without replacement from a finite
        universe. Journal of the American Statistical Association.
    Robins, J., Rotnitzky, A. and Zhao, L. (1994). Estimation of regression coefficients when some regressors
        are not always observed. Journal of the American Statistical Association.
    Ionides, E. (2008). Truncated importance sampling. Journal of Computational and Graphical Statistics.
    Dudík, M., Langford, J. and Li, L. (2011). Doubly robust policy evaluation and learning. ICML.
    Swaminathan, A. and Joachims, T. (2015). The self-normalized estimator for counterfactual learning.
        NeurIPS.
    Thomas, P. and Brunskill, E. (2016). Data-efficient off-policy policy evaluation for reinforcement
        learning. ICML.
    Wang, Y., Agarwal, A. and Dudík, M. (2017). Optimal and adaptive off-policy evaluation in contextual
        bandits. ICML.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fairall.evaluate.fairness import ratio
from fairall.evaluate.intervals import Columns, stacked

CLIP = 10.0  # largest a/P(accepted) of clipped weights, fixed before any log is seen
SWITCH_QUANTILES = np.linspace(0.975, 0.5, 20)  # of the weights of all people, candidates of τ beside ∞


@dataclass(frozen=True)
class Rows:
    """What estimates need of each of the N people of a log.

    Attributes:
        target: a, shape (N,); of the logged decisions the decisions themselves.
        propensity: p, shape (N,).
        revealed: r, shape (N,), bool.
        label: y, 0 where not revealed, shape (N,).
        outcome: q, shape (N,).
        labelled: share of the accepted with a label, a factor of p; the other factor is the propensity of
            acceptance.
        logged: whether the policy is the one of the log: its weights are then 1/labelled, whatever the
            propensities.
    """

    target: np.ndarray
    propensity: np.ndarray
    revealed: np.ndarray
    label: np.ndarray
    outcome: np.ndarray
    labelled: float = 1.0
    logged: bool = False

    @cached_property
    def inverse(self) -> np.ndarray:
        """r/p, shape (N,)."""
        return self.revealed / np.where(self.revealed, self.propensity, 1.0)

    @cached_property
    def inverse_slope(self) -> np.ndarray:
        """∂(r/p) by the log odds of acceptance, shape (N,)."""
        return -self.inverse * (1.0 - self.propensity / self.labelled)

    @cached_property
    def weight(self) -> np.ndarray:
        """r·w, shape (N,)."""
        return self.revealed / self.labelled if self.logged else self.target * self.inverse

    @cached_property
    def weight_slope(self) -> np.ndarray:
        """∂(r·w) by the log odds of acceptance, shape (N,)."""
        return np.zeros_like(self.target) if self.logged else self.target * self.inverse_slope

    @property
    def clip(self) -> float:
        """M, the largest clipped weight: a/P(accepted) of at most `CLIP`; the logged decisions have 1."""
        return (1.0 if self.logged else CLIP) / self.labelled

    @cached_property
    def outcome_slope(self) -> np.ndarray:
        """∂q/∂logit q, shape (N,)."""
        return self.outcome * (1.0 - self.outcome)


@dataclass(frozen=True)
class ValueSums:
    """Sums over people, each of any shape (...).

    Attributes:
        n: 1.
        a: a.
        w, wy, wq: r·w, r·w·y and r·w·q.
        clipped, clipped_y: r·min(w, M) and r·min(w, M)·y.
        aq: a·q.
        kept_q, kept_y: r·w·q and r·w·y where w ≤ τ.
    """

    n: np.ndarray
    a: np.ndarray
    w: np.ndarray
    wy: np.ndarray
    wq: np.ndarray
    clipped: np.ndarray
    clipped_y: np.ndarray
    aq: np.ndarray
    kept_q: np.ndarray
    kept_y: np.ndarray

    @classmethod
    def of(cls, sums: np.ndarray) -> ValueSums:
        """Sums of the columns of `value_columns`, shape (..., 10)."""
        return cls(*np.moveaxis(sums, -1, 0))


def value_columns(rows: Rows, cost: float) -> Columns:
    """The columns of `ValueSums`, with τ of Switch-DR chosen by `switch_threshold`."""
    a, w, y, q = rows.target, rows.weight, rows.label, rows.outcome
    within, kept = w <= rows.clip, w <= switch_threshold(rows, cost)
    clipped = np.minimum(w, rows.clip)
    values = [np.ones_like(a), a, w, w * y, w * q, clipped, clipped * y, a * q, w * q * kept, w * y * kept]
    zero, w_slope = np.zeros_like(a), rows.weight_slope
    by_propensity = [zero, zero, w_slope, w_slope * y, w_slope * q, w_slope * within, w_slope * y * within,
                     zero, w_slope * q * kept, w_slope * y * kept]  # fmt: skip
    q_slope = rows.outcome_slope
    by_outcome = [zero, zero, zero, zero, w * q_slope, zero, zero, a * q_slope, w * q_slope * kept, zero]
    return Columns(stacked(values), stacked(by_propensity), stacked(by_outcome))


def switch_threshold(rows: Rows, cost: float) -> float:
    """τ of Switch-DR, the candidate with the least bound of the mean squared error (Wang et al. 2017).

    The bound is the sample variance of the estimate plus the square of the largest possible bias,
    mean a·1(w > τ) times the largest |y − q| ≤ 1. Candidates are ∞ and quantiles of w = a/p over all people.
    Where propensities are recorded for accepted people only, the mean is estimated by that of r·w·1(w > τ).
    """
    if rows.logged:
        return np.inf
    known = rows.propensity > 0  # not of some of the rejected, where propensities are recorded
    w = rows.target * (1.0 / np.where(known, rows.propensity, 1.0))  # rounded as `Rows.weight`
    beyond = rows.target if known.all() else rows.weight
    candidates = [np.inf, *np.quantile(w[known], SWITCH_QUANTILES)]  # of equals, the first is taken
    direct = rows.target * (rows.outcome - cost)
    residual = rows.weight * (rows.label - rows.outcome)

    def bound(threshold: float) -> float:
        variance = (direct + residual * (rows.weight <= threshold)).var() / len(w)
        return float(variance + (beyond * (w > threshold)).mean() ** 2)

    return float(min(candidates, key=bound))


def _normalised(sums: ValueSums, weighted: np.ndarray) -> np.ndarray:
    """(Σ a / N)·weighted / Σ r·w; 0 where the policy accepts nobody, else NaN where no weight is positive."""
    return np.where(sums.a > 0, sums.a / sums.n * ratio(weighted, sums.w), 0.0)


ESTIMATORS: dict[str, Callable[[ValueSums, float], np.ndarray]] = {}
LABELS: dict[str, str] = {}


def _estimator(label: str) -> Callable[[Callable[[ValueSums, float], np.ndarray]], Callable[..., np.ndarray]]:
    def register(function: Callable[[ValueSums, float], np.ndarray]) -> Callable[..., np.ndarray]:
        ESTIMATORS[function.__name__], LABELS[function.__name__] = function, label
        return function

    return register


@_estimator("IPS")
def ips(sums: ValueSums, cost: float) -> np.ndarray:
    """Inverse propensity scoring, Σ r·w·(y − c) / N (Horvitz & Thompson 1952). Unbiased where p is right."""
    return (sums.wy - cost * sums.w) / sums.n


@_estimator("clipped IPS")
def clipped_ips(sums: ValueSums, cost: float) -> np.ndarray:
    """IPS with weights min(w, M), M = `Rows.clip`: less variance, biased by what is cut (Ionides 2008)."""
    return (sums.clipped_y - cost * sums.clipped) / sums.n


@_estimator("self-normalised IPS")
def snips(sums: ValueSums, cost: float) -> np.ndarray:
    """Self-normalised IPS, (Σ a / N)·Σ r·w·(y − c) / Σ r·w (Swaminathan & Joachims 2015).

    The share of people whom the policy accepts, which needs no label, times a weighted mean over the
    accepted. Consistent where p is right up to a factor; does not depend on the propensities of rejected
    people.
    """
    return _normalised(sums, sums.wy - cost * sums.w)


@_estimator("direct method")
def dm(sums: ValueSums, cost: float) -> np.ndarray:
    """Direct method, Σ a·(q − c) / N. Consistent where the outcome model is right."""
    return (sums.aq - cost * sums.a) / sums.n


@_estimator("doubly robust")
def dr(sums: ValueSums, cost: float) -> np.ndarray:
    """Doubly robust, direct method + Σ r·w·(y − q) / N (Robins et al. 1994; Dudík et al. 2011).

    Consistent where p or the outcome model is right.
    """
    return dm(sums, cost) + (sums.wy - sums.wq) / sums.n


@_estimator("self-normalised DR")
def sndr(sums: ValueSums, cost: float) -> np.ndarray:
    """Self-normalised DR, direct method + (Σ a / N)·Σ r·w·(y − q) / Σ r·w.

    Consistent as `dr`, with a bounded correction; the weighted DR of Thomas & Brunskill (2016).
    """
    return dm(sums, cost) + _normalised(sums, sums.wy - sums.wq)


@_estimator("Switch-DR")
def switch_dr(sums: ValueSums, cost: float) -> np.ndarray:
    """Doubly robust where w ≤ τ, direct method elsewhere (Wang et al. 2017); τ from `switch_threshold`."""
    return dm(sums, cost) + (sums.kept_y - sums.kept_q) / sums.n
