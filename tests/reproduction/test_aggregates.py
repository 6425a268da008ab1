from collections.abc import Iterable

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta, trim_mean

from reproduction.aggregates import (
    differences,
    improved,
    improvements,
    interquartile_mean,
    middle,
    probability_of_improvement,
    ranks,
    surely_better,
)


def scores(*of: Iterable[float], policy: str = "harsh") -> pd.Series:
    """Scores of a method by data set: one task each."""
    tasks = {(f"data {k}", policy): pd.Series([*own], dtype=float) for k, own in enumerate(of)}
    return pd.concat(tasks, names=["dataset", "initial_policy", "seed"])


@given(st.lists(st.tuples(st.integers(-9, 9), st.integers(0, 3)), min_size=1, max_size=9))
def test_the_interquartile_mean_by_weight_is_that_of_repeated_scores(drawn: list[tuple[int, int]]) -> None:
    values, weights = np.array(drawn, dtype=float).T
    repeated = np.repeat(values, 4 * weights.astype(int))  # so that a quarter is a whole number of scores
    if len(repeated):
        assert middle(values, weights) == pytest.approx(trim_mean(repeated, 0.25))


def test_there_is_no_interval_where_nothing_varies() -> None:
    # The middle half of all scores together, not of each task.
    assert interquartile_mean(scores([0.0, 1.0], [2.0, 100.0])).value == 1.5
    for equal in (scores([2.0]), scores([2.0, 2.0], [2.0, 2.0])):
        assert interquartile_mean(equal) == pytest.approx((2.0, np.nan, np.nan), nan_ok=True)
    # Within data sets nothing varies, between them it does.
    _, low, high = interquartile_mean(scores([1.0] * 5, [9.0] * 5))
    assert low < high


def test_initial_policies_of_a_data_set_are_one_cluster() -> None:
    of = np.random.default_rng(0).normal([[0.0], [1.0], [5.0]], size=(3, 20))
    once = scores(*of)
    twice = pd.concat([once, scores(*of, policy="lenient")])
    for estimate in (interquartile_mean, probability_of_improvement):
        assert estimate(twice) == pytest.approx(estimate(once))


def test_intervals_cover_other_data_sets() -> None:
    """Seven data sets that differ more than their replicates; a method that is better in a share of them."""
    rng = np.random.default_rng(1)
    covered = []
    for _ in range(60):
        _, low, high = interquartile_mean(scores(*rng.normal(rng.normal(0, 3, (7, 1)), size=(7, 10))))
        one = probability_of_improvement(scores(*(rng.uniform(size=(7, 1)) - rng.uniform(size=(7, 20)))))
        covered.append((low <= 0 <= high, one.low <= 0.5 <= one.high))
    # Of 60 replicates with a coverage of 0.95 and 0.98, fewer hold with a probability below 1 %.
    assert (np.mean(covered, axis=0) >= (0.86, 0.91)).all()


@pytest.mark.parametrize("won", range(0, 8, 2))
def test_of_data_sets_won_or_lost_the_interval_is_clopper_and_pearsons(won: int) -> None:
    value, low, high = probability_of_improvement(scores(*[[1.0] * 5] * won, *[[-1.0] * 5] * (7 - won)))
    assert value == won / 7
    assert low == pytest.approx(beta.ppf(0.025, won, 8 - won) if won else 0.0, abs=0.02)
    assert high == pytest.approx(beta.ppf(0.975, won + 1, 7 - won), abs=0.02)


def test_methods_are_compared_in_the_replicates_that_both_have() -> None:
    base = scores(*np.random.default_rng(0).normal(0, 9, (2, 20)))  # splits differ by far more than methods
    first, last = base.index.get_level_values("dataset") == "data 0", base.index[-1]
    table = pd.DataFrame({"a": base + 0.1, "b": base[first], "c": base.drop(last), "d": base[~first]})
    apart = differences(table)
    assert apart.keys() == {("a", "b"), ("a", "c"), ("a", "d"), ("b", "c"), ("c", "d")}
    assert last not in apart["a", "c"].index
    found = improvements(apart)
    assert [found[pair].value for pair in (("a", "c"), ("a", "b"), ("c", "d"))] == [1.0, 1.0, 0.5]
    assert found["c", "a"] == found["a", "c"].reversed()
    better = {("a", "b"), ("a", "c"), ("a", "d")}
    assert surely_better({pair: improved(own) for pair, own in apart.items()}) == better
    assert surely_better({pair[::-1]: -improved(own) for pair, own in apart.items()}) == better
    assert surely_better({}) == set()
    assert ranks("abcd", better) == {"a": (1, 1)} | dict.fromkeys("bcd", (2, 4))
