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
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_solve, solve_triangular
from scipy.linalg.lapack import dpstrf
from scipy.special import logit

from fairall.evaluate.estimated.estimators import People, difference_support, value_support
from fairall.evaluate.estimated.gaps import Interval, ends, gap_interval, interval
from fairall.evaluate.estimated.influence import Estimate, Groups, Sample
from fairall.evaluate.estimated.nuisance import CHUNK
from fairall.evaluate.log import DecisionLog

GAMMAS = tuple(np.linspace(1.0, 3.0, 9).tolist())
LARGEST_GAMMA = 10.0  # up to which a turning point is searched
HALVINGS = 10  # of that range, of ln Γ
SINGULAR = 1e-9  # share of a variance, or coefficient, below which it is rounding
SENSITIVE = ("equal_opportunity", "predictive_parity", "false_positive", "utility_gap")


class Labels(NamedTuple):
    """Low and high labels of each row, and the weight of the outcome that tells them.

    Each is given times a and times 1 − a, shape (2, N).
    """

    low: np.ndarray
    high: np.ndarray
    weight: np.ndarray


class Limits(NamedTuple):
    """Bounds of a scalar, and the ends of a 95 % interval of it; NaN where there are none, and why."""

    low: float
    high: float
    interval_low: float
    interval_high: float
    why: str | None = None

    @property
    def interval(self) -> Interval:
        """The interval, without an estimate."""
        return Interval(np.nan, self.interval_low, self.interval_high, self.why)

    @property
    def exclude_0(self) -> bool:
        """Whether the interval excludes 0."""
        return self.interval_low > 0 or self.interval_high < 0


class Bounds(NamedTuple):
    """Least and greatest value that a quantity may have."""

    low: Estimate
    high: Estimate

    def limits(self) -> Limits:
        """Bounds of a scalar with their sampling errors."""
        low, high = interval(self.low), interval(self.high)
        return Limits(float(self.low.value), float(self.high.value), low.low, high.high, low.why or high.why)


def manski(people: People) -> Labels:
    """The label where it is revealed; between 0 and 1 where it is not: no assumption (Manski 1990)."""
    parts = np.stack([people.target, 1 - people.target])
    ends = (np.where(people.revealed, people.label, unknown) for unknown in (0.0, 1.0))
    low, high = (parts * end for end in ends)
    return Labels(low, high, parts)


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

    def shifted(ratio: float) -> np.ndarray:
        scale = 1.0 + (ratio - 1.0) * q
        own, correction = np.where(r, people.label, ratio * q / scale), ratio / scale**2 * error
        if logged:
            return np.stack([a * own + (kept - r) * correction, (1 - a) * own + (w - kept) * correction])
        label = own + (w - r) * correction
        return np.stack([a * label, (1 - a) * label])

    return Labels(shifted(1.0 / gamma), shifted(gamma), np.stack([kept, np.maximum(w - kept, 0.0)]))


def value_bounds(people: People, labels: Labels, sample: Sample) -> Bounds:
    """Bounds of the value, the mean of s·(a·y − a·b)."""
    support = value_support(people, labels.weight[0], sample)
    cost = people.target * people.break_even
    return Bounds(*(sample.mean(people.stake * (end[0] - cost)).on(support) for end in labels[:2]))


def difference_bounds(first: People, second: People, labels: Labels, sample: Sample) -> Bounds:
    """Bounds of the second value minus the first, where the same labels count for both.

    Args:
        first: a policy that is not that of the logged decisions.
        second: likewise, on the same people.
        labels: of the second.
        sample: of the people.
    """
    change = second.target - first.target
    low, high, weight = (of.sum(0) for of in labels)
    support = difference_support(first, second, weight * np.abs(change), sample)
    ends = (np.where(change > 0, *pair) for pair in ((low, high), (high, low)))
    gains = (second.stake * change * (end - second.break_even) for end in ends)
    return Bounds(*(sample.mean(gain).on(support) for gain in gains))


