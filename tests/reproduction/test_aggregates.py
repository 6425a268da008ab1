from collections.abc import Iterable

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta, trim_mean

from fairall.metrics import Spread
from reproduction.aggregates import (
    differences,
    improved,
    interquartile_mean,
    middle,
    probability_of_improvement,
    ranks,
    shares_won,
    surely_better,
)


def scores(*of: Iterable[float]) -> pd.Series:
    """Scores of a method by data set."""
    tasks = {f"data {k}": pd.Series([*own], dtype=float) for k, own in enumerate(of)}
    return pd.concat(tasks, names=["dataset", "seed"])


def ends(of: Spread) -> tuple[float, float]:
    """Ends of an interval, which there is."""
    assert of.interval
    return of.interval


@given(st.lists(st.tuples(st.integers(-9, 9), st.integers(0, 3)), min_size=1, max_size=9))
def test_the_interquartile_mean_by_weight_is_that_of_repeated_scores(drawn: list[tuple[int, int]]) -> None:
    values, weights = np.array(drawn, dtype=float).T
    repeated = np.repeat(values, 4 * weights.astype(int))  # so that a quarter is a whole number of scores
    if len(repeated):
        assert middle(values, weights) == pytest.approx(trim_mean(repeated, 0.25))


def test_there_is_no_interval_where_nothing_varies() -> None:
    # The middle half of all scores together, not of each task.
    assert interquartile_mean(scores([0.0, 1.0], [2.0, 100.0])).mean == 1.5
    for equal in (scores([2.0]), scores([2.0, 2.0], [2.0, 2.0])):
        assert interquartile_mean(equal) == Spread(2.0, None, None)
    # Within data sets nothing varies, between them it does.
    low, high = ends(interquartile_mean(scores([1.0] * 5, [9.0] * 5)))
    assert low < high


def test_intervals_cover_other_data_sets() -> None:
    """Seven data sets that differ more than their replicates; a method that is better in a share of them."""
    rng = np.random.default_rng(1)
    covered = []
    for _ in range(60):
        low, high = ends(interquartile_mean(scores(*rng.normal(rng.normal(0, 3, (7, 1)), size=(7, 10)))))
        apart = scores(*(rng.uniform(size=(7, 1)) - rng.uniform(size=(7, 20))))
        least, most = ends(probability_of_improvement(apart))
        covered.append((low <= 0 <= high, least <= 0.5 <= most))
    # Of 60 replicates with a coverage of 0.95 and 0.98, fewer hold with a probability below 1 %.
    assert (np.mean(covered, axis=0) >= (0.86, 0.91)).all()


@pytest.mark.parametrize("won", range(0, 8, 2))
def test_of_data_sets_won_or_lost_the_interval_is_clopper_and_pearsons(won: int) -> None:
    found = probability_of_improvement(scores(*[[1.0] * 5] * won, *[[-1.0] * 5] * (7 - won)))
    assert found.mean == won / 7
    exact = beta.ppf(0.025, won, 8 - won) if won else 0.0, beta.ppf(0.975, won + 1, 7 - won)
    assert ends(found) == pytest.approx(exact, abs=0.02)


def test_methods_are_compared_in_the_replicates_that_both_have() -> None:
    base = scores(*np.random.default_rng(0).normal(0, 9, (2, 20)))  # splits differ by far more than methods
    first, last = base.index.get_level_values("dataset") == "data 0", base.index[-1]
    table = pd.DataFrame({"a": base + 0.1, "b": base[first], "c": base.drop(last), "d": base[~first]})
    apart = differences(table)
    assert {*apart} == {("a", "b"), ("a", "c"), ("a", "d"), ("b", "c"), ("c", "d")}
    assert [shares_won(apart)[*pair] for pair in ("ac", "ab", "cd", "ca")] == [1.0, 1.0, 0.5, 0.0]
    better = {("a", "b"), ("a", "c"), ("a", "d")}
    assert surely_better(improved(apart)) == surely_better(improved(differences(table[[*"dcba"]]))) == better
    assert surely_better(improved(apart[[]])) == set()
    assert ranks("abcd", better) == {"a": (1, 1)} | dict.fromkeys("bcd", (2, 4))
