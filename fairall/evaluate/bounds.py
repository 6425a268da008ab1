"""Bounds of utility, rates and gaps when the rejected have no labels: Manski's, and a sensitivity analysis.

Both put a low and a high label in the place of every unknown one (`label_bounds`, `pseudo_labels`); `bounds`
gives the least and greatest value of each quantity between them. Symbols as in `fairness`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
from scipy.optimize import brentq

from fairall.evaluate.fairness import MEASURES, bins

Interval = tuple[float, float]  # lower and upper bound
NO_VALUE = (np.nan, np.nan)
CALIBRATION = "calibration_error"
GAMMAS = tuple(np.linspace(1.0, 3.0, 9).tolist())
LARGEST_GAMMA = 10.0  # up to which a turning point is searched


def label_bounds(label: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The label twice where it is revealed; 0 and 1 where it is not: no assumption (Manski 1990, 2003).

    Bounds from these labels are sharp for the people at hand; sampling error is not part of them.

    Args:
        label: 0 or 1, NaN where not revealed, shape (N,).
    """
    return np.nan_to_num(label, nan=0.0), np.nan_to_num(label, nan=1.0)


def pseudo_labels(
    gamma: float,
    label: np.ndarray,
    q: np.ndarray,
    p: np.ndarray,
    *,
    group: np.ndarray | None = None,
    decisions: np.ndarray | None = None,
    labelled: float = 1.0,
) -> tuple[np.ndarray, np.ndarray]:
    """Low and high pseudo-labels where unrevealed labels differ from revealed ones by an odds ratio up to Γ.

    The model: odds(y = 1 | x, unrevealed) is between 1/Γ and Γ times odds(y = 1 | x, revealed). As odds
    ratios are symmetric, Γ bounds as well how the odds of being revealed differ between people of equal
    features with y = 1 and with y = 0 (Rosenbaum 2002, "Observational studies", chapter 4). Related models:
    Tan (2006); Kallus and Zhou (2018), "Confounding-robust policy improvement"; for selective labels
    Rambachan, Coston and Kennedy (2022), "Robust design and evaluation of predictive algorithms under
    unobserved confounding", who bound a difference of means. The largest mean of an unrevealed label is
    h(q) = Γ q / (1 + (Γ − 1) q), and with r = 1 where the label is revealed

        φ = r y + (1 − r) h(q) + r (1 − p) / p · h'(q) (y − q),

    whose last term removes the first-order effect of errors in q. The low label has 1/Γ in the place of Γ.
    For Γ = 1 both are the doubly robust pseudo-label q + r (y − q) / p. The low one is below the high one on
    average, not for every person; both may leave [0, 1].

    The last term estimates labels of unrevealed people by the revealed label of another one, which serves a
    policy that treats the two alike. The logged decisions do not: for them, the part of the term that stands
    for rejected people is spread over the rejected of the group, so that observed utility and precision stay
    as they are.

    Args:
        gamma: Γ ≥ 1.
        label: 0 or 1, NaN where not revealed, shape (N,).
        q: probability of a positive label given features, among the revealed, in (0, 1), shape (N,).
        p: probability that the label is revealed, shape (N,); unused (may be NaN) where it is not.
        group: codes 0 to G − 1, shape (N,); needed with `decisions` only.
        decisions: past decisions, bool, shape (N,), where the policy is the one that took them; else None.
        labelled: share of the accepted with a label; needed with `decisions` only.

    Returns:
        Low and high, each of shape (N,).
    """
    revealed = ~np.isnan(label)
    odds = np.divide(1.0 - p, p, out=np.zeros(len(label)), where=revealed)
    error = np.where(revealed, label - q, 0.0)

    def shifted(odds_ratio: float) -> np.ndarray:
        scale = 1.0 + (odds_ratio - 1.0) * q
        own, correction = np.where(revealed, label, odds_ratio * q / scale), odds_ratio / scale**2 * error
        if decisions is None or group is None:
            return own + odds * correction
        of_accepted = (1.0 - labelled) / labelled * correction
        total = np.bincount(group, odds * correction - of_accepted)
        rejected = np.bincount(group, ~decisions)
        of_rejected = np.divide(total, rejected, out=np.zeros(len(total)), where=rejected > 0)
        return own + np.where(decisions, of_accepted, of_rejected[group])

    return shifted(1.0 / gamma), shifted(gamma)