def rate_difference_bounds(
    name: str, first: People, second: People, labels: Labels, sample: Sample
) -> Bounds:
    """Bounds of the second policy's rate less the first's, of all people; the same labels count for both.

    With b and a the second and first acceptance, the difference of Σ b·y / Σ y and Σ a·y / Σ y is
    2·Σ t·y / Σ y − 1 for t = (1 + b − a)/2, in which it is as extreme as a rate. That of precisions is linear
    in y.

    Args:
        name: `equal_opportunity`, `false_positive` or `predictive_parity`.
        first: a policy that is not that of the logged decisions.
        second: likewise, on the same people.
        labels: of the second.
        sample: of the people.
    """
    a, b = first.target, second.target
    low, high, weight = (of.sum(0) for of in labels)
    if (a == b).all():
        nothing = sample.mean(np.zeros(len(a)))
        return Bounds(nothing, nothing)
    if name == "predictive_parity":
        if a.sum() <= 0 or b.sum() <= 0:
            nothing = Estimate(np.array(np.nan), np.zeros(sample.clusters))
            return Bounds(nothing, nothing)
        change = b / b.mean() - a / a.mean()
        ends = (np.where(change > 0, *pair) for pair in ((low, high), (high, low)))
        shares = [[sample.mean(of * end) / sample.mean(of) for of in (b, a)] for end in ends]
        lowest, highest = np.minimum(change, 0.0).mean(), np.maximum(change, 0.0).mean()
        support = sample.support(weight * np.abs(change), lowest=lowest, highest=highest, cut=False)
        return Bounds(*((own - other).on(support) for own, other in shares))
    t = (1.0 + b - a) / 2.0
    parts = np.stack([t, 1.0 - t])
    free = Labels(parts * low, parts * high, parts * weight)
    found = rate_bounds(name, replace(second, target=t), free, sample.everybody)
    return Bounds(*(2.0 * end[0] - 1.0 for end in found))


