"""Bounds of utility, rates and gaps when the rejected have no labels: Manski's, and a sensitivity analysis.

Both put a low and a high label in the place of every unknown one (`manski`, `odds_ratio`); `rate_bounds`
gives the least and greatest value between them, as estimates whose influence functions are those at the
extreme labels (the envelope theorem). Symbols as in `estimators`.

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

from bisect import bisect_left
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logit

from fairall.evaluate.estimated.estimates import Estimate, Groups, Interval, Sample, gap_interval
from fairall.evaluate.estimated.estimators import People
from fairall.evaluate.log import DecisionLog

GAMMAS = np.linspace(1.0, 3.0, 9).tolist()  # that are shown
LARGEST_GAMMA = 10.0  # up to which a turning point is searched
TRIED = np.geomspace(1.0, LARGEST_GAMMA, 1025).tolist()  # Γ that may be turning points
RIDGE = 1e-8  # added to variances of columns
STEPS, ROUNDING = 50, 1e-12  # of the search of an extreme share


class Labels(NamedTuple):
    """Low and high labels of each row, and the weight of the outcome that tells them.

    Shapes are (N,); or (2, N) where labels of accepted and of rejected people are free of each other, as of
    the logged decisions, by which a row is one or the other (`observed`).

    Attributes:
        target: a, by which a label counts; 1 and 0 of accepted and rejected people, shape (2, 1).
        ends: the least and the greatest label, shape (2, N); of accepted and rejected people times a and
            1 − a, shape (2, 2, N).
        weight: of the outcome, likewise.
    """

    target: np.ndarray
    ends: np.ndarray
    weight: Any

    def observed(self, accepted: np.ndarray, kept: np.ndarray) -> Labels:
        """Those of the logged decisions, with labels of accepted people that are known apart.

        Args:
            accepted: the part of the ends that is about accepted people, shape (N,) or (2, N).
            kept: the part of the weight, shape (N,).
        """
        ends = np.stack(np.broadcast_arrays(accepted, self.ends - accepted), 1)
        weight = np.stack([kept, np.maximum(self.weight - kept, 0.0)])
        return Labels(np.array([[1.0], [0.0]]), ends, weight)


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
        return Limits(low.estimate, high.estimate, low.low, high.high, low.why or high.why)

    def gap(self, shown: np.ndarray) -> Limits:
        """Bounds of the gap of rates that are free within theirs, of groups with the codes shown."""
        low, high = (end[shown] for end in self)
        outer = gap_interval(low, high)
        return Limits(outer.estimate, gap_interval(high, low).estimate, outer.low, outer.high, outer.why)


def manski(people: People) -> Labels:
    """The label where it is revealed; between 0 and 1 where it is not: no assumption (Manski 1990)."""
    return Labels(people.target, np.where(people.revealed, people.label, [[0.0], [1.0]]), 1.0)


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
    q, r, w, kept = people.outcome.value, people.revealed, people.weight.value, people.kept.value
    ratio = np.array([[1.0 / gamma], [gamma]])
    scale = 1.0 + (ratio - 1.0) * q
    label = np.where(r, people.label, ratio * q / scale)
    correction = np.where(r, ratio / scale**2 * (people.label - q), 0.0)
    labels = Labels(people.target, label + (w - r) * correction, w)
    return labels.observed(people.target * label + (kept - r) * correction, kept) if logged else labels


def value_bounds(people: People, labels: Labels, sample: Sample) -> Bounds:
    """Bounds of the value, the mean of s·(a·y − a·b)."""
    return Bounds(*(end[0] for end in rate_bounds("utility_gap", people, labels, sample.everybody)))


def rate_bounds(name: str, people: People, labels: Labels, by_group: Groups) -> Bounds:
    """Bounds of a rate of `MEASURES` by group, shape (G,), where each label z is free between its ends.

    Every rate is Σ (n + c z) / Σ (d + e z). It is greatest where those with c − e·rate above 0 have the high
    label and the others the low one, and least the other way round, which is sharp, for labels in {0, 1} too.
    Where e is not 0, labels are chosen by the rate of the labels before, which is nearer to the extreme at
    each step (Dinkelbach 1967). Labels of different groups are free of each other, so that bounds of gaps are
    as sharp as those of rates.

    Returns:
        NaN where the rate is undefined whatever the labels; the least and greatest rate that there can be
        where noisy pseudo-labels can give a sum below the line that is negative.
    """
    a, stake, mean = people.target, people.stake, by_group.mean
    t, weight = map(np.atleast_2d, (labels.target, labels.weight))
    low, high = labels.ends.reshape(2, -1, len(a))
    n, c, d, e = {
        "dpu": (a, 0.0, 1.0, 0.0),
        "equal_opportunity": (0.0, t, 0.0, 1.0),
        "false_positive": (a, -t, 1.0, -1.0),
        "predictive_parity": (0.0, t, a, 0.0),
        "utility_gap": (-a * stake * people.break_even, t * stake, 1.0, 0.0),
    }[name]
    totals = [mean(d + (e * z).sum(0)).value for z in (low, high)]
    ends: dict[str, Any] = {}
    if name == "utility_gap":
        least, greatest = (mean(end).value / totals[0] for end in np.sort([n, n + a * stake], 0))
        ends = {"lowest": least, "highest": greatest, "cut": False}
    free, extremes = np.minimum(*totals) < 0, []
    for sign, end in ((-1.0, 0.0), (1.0, 1.0)):
        z = high
        for _ in range(STEPS):
            below, before = d + (e * z).sum(0), z
            rate = mean(n + (c * z).sum(0)) / mean(below)
            # Where it makes no difference, the label that makes the sum below the line greater.
            z = np.where(sign * (c - e * rate.value[by_group.group]) >= -e * ROUNDING, high, low)
            if np.array_equal(z, before):
                break
        # Of shares, rows with a label of 1 count; pseudo-labels of revealed ones are above 1 or below 0.
        # Where all labels give the share at the other end, only those count that have it for certain.
        alike = (rate.value == 1.0 - end)[by_group.group]
        counted = np.where(alike, d + np.minimum(e * low, e * high).sum(0), below)
        outcomes = weight.sum(0) * counted.clip(0.0, 1.0) if e else (weight * np.abs(t)).sum(0)
        support = by_group.support(np.ones_like(a) if name == "dpu" else outcomes, **ends)
        phi = np.where(free[:, None], 0.0, rate.phi)
        extremes.append(Estimate(np.where(free, end, rate.value), phi, support))
    return Bounds(*extremes)


def turning_point(limits: Callable[[float], Mapping[str, Limits]]) -> float | None:
    """Greatest odds ratio Γ in [1, `LARGEST_GAMMA`] up to which the interval of the utility excludes 0.

    Args:
        limits: those of `utility` for Γ; once their interval contains 0, it goes on to do so.

    Returns:
        1 where even Γ = 1 leaves it open; None where it excludes 0 for all Γ.
    """
    certain = bisect_left(TRIED, True, key=lambda gamma: not limits(gamma)["utility"].exclude_0)
    return TRIED[max(certain - 1, 0)] if certain < len(TRIED) else None


def greatest_benchmark(log: DecisionLog, outcome: np.ndarray) -> tuple[float, str] | None:
    """The greatest odds ratio Γ that hiding a feature would make, and the feature; None without features.

    exp |β|, with β the difference in the mean log odds of a positive label between rejected and accepted
    people of equal other features: the coefficient of the decision in a linear regression of logit q on the
    inputs of the other features and the group. A hidden variable that matters as much as the feature does
    would make such a Γ.

    Args:
        log: the people.
        outcome: q, shape (N,).
    """
    columns = np.column_stack([log.accepted, logit(outcome), log.inputs])
    # Columns that are sums of others, as the last level of a feature is, need the ridge.
    precision = np.linalg.inv(columns.T @ columns / len(log) + RIDGE * np.eye(columns.shape[1]))
    names, gammas = np.array(["", "", "", *log.input_names]), []
    for feature in {*log.input_names} - {""}:
        hidden = names == feature
        rows = precision[:2, hidden]
        left = precision[:2, :2] - rows @ np.linalg.solve(precision[hidden][:, hidden], rows.T)
        gammas.append((np.exp(abs(left[0, 1] / left[1, 1])), feature))
    return max(gammas, default=None)
