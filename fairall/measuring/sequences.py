"""Statistics that may be looked at after every row: confidence sequences and a test by betting.

A confidence sequence is an interval after each row, all of which cover together with 95 %, so that it may be
looked at, and acted on, at any moment. A test by betting multiplies a wealth by a factor after each pair of
rows, whose expectation is at most 1 under the hypothesis: the wealth ever reaches 1/α with probability α at
most (Ville's inequality). Neither needs the number of rows beforehand.

References:
    Waudby-Smith, I., Arbour, D., Sinha, R., Kennedy, E. and Ramdas, A. (2024). Time-uniform central limit
        theory and asymptotic confidence sequences. Annals of Statistics.
    Waudby-Smith, I. and Ramdas, A. (2024). Estimating means of bounded random variables by betting. Journal
        of the Royal Statistical Society B.
    Waudby-Smith, I., Wu, L., Ramdas, A., Karampatziakis, N. and Mineiro, P. (2024). Anytime-valid off-policy
        inference for contextual bandits. ACM/IMS Journal of Data Science.
    Chugg, B., Cortes-Gomez, S., Wilder, B. and Ramdas, A. (2023). Auditing fairness by betting. NeurIPS.
"""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np

LEVEL = 0.95
ALARM = 1.0 / (1.0 - LEVEL)  # wealth that is ever reached with probability 1 − LEVEL at most without a gap
LARGEST_GAP = 0.05  # ε, the gap between groups above which a monitor gives an alarm
NARROWEST = 1000  # rows at which the asymptotic sequence is narrowest, chosen before any log is seen
MEMBERS = 2  # of either group in a block, which uses nearly all rows and bets often
MOST_LOG = 700.0  # of a wealth, whose exponential is finite
OBSERVATIONS = 2.0  # added to a sum of squares: few rows that are alike look more certain than they are


def half_width(rows: np.ndarray, level: float = LEVEL) -> np.ndarray:
    """Half the width of an asymptotic confidence sequence, in standard errors (2024, theorem 2.2).

    √((1 + 1/(nρ²)) · log((nρ² + 1)/α²)) after n rows, with ρ² = (−2 log α + log(−2 log α) + 1) / n* for the
    least width at n* = `NARROWEST` rows (appendix C.3). It holds for any estimate with an influence function.

    Args:
        rows: n, at least 1, shape (...).
        level: 1 − α.

    Returns:
        Shape (...).
    """
    error = 1.0 - level
    spread = -2.0 * math.log(error)
    scaled = rows * (spread + math.log(spread) + 1.0) / NARROWEST
    return np.sqrt((1.0 + 1.0 / scaled) * np.log((scaled + 1.0) / error**2))