def rate_bounds(
    name: str,
    people: People,
    labels: Labels,
    by_group: Groups,
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
    a, mean = people.target, by_group.mean
    if name in ("equal_opportunity", "false_negative"):
        found = _share_bounds(people, labels, by_group, logged)
        return found if name == "equal_opportunity" else Bounds(1.0 - found.high, 1.0 - found.low)
    if name == "false_positive":
        parts = np.stack([a, 1 - a])
        negative = Labels(parts - labels.high, parts - labels.low, labels.weight)
        return _share_bounds(people, negative, by_group, logged)
    one = np.ones_like(a)
    if name == "dpu":
        rate = (mean(a) / mean(one)).on(by_group.support(one))
        return Bounds(rate, rate)
    if name == "predictive_parity":
        support = by_group.support(labels.weight[0])
        return Bounds(*((mean(end[0]) / mean(a)).on(support) for end in labels[:2]))
    loss = people.stake * people.break_even
    least, most, low, high = (
        mean(of) / mean(one)
        for of in (
            -a * loss,
            a * (people.stake - loss),
            *(people.stake * end[0] - a * loss for end in labels[:2]),
        )
    )
    support = by_group.support(labels.weight[0], lowest=least.value, highest=most.value, cut=False)
    return Bounds(low.on(support), high.on(support))


def _share_bounds(
    people: People,
    labels: Labels,
    by_group: Groups,
    logged: bool,
) -> Bounds:
    """Bounds of Σ a z / Σ z by group over labels z between low and high: linear-fractional in a box."""
    low, high, weight = labels
    group, groups, mean = by_group.group, by_group.groups, by_group.mean
    least, most = mean(low.sum(0)).value, mean(high.sum(0)).value
    noisy = np.bincount(group, low.sum(0) < 0, groups) > 0  # pseudo-labels below 0
    found = []
    for end, above, below in ((0.0, low, high), (1.0, high, low)):
        if logged:  # a is 0 or 1
            chosen = np.stack([above[0], below[1]])
        else:
            first = np.zeros(len(group), dtype=bool)  # who has the label of `above`
            ordered = group[people.order]
            for one in range(groups):
                rows = people.order[ordered == one]
                start = _threshold(people.target[rows], above[:, rows], below[:, rows], end)
                first[rows[start:]] = True
            chosen = np.where(first, above, below)
        share = mean(chosen[0]) / mean(chosen.sum(0))
        # Where a positive label is possible, the share may be defined, or be anything.
        nobody = np.isnan(share.value) & (most > 0)
        anything = noisy & (np.minimum(least, most) <= 0)
        value = np.where(nobody, mean(high[0]).value > 0, share.value)
        fixed = (nobody | anything)[:, None]
        # Rows with a label of 1 count; pseudo-labels of revealed ones are above 1 or below 0.
        support = by_group.support(weight.sum(0) * np.clip(chosen.sum(0), 0.0, 1.0))
        found.append(Estimate(np.where(anything, end, value), np.where(fixed, 0.0, share.phi), support))
    return Bounds(*found)


def _threshold(a: np.ndarray, above: np.ndarray, below: np.ndarray, end: float) -> int:
    """Number of the first of K rows, sorted by a, that has the label of `above` at the extreme share.

    Args:
        a: of the rows, increasing, shape (K,).
        above: labels times a and times 1 − a beyond the threshold, shape (2, K).
        below: the same up to it.
        end: 1 for the greatest share, 0 for the least.
    """
    # Thresholds lie between different probabilities, so that the order of equal ones does not matter.
    starts = np.concatenate([[0], np.flatnonzero(np.diff(a)) + 1, [len(a)]])
    head, tail = (np.pad(np.cumsum(of, axis=1), ((0, 0), (1, 0))) for of in (below, above))
    share, rest = head[:, starts] + tail[:, -1:] - tail[:, starts]
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


def gap_bounds(low: Estimate, high: Estimate) -> Limits:
    """Bounds of the gap of rates (G,) that are free within theirs, and the ends of its 95 % interval."""
    if np.isnan(low.value).any() or np.isnan(high.value).any():
        return Limits(np.nan, np.nan, np.nan, np.nan)
    others = ~np.eye(len(low.value), dtype=bool)
    least, most = ends(low).value, ends(high).value
    pairs = (least, most), (most, least)
    near, far = (max(float((one[:, None] - other)[others].max()), 0.0) for one, other in pairs)
    outer = gap_interval(low, high)
    return Limits(near, far, outer.low, outer.high, outer.why)


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
    gram, moment = np.zeros((2 + log.design.shape[1],) * 2), np.zeros(2 + log.design.shape[1])
    for start in range(0, len(log), CHUNK):
        rows = slice(start, start + CHUNK)
        inputs = np.column_stack([log.accepted[rows], log.inputs[rows]]).astype(float)
        gram += inputs.T @ inputs
        moment += inputs.T @ logit(outcome[rows])
    names = np.array(["", "", *log.input_names])
    # Of independent columns without their means, all but those of a feature follow from the inverse at once.
    # Pivots choose the columns; the others are sums of these, as the last level of a feature is.
    centred = gram - np.outer(gram[1], gram[1]) / gram[1, 1]
    factor, pivots, rank, _ = dpstrf(centred, tol=SINGULAR * len(log), lower=0)
    own, pivots = pivots[:rank] - 1, pivots - 1
    upper = np.triu(factor[:rank, :rank])
    sums = solve_triangular(upper, factor[:rank, rank:])
    inverse = cho_solve((upper, False), np.eye(rank))
    fitted = inverse @ (moment - gram[1] * moment[1] / gram[1, 1])[own]
    decision = np.flatnonzero(own == 0)
    found = {}
    for feature in dict.fromkeys(filter(None, log.input_names)):
        left_out, kept = names[own] == feature, names[pivots[rank:]] != feature
        if len(decision) and not (np.abs(sums[left_out][:, kept]) > SINGULAR).any():
            to_others = np.linalg.solve(inverse[np.ix_(left_out, left_out)], fitted[left_out])
            coefficient = fitted[decision] - inverse[np.ix_(decision, left_out)] @ to_others
        else:
            others = np.flatnonzero(names != feature)
            coefficient = np.linalg.lstsq(gram[np.ix_(others, others)], moment[others], rcond=None)[0]
        found[feature] = math.exp(abs(coefficient[0]))
    return dict(sorted(found.items(), key=lambda item: -item[1]))
