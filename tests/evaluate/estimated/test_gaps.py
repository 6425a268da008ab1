"""Inference on gaps, by simulated normal rates of known covariance."""

from collections.abc import Iterator

import numpy as np
import pytest

from fairall.evaluate.estimated.gaps import (
    gap,
    gap_difference,
    gap_interval,
    interval,
    joint_normal,
    of_pairs,
)
from fairall.evaluate.estimated.influence import Estimate, Z
from fairall.measuring.sequences import LEVEL

OFTEN = 0.92
TIMES = {2: 1000, 5: 80}  # by number of groups: draws of the noise of many take long


def covariance(seed: int, size: int, error: float = 0.04) -> np.ndarray:
    """Factor L, shape (K, K), of a covariance L Lᵀ with unequal, correlated errors of about `error`."""
    draw = np.random.default_rng(seed)
    return error * (np.diag(draw.uniform(0.7, 1.3, size)) + 0.2 * draw.normal(size=(size, size)))


def simulated(truth: np.ndarray, factor: np.ndarray, times: int) -> Iterator[Estimate]:
    draw = np.random.default_rng(len(truth))
    for _ in range(times):
        yield Estimate(truth + factor @ draw.standard_normal(factor.shape[1]), factor)


def split(both: Estimate) -> tuple[Estimate, Estimate]:
    half = len(both.value) // 2
    return both[:half], both[half:]


def test_intervals_that_hold_together_cover_together() -> None:
    draws = np.random.default_rng(0).normal(size=(100_000, 6))
    assert joint_normal(1) == pytest.approx(Z)
    assert (np.abs(draws) <= joint_normal(6)).all(1).mean() == pytest.approx(LEVEL, abs=0.003)
    range_ = np.ptp(draws, axis=1) / np.sqrt(2.0)
    k = of_pairs(Estimate(np.zeros(6), np.eye(6)))
    assert k == joint_normal(15)
    assert LEVEL <= (range_ <= k).mean() <= 0.97


def test_a_gap_is_the_largest_difference() -> None:
    assert gap(np.array([[0.1, 0.5, 0.4], [0.2, np.nan, 0.3]])) == pytest.approx([0.4, np.nan], nan_ok=True)
    found = interval(Estimate(np.array([0.3, 0.5]), np.array([[0.1, 0.0], [0.03, 0.04]])), 1)
    assert found[:3] == pytest.approx((0.5, 0.5 - Z * 0.05, 0.5 + Z * 0.05))


def test_the_interval_of_two_groups_is_that_of_the_difference_cut_at_0() -> None:
    rates = Estimate(np.array([0.5, 0.8]), 0.03 * np.eye(2))
    half = Z * 0.03 * np.sqrt(2)
    assert gap_interval(rates)[:3] == pytest.approx((0.3, 0.3 - half, 0.3 + half))
    near = Estimate(np.array([0.5, 0.52]), rates.phi)
    assert gap_interval(near)[:3] == pytest.approx((0.02, 0.0, 0.02 + half))
    assert gap_interval(Estimate(np.array([0.0, 9.0]), rates.phi)).high > 9.0
    assert np.isnan(gap_interval(Estimate(np.array([0.5, np.nan]), rates.phi))[:3]).all()


@pytest.mark.parametrize(
    "truth",
    [
        [0.5, 0.5],
        [0.5, 0.55],
        [0.5, 0.8],
        [0.5] * 5,
        [0.4, 0.5, 0.5, 0.5, 0.6],
        [0.1, 0.5, 0.5, 0.5, 0.9],
    ],
)
def test_intervals_of_gaps_cover(truth: list[float]) -> None:
    factor, size = covariance(1, len(truth)), max(truth) - min(truth)
    found = [gap_interval(rates) for rates in simulated(np.array(truth), factor, TIMES[len(truth)])]
    covered = np.mean([one.low <= size <= one.high for one in found])
    assert covered >= OFTEN
    if len(truth) == 2:
        assert covered <= 0.98
    if size >= 0.3:
        assert np.mean([one.low > 0 for one in found]) > 0.9, "a large gap is found"


def test_intervals_of_bounded_gaps_cover_wherever_the_rates_are() -> None:
    """Imbens and Manski 2004: near the ends one side only can miss."""
    low, high = np.array([0.3, 0.5, 0.6]), np.array([0.35, 0.55, 0.8])
    factor = covariance(2, 6)
    found = [gap_interval(*split(ends)) for ends in simulated(np.append(low, high), factor, 200)]
    for rates in (low, high, np.array([0.35, 0.5, 0.6]), np.array([0.3, 0.52, 0.8])):
        assert np.mean([one.low <= gap(rates) <= one.high for one in found]) >= OFTEN


