import itertools
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import wilcoxon

from fairall.report.statistics import holm, paired_p, predictive_intervals, predictive_pooled_std


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


@pytest.mark.parametrize(
    ("draw", "of_means", "of_deviations"),
    [
        pytest.param(lambda rng, size: rng.normal(3.0, 2.0, size), 0.935, 0.92, id="normal"),
        pytest.param(lambda rng, size: rng.gamma(2.0, 1.0, size), 0.93, 0.89, id="gamma"),
    ],
)
def test_coverage_of_predictive_intervals(
    draw: Callable[..., np.ndarray], of_means: float, of_deviations: float
) -> None:
    """Shares of new samples of ten whose mean and standard deviation the intervals contain.

    Without the uncertainty of the fifty values, means of a normal distribution would have 0.92.
    """
    rng = np.random.default_rng(0)
    covered = []
    for _ in range(400):
        found = predictive_intervals(draw(rng, 50), 10)
        new = draw(rng, (200, 10))
        statistics = ((found.mean, new.mean(1)), (found.std, new.std(1, ddof=1)))
        covered.append([np.mean((low <= new) & (new <= high)) for (low, high), new in statistics])
    means, deviations = np.mean(covered, axis=0)
    assert of_means < means < 0.96
    assert of_deviations < deviations < 0.96


def test_coverage_of_predictive_intervals_of_a_pooled_deviation() -> None:
    rng = np.random.default_rng(2)

    def draw(n: int) -> np.ndarray:
        # Seeds differ by 1, time steps of a seed by 0.7.
        return rng.normal(size=(n, 1)) + 0.7 * rng.normal(size=(n, 76))

    covered = []
    for _ in range(100):
        low, high = predictive_pooled_std(draw(50), 10)
        covered += [low <= draw(10).std() <= high for _ in range(30)]
    assert 0.9 < np.mean(covered) < 0.96


def test_a_pooled_deviation_of_one_series_is_its_own() -> None:
    series = np.tile([1.0, 3.0, 5.0], (4, 1))
    assert predictive_pooled_std(series, 10) == pytest.approx((series.std(), series.std()))


def test_predictive_intervals_are_the_same_twice_and_follow_the_unit() -> None:
    values = np.random.default_rng(1).normal(0.2, 0.01, 12)
    once = predictive_intervals(values, 10)
    assert predictive_intervals(values, 10) == once
    hundredfold = predictive_intervals(100 * values + 1, 10)
    assert hundredfold.mean == pytest.approx([100 * end + 1 for end in once.mean])
    assert hundredfold.std == pytest.approx([100 * end for end in once.std])
    constant = predictive_intervals(np.full(10, 0.5), 10)
    assert constant.mean == (0.5, 0.5)
    assert constant.std == (0.0, 0.0)
