"""Intervals of rates, amounts, ratios and gaps: where all intervals of an evaluation are made.

*Of one rate.* Estimate ± z·error has no width where all outcomes are alike, and covers too seldom where few
differ. The interval here is that of Agresti and Coull (1998): k² outcomes are added to the n that the
estimate rests on, half of them positive. With the estimate p and its variance v, the mean is
p̃ = (p + k²/2n)/(1 + k²/n), and its interval p̃ ± k·s̃/√(n + k²) with the variance of all outcomes together,

    s̃² = (n²·v + k²/4)/(n + k²) + n·k²·(p − ½)²/(n + k²)²,

which is p̃·(1 − p̃) for outcomes of 0 and 1. Wilson's interval of these is a part of it. k is a normal quantile
for a rate of independent rows, else one of Student's t with the degrees of freedom that clusters leave, and v
is corrected for them (`Support`). Outcomes of a cluster may be alike, so that n is the number of rows only as
far as v tells that they differ: p·(1 − p)/v, at least that of the clusters and at most that of the rows.

*Of one utility.* Its variance is not only that of labels, but of whom the policy accepts, so that its bounds
tell nothing of it. The interval is estimate ± k·√(v + w), k a quantile of t, where w is the variance of
`OBSERVATIONS` outcomes, each worth the distance between the bounds divided by n.

*Of a difference or ratio of two.* With the distances of two estimates to their ends, l and u, and their
correlation ρ, the ends of r₁ − r₂ are (Newcombe 1998; Zou and Donner 2008; MOVER)

    r₁ − r₂ − √(l₁² − 2ρ·l₁·u₂ + u₂²) and r₁ − r₂ + √(u₁² − 2ρ·u₁·l₂ + l₂²),

and those of r₁/r₂ the numbers q for which an end of r₁ − q·r₂ is 0 (Donner and Zou 2012).

*Of a gap.* A gap of G rates is the largest of the differences δ_gh = r_g − r_h over g ≠ h. Its estimate is
not normal where groups are nearly alike, and the bootstrap fails there (Fang and Santos 2019). The intervals
here invert tests of the single differences instead: since the gap is at least every δ_gh, and equal to one of
them, [maxⱼ lowⱼ, maxⱼ highⱼ], cut at 0, covers it, with ends `high` of each by itself, and `low` of all
together, by Bonferroni's inequality (for two groups those of one). The difference of two gaps,
maxⱼ δⱼ − maxₖ δ'ₖ, likewise is at most maxⱼ minₖ (δⱼ − δ'ₖ + k·sⱼₖ).

References:
    Agresti, A. and Coull, B. (1998). Approximate is better than "exact" for interval estimation of binomial
        proportions. American Statistician.
    Newcombe, R. (1998). Interval estimation for the difference between independent proportions. Statistics in
        Medicine.
    Zou, G. and Donner, A. (2008). Construction of confidence limits about effect measures. Statistics in
        Medicine.
    Donner, A. and Zou, G. (2012). Closed-form confidence intervals for functions of the normal mean and
        standard deviation. Statistical Methods in Medical Research.
    Fang, Z. and Santos, A. (2019). Inference on directionally differentiable functions. Review of Economic
        Studies.
"""

from __future__ import annotations

from math import comb
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri, stdtr, stdtrit

from fairall.errors import count
from fairall.evaluate.estimated.influence import Estimate, Z
from fairall.measuring.sequences import LEVEL, OBSERVATIONS

LEAST_FREEDOM = 2.0  # below which there is no interval: that of three people with equally many rows
TINY = np.finfo(float).tiny


class Interval(NamedTuple):
    """An estimate with its interval, NaN where there is none.

    Attributes:
        estimate: in plain units.
        low: end of the interval.
        high: likewise.
        why: the reason why there is no interval, or no estimate.
        probability: of a difference, that it is to the better.
    """

    estimate: float
    low: float
    high: float
    why: str | None = None
    probability: float | None = None

    def without_ends(self, why: str | None) -> Interval:
        """The estimate without its interval, if there is a reason for that."""
        if why is None:
            return self
        probability = None if self.probability is None else np.nan
        return self._replace(low=np.nan, high=np.nan, why=why, probability=probability)


