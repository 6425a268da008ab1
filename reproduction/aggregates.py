"""Aggregates of scores over tasks with bootstrap intervals (Agarwal et al. 2021), and ranks with ties.

References:
    Agarwal, R., Schwarzer, M., Castro, P. S., Courville, A. and Bellemare, M. G. (2021). Deep reinforcement
    learning at the edge of the statistical precipice. NeurIPS.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeVar

import numpy as np
import pandas as pd
from scipy.stats import trim_mean

from fairall.report import LEVEL, holm, paired_p

DRAWS = 2000  # of the bootstrap
QUANTILES = (0.025, 0.975)  # ends of its intervals
TRIMMED = 0.25  # share of the scores that an interquartile mean leaves out at either end

TaskKey = TypeVar("TaskKey")


class Estimate(NamedTuple):
    """An aggregate and the ends of its 95 % interval."""

    value: float
    low: float
    high: float

    def reversed(self) -> Estimate:
        """One less the aggregate: the probability of the opposite."""
        return Estimate(1.0 - self.value, 1.0 - self.high, 1.0 - self.low)


def interquartile_mean(scores: Sequence[np.ndarray]) -> Estimate:
    """Mean of the middle half of all scores, and its percentile interval.

    The bootstrap is stratified: each draw takes as many seeds of every task as there are, with replacement.
    The tasks are fixed. The same scores give the same interval.

    Args:
        scores: of a method, an array (n_k,) over the seeds of each task k; at least one, none empty.
    """
    rng = np.random.default_rng(0)
    drawn = [own[rng.integers(len(own), size=(DRAWS, len(own)))] for own in scores]
    low, high = np.quantile(trim_mean(np.concatenate(drawn, axis=1), TRIMMED, axis=1), QUANTILES)
    return Estimate(float(trim_mean(np.concatenate(scores), TRIMMED)), float(low), float(high))


def probability_of_improvement(first: Sequence[np.ndarray], second: Sequence[np.ndarray]) -> Estimate:
    """P(X > Y) + ½ P(X = Y) for a random seed each of two methods on the same task, averaged over tasks.

    Of a task, the Mann–Whitney statistic U by the number of pairs of seeds. Seeds are not paired, as in
    section 4.3 of the paper; the bootstrap is that of `interquartile_mean`, independent for both methods.

    Args:
        first: scores X by task, as for `interquartile_mean`; greater is better.
        second: scores Y of the same tasks.
    """
    rng = np.random.default_rng(0)

    def counts(n: int) -> np.ndarray:
        """How often each of n seeds is drawn, shape (DRAWS, n)."""
        return rng.multinomial(n, np.full(n, 1.0 / n), size=DRAWS)

    values, draws = [], []
    for x, y in zip(first, second, strict=True):
        wins = (x[:, None] > y) + 0.5 * (x[:, None] == y)
        values.append(wins.mean())
        draws.append(((counts(len(x)) @ wins) * counts(len(y))).sum(1) / wins.size)
    low, high = np.quantile(np.mean(draws, axis=0), QUANTILES)
    return Estimate(float(np.mean(values)), float(low), float(high))


def improvements(scores: Mapping[str, Mapping[TaskKey, np.ndarray]]) -> dict[tuple[str, str], Estimate]:
    """`probability_of_improvement` of the first of each ordered pair of methods over the second.

    Args:
        scores: by method and task, greater is better. Of a pair, the tasks that both methods have count;
            a pair without such a task is left out.
    """
    found: dict[tuple[str, str], Estimate] = {}
    for first, second in itertools.combinations(scores, 2):
        shared = [task for task in scores[first] if task in scores[second]]
        if shared:
            one = probability_of_improvement(
                *([scores[name][task] for task in shared] for name in (first, second))
            )
            found |= {(first, second): one, (second, first): one.reversed()}
    return found


def overall_ranks(methods: Sequence[str], better: Mapping[tuple[str, str], Estimate]) -> dict[str, int]:
    """Rank of each method: 1 + the number of methods that are better than it.

    Another method is better where the whole interval of its probability of improvement is above ½.

    Args:
        methods: their names.
        better: of `improvements`.

    Examples:
        >>> sure, open_ = Estimate(0.9, 0.8, 1.0), Estimate(0.6, 0.4, 0.8)
        >>> pairs = {("a", "c"): sure, ("b", "c"): sure, ("a", "b"): open_}
        >>> overall_ranks("abc", pairs | {(y, x): one.reversed() for (x, y), one in pairs.items()})
        {'a': 1, 'b': 1, 'c': 3}
    """
    return {
        name: 1 + sum(better[pair].low > 0.5 for pair in better if pair[1] == name and pair[0] in methods)
        for name in methods
    }


def task_ranks(values: Mapping[str, pd.Series], *, higher_is_better: bool) -> dict[str, int]:
    """Rank of each method on a task: 1 + the number of methods that are significantly better than it.

    A method is compared with each of the others by `statistics.paired_p`, Holm-corrected over those
    comparisons. Over all pairs ten seeds could not tell any of more than seven methods apart, since their
    smallest p is 2/1024; corrected over the comparisons of one method, they can tell up to 26 apart.

    Args:
        values: of a measure by method, each by seed; none empty.
        higher_is_better: direction of the measure.
    """
    score = {name: (1 if higher_is_better else -1) * own.mean() for name, own in values.items()}
    p = {
        frozenset(pair): paired_p(*(values[name] for name in pair))
        for pair in itertools.combinations(values, 2)
    }
    ranks = {}
    for name in values:
        others = [other for other in values if other != name]
        corrected = holm([p[frozenset((name, other))] for other in others])
        of_others = zip(others, corrected, strict=True)
        differing = [other for other, of in of_others if of is not None and of < LEVEL]
        ranks[name] = 1 + sum(bool(score[other] > score[name]) for other in differing)
    return ranks
