"""Estimates with influence functions: differences, ratios, and intervals of few and of many outcomes.

*Errors.* An estimate θ̂ has the influence function φ if θ̂ − θ = Σₘ φₘ + o(N^-½) with a φₘ of mean 0 for each
of M independent clusters of rows: persons, or random blocks of them in a large log. Its variance is Σₘ φₘ²,
the covariance of two estimates Σₘ φₘ φ'ₘ (van der Vaart 1998, "Asymptotic statistics", chapters 5 and 25).
Sums, products and quotients of estimates follow from the chain rule (the delta method), as derivatives do in
forward-mode automatic differentiation. So do quantities of rows that depend on a model with parameters: they
carry their derivatives by the model's log odds (`Column`), and their mean (`Sample.mean`) adds the influence
function of the parameters (Newey and McFadden 1994, section 6). Few clusters or few outcomes need more: how
many there are is the `Support` of an estimate.

*Interval of a rate.* Estimate ± z·error has no width where all outcomes are alike, and covers too seldom
where few differ. The interval here is that of Agresti and Coull (1998): k² outcomes are added to the n that
the estimate rests on, half of them positive. With the estimate p and its variance v, the mean is
p̃ = (p + k²/2n)/(1 + k²/n), and its interval p̃ ± k·s̃/√(n + k²) with the variance of all outcomes together,

    s̃² = (n²·v + k²/4)/(n + k²) + n·k²·(p − ½)²/(n + k²)²,

which is p̃·(1 − p̃) for outcomes of 0 and 1. Wilson's interval of these is a part of it. k is a normal quantile
for a rate of independent rows, else one of Student's t with the degrees of freedom that clusters leave, and v
is corrected for them (`Support`). Outcomes of a cluster may be alike, so that n is the number of rows only as
far as v tells that they differ: p·(1 − p)/v, at least that of the clusters and at most that of the rows.

*Of a utility.* Its variance is not only that of labels, but of whom the policy accepts, so that its bounds
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
    Bell, R. and McCaffrey, D. (2002). Bias reduction in standard errors for linear regression with
        multi-stage samples. Survey Methodology.
    Carter, A., Schnepel, K. and Steigerwald, D. (2017). Asymptotic behavior of a t-test robust to cluster
        heterogeneity. Review of Economics and Statistics.
    Donner, A. and Zou, G. (2012). Closed-form confidence intervals for functions of the normal mean and
        standard deviation. Statistical Methods in Medical Research.
    Fang, Z. and Santos, A. (2019). Inference on directionally differentiable functions. Review of Economic
        Studies.
    Imbens, G. and Kolesár, M. (2016). Robust standard errors in small samples: some practical advice. Review
        of Economics and Statistics.
    Kish, L. (1965). Survey sampling. Wiley.
    Newcombe, R. (1998). Interval estimation for the difference between independent proportions. Statistics in
        Medicine.
    Zou, G. and Donner, A. (2008). Construction of confidence limits about effect measures. Statistics in
        Medicine.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple, Self, TypeAlias

import numpy as np
from scipy.spatial.distance import cdist
from scipy.special import ndtr, ndtri, stdtr, stdtrit

from fairall.evaluate.estimated.nuisance import Parametric
from fairall.measuring.sequences import LEVEL, OBSERVATIONS

Z = float(ndtri((1 + LEVEL) / 2))
BLOCKS = 5000  # of a log with more rows: the relative error of a standard error is 1/√(2·blocks) = 1 %
LEAST_FREEDOM = 2.0 - 1e-9  # below which is no interval: that of three people with equally many rows
TINY = 1e-200
Array: TypeAlias = np.ndarray
Number: TypeAlias = float | Array


class Interval(NamedTuple):
    """An estimate with its interval, NaN where there is none.

    Attributes:
        estimate: in plain units.
        low: end of the interval.
        high: likewise.
        why: the reason why there is no interval, or no estimate.
        probability: of a difference with an interval, that it is to the better.
    """

    estimate: float
    low: float
    high: float
    why: str | None = None
    probability: float | None = None

    def without_ends(self, why: str | None) -> Interval:
        """The estimate without its interval, if there is a reason for that."""
        return self if why is None else Interval(self.estimate, np.nan, np.nan, why)


class Ends(NamedTuple):
    """Estimates and the ends of their intervals, shape (...) each."""

    value: Array
    low: Array
    high: Array


NOTHING = Interval(np.nan, np.nan, np.nan)


@dataclass(frozen=True)
class Support:
    """The outcomes that estimates rest on: how many there are, and between which values an estimate can be.

    Attributes:
        lowest: the estimate if every outcome were the least possible; as all others a scalar, or shape (...).
        highest: likewise the greatest.
        cut: whether these are bounds of the truth too, as 0 and 1 are of rates, a scalar. Those of utilities
            depend on the amounts and acceptances of the sample, and are not.
        rows: number of equally weighted rows worth as much (Kish 1965).
        clusters: number of equally heavy clusters worth as much.
        freedom: degrees of freedom of the estimated variance.
        shrinkage: expectation of Σ φ² by the variance.
    """

    lowest: Array
    highest: Array
    cut: Array
    rows: Array
    clusters: Array
    freedom: Array
    shrinkage: Array

    def __getitem__(self, index: Any) -> Support:
        return Support(*(part[index] if part.ndim else part for part in vars(self).values()))


NORMAL = Support(*map(np.array, (0.0, 0.0, False, 1.0, 1.0, np.inf, 1.0)))


def _divided(over: Number, under: Array) -> Array:
    """The quotient, 0 where the denominator is not positive."""
    known = under > 0
    return np.where(known, over / np.where(known, under, 1.0), 0.0)


class Chained:
    """Quantities whose derivatives follow the chain rule in +, − and × with each other and with numbers."""

    value: Array
    __array_ufunc__ = None  # an array on the left leaves the operation to this class

    def _chained(self, value: Array, *terms: tuple[Number, Self]) -> Self:
        """A function of quantities by its value and, for each of them, its derivative and the quantity.

        The function of a single quantity is this one times a factor, plus a number.
        """
        raise NotImplementedError

    def __add__(self, other: Self | Number) -> Self:
        if isinstance(other, Chained):
            return self._chained(self.value + other.value, (1.0, self), (1.0, other))
        return self._chained(self.value + other, (1.0, self))

    def __mul__(self, other: Self | Number) -> Self:
        if isinstance(other, Chained):
            return self._chained(self.value * other.value, (other.value, self), (self.value, other))
        return self._chained(self.value * other, (other, self))

    def __sub__(self, other: Self | Number) -> Self:
        return self + other * -1.0

    def __rsub__(self, other: Number) -> Self:
        return self * -1.0 + other

    __rmul__ = __mul__


@dataclass(frozen=True)
class Column(Chained):
    """A quantity of each row, with derivatives by the log odds of models.

    Attributes:
        value: shape (N,).
        slope: derivative by the log odds of a model, by the model's name, shape (N,); of models with
            parameters only.
    """

    value: Array
    slope: Mapping[str, Array] = field(default_factory=dict)

    def _chained(self, value: Array, *terms: tuple[Number, Column]) -> Column:
        slope: dict[str, Any] = {}
        for factor, column in terms:
            slope |= {name: slope.get(name, 0.0) + factor * part for name, part in column.slope.items()}
        return Column(value, slope)


@dataclass(frozen=True)
class Estimate(Chained):
    """Estimates with their influence functions; / of two of them beside +, − and ×.

    Attributes:
        value: shape (...).
        phi: contribution of each cluster to the error, shape (..., M).
        support: outcomes that it rests on; normal errors of known variance by default. Arithmetic with
            numbers keeps it.
    """

    value: Array
    phi: Array
    support: Support = NORMAL

    def on(self, support: Support) -> Estimate:
        """The same with a support."""
        return replace(self, support=support)

    def _chained(self, value: Array, *terms: tuple[Number, Estimate]) -> Estimate:
        phi = sum(estimate.phi * np.asarray(factor)[..., None] for factor, estimate in terms)
        if len(terms) > 1:
            return Estimate(value, phi)
        ends = [
            value + terms[0][0] * (end - self.value) for end in (self.support.lowest, self.support.highest)
        ]
        support = replace(self.support, lowest=np.minimum(*ends), highest=np.maximum(*ends))
        return Estimate(value, phi, support)

    def __truediv__(self, other: Estimate) -> Estimate:
        """The quotient; NaN where the denominator is not positive."""
        below = np.where(other.value > 0, other.value, np.nan)
        value = self.value / below
        return self._chained(value, (1.0 / below, self), (-value / below, other))

    def __getitem__(self, index: Any) -> Estimate:
        return Estimate(self.value[index], self.phi[index], self.support[index])

    @property
    def error(self) -> Array:
        """Standard error, shape (...)."""
        return np.sqrt((self.phi**2).sum(-1))

    @cached_property
    def _outcomes(self) -> tuple[Array, Array, Array, Array]:
        """What intervals are made of, shape (...) each.

        Returns:
            Where the estimate is between its bounds, from 0 to 1; n of the module; the variance, corrected
            for clusters; and that of `OBSERVATIONS` outcomes.
        """
        support = self.support
        width = support.highest - support.lowest
        variance = self.error**2 / support.shrinkage
        share = np.clip(_divided(self.value - support.lowest, width), 0.0, 1.0)
        n = share * (1.0 - share) * width**2 / np.maximum(variance, TINY)
        n = np.clip(n, support.clusters, support.rows)
        return share, n, variance, OBSERVATIONS * (width / np.maximum(n, 1.0)) ** 2

    def ends(self, k: float = Z) -> Ends:
        """Intervals of the module, each by itself.

        Args:
            k: quantile of the standard normal distribution, for which that of t with the same probability is
                taken.

        Returns:
            Shape (...). Values and ends of rates are between their bounds. Those of estimates that are
            `lacking` tell nothing.
        """
        support, (share, n, variance, further) = self.support, self._outcomes
        quantile = student_quantile(k, support.freedom)
        if not support.cut:
            half = quantile * np.sqrt(variance + further)
            return Ends(self.value, self.value - half, self.value + half)
        width, added = support.highest - support.lowest, quantile**2
        spread = n**2 * _divided(variance, width**2) + added * (0.25 + n * (share - 0.5) ** 2 / (n + added))
        middle, half = (n * share + added / 2.0) / (n + added), quantile * np.sqrt(spread) / (n + added)
        ends = share, (middle - half).clip(0.0, share), (middle + half).clip(share, 1.0)
        return Ends(*(support.lowest + width * end for end in ends))

    def interval(self, index: Any = (), k: float = Z) -> Interval:
        """The interval of one of the estimates; k as of `ends`."""
        chosen = self[index]
        return _interval(chosen.ends(k), chosen)

    def difference_interval(self, k: float = Z) -> Interval:
        """`interval` of a difference that is not `cut`, with the probability that it is above 0.

        The probability is that of the confidence distribution: the level at which a one-sided interval ends
        at 0.
        """
        deviation = _divided(self.value, np.sqrt(sum(self._outcomes[2:])))
        return _interval(self.ends(k), self, probability=float(stdtr(self.support.freedom, deviation)))


def lacking(*estimates: Estimate) -> str | None:
    """Why estimates have no interval; None where all have one."""
    for support in (estimate.support for estimate in estimates):
        if (support.freedom < LEAST_FREEDOM).any():
            return (
                f"it rests on rows of people who count as {support.clusters.min():.1f} with equally many "
                "rows: too few to tell how much they differ"
            )
    return None


def _interval(ends: Iterable[Number], *estimates: Estimate, probability: float | None = None) -> Interval:
    """The value and ends of an interval that is made of estimates, if these have intervals."""
    value, low, high = map(float, ends)
    return Interval(value, low, high, None, probability).without_ends(lacking(*estimates))


def student_quantile(k: float, freedom: Number) -> Array:
    """Quantile of t with the probability of the normal quantile k.

    Args:
        k: quantile.
        freedom: degrees of freedom, infinite for the normal distribution, shape (...).

    Returns:
        Shape (...).
    """
    return np.asarray(-stdtrit(freedom, ndtr(-k)))


def joint_normal(many: int) -> float:
    """K for which `many` normal deviations are all at most k with probability `LEVEL`, at least.

    By Bonferroni's inequality; of the pairs of G groups it is 2 to 3 % more than the quantile of the largest.
    """
    return float(ndtri(1.0 - (1.0 - LEVEL) / (2.0 * many)))


def _pairs(rates: Estimate) -> tuple[Array, Array, float]:
    """Numbers of both groups of all ordered pairs of different ones, and k for all pairs, with rates (G,)."""
    g, h = np.nonzero(~np.eye(len(rates.value), dtype=bool))
    return g, h, joint_normal(len(g) // 2)


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
    high = high or low
    g, h, joint = _pairs(low)
    near, far = differences(low, high, k or joint), differences(high, low, k or Z)
    largest = 1.0 if low.support.cut else np.inf
    ends = (end[g, h].max().clip(0.0, largest) for end in (near.value, near.low, far.high))
    return _interval(ends, low, high)


def gap_difference(first: Estimate, second: Estimate) -> Interval:
    """The gap of the second rates (G,) minus that of the first; none between rates that are the same.

    Errors of differences of differences are those of the influence functions, with `OBSERVATIONS` more than
    there are.
    """
    if np.array_equal(first.value, second.value) and np.array_equal(first.phi, second.phi):
        return Interval(0.0, 0.0, 0.0).without_ends(lacking(first))
    g, h, k = _pairs(first)
    policies = [replace(rates, value=rates.ends().value) for rates in (second, first)]
    after, before = (rates[g] - rates[h] for rates in policies)
    further = [rates._outcomes[-1][g] + rates._outcomes[-1][h] for rates in policies]
    supports = [(rates.support.freedom.min(), rates.support.shrinkage.min()) for rates in policies]
    freedom, shrinkage = np.min(supports, 0)
    variance = cdist(after.phi, before.phi, "sqeuclidean") / shrinkage + np.add.outer(*further) / 2.0
    change, half = np.subtract.outer(after.value, before.value), student_quantile(k, freedom) * variance**0.5
    estimate = after.value.max() - before.value.max()
    ends = estimate, min((change - half).max(0).min(), estimate), max((change + half).min(1).max(), estimate)
    return _interval(ends, first, second)


def _distances(first: Estimate, second: Estimate, k: float) -> tuple[Array, Array, Array, Array, Array]:
    """What lower and upper ends for all pairs of estimates (G,) and (H,) are made of.

    Returns:
        The values, shapes (G, 1) and (H,); the distances of the first to its lower and upper ends, (2, G, 1),
        and of the second to its upper and lower ends, (2, 1, H); and their products times the correlation.
    """
    (value, *ends), (other, *other_ends) = first.ends(k), second.ends(k)
    distance, other_distance = (np.stack(ends) - value)[..., None], np.stack(other_ends)[::-1, None] - other
    correlation = _divided(first.phi @ second.phi.T, np.outer(first.error, second.error))
    return value[:, None], other, distance, other_distance, correlation * distance * other_distance


def differences(first: Estimate, second: Estimate, k: float = Z) -> Ends:
    """All differences first_g − second_h, shape (G, H); k as of `Estimate.ends`."""
    value, other, distance, other_distance, shared = _distances(first, second, k)
    change, square = value - other, distance**2 + 2.0 * shared + other_distance**2
    below, above = np.sqrt(np.maximum(square, 0.0))
    return Ends(change, change - below, change + above)


def ratios(first: Estimate, second: Estimate, k: float = Z) -> Ends:
    """All ratios first_g/second_h of rates that are at least 0, shape (G, H); k as of `Estimate.ends`.

    NaN to a rate of 0; upper ends may be infinite.
    """
    value, other, distance, other_distance, shared = _distances(first, second, k)
    # The solutions q of (r_g − q·r_h)² = d_g² + 2·q·ρ·d_g·d_h + q²·d_h² with the signed distances d.
    square, rest, middle = other**2 - other_distance**2, value**2 - distance**2, value * other + shared
    root = middle + np.sqrt(np.maximum(middle**2 - square * rest, 0.0))
    high = np.where(square > 0, _divided(root, square), np.inf)[1]
    return Ends(value / np.where(other > 0, other, np.nan), _divided(rest, root)[0], high)


@dataclass(frozen=True)
class Sample:
    """Rows in independent clusters, and the models with parameters behind quantities of rows.

    Args:
        n_rows: N.
        models: by name, as in `Column.slope`.
        person: codes of persons, whose rows depend on each other, shape (N,); None for a row each.
        seed: of the random blocks of persons.
    """

    n_rows: int
    models: Mapping[str, Parametric] = field(default_factory=dict)
    person: Array | None = None
    seed: int = 0

    @cached_property
    def cluster(self) -> Array:
        """Number of the cluster of each row, shape (N,): its person, dealt at random into `BLOCKS`."""
        person = np.arange(self.n_rows) if self.person is None else self.person
        persons = int(person.max()) + 1
        if persons <= BLOCKS:
            return person
        return (np.random.default_rng(self.seed).permutation(persons) % BLOCKS)[person]

    @cached_property
    def size(self) -> Array:
        """Rows of each cluster, shape (M,)."""
        return np.bincount(self.cluster)

    @property
    def clusters(self) -> int:
        """M."""
        return len(self.size)

    @cached_property
    def everybody(self) -> Groups:
        """All rows as one group."""
        return self.by(np.zeros(self.n_rows, dtype=int), 1)

    def by(self, group: Array, groups: int) -> Groups:
        """The rows by their groups: codes 0 to G − 1, shape (N,), and G."""
        return Groups(self, group, groups)

    def mean(self, column: Column | Array) -> Estimate:
        """Mean over all N rows of a quantity (N,), a scalar."""
        return self.everybody.mean(column)[0]

    def support(self, weight: Array, **ends: Any) -> Support:
        """`Groups.support` of a scalar."""
        return self.everybody.support(weight, **ends)[0]

    @cached_property
    def moves(self) -> dict[str, Array]:
        """Influence functions of the parameters of each model, shape (D + 1, M)."""
        moves = {}
        for name, model in self.models.items():
            scores = np.stack([np.bincount(self.cluster, part * model.residual) for part in model.inputs.T])
            # Residuals are out of fold, so that their scores do not sum to 0.
            moves[name] = model.inverse_information @ (scores - scores.mean(-1, keepdims=True))
        return moves


@dataclass(frozen=True)
class Groups:
    """The rows of a sample by their groups.

    Args:
        sample: the rows.
        group: number of the group of each row, shape (N,).
        groups: G.
    """

    sample: Sample
    group: Array
    groups: int

    def mean(self, column: Column | Array) -> Estimate:
        """Mean over all N rows of a quantity (N,), counted as 0 outside of a group, shape (G,)."""
        sample, column = self.sample, column if isinstance(column, Column) else Column(column)
        sums = self._sums(column.value)
        value = sums.sum(-1) / sample.n_rows
        phi = (sums - value[:, None] * sample.size) / sample.n_rows
        for name, slope in column.slope.items():
            slopes = np.where(self.group == np.arange(self.groups)[:, None], slope, 0.0)
            phi += slopes @ sample.models[name].inputs / sample.n_rows @ sample.moves[name]
        return Estimate(value, phi)

    def support(
        self, weight: Array, *, lowest: Number = 0.0, highest: Number = 1.0, cut: bool = True
    ) -> Support:
        """The support of a mean or rate by group, of outcomes with weights at least 0 (N,).

        Further arguments are as of `Support`, for all groups or for each, shape (G,). Degrees of freedom are
        those of Bell and McCaffrey (2002; Imbens and Kolesár 2016) of a weighted mean whose clusters each
        have one outcome, the worst case: few of them, or clusters of unequal weight, tell little about the
        variance (Carter, Schnepel and Steigerwald 2017). K equal clusters have K − 1, and Σ φ² is expected
        to be 1 − 1/K of the variance. Without outcomes there is no variance to estimate, and where each
        cluster has one outcome of a rate their mean tells it: degrees of freedom are infinite.
        """
        weights = self._sums(weight)
        total = weights.sum(-1)
        shares = _divided(weights, total[:, None])
        two, three, four, five = ((shares**power).sum(-1) for power in (2, 3, 4, 5))
        rows = _divided(total**2, np.bincount(self.group, weight**2, self.groups))
        clusters = _divided(1.0, two)
        unknown = (two > 0) & ~(cut & np.isclose(clusters, rows, 1e-9))
        trace = two - 2.0 * three + two**2
        square = two**4 + 2.0 * three**2 + (1.0 + 4.0 * two) * four - 4.0 * (two**2 * three + five)
        freedom = np.where(unknown, _divided(trace**2, square), np.inf)
        shrinkage = np.where(unknown, np.maximum(trace * clusters, TINY), 1.0)
        return Support(*map(np.asarray, (lowest, highest, cut, rows, clusters, freedom, shrinkage)))

    def _sums(self, values: Array) -> Array:
        """Sums by group and cluster, shape (G, M)."""
        clusters = self.sample.clusters
        cell = self.group * clusters + self.sample.cluster
        return np.bincount(cell, values, self.groups * clusters).reshape(-1, clusters)
