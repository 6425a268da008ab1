"""Aggregates of scores over data sets with bootstrap intervals, and ranks with ties and confidence sets.

Data sets are what is drawn; replicates are drawn within. A replicate has the same seed and split with every
method.

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
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.special import ndtr, stdtrit

from fairall.metrics import Spread
from fairall.report import LEVEL, simultaneous_p

DRAWS = 4000  # of the bootstrap
TAIL = 0.025  # on either side of its intervals
TRIMMED = 0.25  # share of the scores that an interquartile mean leaves out at either end

Pair = tuple[str, str]
"""Two methods; of those that differ the better one first."""


class Rank(NamedTuple):
    """The ends of the confidence set of a rank, of which `best` is the rank that is shown."""

    best: int
    worst: int


def middle(scores: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Interquartile mean: the mean of the middle half of some scores by weight.

    Args:
        scores: shape (n,).
        weights: shape (..., n), not negative.

    Returns:
        Shape (...).
    """
    order = np.argsort(scores)
    below = np.cumsum(weights[..., order], axis=-1)
    total = below[..., -1:]
    inside = np.clip(below, TRIMMED * total, (1 - TRIMMED) * total)
    kept = np.diff(inside, axis=-1, prepend=TRIMMED * total)
    return (kept * scores[order]).sum(-1) / kept.sum(-1)


def interquartile_mean(scores: pd.Series) -> Spread:
    """Mean of the middle half of all scores, and its percentile interval; none where all scores are equal.

    A draw of the bootstrap takes as many data sets as there are, with replacement, and as many replicates of
    each. With few data sets such an interval is too narrow: its percentiles are those at which an interval of
    a mean would have Student's width (Hesterberg 2015, section 5.3). Of a single data set the interval is
    about other replicates only. The same scores give the same interval.

    Args:
        scores: of a method by data set and replicate; at least one, all finite.
    """
    rng, sizes = np.random.default_rng(0), [*scores.groupby(level="dataset", sort=False).size()]
    times = _drawn(rng, np.ones(DRAWS, dtype=int), len(sizes)).T
    weights = [_drawn(rng, of, size) for of, size in zip(times, sizes, strict=True)]
    every = scores.to_numpy()
    value = float(middle(every, np.ones(len(every))))
    n = len(sizes) if len(sizes) > 1 else len(every)
    if n < 2 or np.ptp(every) == 0:
        return Spread(value, None, None)
    tail = float(ndtr(stdtrit(n - 1, TAIL) * math.sqrt(n / (n - 1))))
    low, high = np.quantile(middle(every, np.concatenate(weights, axis=1)), (tail, 1 - tail)).tolist()
    return Spread(value, None, (low, high))


def differences(scores: pd.DataFrame) -> pd.DataFrame:
    """By how much the first of each pair of methods is better, a column per pair; NaN where one has no value.

    Args:
        scores: a column per method; greater is better.

    Returns:
        Pairs that share no row are left out.
    """
    pairs = itertools.combinations(scores, 2)
    apart = {(one, other): scores[one] - scores[other] for one, other in pairs}
    return pd.DataFrame(apart, scores.index).dropna(axis=1, how="all")


def probability_of_improvement(apart: pd.Series) -> Spread:
    """P(X > Y) + ½ P(X = Y) of two methods for a random replicate, averaged over data sets.

    Unlike section 4.3 of Agarwal et al. (2021), X and Y are of the same replicate: the same split and
    applicants. The interval is Gaffke's (2005): a Bayesian bootstrap over data sets, whose replicates are
    drawn as in `interquartile_mean`, beside which one further data set has 0 for the lower end and 1 for the
    upper one. Of probabilities that are 0 or 1 it is that of Clopper and Pearson; that it covers otherwise
    too is conjectured (Phan et al. 2021). It is never of width 0: n data sets that agree exclude no more than
    what is below 0.025^(1/n).

    Args:
        apart: X − Y by data set and replicate, NaN where one has no value.
    """
    first = (np.sign(apart.dropna()) + 1) / 2  # 1 where the first is better, ½ where equal, else 0
    won = [own.droplevel("dataset") for _, own in first.groupby(level="dataset", sort=False)]
    rng, n = np.random.default_rng(0), len(won)
    draws = [_drawn(rng, np.ones(DRAWS, dtype=int), len(own)) @ own / len(own) for own in won]
    weights = rng.dirichlet(np.ones(n + 1), size=DRAWS)
    known = (weights[:, :n].T * draws).sum(0)
    low, high = np.quantile(known, TAIL), np.quantile(known + weights[:, n], 1 - TAIL)
    value = float(np.mean([own.mean() for own in won]))
    return Spread(value, None, (float(low), min(float(high), 1.0)))  # sums may round up


def improved(apart: pd.DataFrame) -> pd.DataFrame:
    """Probability of improvement of each pair by replicate, less ½; its mean is that over data sets.

    Args:
        apart: of `differences`, by data set and replicate; data sets are fixed.
    """
    won = np.sign(apart) / 2
    return (won / won.groupby(level="dataset").transform("count")).groupby(level="seed", sort=False).sum()


def shares_won(apart: pd.DataFrame) -> pd.Series:
    """The mean of `probability_of_improvement` of each ordered pair of methods."""
    won = ((np.sign(apart) + 1) / 2).groupby(level="dataset", sort=False).mean().mean()
    return pd.concat([won, (1 - won).swaplevel()])


def surely_better(apart: pd.DataFrame) -> set[Pair]:
    """Pairs of methods that differ beyond the chance of replicates, by `simultaneous_p` over all pairs.

    Args:
        apart: by how much the first of a pair is better, a row per replicate.
    """
    if apart.empty:
        return set()
    table = apart.fillna(0.0)
    totals = zip(table, table.sum(), simultaneous_p(table.to_numpy()), strict=True)
    return {pair if total > 0 else pair[::-1] for pair, total, p in totals if p < LEVEL}


def ranks(methods: Sequence[str], better: AbstractSet[Pair]) -> dict[str, Rank]:
    """Rank of each method, 1 + the number of surely better ones, and the confidence set of its rank.

    The set reaches to n less the number of surely worse methods. As `better` is of simultaneous tests of all
    pairs, the sets hold for all methods at once (Mogstad et al. 2024).

    Args:
        methods: their names, n.
        better: of `surely_better`, pairs of these.

    Examples:
        >>> found = ranks("abc", {("a", "c"), ("b", "c")})
        >>> [tuple(found[name]) for name in "abc"]
        [(1, 2), (1, 2), (3, 3)]
    """
    winners, losers = ([pair[k] for pair in better] for k in (0, 1))
    return {name: Rank(1 + losers.count(name), len(methods) - winners.count(name)) for name in methods}


def _drawn(rng: np.random.Generator, times: np.ndarray, n: int) -> np.ndarray:
    """How often each of n is drawn, in draws of so many times n with replacement, shape (draws, n)."""
    return rng.multinomial(times * n, np.full(n, 1 / n))
