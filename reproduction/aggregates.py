"""Aggregates of scores over data sets with bootstrap intervals, and ranks with ties and confidence sets.

A task is a data set with an initial policy. The tasks of one data set have the same people, so that data sets
are what is drawn; replicates are drawn within. A replicate has the same seed and split with every method.

References:
    Agarwal, R., Schwarzer, M., Castro, P. S., Courville, A. and Bellemare, M. G. (2021). Deep reinforcement
    learning at the edge of the statistical precipice. NeurIPS.
    Davison, A. C. and Hinkley, D. V. (1997). Bootstrap methods and their application, section 3.8. Cambridge
    University Press.
    Gaffke, N. (2005). Three test statistics for a nonparametric one-sided hypothesis on the mean of a
    nonnegative variable. Mathematical Methods of Statistics 14.
    Hesterberg, T. C. (2015). What teachers should know about the bootstrap. The American Statistician 69.
    Mogstad, M., Romano, J. P., Shaikh, A. M. and Wilhelm, D. (2024). Inference for ranks with applications to
    mobility across neighbourhoods and academic achievement across countries. Review of Economic Studies 91.
    Phan, M., Thomas, P. S. and Learned-Miller, E. (2021). Towards practical mean bounds for small samples.
    ICML.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.special import ndtr, stdtrit

from fairall.report import LEVEL, pairwise_p, simultaneous_p

DRAWS = 4000  # of the bootstrap
TAIL = 0.025  # on either side of its intervals
TRIMMED = 0.25  # share of the scores that an interquartile mean leaves out at either end

TaskKey = tuple[str, str]
"""Data set and initial policy."""
Pair = tuple[str, str]
"""Two methods; of those that differ the better one first."""


class Estimate(NamedTuple):
    """An aggregate and the ends of its 95 % interval, which are NaN where all scores are equal."""

    value: float
    low: float
    high: float

    def reversed(self) -> Estimate:
        """One less the aggregate: the probability of the opposite."""
        return Estimate(1.0 - self.value, 1.0 - self.high, 1.0 - self.low)


class Rank(NamedTuple):
    """The ends of the confidence set of a rank, of which `best` is the rank that is shown."""

    best: int
    worst: int


def middle(scores: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    """Interquartile mean: the mean of the middle half of some scores by weight.

    Args:
        scores: shape (n,).
        weights: shape (..., n), not negative; None: 1 each.

    Returns:
        Shape (...).
    """
    order = np.argsort(scores)
    own = np.ones(len(scores)) if weights is None else weights[..., order]
    below = np.cumsum(own, axis=-1)
    total = below[..., -1:]
    inside = np.clip(below, TRIMMED * total, (1 - TRIMMED) * total)
    kept = np.diff(inside, axis=-1, prepend=TRIMMED * total)
    return (kept * scores[order]).sum(-1) / kept.sum(-1)


def interquartile_mean(scores: Mapping[TaskKey, pd.Series]) -> Estimate:
    """Mean of the middle half of all scores, and its percentile interval.

    A draw of the bootstrap takes as many data sets as there are, with replacement, and as many replicates of
    each, the same ones for its initial policies. With few data sets such an interval is too narrow: its
    percentiles are those at which an interval of a mean would have Student's width (Hesterberg 2015, section
    5.3). Of a single data set the interval is about other replicates only. The same scores give the same
    interval.

    Args:
        scores: of a method by task and replicate; at least one task, none empty.
    """
    rng = np.random.default_rng(0)
    clusters = _clusters(scores)
    drawn = rng.multinomial(len(clusters), np.full(len(clusters), 1 / len(clusters)), size=DRAWS)
    values, weights = [], []
    for times, own in zip(drawn.T, clusters, strict=True):
        counts = rng.multinomial(times * len(own), np.full(len(own), 1 / len(own)))
        rows, columns = np.nonzero(own.notna().to_numpy())
        values.append(own.to_numpy()[rows, columns])
        weights.append(counts[:, rows])
    every = np.concatenate(values)
    value = float(middle(every))
    n = len(clusters) if len(clusters) > 1 else len(clusters[0])
    if n < 2 or np.ptp(every) == 0:
        return Estimate(value, math.nan, math.nan)
    tail = float(ndtr(stdtrit(n - 1, TAIL) * math.sqrt(n / (n - 1))))
    low, high = np.quantile(middle(every, np.concatenate(weights, axis=1)), (tail, 1 - tail))
    return Estimate(value, float(low), float(high))


def probability_of_improvement(
    first: Mapping[TaskKey, pd.Series], second: Mapping[TaskKey, pd.Series]
) -> Estimate | None:
    """P(X > Y) + ½ P(X = Y) of two methods for a random replicate, averaged over data sets.

    Unlike section 4.3 of Agarwal et al. (2021), X and Y are of the same replicate: the same split and
    applicants. The interval is Gaffke's (2005): a Bayesian bootstrap over data sets, whose replicates are
    drawn as in `interquartile_mean`, beside which one further data set has 0 for the lower end and 1 for the
    upper one. Of probabilities that are 0 or 1 it is that of Clopper and Pearson; that it covers otherwise
    too is conjectured (Phan et al. 2021). It is never of width 0: n data sets that agree exclude no more than
    what is below 0.025^(1/n).

    Args:
        first: scores X by task and replicate; greater is better.
        second: scores Y.

    Returns:
        None where the two share no replicate of a task.
    """
    rng = np.random.default_rng(0)
    clusters = [own.mean(axis=1).to_numpy() for own in _won(first, second)]
    if not clusters:
        return None
    values = np.array([own.mean() for own in clusters])
    draws = np.empty((DRAWS, len(clusters) + 1))
    for k, own in enumerate(clusters):
        draws[:, k] = rng.multinomial(len(own), np.full(len(own), 1 / len(own)), size=DRAWS) @ own / len(own)
    weights = rng.dirichlet(np.ones(len(clusters) + 1), size=DRAWS)
    ends = []
    for extreme, tail in ((0.0, TAIL), (1.0, 1 - TAIL)):
        draws[:, -1] = extreme
        ends.append(min(float(np.quantile((weights * draws).sum(1), tail)), 1.0))  # sums may round up
    return Estimate(float(values.mean()), ends[0], ends[1])


def improvements(scores: Mapping[str, Mapping[TaskKey, pd.Series]]) -> dict[Pair, Estimate]:
    """`probability_of_improvement` of the first of each ordered pair of methods over the second.

    Args:
        scores: by method, task and replicate, greater is better. Of a pair, the tasks that both methods have
            count; a pair without a common replicate is left out.
    """
    found: dict[Pair, Estimate] = {}
    for first, second in itertools.combinations(scores, 2):
        one = probability_of_improvement(scores[first], scores[second])
        if one is not None:
            found |= {(first, second): one, (second, first): one.reversed()}
    return found


def surely_better(scores: Mapping[str, Mapping[TaskKey, pd.Series]]) -> set[Pair]:
    """Pairs of methods whose probability of improvement differs from ½ for other replicates on these tasks.

    The tests are those of `simultaneous_p`, over all pairs, with replicates as rows: in each, the probability
    of improvement of a pair less ½. Tasks are fixed.

    Args:
        scores: as for `improvements`.
    """
    pairs, columns = [], []
    for pair in itertools.combinations(scores, 2):
        if clusters := _won(*(scores[name] for name in pair)):
            pairs.append(pair)
            # Their sum over replicates is that of the data sets' probabilities, less ½ each.
            parts = [(own.mean(axis=1) - 0.5) / len(own) for own in clusters]
            columns.append(pd.concat(parts, axis=1).sum(axis=1))
    if not pairs:
        return set()
    table = pd.concat(columns, axis=1).fillna(0.0).to_numpy()
    found = set()
    for (first, second), total, p in zip(pairs, table.sum(0), simultaneous_p(table), strict=True):
        if p < LEVEL:
            found.add((first, second) if total > 0 else (second, first))
    return found


def better_on_task(values: Mapping[str, pd.Series], *, higher_is_better: bool) -> set[Pair]:
    """Pairs of methods whose means differ on a task beyond chance, by `pairwise_p`.

    Args:
        values: of a measure by method, each by seed; none empty.
        higher_is_better: direction of the measure.
    """
    score = {name: (1 if higher_is_better else -1) * own for name, own in values.items()}
    found = set()
    for pair, p in pairwise_p(score).items():
        if p is not None and p < LEVEL:
            first, second = sorted(pair)
            won = (score[first] - score[second]).mean() > 0
            found.add((first, second) if won else (second, first))
    return found


def ranks(methods: Sequence[str], better: AbstractSet[Pair]) -> dict[str, Rank]:
    """Rank of each method, 1 + the number of surely better ones, and the confidence set of its rank.

    The set reaches to n less the number of surely worse methods. As `better` is of simultaneous tests of all
    pairs, the sets hold for all methods at once (Mogstad et al. 2024).

    Args:
        methods: their names, n.
        better: of `surely_better` or `better_on_task`.

    Examples:
        >>> found = ranks("abc", {("a", "c"), ("b", "c")})
        >>> [tuple(found[name]) for name in "abc"]
        [(1, 2), (1, 2), (3, 3)]
    """
    winners = [first for first, second in better if {first, second} <= {*methods}]
    losers = [second for first, second in better if {first, second} <= {*methods}]
    return {name: Rank(1 + losers.count(name), len(methods) - winners.count(name)) for name in methods}


def _clusters(scores: Mapping[TaskKey, pd.Series]) -> list[pd.DataFrame]:
    """Scores by data set: a row per replicate, a column per task, NaN where it has none."""
    found: dict[str, list[pd.Series]] = {}
    for (dataset, _), own in scores.items():
        found.setdefault(dataset, []).append(own)
    return [pd.concat(own, axis=1) for own in found.values()]


def _won(first: Mapping[TaskKey, pd.Series], second: Mapping[TaskKey, pd.Series]) -> list[pd.DataFrame]:
    """As `_clusters`: 1 where the first is better, ½ where both are equal, else 0."""
    won: dict[TaskKey, pd.Series] = {}
    for key in first:
        if key in second:
            apart = (first[key] - second[key]).dropna()
            if len(apart):
                won[key] = (np.sign(apart) + 1) / 2
    return _clusters(won)
