"""Inference on gaps, the largest of differences, which are not smooth where two differences are equal.

A gap of G rates is the largest of the differences δ_gh = r_g − r_h over g ≠ h. Its estimate is not normal
where groups are nearly alike, and the bootstrap fails there (Fang and Santos 2019). The intervals here invert
tests of the single differences instead: since the gap is at least every δ_gh, and equal to one of them,

    [maxⱼ (δ̂ⱼ − k·sⱼ), maxⱼ (δ̂ⱼ + z·sⱼ)], cut at 0,

covers it, with z the normal quantile and k that of the largest |δ̂ⱼ − δⱼ|/sⱼ of all (for two groups z). The
difference of two gaps, maxⱼ δⱼ − maxₖ δ'ₖ, likewise is at most maxⱼ minₖ (δⱼ − δ'ₖ + k·sⱼₖ).

References:
    Fang, Z. and Santos, A. (2019). Inference on directionally differentiable functions. Review of Economic
    Studies.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtr

from fairall.evaluate.influence import Estimate, Z
from fairall.measuring.sequences import LEVEL

HALVINGS = 20  # of the shrinkage of `corrected`


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
        return self if why is None else self._replace(low=np.nan, high=np.nan, why=why)


NOTHING = Interval(np.nan, np.nan, np.nan)


def wald(estimate: Estimate, index: Any = ()) -> Interval:
    """The estimate ± z standard errors."""
    value, error = float(estimate.value[index]), float(estimate.error[index])
    return Interval(value, value - Z * error, value + Z * error)


def share(estimate: Estimate, index: Any = ()) -> Interval:
    """`wald` of a share or rate, cut to [0, 1], which doubly robust means of few people may leave."""
    value, low, high = (min(max(end, 0.0), 1.0) for end in wald(estimate, index)[:3])
    return Interval(value, low, high)


def gap(rates: np.ndarray) -> np.ndarray:
    """Largest rate minus smallest rate over groups, (..., G) → (...); NaN where a group's rate is NaN."""
    return rates.max(-1) - rates.min(-1)


def gap_interval(low: Estimate, high: Estimate | None = None, largest: float = 1.0) -> Interval:
    """A gap of rates, or of rates that are known to lie between bounds.

    Args:
        low: rates, or their lower bounds, shape (G,).
        high: upper bounds, shape (G,); None for the rates.
        largest: greatest possible gap.

    Returns:
        The gap (`corrected`), and the interval of the module; of bounds the lower one as estimate, and an
        interval that covers the gap wherever the rates are between their bounds (Imbens and Manski 2004).
    """
    upper = low if high is None else high
    if np.isnan(low.value).any() or np.isnan(upper.value).any():
        return NOTHING
    others = ~np.eye(len(low.value), dtype=bool)
    near, far = low.value[:, None] - upper.value, upper.value[:, None] - low.value
    lowest = (near - _simultaneous(low) * _errors(low, upper))[others].max()
    highest = (far + Z * _errors(upper, low))[others].max()
    estimate = corrected(low) if high is None else near[others].max()
    size, least, most = (float(np.clip(one, 0.0, largest)) for one in (estimate, lowest, highest))
    return Interval(size, least, most)


def corrected(rates: Estimate) -> float:
    """The gap of rates (G,) without the bias that the largest of noisy differences has.

    The gap of more than two groups is that of the rates drawn towards their mean, by the factor at which the
    median of the gaps of rates with this noise would be the observed one: median-unbiased where the rates
    are spread evenly. For two groups it is the absolute difference.
    """
    observed = float(gap(rates.value))
    if len(rates.value) == 2:
        return observed
    noise, centred = rates.noise(), rates.value - rates.value.mean()
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if np.median(gap(middle * centred + noise)) > observed:
            high = middle
        else:
            low = middle
    return low * observed


def gap_difference(first: Estimate, second: Estimate) -> Interval:
    """The gap of the second rates (G,) minus that of the first, with the probability that it is negative.

    The probability is that of the confidence distribution: the level at which a one-sided interval ends at 0;
    1/2 where neither sign can be told at any level.
    """
    if np.isnan(first.value).any() or np.isnan(second.value).any():
        return NOTHING._replace(probability=np.nan)
    g, h = np.nonzero(~np.eye(len(first.value), dtype=bool))
    own, other = second.value[g] - second.value[h], first.value[g] - first.value[h]
    joint = second.phi @ first.phi.T
    shared = joint[np.ix_(g, g)] - joint[np.ix_(g, h)] - joint[np.ix_(h, g)] + joint[np.ix_(h, h)]
    variance = (_errors(second)[g, h] ** 2)[:, None] + _errors(first)[g, h] ** 2 - 2 * shared
    error = np.sqrt(np.maximum(variance, np.finfo(float).tiny))
    difference = own[:, None] - other
    k = max(_simultaneous(first), _simultaneous(second))
    low = (difference - k * error).max(0).min()
    high = (difference + k * error).min(1).max()
    fairer = (-difference / error).max(1).min() * Z / k
    less_fair = (difference / error).max(0).min() * Z / k
    probability = float(ndtr(fairer) if fairer > 0 else 1.0 - ndtr(max(less_fair, 0.0)))
    estimate = corrected(second) - corrected(first)
    ends = float(min(low, estimate)), float(max(high, estimate))
    return Interval(estimate, *ends, probability=probability)


def _errors(first: Estimate, second: Estimate | None = None) -> np.ndarray:
    """Standard errors of first_g − second_h, shape (G, G)."""
    second = first if second is None else second
    variance = (first.error**2)[:, None] + second.error**2 - 2.0 * (first.phi @ second.phi.T)
    return np.sqrt(np.maximum(variance, 0.0))


def _simultaneous(rates: Estimate) -> float:
    """K of the module: z for two groups, else a quantile of the multiplier bootstrap."""
    if len(rates.value) == 2:
        return Z
    noise, error = rates.noise(), _errors(rates)
    g, h = np.triu_indices(len(error), 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        largest = np.nan_to_num(np.abs(noise[:, g] - noise[:, h]) / error[g, h]).max(-1)
    return float(np.quantile(largest, LEVEL))