def value_bounds(a: np.ndarray, y_low: np.ndarray, y_high: np.ndarray, cost: float) -> Interval:
    """Bounds of utility per person, the mean of a (y − c).

    Args:
        a: acceptance probabilities, shape (N,); or those of one policy minus those of another, for bounds of
            the difference of their utilities.
        y_low: low labels, shape (N,).
        y_high: high labels, shape (N,).
        cost: c.
    """
    low, high = np.where(a > 0, y_low, y_high), np.where(a > 0, y_high, y_low)
    return float(np.mean(a * (low - cost))), float(np.mean(a * (high - cost)))


def rate_bounds(a: np.ndarray, y_low: np.ndarray, y_high: np.ndarray, cost: float) -> dict[str, Interval]:
    """Bounds of every rate of one group, where each person's label is free between the low and the high one.

    A rate that is linear in the labels is extreme where all are low or all are high. One with labels above
    and below the line, such as Σ a y / Σ y, is largest where the people whose a exceeds a threshold have the
    high label and the others the low one, and smallest the other way round: all thresholds are tried. These
    bounds are sharp, for labels in {0, 1} too. For the calibration error the mean label of a bin is free
    between its bounds: sharp for labels in [0, 1].

    Args:
        a: acceptance probabilities, shape (N,).
        y_low: low labels, shape (N,).
        y_high: high labels, shape (N,).
        cost: c.

    Returns:
        By the measure's name; NaN where the rate is undefined whatever the labels; (0, 1) where noisy
        pseudo-labels give a sum below the line that is not positive.
    """
    return {name: rate(a, y_low, y_high, cost) for name, rate in _RATE_BOUNDS.items()}


def gap_bounds(rate_bounds: Sequence[Interval]) -> Interval:
    """Bounds of the gap of rates that are free within theirs: max (l_g − u_h) and max (u_g − l_h) over g ≠ h.

    The lower one is negative where all intervals overlap, and the gap may be 0. NaN where a bound is.

    Args:
        rate_bounds: lower bound l and upper bound u of every group, at least two groups.
    """
    low, high = np.asarray(rate_bounds).T
    others = ~np.eye(len(low), dtype=bool)
    return float((low[:, None] - high)[others].max()), float((high[:, None] - low)[others].max())


def bounds(
    a: np.ndarray,
    y_low: np.ndarray,
    y_high: np.ndarray,
    group: np.ndarray,
    cost: float,
    *,
    score: np.ndarray | None = None,
) -> dict[str, Interval]:
    """Bounds of utility (`utility`) and of every measure, within the measure's smallest and largest value.

    Labels of different groups are free of each other, so the bounds of gaps are as sharp as those of rates.

    Args:
        a: acceptance probabilities, shape (N,).
        y_low: low labels, shape (N,).
        y_high: high labels, shape (N,).
        group: codes 0 to G − 1 of at least two groups, each with people, shape (N,).
        cost: c.
        score: what the calibration error is of, in [0, 1], shape (N,); None for a.
    """
    group, a, y_low, y_high, score = _sorted(group, a, y_low, y_high, a if score is None else score)
    found = _bounds(group, a, y_low, y_high, cost)
    return found | {CALIBRATION: _calibration_bounds(score, y_low, y_high, group, cost)}


def _bounds(
    group: np.ndarray, a: np.ndarray, y_low: np.ndarray, y_high: np.ndarray, cost: float
) -> dict[str, Interval]:
    """`bounds` but that of the calibration error, of people in the order of `_sorted`."""
    found = {"utility": value_bounds(a, y_low, y_high, cost)}
    for name, one in MEASURES.items():
        if name != CALIBRATION:
            low, high = gap_bounds(_of_groups(name, a, y_low, y_high, group, cost))
            found[name] = float(np.clip(low, 0.0, one.largest)), float(np.clip(high, 0.0, one.largest))
    return found