DIFFERENCES = {  # rates of the first and of the second policy
    "both fair": ([0.5, 0.5], [0.5, 0.5]),
    "first fair": ([0.5, 0.5], [0.5, 0.6]),
    "second fair": ([0.5, 0.6], [0.5, 0.5]),
    "away": ([0.3, 0.7], [0.4, 0.7]),
    "away, other group": ([0.3, 0.7], [0.7, 0.4]),
    "five, fair": ([0.5] * 5, [0.5] * 5),
    "five, first fair": ([0.5] * 5, [0.3, 0.5, 0.5, 0.5, 0.7]),
}


@pytest.mark.parametrize("case", DIFFERENCES)
def test_intervals_of_differences_of_gaps_cover(case: str) -> None:
    first, second = map(np.array, DIFFERENCES[case])
    factor, truth = covariance(4, 2 * len(first), 0.03), gap(second) - gap(first)
    found = [
        gap_difference(*split(both))
        for both in simulated(np.append(first, second), factor, TIMES[len(first)])
    ]
    covered = np.mean([one.low <= truth <= one.high for one in found])
    assert covered >= OFTEN
    if "away" in case and len(first) == 2:
        assert covered <= 0.98
    assert all(one.low <= one.estimate <= one.high for one in found)
    if "fair" in case and truth == 0:
        # Neither of two fair policies is called fairer by more than the level admits.
        fairer = np.array([one.probability for one in found])
        assert max(np.mean(fairer > 0.95), np.mean(fairer < 0.05)) <= 0.08


def test_the_probability_is_uniform_away_from_the_kink_where_the_gaps_are_equal() -> None:
    truth, factor = np.array([0.3, 0.7, 0.35, 0.75]), covariance(5, 4, 0.03)
    fairer = np.array([gap_difference(*split(both)).probability for both in simulated(truth, factor, 1000)])
    for level in (0.05, 0.25, 0.5, 0.75, 0.95):
        assert np.mean(fairer < level) == pytest.approx(level, abs=4 * np.sqrt(level * (1 - level) / 1000))
    surely = simulated(np.array([0.2, 0.8, 0.5, 0.5]), factor, 50)
    assert min(gap_difference(*split(both)).probability or 0 for both in surely) > 0.99


def test_the_probability_belongs_to_the_interval() -> None:
    """It is above 97.5 % where the two-sided 95 % interval is below 0, and the other way round."""
    for groups in (2, 4):
        truth, factor = np.full(2 * groups, 0.5), covariance(7, 2 * groups, 0.03)
        truth[0] = 0.42
        for both in simulated(truth, factor, 60):
            found = gap_difference(*split(both))
            assert found.probability is not None
            assert (found.high < 0) == (found.probability > (1 + LEVEL) / 2)
            assert (found.low > 0) == (found.probability < (1 - LEVEL) / 2)


@pytest.mark.parametrize("groups", [2, 4])
def test_neither_the_order_of_groups_nor_of_policies_matters(groups: int) -> None:
    truth = np.random.default_rng(0).uniform(0.3, 0.7, 2 * groups)
    (both,) = simulated(truth, covariance(8, 2 * groups), 1)
    first, second = split(both)
    found, turned = gap_difference(first, second), gap_difference(second, first)
    assert turned[:3] == pytest.approx((-found.estimate, -found.high, -found.low), abs=1e-12)
    assert turned.probability == pytest.approx(1.0 - (found.probability or 0.0))
    order = np.random.default_rng(1).permutation(groups)
    moved = gap_difference(first[order], second[order])
    # Another order of groups is another draw of the quantiles.
    assert moved[:3] == pytest.approx(found[:3], abs=0.01)
    assert moved.probability == pytest.approx(found.probability, abs=0.02)
    assert gap_interval(first[order])[:3] == pytest.approx(gap_interval(first)[:3], abs=0.01)


def test_a_policy_equals_itself_and_undefined_rates_have_no_difference() -> None:
    rates = Estimate(np.array([0.3, 0.6]), 0.05 * np.eye(2))
    found = gap_difference(rates, rates)
    assert found[:3] == pytest.approx((0.0, 0.0, 0.0), abs=1e-7)
    assert found.probability == 0.5
    undefined = Estimate(np.array([0.3, np.nan]), rates.phi)
    for pair in ((rates, undefined), (undefined, rates)):
        found = gap_difference(*pair)
        assert found.probability is not None
        assert np.isnan([*found[:3], found.probability]).all()