class Ends(NamedTuple):
    """Estimates and the ends of their intervals, shape (...) each."""

    value: np.ndarray
    low: np.ndarray
    high: np.ndarray


NOTHING = Interval(np.nan, np.nan, np.nan)


def ends(estimate: Estimate, k: float = Z) -> Ends:
    """Intervals of the module, each by itself.

    Args:
        estimate: shape (...).
        k: quantile of the standard normal distribution, for which that of t with the same probability is
            taken.

    Returns:
        Values and ends of rates are between their bounds. NaN ends where there are fewer than `LEAST_FREEDOM`
        degrees of freedom.
    """
    value, of = estimate.value, estimate.support
    if of is None:
        return Ends(value, value - k * estimate.error, value + k * estimate.error)
    quantile = student_quantile(k, of.freedom)
    if not of.cut:
        half = quantile * np.sqrt(_variance(estimate) + _added(estimate))
        return Ends(value, value - half, value + half)
    value, width = np.clip(value, of.lowest, of.highest), of.highest - of.lowest
    scale = np.where(width > 0, width, 1.0)
    share, n = (value - of.lowest) / scale, _outcomes(estimate)
    added = quantile**2
    total = n + added
    spread = n**2 * _variance(estimate) / scale**2 + added / 4.0
    spread = spread / total + n * added * (share - 0.5) ** 2 / total**2
    middle = (n * share + added / 2.0) / total
    half = np.sqrt(added * spread / total)
    low = np.maximum(of.lowest + width * (middle - half), of.lowest)
    high = np.minimum(of.lowest + width * (middle + half), of.highest)
    return Ends(value, np.minimum(low, value), np.maximum(high, value))


def lacking(*estimates: Estimate) -> str | None:
    """Why estimates have no interval; None where all have one."""
    for of in (one.support for one in estimates):
        if of is not None and (of.freedom < LEAST_FREEDOM).any():
            worst = int(np.argmin(of.freedom))
            clusters = int(np.count_nonzero(of.weight.reshape(-1, of.weight.shape[-1])[worst]))
            return (
                f"it rests on {count(clusters, 'person', 'people')}, worth {of.clusters.ravel()[worst]:.1f} "
                "of equal weight: too few to tell how much they differ"
            )
    return None


def interval(estimate: Estimate, index: Any = (), k: float = Z) -> Interval:
    """The interval of one estimate; arguments as of `ends`."""
    one = estimate[index]
    value, low, high = map(float, ends(one, k))
    return Interval(value, low, high).without_ends(lacking(one))


def difference_interval(estimate: Estimate, k: float = Z) -> Interval:
    """`interval` of a difference, with the probability that it is above 0; k as of `ends`.

    The probability is that of the confidence distribution: the level at which a one-sided interval ends at 0.
    """
    found = interval(estimate, k=k)
    reach = found.estimate - found.low if found.estimate > 0 else found.high - found.estimate
    # In quantiles of t, of which the end is one.
    freedom = np.inf if estimate.support is None else float(estimate.support.freedom)
    deviation = found.estimate / reach * float(student_quantile(k, freedom)) if reach > 0 else 0.0
    return found._replace(probability=float(_of_student(freedom, deviation))).without_ends(found.why)


def gap(rates: np.ndarray) -> np.ndarray:
    """Largest rate minus smallest rate over groups, (..., G) → (...); NaN where a group's rate is NaN."""
    return rates.max(-1) - rates.min(-1)


