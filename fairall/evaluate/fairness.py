"""Rates of a policy by group and their gaps under selective labels, as functions of sums over rows.

Symbols: person i of N in group g of G; acceptance probability a of the policy, in [0, 1]; label y; cost c;
weight w. E[·] is the weighted mean over the people of a group; `views` says which y and w stand for them.
Gaps among the accepted need not be those among all people: Kallus and Zhou (2018), "Residual unfairness in
fair machine learning from prejudiced data". Gaps of all by doubly robust pseudo-labels: Coston, Rambachan and
Chouldechova (2021), "Characterizing fairness over the set of good models under selective labels".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

BINS = 10  # of equal width on [0, 1], of the acceptance probability


class Sums(NamedTuple):
    """Sums of the label columns over the people of a group; any shape, the same for all four."""

    weight: np.ndarray  # Σ w
    accepted: np.ndarray  # Σ w a
    positive: np.ndarray  # Σ w y
    accepted_positive: np.ndarray  # Σ w a y


@dataclass(frozen=True)
class FairnessMeasure:
    """Description of a measure of unfairness.

    Attributes:
        name: key of `MEASURES`.
        label: in tables and figures.
        rate: what is compared between groups.
        people: those the rate is about; it is undefined for a group without them.
        formula: the rate of sums and cost; None for `calibration_error`, which needs sums by bin.
        needs_label: whether the rate depends on labels.
        largest: greatest possible value; the smallest is 0.
    """

    name: str
    label: str
    rate: str
    people: str
    formula: Callable[[Sums, float], np.ndarray] | None
    needs_label: bool = True
    largest: float = 1.0


def ratio(numerator: np.ndarray, denominator: np.ndarray) -> np.ndarray:
    """Quotient; NaN where the denominator is not positive."""
    numerator, denominator = np.broadcast_arrays(numerator, denominator)
    quotient = np.full(numerator.shape, np.nan)
    return np.divide(numerator, denominator, out=quotient, where=denominator > 0)


def dpu(sums: Sums, cost: float) -> np.ndarray:
    """Acceptance rate E[a]; demographic parity (Calders and Verwer 2010; definition 2.2)."""
    return ratio(sums.accepted, sums.weight)


def equal_opportunity(sums: Sums, cost: float) -> np.ndarray:
    """True-positive rate E[a y] / E[y] (Hardt et al. 2016)."""
    return ratio(sums.accepted_positive, sums.positive)


def predictive_parity(sums: Sums, cost: float) -> np.ndarray:
    """Precision E[a y] / E[a] (Chouldechova 2017)."""
    return ratio(sums.accepted_positive, sums.accepted)


def false_positive(sums: Sums, cost: float) -> np.ndarray:
    """False-positive rate E[a (1 − y)] / E[1 − y] (Hardt et al. 2016, with true positives equalised odds)."""
    return ratio(sums.accepted - sums.accepted_positive, sums.weight - sums.positive)


def false_negative(sums: Sums, cost: float) -> np.ndarray:
    """False-negative rate E[(1 − a) y] / E[y] (Chouldechova 2017); its gap is that of equal opportunity."""
    return ratio(sums.positive - sums.accepted_positive, sums.positive)


def utility_gap(sums: Sums, cost: float) -> np.ndarray:
    """Utility per person E[a (y − c)]."""
    return ratio(sums.accepted_positive - cost * sums.accepted, sums.weight)


MEASURES: dict[str, FairnessMeasure] = {
    one.name: one
    for one in (
        FairnessMeasure("dpu", "DPU", "acceptance rate", "people", dpu, needs_label=False),
        FairnessMeasure(
            "equal_opportunity",
            "equal-opportunity gap",
            "true-positive rate",
            "people with a positive label",
            equal_opportunity,
        ),
        FairnessMeasure(
            "predictive_parity",
            "predictive-parity gap",
            "precision",
            "people whom the policy accepts",
            predictive_parity,
        ),
        FairnessMeasure(
            "false_positive",
            "false-positive gap",
            "false-positive rate",
            "people with a negative label",
            false_positive,
        ),
        FairnessMeasure(
            "false_negative",
            "false-negative gap",
            "false-negative rate",
            "people with a positive label",
            false_negative,
        ),
        FairnessMeasure("utility_gap", "utility gap", "utility per person", "people", utility_gap),
        FairnessMeasure("calibration_error", "calibration error", "calibration error", "people", None),
    )
}


def label_columns(a: np.ndarray, y: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Columns w, w a, w y, w a y, whose sums within groups are the `Sums` of all rates.

    Args:
        a: acceptance probabilities, shape (N,).
        y: labels or pseudo-labels, shape (N,); NaN is allowed where w is 0.
        w: weights, shape (N,).

    Returns:
        Shape (N, 4).
    """
    wy = np.where(w == 0, 0.0, w * y)
    return np.stack([w, w * a, wy, a * wy], axis=1)


def group_sums(columns: np.ndarray, group: np.ndarray, n_groups: int) -> np.ndarray:
    """Sums of columns (N, C) within groups; shape (G, C), zeros for a group without rows.

    Args:
        columns: shape (N, C).
        group: codes 0 to G − 1, shape (N,).
        n_groups: G.
    """
    sums = [np.bincount(group, weights=column, minlength=n_groups) for column in columns.T]
    return np.stack(sums, axis=1)


