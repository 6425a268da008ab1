"""Bounds of utility, rates and gaps when labels of the rejected are unknown: Manski's, and a sensitivity analysis.

Both put a pair of labels in place of every unknown one, a low and a high one (`label_bounds`, `pseudo_labels`), and
`bounds` gives the least and greatest value of each quantity between them. Symbols as in `fairness`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
from scipy.optimize import brentq

from fairall.evaluate.fairness import MEASURES, bins

Interval = tuple[float, float]
GAMMAS = tuple(np.linspace(1.0, 3.0, 9).tolist())
LARGEST_GAMMA = 10.0  # up to which a turning point is searched


def label_bounds(label: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The label twice where it is revealed; 0 and 1 where it is not: no assumption (Manski 1990, 2003).

    Bounds from these labels are sharp for the people at hand; they count no sampling error.

    Args:
        label: 0 or 1, NaN where not revealed, shape (N,).
    """
    return np.nan_to_num(label, nan=0.0), np.nan_to_num(label, nan=1.0)


def pseudo_labels(
    gamma: float, label: np.ndarray, q: np.ndarray, p: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Low and high pseudo-labels if unrevealed labels differ from revealed ones by an odds ratio Γ at most.

    Assumption: odds(y = 1 | x, unrevealed) is within [1/Γ, Γ] times odds(y = 1 | x, revealed). An odds ratio is
    symmetric, so the odds of being unrevealed differ by at most Γ between people with y = 1 and y = 0 of equal
    features: Rosenbaum's model (2002, "Observational Studies", chapter 4). Related are Tan (2006), Kallus and
    Zhou (2018, "Confounding-robust policy improvement") and, for selective labels, Rambachan, Coston and Kennedy
    (2022, "Robust design and evaluation of predictive algorithms under unobserved confounding"), who bound a
    difference of means. With h(q) = Γ q / (1 + (Γ − 1) q), the largest mean of an unrevealed label, and r = 1
    where the label is revealed,

        φ = r y + (1 − r) h(q) + r (1 − p) / p · h'(q) (y − q).

    The last term removes the first-order effect of errors in q. The low label has 1/Γ in place of Γ. Γ = 1 gives
    the doubly robust pseudo-label q + r (y − q) / p. Low and high are in order on average, not for every person,
    and may leave [0, 1].

    Args:
        gamma: Γ ≥ 1.
        label: 0 or 1, NaN where not revealed, shape (N,).
        q: probability of a positive label given features, among the revealed, in (0, 1), shape (N,).
        p: probability that the label is revealed, shape (N,); unused (may be NaN) where it is not.

    Returns:
        Low and high, each of shape (N,).
    """
    revealed = ~np.isnan(label)
    odds = np.divide(1.0 - p, p, out=np.zeros(len(label)), where=revealed)
    correction = odds * np.where(revealed, label - q, 0.0)

    def shifted(ratio: float) -> np.ndarray:
        scale = 1.0 + (ratio - 1.0) * q
        return np.where(revealed, label, ratio * q / scale) + ratio / scale**2 * correction

    return shifted(1.0 / gamma), shifted(gamma)


def value_bounds(a: np.ndarray, y_low: np.ndarray, y_high: np.ndarray, cost: float) -> Interval:
    """Bounds of utility per person, mean of a (y − c).

    Args:
        a: acceptance probabilities, or differences of those of two policies (bounds of the difference of their
            utilities), shape (N,).
        y_low: low labels, shape (N,).
        y_high: high labels, shape (N,).
        cost: c.
    """
    low, high = np.where(a > 0, y_low, y_high), np.where(a > 0, y_high, y_low)
    return float(np.mean(a * (low - cost))), float(np.mean(a * (high - cost)))


def rate_bounds(name: str, a: np.ndarray, y_low: np.ndarray, y_high: np.ndarray, cost: float) -> Interval:
    """Bounds of the rate of a measure for one group; every person's label is free between low and high.

    Rates that are linear in the labels take all labels low or all high. Those with labels above and below the
    line, such as Σ a y / Σ y, are largest where the people whose a exceeds a threshold have the high label and
    the others the low one: all thresholds are tried. These are sharp for labels in {0, 1}. The calibration error
    takes the mean labels within bins as free between their bounds: sharp but for the integer number of labels.

    Args:
        name: key of `MEASURES`.
        a: acceptance probabilities, shape (N,).
        y_low: low labels, shape (N,).
        y_high: high labels, shape (N,).
        cost: c.

    Returns:
        Lowest and highest value; NaN where the rate is undefined for all labels; (0, 1) where a sum of noisy low
        pseudo-labels below the line is not positive.
    """
    if len(a) == 0:
        return np.nan, np.nan
    if name == "dpu":
        return float(a.mean()), float(a.mean())
    if name == "utility_gap":
        return value_bounds(a, y_low, y_high, cost)
    if name == "predictive_parity":
        accepted = a.sum()
        if accepted <= 0:
            return np.nan, np.nan
        return float((a * y_low).sum() / accepted), float((a * y_high).sum() / accepted)
    if name == "calibration_error":
        return _calibration_bounds(a, y_low, y_high)
    if name == "false_positive":
        return _share_bounds(a, 1.0 - y_high, 1.0 - y_low)
    low, high = _share_bounds(a, y_low, y_high)
    return (low, high) if name == "equal_opportunity" else (1.0 - high, 1.0 - low)


def gap_bounds(rate_bounds: Sequence[Interval]) -> Interval:
    """Bounds of the gap of rates that vary freely within theirs: max (l_g − u_h) and max (u_g − l_h), g ≠ h.

    The lower one is negative where all intervals overlap; the gap can be 0 then. NaN where a bound is.

    Args:
        rate_bounds: lower l and upper u of every group, at least two groups.
    """
    low, high = np.asarray(rate_bounds).T
    others = ~np.eye(len(low), dtype=bool)
    return float((low[:, None] - high)[others].max()), float((high[:, None] - low)[others].max())


def measure_bounds(
    name: str,
    a: np.ndarray,
    y_low: np.ndarray,
    y_high: np.ndarray,
    group: np.ndarray,
    n_groups: int,
    cost: float,
) -> Interval:
    """Bounds of a measure: of the largest error for `calibration_error`, of a gap (`gap_bounds`) for the others.

    Args:
        name: key of `MEASURES`.
        a: acceptance probabilities, shape (N,).
        y_low: low labels, shape (N,).
        y_high: high labels, shape (N,).
        group: codes 0 to G − 1, shape (N,).
        n_groups: G, at least two.
        cost: c.
    """
    members = [group == one for one in range(n_groups)]
    of_groups = [rate_bounds(name, a[who], y_low[who], y_high[who], cost) for who in members]
    if name == "calibration_error":
        low, high = np.asarray(of_groups).max(0).tolist()
        return low, high
    return gap_bounds(of_groups)


def bounds(
    a: np.ndarray, y_low: np.ndarray, y_high: np.ndarray, group: np.ndarray, n_groups: int, cost: float
) -> dict[str, Interval]:
    """Bounds of utility (key `utility`) and of every measure, cut at the measure's smallest and largest value.

    Groups' labels are free of each other, so those of gaps are as sharp as those of rates.

    Args:
        a: acceptance probabilities, shape (N,).
        y_low: low labels, shape (N,).
        y_high: high labels, shape (N,).
        group: codes 0 to G − 1, shape (N,).
        n_groups: G, at least two.
        cost: c.
    """
    found = {"utility": value_bounds(a, y_low, y_high, cost)}
    for name, one in MEASURES.items():
        low, high = measure_bounds(name, a, y_low, y_high, group, n_groups, cost)
        found[name] = float(np.clip(low, 0.0, one.largest)), float(np.clip(high, 0.0, one.largest))
    return found


def sensitivity(
    a: np.ndarray,
    label: np.ndarray,
    q: np.ndarray,
    p: np.ndarray,
    group: np.ndarray,
    n_groups: int,
    cost: float,
    gammas: Sequence[float] = GAMMAS,
) -> pd.DataFrame:
    """`bounds` under the model of `pseudo_labels`, for every odds ratio Γ.

    Args:
        a: acceptance probabilities, shape (N,).
        label: 0 or 1, NaN where not revealed, shape (N,).
        q: probability of a positive label, shape (N,).
        p: probability that the label is revealed, shape (N,).
        group: codes 0 to G − 1, shape (N,).
        n_groups: G, at least two.
        cost: c.
        gammas: values of Γ ≥ 1.

    Returns:
        Columns gamma, measure (`utility` too), low, high.
    """
    rows = [
        (gamma, name, *interval)
        for gamma in gammas
        for name, interval in bounds(a, *pseudo_labels(gamma, label, q, p), group, n_groups, cost).items()
    ]
    return pd.DataFrame(rows, columns=["gamma", "measure", "low", "high"])


def turning_point(interval: Callable[[float], Interval]) -> float | None:
    """Smallest odds ratio Γ in [1, `LARGEST_GAMMA`] at which the sign of a quantity is no longer certain.

    Args:
        interval: bounds of the quantity for a given Γ, wider for larger Γ, equal at 1; those of `gap_bounds`, not
            cut at 0, for a gap.

    Returns:
        The Γ at which the bound nearer to 0 reaches it; None where it does not, or is NaN.
    """
    estimate = interval(1.0)[0]

    def nearer(gamma: float) -> float:
        low, high = interval(gamma)
        return low if estimate > 0 else -high

    if np.isnan(estimate) or not nearer(LARGEST_GAMMA) <= 0:
        return None
    return 1.0 if nearer(1.0) <= 0 else float(brentq(nearer, 1.0, LARGEST_GAMMA, xtol=1e-6))


def turning_points(
    a: np.ndarray,
    label: np.ndarray,
    q: np.ndarray,
    p: np.ndarray,
    group: np.ndarray,
    n_groups: int,
    cost: float,
) -> dict[str, float | None]:
    """The `turning_point` of utility (its sign) and of every gap (that it is not 0), by name.

    The calibration error has none: that it is 0 is no conclusion at stake.

    Args:
        a: acceptance probabilities, shape (N,).
        label: 0 or 1, NaN where not revealed, shape (N,).
        q: probability of a positive label, shape (N,).
        p: probability that the label is revealed, shape (N,).
        group: codes 0 to G − 1, shape (N,).
        n_groups: G, at least two.
        cost: c.
    """

    def utility(gamma: float) -> Interval:
        return value_bounds(a, *pseudo_labels(gamma, label, q, p), cost)

    def of(name: str) -> Callable[[float], Interval]:
        return lambda gamma: measure_bounds(
            name, a, *pseudo_labels(gamma, label, q, p), group, n_groups, cost
        )

    names = [name for name, one in MEASURES.items() if one.formula is not None]
    return {"utility": turning_point(utility)} | {name: turning_point(of(name)) for name in names}


def _share_bounds(a: np.ndarray, low: np.ndarray, high: np.ndarray) -> Interval:
    """Bounds of Σ a z / Σ z over z between low and high, a linear-fractional program in a box."""
    if min(low.sum(), high.sum()) <= 0 and low.min() < 0:
        return 0.0, 1.0
    order = np.argsort(a, kind="stable")
    a, low, high = a[order], low[order], high[order]
    # A threshold lies between different probabilities, so that the order of equal ones does not matter.
    ends = np.append(np.flatnonzero(np.diff(a)), len(a) - 1)

    def ratios(below: np.ndarray, above: np.ndarray) -> np.ndarray:
        """Σ a z / Σ z with z = below up to every threshold, and above beyond it; without those undefined."""
        sums = []
        for weight in (a, np.ones(len(a))):
            up_to, all_above = np.cumsum(weight * below)[ends], np.cumsum(weight * above)
            sums.append(np.append(0.0, up_to) + (all_above[-1] - np.append(0.0, all_above[ends])))
        shares, total = sums
        return shares[total > 0] / total[total > 0]

    smallest, largest = ratios(high, low), ratios(low, high)
    if len(smallest) == 0 or len(largest) == 0:
        return np.nan, np.nan
    return float(smallest.min()), float(largest.max())


def _calibration_bounds(a: np.ndarray, y_low: np.ndarray, y_high: np.ndarray) -> Interval:
    codes = bins(a)
    ends = np.stack([np.bincount(codes, weights=y - a) for y in (y_low, y_high)])
    low, high = ends.min(0), ends.max(0)
    nearest = np.maximum(np.maximum(low, -high), 0.0)
    return float(nearest.sum() / len(a)), float(np.maximum(np.abs(low), np.abs(high)).sum() / len(a))