def gap_interval(low: Estimate, high: Estimate | None = None, k: float | None = None) -> Interval:
    """A gap of rates, or of rates that are known to lie between bounds.

    Args:
        low: rates, or their lower bounds, shape (G,).
        high: upper bounds, shape (G,); None for the rates.
        k: quantile of both ends; by default those of the module.

    Returns:
        The gap, and the interval of the module; of bounds the lower one as estimate, and an interval that
        covers the gap wherever the rates are between their bounds (Imbens and Manski 2004).
    """
    upper = low if high is None else high
    if np.isnan(low.value).any() or np.isnan(upper.value).any():
        return NOTHING
    others = ~np.eye(len(low.value), dtype=bool)
    joint = of_pairs(low) if k is None else k
    near = differences(low, upper, joint)
    far = differences(upper, low, Z if k is None else k)
    size = near.value[others].max()
    largest = 1.0 if low.support is not None and low.support.cut else np.inf
    found = (
        float(np.clip(one, 0.0, largest)) for one in (size, near.low[others].max(), far.high[others].max())
    )
    estimate, lowest, highest = found
    return Interval(estimate, lowest, highest).without_ends(lacking(low, upper))


def ratio_interval(rates: Estimate) -> Interval:
    """The smallest of rates (G,) by the largest, between 0 and 1; NaN where the largest is 0.

    It is the least ratio of two of them, so that its interval is made as that of a gap.
    """
    value = ends(rates).value
    if np.isnan(value).any() or value.max() <= 0:
        return NOTHING
    others = ~np.eye(len(value), dtype=bool)
    low = ratios(rates, rates).low[others].min()
    high = ratios(rates, rates, of_pairs(rates)).high[others].min()
    found = Interval(float(value.min() / value.max()), float(low), float(min(high, 1.0)))
    return found.without_ends(lacking(rates))


def gap_difference(first: Estimate, second: Estimate) -> Interval:
    """The gap of the second rates (G,) minus that of the first, with the probability that it is negative.

    The probability is that of the confidence distribution: the level at which a one-sided interval ends at 0;
    1/2 where neither sign can be told at any level, and where both are the same. Errors of differences of
    differences are those of the influence functions, with `OBSERVATIONS` more than there are.
    """
    if np.isnan(first.value).any() or np.isnan(second.value).any():
        return NOTHING._replace(probability=np.nan)
    if np.array_equal(first.value, second.value) and np.array_equal(first.phi, second.phi):
        return Interval(0.0, 0.0, 0.0, probability=0.5).without_ends(lacking(first, second))
    values = [ends(one).value for one in (first, second)]
    estimate, why = float(gap(values[1]) - gap(values[0])), lacking(first, second)
    if why is not None:
        return Interval(estimate, np.nan, np.nan, why, np.nan)
    g, h = np.nonzero(~np.eye(len(first.value), dtype=bool))
    other, own = (value[g] - value[h] for value in values)
    other_phi, own_phi = (one.phi[g] - one.phi[h] for one in (first, second))
    variance = (own_phi**2).sum(1)[:, None] + (other_phi**2).sum(1) - 2.0 * own_phi @ other_phi.T
    k, freedom = of_pairs(first), np.inf
    if first.support is not None and second.support is not None:
        variance /= min(one.shrinkage.min() for one in (first.support, second.support))
        added = [_added(one)[g] + _added(one)[h] for one in (first, second)]
        variance += (added[1][:, None] + added[0]) / 2.0
        freedom = min(one.freedom.min() for one in (first.support, second.support))
    error = np.sqrt(np.maximum(variance, TINY))
    difference, wide = own[:, None] - other, float(student_quantile(k, freedom))
    low = (difference - wide * error).max(0).min()
    high = (difference + wide * error).min(1).max()
    fairer = (-difference / error).max(1).min() * Z / k
    less_fair = (difference / error).max(0).min() * Z / k
    chance = _of_student(freedom, fairer) if fairer > 0 else 1.0 - _of_student(freedom, max(less_fair, 0.0))
    return Interval(
        estimate, float(min(low, estimate)), float(max(high, estimate)), probability=float(chance)
    )


def differences(first: Estimate, second: Estimate, k: float = Z) -> Ends:
    """All differences first_g − second_h, shape (G, H)."""
    (value, low, high), (other, other_low, other_high) = ends(first, k), ends(second, k)
    shared = 2.0 * _correlations(first, second)
    below, above, other_below, other_above = value - low, high - value, other - other_low, other_high - other
    difference = value[:, None] - other

    def distance(one: np.ndarray, two: np.ndarray) -> np.ndarray:
        return np.sqrt(np.maximum((one**2)[:, None] + two**2 - shared * one[:, None] * two, 0.0))

    return Ends(
        difference,
        difference - distance(below, other_above),
        difference + distance(above, other_below),
    )


