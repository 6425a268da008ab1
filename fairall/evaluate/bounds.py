"""Bounds of utility, rates and gaps when the rejected have no labels: Manski's, and a sensitivity analysis.

Both put a low and a high label in the place of every unknown one (`manski`, `odds_ratio`); `value_bounds` and
`rate_bounds` give the least and greatest value between them, as estimates whose influence functions are those
at the extreme labels (the envelope theorem). Symbols as in `estimators`.

References:
    Manski, C. (1990). Nonparametric bounds on treatment effects. American Economic Review.
    Rosenbaum, P. (2002). Observational studies. Chapter 4.
    Imbens, G. and Manski, C. (2004). Confidence intervals for partially identified parameters. Econometrica.
    Tan, Z. (2006). A distributional approach for causal inference using propensity scores. Journal of the
        American Statistical Association.
    Dorn, J. and Guo, K. (2023). Sharp sensitivity analysis for inverse propensity weighting via quantile
        balancing. Journal of the American Statistical Association.
    Rambachan, A., Coston, A. and Kennedy, E. (2022). Robust design and evaluation of predictive algorithms
        under unobserved confounding.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.special import logit

from fairall.evaluate.estimators import People
from fairall.evaluate.gaps import gap_interval
from fairall.evaluate.influence import Estimate, Sample, Z
from fairall.evaluate.log import DecisionLog
from fairall.evaluate.plain import as_plain

GAMMAS = tuple(np.linspace(1.0, 3.0, 9).tolist())
LARGEST_GAMMA = 10.0  # up to which a turning point is searched
HALVINGS = 10  # of that range, of ln Γ
SENSITIVE = ("equal_opportunity", "predictive_parity", "false_positive", "utility_gap")


class Labels(NamedTuple):
    """Low and high labels of each row, times a and times 1 − a, each of shape (N,)."""

    accepted_low: np.ndarray
    accepted_high: np.ndarray
    rest_low: np.ndarray
    rest_high: np.ndarray


class Bounds(NamedTuple):
    """Least and greatest value that a quantity may have."""

    low: Estimate
    high: Estimate


def manski(people: People) -> Labels:
    """The label where it is revealed; between 0 and 1 where it is not: no assumption (Manski 1990)."""
    a, low = people.target, np.where(people.revealed, people.label, 0.0)
    high = np.where(people.revealed, people.label, 1.0)
    return Labels(a * low, a * high, (1 - a) * low, (1 - a) * high)


def odds_ratio(gamma: float, people: People, logged: bool = False) -> Labels:
    """Pseudo-labels where unrevealed labels differ from revealed ones by an odds ratio up to Γ.

    The model: odds(y = 1 | x, unrevealed) is between 1/Γ and Γ times odds(y = 1 | x, revealed). As odds
    ratios are symmetric, Γ bounds as well how the odds of being revealed differ between people of equal
    features with y = 1 and with y = 0 (Rosenbaum 2002; Tan 2006; for bounds of means of differences Rambachan
    et al. 2022). The largest mean of an unrevealed label is h(q) = Γ q / (1 + (Γ − 1) q), and

        r y + (1 − r) h(q) + (w − r) h'(q) (y − q)

    estimates the greatest mean label without a first-order effect of errors in q. The low label has 1/Γ in
    the place of Γ. For Γ = 1 both are the doubly robust pseudo-label. The low one is below the high one on
    average, not for every person; both may leave [0, 1].

    Args:
        gamma: Γ ≥ 1.
        people: with an outcome model.
        logged: whether the policy took the logged decisions. The part of the last term that stands for
            rejected people then belongs to them, so that observed utility and precision stay as they are.
    """
    assert people.outcome is not None
    a, q, r = people.target, people.outcome.value, people.revealed
    w, kept, error = people.weight.value, people.kept.value, np.where(r, people.label - q, 0.0)

    def shifted(ratio: float) -> tuple[np.ndarray, np.ndarray]:
        scale = 1.0 + (ratio - 1.0) * q
        own, correction = np.where(r, people.label, ratio * q / scale), ratio / scale**2 * error
        if logged:
            return a * own + (kept - r) * correction, (1 - a) * own + (w - kept) * correction
        label = own + (w - r) * correction
        return a * label, (1 - a) * label

    (accepted_low, rest_low), (accepted_high, rest_high) = shifted(1.0 / gamma), shifted(gamma)
    return Labels(accepted_low, accepted_high, rest_low, rest_high)


def value_bounds(people: People, labels: Labels, sample: Sample) -> Bounds:
    """Bounds of the value, the mean of s·(a·y − a·b)."""
    low, high = (
        sample.mean(people.stake * (accepted - people.target * people.break_even)) for accepted in labels[:2]
    )
    return Bounds(low, high)


def difference_bounds(first: People, second: People, labels: Labels, sample: Sample) -> Bounds:
    """Bounds of the second value minus the first, where the same labels count for both.

    Args:
        first: a policy that is not that of the logged decisions.
        second: likewise, on the same people.
        labels: of the second.
        sample: of the people.
    """
    change = second.target - first.target
    low, high = labels.accepted_low + labels.rest_low, labels.accepted_high + labels.rest_high
    ends = (np.where(change > 0, *pair) for pair in ((low, high), (high, low)))
    return Bounds(*(sample.mean(second.stake * change * (end - second.break_even)) for end in ends))


def rate_bounds(
    name: str,
    people: People,
    labels: Labels,
    sample: Sample,
    group: np.ndarray,
    groups: int,
    *,
    logged: bool = False,
) -> Bounds:
    """Bounds of a rate of `MEASURES` by group, shape (G,), where each label is free between its bounds.

    A rate that is linear in the labels is extreme where all are low or all are high. One with labels above
    and below the line, such as Σ a y / Σ y, is largest where the people whose a exceeds a threshold have the
    high label and the others the low one, and smallest the other way round: all thresholds are tried, which
    is sharp, for labels in {0, 1} too. Labels of different groups are free of each other, so that bounds of
    gaps are as sharp as those of rates.

    Returns:
        NaN where the rate is undefined whatever the labels; (0, 1) where noisy pseudo-labels give a sum below
        the line that is not positive.
    """
    a = people.target

    def mean(column: np.ndarray) -> Estimate:
        return sample.mean(column, group, groups)

    if name in ("equal_opportunity", "false_negative"):
        found = _share_bounds(people, labels, mean, group, groups, logged)
        return found if name == "equal_opportunity" else Bounds(1.0 - found.high, 1.0 - found.low)
    if name == "false_positive":
        ends = labels.accepted_high, labels.accepted_low, labels.rest_high, labels.rest_low
        negative = Labels(*(of - end for of, end in zip((a, a, 1 - a, 1 - a), ends, strict=True)))
        return _share_bounds(people, negative, mean, group, groups, logged)
    size = mean(np.ones_like(a))
    if name == "dpu":
        return Bounds(mean(a) / size, mean(a) / size)
    if name == "predictive_parity":
        return Bounds(*(mean(end) / mean(a) for end in labels[:2]))
    gains = (people.stake * (end - a * people.break_even) for end in labels[:2])
    return Bounds(*(mean(gain) / size for gain in gains))


def _share_bounds(
    people: People,
    labels: Labels,
    mean: Callable[[np.ndarray], Estimate],
    group: np.ndarray,
    groups: int,
    logged: bool,
) -> Bounds:
    """Bounds of Σ a z / Σ z by group over labels z between low and high: linear-fractional in a box."""
    low, high = (labels.accepted_low, labels.rest_low), (labels.accepted_high, labels.rest_high)
    least, most = (mean(of_accepted + of_rest).value for of_accepted, of_rest in (low, high))
    noisy = np.bincount(group, low[0] + low[1] < 0, groups) > 0  # pseudo-labels below 0
    found = []
    for end, above, below in ((0.0, low, high), (1.0, high, low)):
        if logged:  # a is 0 or 1
            chosen, rest = above[0], below[1]
        else:
            first = np.zeros(len(group), dtype=bool)  # who has the label of `above`
            ordered = group[people.order]
            for one in range(groups):
                rows = people.order[ordered == one]
                first[rows[_threshold(people.target[rows], above, below, rows, end) :]] = True
            chosen, rest = (np.where(first, *pair) for pair in zip(above, below, strict=True))
        share = mean(chosen) / mean(chosen + rest)
        # Where a positive label is possible, the share may be defined, or be anything.
        nobody = np.isnan(share.value) & (most > 0)
        anything = noisy & (np.minimum(least, most) <= 0)
        value = np.where(nobody, mean(labels.accepted_high).value > 0, share.value)
        fixed = (nobody | anything)[:, None]
        found.append(Estimate(np.where(anything, end, value), np.where(fixed, 0.0, share.phi)))
    return Bounds(*found)


def _threshold(
    a: np.ndarray,
    above: tuple[np.ndarray, np.ndarray],
    below: tuple[np.ndarray, np.ndarray],
    rows: np.ndarray,
    end: float,
) -> int:
    """Number of the first of rows, sorted by a, that has the label of `above` at the extreme share.

    Args:
        a: of the rows, increasing.
        above: labels times a and times 1 − a beyond the threshold, of all people, shape (N,).
        below: the same up to it.
        rows: the rows.
        end: 1 for the greatest share, 0 for the least.
    """
    # Thresholds lie between different probabilities, so that the order of equal ones does not matter.
    starts = np.concatenate([[0], np.flatnonzero(np.diff(a)) + 1, [len(a)]])

    def sums(of_above: np.ndarray, of_below: np.ndarray) -> np.ndarray:
        head, tail = (np.append(0.0, np.cumsum(of[rows])) for of in (of_below, of_above))
        return head[starts] + tail[-1] - tail[starts]

    share, rest = (sums(*pair) for pair in zip(above, below, strict=True))
    total, worst = share + rest, np.inf * (1.0 - 2.0 * end)
    ratios = np.divide(share, total, out=np.full(len(share), worst), where=total > 0)
    return int(starts[ratios.argmax() if end else ratios.argmin()])


def turning_point(certain: Callable[[float], bool]) -> float | None:
    """Greatest odds ratio Γ in [1, `LARGEST_GAMMA`] up to which a conclusion holds.

    Args:
        certain: whether the 95 % interval of the bounds for Γ is on one side of 0; once false, it stays so.

    Returns:
        1 where even Γ = 1 leaves it open; None where it holds for all Γ.
    """
    if not certain(1.0):
        return 1.0
    if certain(LARGEST_GAMMA):
        return None
    low, high = 0.0, math.log(LARGEST_GAMMA)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if certain(math.exp(middle)) else (low, middle)
    return math.exp(low)


def one_sided(bounds: Bounds) -> bool:
    """Whether the 95 % interval of the quantity within scalar bounds excludes 0."""
    return bool(bounds.low.value - Z * bounds.low.error > 0 or bounds.high.value + Z * bounds.high.error < 0)


def turning_points(
    people: People,
    sample: Sample,
    group: np.ndarray,
    groups: int,
    logged: bool,
    shown: np.ndarray,
    quantities: Sequence[str],
) -> dict[str, float | None]:
    """The `turning_point` of the sign of the utility, and of gaps being above 0.

    Args:
        people: with an outcome model.
        sample: of the people.
        group: codes 0 to G − 1, shape (N,).
        groups: G.
        logged: as for `odds_ratio`.
        shown: codes of the groups that gaps are of.
        quantities: `utility` and names of measures.
    """

    def certain(name: str, gamma: float) -> bool:
        labels = odds_ratio(gamma, people, logged)
        if name == "utility":
            return one_sided(value_bounds(people, labels, sample))
        found = rate_bounds(name, people, labels, sample, group, groups, logged=logged)
        return gap_interval(found.low[shown], found.high[shown]).low > 0

    return {name: turning_point(partial(certain, name)) for name in quantities}


def gap_bounds(low: Estimate, high: Estimate, largest: float) -> dict[str, float | None]:
    """Bounds of the gap of rates (G,) that are free within theirs, and the ends of its 95 % interval."""
    if np.isnan(low.value).any() or np.isnan(high.value).any():
        return as_plain(low=None, high=None, interval_low=None, interval_high=None)
    others = ~np.eye(len(low.value), dtype=bool)
    ends = [(one[:, None] - other)[others].max() for one, other in
            ((low.value, high.value), (high.value, low.value))]  # fmt: skip
    outer = gap_interval(low, high, largest)
    least, most = np.clip(ends, 0.0, largest)
    return as_plain(low=least, high=most, interval_low=outer.low, interval_high=outer.high)


def benchmarks(log: DecisionLog, outcome: np.ndarray) -> dict[str, float]:
    """The odds ratio Γ that would arise if a feature of the log were hidden, by the feature's name.

    exp |β|, with β the difference in the mean log odds of a positive label between rejected and accepted
    people of equal other features: the coefficient of the decision in a linear regression of logit q on the
    inputs of the other features and the group. A hidden variable that matters as much as the feature does
    would make such a Γ.

    Args:
        log: the people.
        outcome: q, shape (N,).
    """
    inputs = np.column_stack([log.accepted, log.inputs]).astype(float)
    gram, moment = inputs.T @ inputs, inputs.T @ logit(outcome)
    names = np.array(["", "", *log.input_names])
    found = {}
    for feature in dict.fromkeys(filter(None, log.input_names)):
        others = np.flatnonzero(names != feature)
        coefficient = np.linalg.lstsq(gram[np.ix_(others, others)], moment[others], rcond=None)[0]
        found[feature] = math.exp(abs(coefficient[0]))
    return dict(sorted(found.items(), key=lambda item: -item[1]))