def _calibration_bounds(
    score: np.ndarray, y_low: np.ndarray, y_high: np.ndarray, group: np.ndarray, cost: float
) -> Interval:
    """Bounds of the largest calibration error over groups, within [0, 1]."""
    low, high = np.clip(_of_groups(CALIBRATION, score, y_low, y_high, group, cost), 0.0, 1.0).max(0).tolist()
    return low, high


def sensitivity(
    a: np.ndarray,
    label: np.ndarray,
    q: np.ndarray,
    p: np.ndarray,
    group: np.ndarray,
    cost: float,
    gammas: Sequence[float] = GAMMAS,
    *,
    score: np.ndarray | None = None,
    decisions: np.ndarray | None = None,
    labelled: float = 1.0,
) -> pd.DataFrame:
    """`bounds` of `pseudo_labels` for every odds ratio Γ.

    Args:
        a: acceptance probabilities, shape (N,).
        label: 0 or 1, NaN where not revealed, shape (N,).
        q: probability of a positive label, shape (N,).
        p: probability that the label is revealed, shape (N,).
        group: codes 0 to G − 1 of at least two groups, each with people, shape (N,).
        cost: c.
        gammas: values of Γ ≥ 1.
        score: what the calibration error is of, in [0, 1], shape (N,); None for a.
        decisions: as for `pseudo_labels`.
        labelled: as for `pseudo_labels`.

    Returns:
        Columns gamma, measure (`utility` too), low, high.
    """
    if decisions is not None:
        decisions = _sorted(group, a, decisions)[2]
    group, a, label, q, p, score = _sorted(group, a, label, q, p, a if score is None else score)
    rows = []
    for gamma in gammas:
        labels = pseudo_labels(gamma, label, q, p, group=group, decisions=decisions, labelled=labelled)
        found = _bounds(group, a, *labels, cost)
        of_all = labels if decisions is None else pseudo_labels(gamma, label, q, p)
        found[CALIBRATION] = _calibration_bounds(score, *of_all, group, cost)
        rows += [(gamma, name, *interval) for name, interval in found.items()]
    return pd.DataFrame(rows, columns=["gamma", "measure", "low", "high"])


def turning_point(interval: Callable[[float], Interval]) -> float | None:
    """Smallest odds ratio Γ in [1, `LARGEST_GAMMA`] at which the sign of a quantity is no longer certain.

    Args:
        interval: bounds of the quantity for a given Γ: equal for Γ = 1, wider for a larger one. For a gap
            they are those of `gap_bounds`, not cut at 0.

    Returns:
        The Γ at which the bound that is nearer to 0 reaches it; None where it does not, or is NaN.
    """
    positive = interval(1.0)[0] > 0

    def margin(gamma: float) -> float:
        low, high = interval(gamma)
        return low if positive else -high

    if not margin(LARGEST_GAMMA) <= 0:
        return None
    return 1.0 if margin(1.0) <= 0 else float(brentq(margin, 1.0, LARGEST_GAMMA, xtol=1e-4))


def turning_points(
    a: np.ndarray,
    label: np.ndarray,
    q: np.ndarray,
    p: np.ndarray,
    group: np.ndarray,
    cost: float,
    *,
    decisions: np.ndarray | None = None,
    labelled: float = 1.0,
) -> dict[str, float | None]:
    """The `turning_point` of utility (its sign) and of every gap (above 0); takes what `sensitivity` takes.

    The calibration error is left out: that it is above 0 is no conclusion.
    """
    if decisions is not None:
        decisions = _sorted(group, a, decisions)[2]
    group, a, label, q, p = _sorted(group, a, label, q, p)

    def labels(gamma: float) -> tuple[np.ndarray, np.ndarray]:
        return pseudo_labels(gamma, label, q, p, group=group, decisions=decisions, labelled=labelled)

    def utility(gamma: float) -> Interval:
        return value_bounds(a, *labels(gamma), cost)

    def gap(name: str) -> Callable[[float], Interval]:
        return lambda gamma: gap_bounds(_of_groups(name, a, *labels(gamma), group, cost))

    gaps = [name for name, one in MEASURES.items() if one.formula is not None and one.needs_label]
    return {"utility": turning_point(utility)} | {name: turning_point(gap(name)) for name in gaps}