def ratios(first: Estimate, second: Estimate, k: float = Z) -> Ends:
    """All ratios first_g/second_h of rates that are at least 0, shape (G, H); upper ends may be infinite."""
    (value, low, high), (other, other_low, other_high) = ends(first, k), ends(second, k)
    both, shared = np.outer(value, other), _correlations(first, second)

    def root(one: np.ndarray, two: np.ndarray, sign: float) -> np.ndarray:
        """The ratio for which r_g − q·r_h, with the distances of g and of h, ends at 0."""
        square = np.broadcast_to(other**2 - two**2, both.shape)
        middle = both - shared * one[:, None] * two
        rest = (value**2 - one**2)[:, None]
        left = np.sqrt(np.maximum(middle**2 - square * rest, 0.0))
        if sign < 0:
            return np.divide(rest, middle + left, out=np.zeros_like(middle), where=middle + left > 0)
        return np.divide(middle + left, square, out=np.full_like(middle, np.inf), where=square > 0)

    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = value[:, None] / other
    below, above = root(value - low, other_high - other, -1.0), root(high - value, other - other_low, 1.0)
    return Ends(ratio, below, above)


def _correlations(first: Estimate, second: Estimate) -> np.ndarray:
    """Of the errors of first_g and second_h, shape (G, H); 0 where one has none."""
    errors = np.outer(first.error, second.error)
    return np.divide(first.phi @ second.phi.T, errors, out=np.zeros_like(errors), where=errors > 0)


def _variance(of: Estimate) -> np.ndarray:
    """Corrected for clusters, shape (...)."""
    assert of.support is not None
    return of.error**2 / np.maximum(of.support.shrinkage, TINY)


def _outcomes(of: Estimate) -> np.ndarray:
    """N of the module, shape (...)."""
    assert of.support is not None
    low, width = of.support.lowest, of.support.highest - of.support.lowest
    share = np.divide(of.value - low, width, out=np.zeros_like(width), where=width > 0)
    binary = np.maximum(share * (1.0 - share), 0.0) * width**2
    with np.errstate(divide="ignore"):
        n = np.divide(binary, _variance(of), out=np.zeros_like(binary), where=binary > 0)
    return np.clip(n, of.support.clusters, of.support.rows)


def _added(of: Estimate) -> np.ndarray:
    """Variance of `OBSERVATIONS` outcomes, shape (...)."""
    assert of.support is not None
    width = of.support.highest - of.support.lowest
    return OBSERVATIONS * (width / np.maximum(_outcomes(of), 1.0)) ** 2


def student_quantile(k: float, freedom: np.ndarray | float) -> np.ndarray:
    """Quantile of t with the probability of the normal quantile k; NaN below `LEAST_FREEDOM`.

    Args:
        k: quantile.
        freedom: degrees of freedom, infinite for the normal distribution, shape (...).

    Returns:
        Shape (...).
    """
    freedom = np.asarray(freedom, dtype=float)
    student = -stdtrit(np.where(np.isinf(freedom), 1e10, freedom), ndtr(-k))
    return np.where(freedom >= LEAST_FREEDOM, student, np.nan)


def _of_student(freedom: float, deviation: float) -> float:
    """Probability of t below a deviation."""
    return float(ndtr(deviation) if np.isinf(freedom) else stdtr(freedom, deviation))


def joint_normal(many: int) -> float:
    """K for which `many` normal deviations are all at most k with probability `LEVEL`, at least.

    By Bonferroni's inequality; of the pairs of G groups it is 2 to 3 % more than the quantile of the largest.
    """
    return float(ndtri(1.0 - (1.0 - LEVEL) / (2.0 * many)))


def of_pairs(rates: Estimate) -> float:
    """`joint_normal` of all pairs of G groups, with rates (G,)."""
    return joint_normal(comb(len(rates.value), 2))
