"""Confidence sequences and the test by betting, against formulas written out and by simulation."""

import math

import numpy as np
import pytest

from fairall.measuring.sequences import (
    MEMBERS,
    NARROWEST,
    bernstein_low,
    blocks,
    gap_wealth,
    half_width,
    wealth,
)

ALPHA = 0.05
BOTH = np.array([0, 1])


def two_groups(
    gap: float, n: int, seed: int, share: float = 0.4, rates: tuple[float, float] = (0.45, 0.45)
) -> tuple[np.ndarray, np.ndarray]:
    """Decisions of rows, by rates from first to last, of which group 1 is accepted more by `gap`; groups."""
    draw = np.random.default_rng(seed)
    group = (draw.random(n) < share).astype(int)
    return (draw.random(n) < np.linspace(*rates, n) + gap * group).astype(float), group


def test_half_width_as_printed() -> None:
    """Equation 10 of Waudby-Smith et al. (2024), for a standard deviation of 1."""
    rho = math.sqrt((-2 * math.log(ALPHA) + math.log(-2 * math.log(ALPHA)) + 1) / NARROWEST)
    t = np.array([1, 30, 1000, 10**6])
    root = 2 * (t * rho**2 + 1) / (t**2 * rho**2) * np.log(np.sqrt(t * rho**2 + 1) / ALPHA)
    assert half_width(t) / np.sqrt(t) == pytest.approx(np.sqrt(root))


def test_bernstein_row_by_row() -> None:
    values, bound = np.random.default_rng(0).exponential(0.4, 50), math.log(2 / ALPHA)  # not bounded by 1
    means = np.array([(0.5 + values[:t].sum()) / (t + 1) for t in range(51)])  # of the first t
    squares = [0.25 + ((values[:t] - means[1 : t + 1]) ** 2).sum() for t in range(50)]
    bets = np.minimum(np.sqrt(2 * bound / (squares * np.log(np.arange(2, 52)))), 0.5)
    loss = (values - np.minimum(means[:-1], 1.0)) ** 2 * (-np.log(1 - bets) - bets)
    low = [(bets[:t] @ values[:t] - bound - loss[:t].sum()) / bets[:t].sum() for t in range(1, 51)]
    assert bernstein_low(values, ALPHA / 2) == pytest.approx(np.array(low))


def test_wealth_bet_by_bet() -> None:
    gain = np.random.default_rng(0).uniform(-0.5, 1.0, 40) - 0.1
    best = [gain[:k].sum() / (0.25 + (gain[:k] ** 2).sum()) for k in range(40)]
    found = wealth(gain + 0.1, 0.1)
    assert found == pytest.approx(np.cumprod(1 + np.clip(best, 0.0, 0.5 / 1.1) * gain))


def test_blocks_hold_enough_of_either_group() -> None:
    first = np.array([1, 1, 1, 0, 1, 0, 0, 0, 1, 0, 1, 1], dtype=bool)
    assert MEMBERS == 2
    assert blocks(first).tolist() == [6, 11]
    assert blocks(first[:5]).tolist() == []


def test_wealth_of_groups_is_1_before_the_first_block_and_the_same_for_either_order() -> None:
    phi, group = two_groups(0.3, 300, seed=0)
    found = gap_wealth(phi, group, BOTH, 0.05)
    assert (found[: blocks(group == 0)[0] - 1] == 1.0).all()
    assert gap_wealth(phi, 1 - group, BOTH, 0.05) == pytest.approx(found)
    assert found[-1] > 20


def test_groups_without_rows_have_no_wealth_but_the_stake() -> None:
    assert gap_wealth(np.zeros(2), np.zeros(2, int), np.arange(4), 0.05).tolist() == [1.0, 1.0]


def test_a_group_that_is_alike_dilutes_the_wealth_only() -> None:
    phi, group = two_groups(0.3, 600, seed=0)
    three = np.where((group == 0) & (np.arange(600) % 2 == 0), 2, group)
    found = gap_wealth(phi, three, np.arange(3), 0.05)
    assert found[-1] > 20


def test_a_policy_that_becomes_stricter_gives_no_false_alarms() -> None:
    """Nor an alarm in most logs, as pairs of the k-th rows of the groups do; a simulation has other logs."""
    alarms = 0
    for seed in range(100):
        phi, group = two_groups(0.0, 2000, seed, share=0.2, rates=(0.8, 0.2))
        alarms += bool((gap_wealth(phi, group, BOTH, 0.0) >= 1 / ALPHA).any())
    assert alarms <= 100 * ALPHA
