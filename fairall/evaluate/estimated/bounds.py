"""Bounds of utility, rates and gaps when the rejected have no labels: Manski's, and a sensitivity analysis.

Both put a low and a high label in the place of every unknown one (`manski`, `odds_ratio`); `value_bounds`,
`rate_bounds` and `difference_bounds` give the least and greatest value between them, as estimates whose
influence functions are those at the extreme labels (the envelope theorem). Symbols as in `estimators`.

References:
    Dinkelbach, W. (1967). On nonlinear fractional programming. Management Science.
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
from bisect import bisect_left
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import solve
from scipy.special import logit

from fairall.evaluate.estimated.estimates import Estimate, Groups, Interval, Sample, gap_interval
from fairall.evaluate.estimated.estimators import People, value_support
from fairall.evaluate.estimated.nuisance import CHUNK
from fairall.evaluate.log import DecisionLog

GAMMAS = np.linspace(1.0, 3.0, 9).tolist()
LARGEST_GAMMA = 10.0  # up to which a turning point is searched
TRIED = np.geomspace(1.0, LARGEST_GAMMA, 1025).tolist()  # Γ that may be turning points
RIDGE = 1e-8  # added to variances of columns
STEPS, ROUNDING = 50, 1e-12  # of the search of an extreme share
SIDES = np.array([[1.0], [0.0]])  # `Labels.target` of the logged decisions
SENSITIVE = ("equal_opportunity", "predictive_parity", "false_positive", "utility_gap")


class Labels(NamedTuple):
    """Low and high labels of each row, and the weight of the outcome that tells them.

    Shapes are (N,); or (2, N) where labels of accepted and of rejected people are free of each other, as of
    the logged decisions, by which a row is one or the other.

    Attributes:
        target: a, as far as it changes by the label: 1 and 0 of accepted and rejected people, shape (2, 1).
        low: the least label; of accepted and rejected people times `size`.
        high: the greatest, likewise.
        weight: of the outcome, likewise.
        size: 1, or a and 1 − a, shape (2, N).
    """

    target: np.ndarray
    low: np.ndarray
    high: np.ndarray
    weight: Any
    size: Any = 1.0


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
        low, high = self.low.interval(), self.high.interval()
        return Limits(float(self.low.value), float(self.high.value), low.low, high.high, low.why or high.why)


def manski(people: People) -> Labels:
    """The label where it is revealed; between 0 and 1 where it is not: no assumption (Manski 1990)."""
    low, high = (np.where(people.revealed, people.label, end) for end in (0.0, 1.0))
    return Labels(people.target, low, high, 1.0)


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
    ratio = np.array([[1.0 / gamma], [gamma]])
    scale = 1.0 + (ratio - 1.0) * q
    label, correction = np.where(r, people.label, ratio * q / scale), ratio / scale**2 * error
    ends = label + (w - r) * correction
    if not logged:
        return Labels(a, ends[0], ends[1], w)
    accepted = a * label + (kept - r) * correction
    low, high = np.stack([accepted, ends - accepted], axis=1)
    return Labels(SIDES, low, high, np.stack([kept, np.maximum(w - kept, 0.0)]), np.stack([a, 1.0 - a]))


def value_bounds(people: People, labels: Labels, sample: Sample) -> Bounds:
    """Bounds of the value, the mean of s·(a·y − a·b)."""
    support = value_support(people, np.atleast_2d(labels.weight * labels.target)[0], sample)
    low, high = rate_bounds("utility_gap", people, labels, sample.everybody)
    return Bounds(low[0].on(support), high[0].on(support))


def difference_bounds(name: str, first: People, second: People, labels: Labels, sample: Sample) -> Bounds:
    """Bounds of a second policy's value or rate less the first's, of all people; the same labels count.

    They are those of a policy whose acceptance is the difference of both.

    Args:
        name: `utility_gap` for the value, `equal_opportunity` or `false_positive`.
        first: a policy that is not that of the logged decisions.
        second: likewise, on the same people.
        labels: of the second.
        sample: of the people.
    """
    labels = labels._replace(target=second.target - first.target)
    name = name if labels.target.any() else "utility_gap"  # of equal policies without a sampling error
    low, high = rate_bounds(name, second, labels, sample.everybody, lowest=-1.0)
    return Bounds(low[0], high[0])


def rate_bounds(
    name: str, people: People, labels: Labels, by_group: Groups, *, lowest: float = 0.0
) -> Bounds:
    """Bounds of a rate of `MEASURES` by group, shape (G,), where each label z is free between its ends.

    Every rate is Σ (n + c z) / Σ (d + e z). It is greatest where those with c − e·rate above 0 have the high
    label and the others the low one, and least the other way round, which is sharp, for labels in {0, 1} too.
    Where e is not 0, labels are chosen by the rate of the labels before, which is nearer to the extreme at
    each step (Dinkelbach 1967). Labels of different groups are free of each other, so that bounds of gaps are
    as sharp as those of rates.

    Args:
        name: of the measure.
        people: of the stakes.
        labels: with the acceptance probabilities, which may be differences.
        by_group: the rows by group.
        lowest: the least rate that there can be; −1 of differences.

    Returns:
        NaN where the rate is undefined whatever the labels; the least and greatest rate that there can be
        where noisy pseudo-labels give a sum below the line that is not positive.
    """
    t, low, high, weight, size = map(np.atleast_2d, labels)
    accepted, mean = t * size, by_group.mean
    n, c, d, e = {
        "dpu": (accepted, 0.0, size, 0.0),
        "equal_opportunity": (0.0, t, 0.0, 1.0),
        "false_positive": (accepted, -t, size, -1.0),
        "predictive_parity": (0.0, t, accepted, 0.0),
        "utility_gap": (-accepted * people.stake * people.break_even, t * people.stake, size, 0.0),
    }[name]
    totals = [mean((d + e * z).sum(0)).value for z in (low, high)]
    ends: dict[str, Any] = {"lowest": lowest}
    if name == "utility_gap":
        extremes = (mean(most(n, n + c * size).sum(0)) for most in (np.minimum, np.maximum))
        least, greatest = (one.value / totals[0] for one in extremes)
        ends = {"lowest": least, "highest": greatest, "cut": False}
    found = []
    for sign, end in ((-1.0, lowest), (1.0, 1.0)):
        z = high
        for _ in range(STEPS):
            below, before = (d + e * z).sum(0), z
            rate = mean((n + c * z).sum(0)) / mean(below)
            # Where it makes no difference, the label that makes the sum below the line greater.
            z = np.where(sign * (c - e * rate.value[by_group.group]) >= -e * ROUNDING, high, low)
            if np.array_equal(z, before):
                break
        free = (np.minimum(*totals) < 0) | (np.isnan(rate.value) & (np.maximum(*totals) > 0))
        # Of shares, rows with a label of 1 count; pseudo-labels of revealed ones are above 1 or below 0.
        outcomes = weight.sum(0) * below.clip(0.0, 1.0) if e else (weight * np.abs(t)).sum(0)
        support = by_group.support(np.ones_like(below) if name == "dpu" else outcomes, **ends)
        phi = np.where(free[:, None], 0.0, rate.phi)
        found.append(Estimate(np.where(free, end, rate.value), phi, support))
    return Bounds(*found)


def gap_bounds(low: Estimate, high: Estimate) -> Limits:
    """Bounds of the gap of rates (G,) that are free within theirs, and the ends of its 95 % interval."""
    outer = gap_interval(low, high)
    return Limits(outer.estimate, gap_interval(high, low).estimate, outer.low, outer.high, outer.why)


def limits_of(
    names: Sequence[str], people: People, labels: Labels, by_group: Groups, shown: np.ndarray
) -> dict[str, Limits]:
    """Bounds of a policy's utility and gaps, by name.

    Args:
        names: `utility`, and of `MEASURES`, whose gaps have bounds where two groups are shown.
        people: with the policy.
        labels: of them.
        by_group: the people by group.
        shown: codes of the groups of which gaps are.
    """
    found = {}
    for name in names:
        if name == "utility":
            found[name] = value_bounds(people, labels, by_group.sample).limits()
        elif len(shown) >= 2:
            low, high = rate_bounds(name, people, labels, by_group)
            found[name] = gap_bounds(low[shown], high[shown])
    return found


def turning_point(limits: Callable[[float], Limits]) -> float | None:
    """Greatest odds ratio Γ in [1, `LARGEST_GAMMA`] up to which the interval of bounds excludes 0.

    Args:
        limits: for Γ; once their interval contains 0, it goes on to do so.

    Returns:
        1 where even Γ = 1 leaves it open; None where it excludes 0 for all Γ.
    """
    if not limits(1.0).exclude_0:
        return 1.0
    open_from = bisect_left(TRIED, True, key=lambda gamma: not limits(gamma).exclude_0)
    return None if open_from == len(TRIED) else TRIED[open_from - 1]


def greatest_benchmark(log: DecisionLog, outcome: np.ndarray) -> tuple[str, float] | None:
    """The feature whose hiding would make the greatest odds ratio Γ, and this Γ; None without features.

    exp |β|, with β the difference in the mean log odds of a positive label between rejected and accepted
    people of equal other features: the coefficient of the decision in a linear regression of logit q on the
    inputs of the other features and the group. A hidden variable that matters as much as the feature does
    would make such a Γ.

    Args:
        log: the people.
        outcome: q, shape (N,).
    """
    moments, found = second_moments(log.accepted, log.inputs, logit(outcome)), dict[str, float]()
    # Columns that are sums of others, as the last level of a feature is, need the ridge.
    moments += RIDGE * np.eye(len(moments))
    names = np.array(["", "", *log.input_names])
    for feature in dict.fromkeys(filter(None, log.input_names)):
        others = np.flatnonzero(names != feature)
        slopes = solve(moments[np.ix_(others, others)], moments[others, -1], assume_a="pos")
        found[feature] = math.exp(abs(slopes[0]))
    return max(found.items(), key=itemgetter(1), default=None)


def second_moments(*columns: np.ndarray) -> np.ndarray:
    """Means of products of D columns, each shape (N,), or several as (N, K); shape (D, D)."""
    parts = len(columns[0]) // CHUNK + 1
    blocks = zip(*(np.array_split(column, parts) for column in columns), strict=True)
    return np.sum([x.T @ x for x in map(np.column_stack, blocks)], axis=0) / len(columns[0])
