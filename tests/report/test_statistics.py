import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import wilcoxon

from fairall.report import holm, paired_p


def test_holm_by_hand() -> None:
    # Sorted 0.01, 0.02, 0.03, 0.04: times 4, 3, 2, 1, and never less than before.
    assert holm([0.04, 0.01, None, 0.03, 0.02]) == pytest.approx([0.06, 0.04, None, 0.06, 0.06])
    assert holm([0.6, 0.9]) == [1.0, 1.0]
    assert holm([]) == []


@settings(deadline=None)
@given(st.lists(st.floats(0, 1), max_size=8), st.randoms())
def test_holm_only_raises_and_knows_no_order(values: list[float], random: object) -> None:
    corrected = holm(values)
    for p, q in zip(values, corrected, strict=True):
        assert q is not None
        assert p <= q <= 1
    order = list(range(len(values)))
    random.shuffle(order)  # type: ignore[attr-defined]
    assert holm([values[i] for i in order]) == [corrected[i] for i in order]
    if values:
        assert min(q for q in corrected if q is not None) == min(1.0, len(values) * min(values))


@settings(deadline=None)
@given(st.lists(st.integers(-50, 50).filter(bool), min_size=2, max_size=7, unique_by=abs))
def test_the_paired_test_is_the_share_of_signs_as_extreme(differences: list[int]) -> None:
    first = pd.Series(differences, dtype=float)
    ranks = first.abs().rank().to_numpy()
    centre = ranks.sum() / 2
    observed = abs(ranks[first.to_numpy() > 0].sum() - centre)
    sums = [np.dot(signs, ranks) for signs in itertools.product((0, 1), repeat=len(ranks))]
    share = np.mean([abs(total - centre) >= observed - 1e-9 for total in sums])
    assert paired_p(first, pd.Series(0.0, index=first.index)) == pytest.approx(share)


def test_the_paired_test_pairs_by_seed() -> None:
    generator = np.random.default_rng(0)
    second = pd.Series(generator.normal(0, 10, 10), index=range(10))
    first = (second + generator.uniform(0.1, 0.2, 10)).sample(frac=1, random_state=1)
    assert paired_p(first, second) == pytest.approx(2 / 1024)
    # Seeds that only one has do not count.
    assert paired_p(first, second.drop([3, 4])) == pytest.approx(2 / 256)
    assert paired_p(first, second.iloc[:1]) is None
    assert paired_p(second, second) == 1.0


def test_the_paired_test_of_fifty_seeds_is_exact() -> None:
    first = pd.Series(np.arange(1.0, 51.0))
    assert paired_p(first, 0.0 * first) == pytest.approx(2 / 2**50)


def test_equal_pairs_are_left_out_of_the_paired_test() -> None:
    # Seeds that accept nobody with either method have equal values.
    differences = np.random.default_rng(0).normal(0.3, 1.0, 40)
    first = pd.Series([*differences, *[0.0] * 10])
    approximate = wilcoxon(differences, method="asymptotic").pvalue
    assert paired_p(first, 0.0 * first) == pytest.approx(approximate)
    few = pd.Series([1.0, 2.0, 3.0, 4.0, 5.0, 0.0, 0.0])
    assert paired_p(few, 0.0 * few) == pytest.approx(2 / 2**5)
    assert paired_p(few * 0.0, few * 0.0) == 1.0