def rates(sums: np.ndarray, cost: float, everyone: np.ndarray | None = None) -> dict[str, np.ndarray]:
    """The rate of every measure but `calibration_error`, by group.

    Args:
        sums: of `label_columns` within groups, shape (..., G, 4).
        cost: c.
        everyone: sums of all people with weight 1, from which rates that need no label are computed. Give
            those of the dr view with the ips view, so that acceptance has no sampling error of weights.

    Returns:
        Shape (..., G) by the measure's name; NaN where a group has nobody whom the rate is about.
    """
    own = Sums(*np.moveaxis(sums, -1, 0))
    free = own if everyone is None else Sums(*np.moveaxis(everyone, -1, 0))
    return {
        name: one.formula(own if one.needs_label else free, cost)
        for name, one in MEASURES.items()
        if one.formula is not None
    }


def gap(rates: np.ndarray) -> np.ndarray:
    """Largest rate minus smallest rate over groups, (..., G) → (...); NaN where a group's rate is NaN."""
    return rates.max(-1) - rates.min(-1)


def undefined(rates: Mapping[str, np.ndarray], groups: Sequence[str]) -> list[str]:
    """A line for every rate that is NaN: the measure, and the groups that lack the people it is about.

    Args:
        rates: shape (G,) by the measure's name.
        groups: names, G of them.
    """
    lines = []
    for name, values in rates.items():
        empty = [f"'{group}'" for group, value in zip(groups, values, strict=True) if np.isnan(value)]
        if empty:
            lines.append(
                f"{MEASURES[name].label}: no value, since {MEASURES[name].people} are missing in "
                f"{'group' if len(empty) == 1 else 'groups'} {', '.join(empty)}"
            )
    return lines


def bins(a: np.ndarray) -> np.ndarray:
    """Bin 0 to `BINS` − 1 of probabilities: [0, 0.1), [0.1, 0.2), …, [0.9, 1]; same shape."""
    return np.minimum((a * BINS).astype(np.int64), BINS - 1)


def calibration_errors(bin_sums: np.ndarray) -> np.ndarray:
    """Expected calibration error of the acceptance probability as a score of the label, by group.

    Σ_b |Σ_{i in b} w_i (y_i − a_i)| / Σ_i w_i over bins b (Naeini et al. 2015). The measure
    `calibration_error` is the largest over groups. A sum of absolute values, it is biased upwards in small
    samples.

    Args:
        bin_sums: Σ w, Σ w a and Σ w y by group and bin of a, shape (..., G, B, 3).

    Returns:
        Shape (..., G); NaN for a group without weight.
    """
    return np.abs(_offsets(bin_sums)).sum(-1)


class Reliability(NamedTuple):
    """A reliability curve: three arrays of shape (..., G, B), NaN for the means of empty bins."""

    score: np.ndarray  # mean of a in the bin
    label: np.ndarray  # mean of y in the bin
    share: np.ndarray  # of the group's weight that is in the bin


def reliability(bin_sums: np.ndarray) -> Reliability:
    """The reliability curve of sums by group and bin, shape (..., G, B, 3)."""
    weight, accepted, positive = np.moveaxis(bin_sums, -1, 0)
    share = ratio(weight, weight.sum(-1, keepdims=True))
    return Reliability(ratio(accepted, weight), ratio(positive, weight), share)


def gap_interval(
    estimate: np.ndarray, draws: np.ndarray, level: float = 0.95, largest: float = 1.0
) -> tuple[float, float]:
    """Confidence interval of the gap of rates.

    The gap ± the quantile over draws of max over pairs g, h of |(r*_g − r*_h) − (r_g − r_h)|, cut at 0 and at
    `largest`. The error of the gap is at most the largest error of a difference of two rates, so that the
    interval covers at a true gap of 0 too, where the gap's own distribution is not centred. For two groups it
    is the symmetric bootstrap interval of their difference.

    Args:
        estimate: rates, shape (G,).
        draws: rates of bootstrap draws, shape (B, G). A draw in which a rate is NaN counts as infinitely far.
        level: probability of covering.
        largest: greatest possible gap.

    Returns:
        Lower and upper end; NaN where the gap is.
    """
    deviation = draws - estimate
    half = _quantile(deviation.max(-1) - deviation.min(-1), level)
    return _around(float(gap(estimate)), half, largest)


def calibration_interval(estimate: np.ndarray, draws: np.ndarray, level: float = 0.95) -> tuple[float, float]:
    """Confidence interval of the largest calibration error over groups.

    The error ± the quantile over draws of max_g Σ_b |δ*_gb − δ_gb|, where δ_gb = Σ w (y − a) in bin b by the
    weight of group g; cut at 0 and 1. The error of the calibration error is at most that of the δ summed, so
    the interval covers in spite of the upward bias, more often than the level says.

    Args:
        estimate: sums by bin, shape (G, B, 3).
        draws: of bootstrap draws, shape (D, G, B, 3).
        level: probability of covering.
    """
    deviation = np.abs(_offsets(draws) - _offsets(estimate)).sum(-1).max(-1)
    return _around(float(calibration_errors(estimate).max(-1)), _quantile(deviation, level), 1.0)


def _offsets(bin_sums: np.ndarray) -> np.ndarray:
    """Σ w (y − a) in a bin by the weight of the group, (..., G, B, 3) → (..., G, B)."""
    weight, accepted, positive = np.moveaxis(bin_sums, -1, 0)
    return ratio(positive - accepted, weight.sum(-1, keepdims=True))


def _quantile(deviation: np.ndarray, level: float) -> float:
    # One of the draws: an interpolation between a finite and an infinite deviation has no value.
    filled = np.where(np.isnan(deviation), np.inf, deviation)
    return float(np.quantile(filled, level, method="inverted_cdf"))


def _around(value: float, half: float, largest: float) -> tuple[float, float]:
    if np.isnan(value):
        return np.nan, np.nan
    return float(np.clip(value - half, 0.0, largest)), float(np.clip(value + half, 0.0, largest))