def largest_gap(
    rates: np.ndarray, variances: np.ndarray, rows: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Largest difference of a rate between two groups, and the ends of its confidence sequence.

    The sequences of all pairs cover together (Bonferroni).

    Args:
        rates: of the G groups until each of T moments, NaN where there is none yet, shape (G, T).
        variances: of the rates, whose errors are independent, shape (G, T).
        rows: of all groups until each moment, shape (T,).

    Returns:
        The difference and the two ends, in [0, 1], each of shape (T,); NaN until all groups have a rate.
    """
    first, second = np.triu_indices(len(rates), 1)
    half = half_width(np.maximum(rows, 1.0), 1.0 - (1.0 - LEVEL) / len(first))
    gaps, halves = np.abs(rates[first] - rates[second]), half * np.sqrt(variances[first] + variances[second])
    low, high = (np.clip(ends.max(0), 0.0, 1.0) for ends in (gaps - halves, gaps + halves))
    return gaps.max(0), low, high


def bernstein_low(values: np.ndarray, error: float) -> np.ndarray:
    """Lower ends that all are below the mean with probability 1 − `error`, at any number of rows.

    The predictable plug-in empirical-Bernstein sequence (Waudby-Smith and Ramdas 2024, theorem 2). Its proof
    needs X − X̂ ≥ −1 only, with the prediction X̂ of X from earlier rows, so that values may be large as long
    as their mean is at most 1 (Waudby-Smith, Wu et al. 2024, proposition 3). It covers wherever each value,
    given all before, has an expectation of at most the mean, which propensities that depend on the past do
    not change.

    Args:
        values: at least 0, with a mean of at most 1, shape (..., N).
        error: of all ends together.

    Returns:
        After each row, shape (..., N).
    """
    n, bound = np.arange(1, values.shape[-1] + 1), math.log(1.0 / error)
    mean = (0.5 + values.cumsum(-1)) / (n + 1)
    variance = (0.25 + ((values - mean) ** 2).cumsum(-1)) / (n + 1)
    before, spread = _before(np.minimum(mean, 1.0), 0.5), _before(variance, 0.25)
    bet = np.minimum(np.sqrt(2.0 * bound / (spread * n * np.log1p(n))), 0.5)
    loss = (values - before) ** 2 * (-np.log1p(-bet) - bet)
    return ((bet * values).cumsum(-1) - bound - loss.cumsum(-1)) / bet.cumsum(-1)


def wealth(differences: np.ndarray, epsilon: float) -> np.ndarray:
    """Wealth of bets that the mean of differences is above ε. Its expectation is at most 1 if it is not.

    Each bet is the share of the wealth that would have grown most on a mean and variance as before (aGRAPA,
    Waudby-Smith and Ramdas 2024, section B.3), at most half of what may be lost.

    Args:
        differences: in [−1, 1], shape (..., K).
        epsilon: ε, at least 0.

    Returns:
        After each difference, shape (..., K).
    """
    gain, n = differences - epsilon, np.arange(1, differences.shape[-1] + 1)
    # One difference of 0 with the variance 1/4 before the first.
    mean = _before(gain.cumsum(-1) / (n + 1), 0.0)
    square = _before((0.25 + (gain**2).cumsum(-1)) / (n + 1), 0.25)
    bet = np.clip(mean / square, 0.0, 0.5 / (1.0 + epsilon))
    return np.exp(np.minimum(np.log1p(bet * gain).cumsum(-1), MOST_LOG))


def blocks(first: np.ndarray) -> np.ndarray:
    """Ends of blocks of successive rows, each of which ends when both groups have `MEMBERS` rows in it.

    Chugg et al. pair the k-th rows of both groups. These are far apart in time if one group is larger, so
    that a policy that became stricter would look like one with a gap; and most of the larger group's rows
    would have no partner.

    Args:
        first: whether a row is of the first group, shape (N,), bool.

    Returns:
        The row after each of the K blocks, shape (K,).
    """
    counts = [np.cumsum(np.append(0, rows)) for rows in (first, ~first)]
    ends = [0]
    while (end := max(n.searchsorted(n[ends[-1]] + MEMBERS) for n in counts)) <= len(first):
        ends.append(end)
    return np.array(ends[1:], dtype=int)


def gap_wealth(phi: np.ndarray, group: np.ndarray, codes: np.ndarray, epsilon: float) -> np.ndarray:
    """Wealth against the hypothesis that no two groups differ in the mean of φ by more than ε.

    The mean over ordered pairs of groups of the `wealth` of differences between their means in `blocks`.

    Args:
        phi: φ in [0, 1] of the rows in the order of time, shape (N,).
        group: code of each row, shape (N,).
        codes: of the groups that are compared, two or more.
        epsilon: ε.

    Returns:
        After each row, shape (N,).
    """
    total_wealth, both = np.zeros(len(phi)), list(combinations(codes.tolist(), 2))
    for pair in both:
        rows = np.flatnonzero(np.isin(group, pair))
        first = group[rows] == pair[0]
        ends = blocks(first)
        sums = np.stack([phi[rows] * first, first, phi[rows] * ~first, ~first]).cumsum(1)[:, ends - 1]
        total, number, other_total, other_number = np.diff(sums, prepend=0.0)
        difference = total / number - other_total / other_number
        complete = np.searchsorted(rows[ends - 1], np.arange(len(phi)), side="right")
        for sign in (1.0, -1.0):
            total_wealth += np.append(1.0, wealth(sign * difference, epsilon))[complete]
    return total_wealth / (2 * len(both))


def _before(values: np.ndarray, at_first: float) -> np.ndarray:
    """The values of the row before, shape (..., N)."""
    before = np.roll(values, 1, -1)
    before[..., :1] = at_first
    return before