def _sorted(group: np.ndarray, a: np.ndarray, *columns: np.ndarray) -> tuple[np.ndarray, ...]:
    """All of them in the order of group, then a, which makes groups slices and thresholds quick to find."""
    order = np.lexsort((a, group))
    return group[order], a[order], *(column[order] for column in columns)


def _of_groups(
    name: str, a: np.ndarray, y_low: np.ndarray, y_high: np.ndarray, group: np.ndarray, cost: float
) -> list[Interval]:
    """Bounds of the rate of each group; people are sorted by group."""
    members = itertools.starmap(slice, itertools.pairwise(np.searchsorted(group, np.arange(group[-1] + 2))))
    return [_RATE_BOUNDS[name](a[who], y_low[who], y_high[who], cost) for who in members]


def _acceptance(a: np.ndarray, y_low: np.ndarray, y_high: np.ndarray, cost: float) -> Interval:
    return float(a.mean()), float(a.mean())


def _precision(a: np.ndarray, y_low: np.ndarray, y_high: np.ndarray, cost: float) -> Interval:
    accepted = a.sum()
    if accepted <= 0:
        return NO_VALUE
    return float((a * y_low).sum() / accepted), float((a * y_high).sum() / accepted)


def _true_positives(a: np.ndarray, y_low: np.ndarray, y_high: np.ndarray, cost: float) -> Interval:
    return _share_bounds(a, y_low, y_high)


def _false_positives(a: np.ndarray, y_low: np.ndarray, y_high: np.ndarray, cost: float) -> Interval:
    return _share_bounds(a, 1.0 - y_high, 1.0 - y_low)


def _false_negatives(a: np.ndarray, y_low: np.ndarray, y_high: np.ndarray, cost: float) -> Interval:
    low, high = _share_bounds(a, y_low, y_high)
    return 1.0 - high, 1.0 - low


def _calibration(a: np.ndarray, y_low: np.ndarray, y_high: np.ndarray, cost: float) -> Interval:
    ends = np.stack([np.bincount(bins(a), weights=y - a) for y in (y_low, y_high)])
    low, high = ends.min(0), ends.max(0)
    nearest, farthest = np.maximum(np.maximum(low, -high), 0.0), np.maximum(-low, high)
    return float(nearest.sum() / len(a)), float(farthest.sum() / len(a))


def _share_bounds(a: np.ndarray, low: np.ndarray, high: np.ndarray) -> Interval:
    """Bounds of Σ a z / Σ z over z between low and high: a linear-fractional program in a box."""
    if min(low.sum(), high.sum()) <= 0 and low.min() < 0:
        return 0.0, 1.0
    order = np.argsort(a, kind="stable")
    a, low, high = a[order], low[order], high[order]
    # Thresholds lie between different probabilities, so that the order of equal ones does not matter.
    ends = np.append(np.flatnonzero(np.diff(a)), len(a) - 1)

    def ratios(below: np.ndarray, above: np.ndarray) -> np.ndarray:
        """The defined values with z = below up to a threshold and z = above beyond it."""

        def sums(weight: np.ndarray | float) -> np.ndarray:
            head, tail = np.cumsum(weight * below)[ends], np.cumsum(weight * above)
            return np.append(0.0, head) + (tail[-1] - np.append(0.0, tail[ends]))

        total = sums(1.0)
        return sums(a)[total > 0] / total[total > 0]

    smallest, largest = ratios(high, low), ratios(low, high)
    return (float(smallest.min()), float(largest.max())) if len(smallest) and len(largest) else NO_VALUE


_RATE_BOUNDS: dict[str, Callable[[np.ndarray, np.ndarray, np.ndarray, float], Interval]] = {
    "dpu": _acceptance,
    "equal_opportunity": _true_positives,
    "predictive_parity": _precision,
    "false_positive": _false_positives,
    "false_negative": _false_negatives,
    "utility_gap": value_bounds,
    CALIBRATION: _calibration,
}
