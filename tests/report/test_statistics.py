import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairall.report import LEVEL, holm, measures, paired_difference, paired_p, pairwise_p, simultaneous_p
from fairall.report.statistics import standings


@settings(deadline=None)
@given(st.lists(st.floats(0, 1), max_size=8))
def test_holm_is_the_largest_of_the_smaller_ones_by_how_many_are_left(values: list[float]) -> None:
    expected = [
        min(1.0, max(sum(other >= p for other in values) * p for p in values if p <= value))
        for value in values
    ]
    assert holm([None, *values]) == pytest.approx([None, *expected])


@settings(deadline=None)
@given(st.lists(st.integers(-5, 5), min_size=2, max_size=7))
def test_the_paired_test_is_the_share_of_signs_as_extreme(differences: list[int]) -> None:
    first = pd.Series(differences, dtype=float)
    different = first[first != 0]  # equal pairs, as of seeds that accept nobody, are left out
    ranks = different.abs().rank().to_numpy()
    centre = ranks.sum() / 2
    observed = abs(ranks[different.to_numpy() > 0].sum() - centre)
    sums = [np.dot(signs, ranks) for signs in itertools.product((0, 1), repeat=len(ranks))]
    share = np.mean([abs(total - centre) >= observed - 1e-9 for total in sums])
    assert paired_p(first, 0.0 * first) == pytest.approx(share)


def test_the_paired_test_pairs_by_seed() -> None:
    generator = np.random.default_rng(0)
    second = pd.Series(generator.normal(0, 10, 10), index=range(10))
    first = (second + generator.uniform(0.1, 0.2, 10)).sample(frac=1, random_state=1)
    assert paired_p(first, second) == pytest.approx(2 / 1024)
    # Seeds that only one has do not count.
    assert paired_p(first, second.drop([3, 4])) == pytest.approx(2 / 256)
    assert paired_p(first, second.iloc[:1]) is None
    fifty = pd.Series(np.arange(1.0, 51.0))
    assert paired_p(fifty, 0.0 * fifty) == pytest.approx(2 / 2**50)  # exact


def test_simultaneous_p_of_one_hypothesis_is_the_share_of_signs_as_extreme() -> None:
    values = np.array([1.3, -0.2, 0.8, 0.4, 2.0, -0.5])
    sums = [abs(np.dot(signs, values)) for signs in itertools.product((-1, 1), repeat=6)]
    share = np.mean([total >= abs(values.sum()) - 1e-9 for total in sums])
    assert simultaneous_p(values[:, None]) == pytest.approx([share])


def test_simultaneous_p_by_stepdown() -> None:
    rng = np.random.default_rng(0)
    one, two = 5 + rng.normal(size=8), 0.8 + rng.normal(size=8)
    both = simultaneous_p(np.stack([two, one, 0 * one], 1))
    # The sure hypothesis is corrected for the family, and the other one for what is left of it.
    assert both[1] == 2 / 2**8
    assert both[0] == simultaneous_p(np.stack([two, 0 * one], 1))[0]
    assert both[2] == 1.0
    assert both[0] <= simultaneous_p(np.stack([two, -two, rng.normal(size=8)], 1))[0]


def test_pairs_that_share_no_seeds_are_not_compared() -> None:
    first, second = pd.Series([1.0, 2.0, 3.0]), pd.Series([0.0, 0.5], index=[2, 7])
    third = first - pd.Series([1.0, 1.2, 0.9])
    found = pairwise_p({"a": first, "b": second, "c": third})
    assert found == {frozenset("ab"): None, frozenset("ac"): 2 / 2**3, frozenset("bc"): None}
    assert pairwise_p({"a": first}) == {}
    difference = paired_difference(first, second[::-1])
    assert (difference and difference.mean) == 3.0


def test_the_test_against_the_best_holds_its_level() -> None:
    """Six identical runs of ten seeds: which is the best is chance, and so is each significance."""
    rng = np.random.default_rng(0)
    (measure,) = measures("effective_utility")
    boards = 200
    rejected = 0
    for _ in range(boards):
        seed = rng.normal(size=10)
        runs = {name: pd.Series(seed + rng.normal(size=10)) for name in "abcdef"}
        found = standings(runs, measure, baseline="a")
        rejected += any(one["p_rival"] < LEVEL for one in found.values())
    assert rejected / boards <= LEVEL + 2 * np.sqrt(LEVEL * (1 - LEVEL) / boards)
    runs["b"] += 4.0
    found = standings(runs, measure, baseline="a")
    assert found["b"]["best"]
    assert all(one["p_rival"] < LEVEL for name, one in found.items() if name != "b")
