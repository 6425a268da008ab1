"""Bounds of selection rates by probabilities of groups: sharp, and covering whatever the truth is."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from fairall.evaluate.estimated.bounds import Limits
from fairall.evaluate.estimated.gaps import interval, ratios
from fairall.evaluate.estimated.influence import Sample
from fairall.evaluate.estimated.proxies import MOST_CELLS, cells, rate_bounds

VECTORS = np.array([[0.8, 0.1, 0.1], [0.1, 0.7, 0.2], [0.3, 0.3, 0.4], [0.05, 0.05, 0.9]])
ACCEPTED = np.array([0.3, 0.5, 0.6, 0.8])  # share of the people with each of these


def exact(order: Callable[[np.ndarray], np.ndarray], rows: int = 1000) -> tuple[np.ndarray, ...]:
    """Probabilities, group and decision of people, with the shares of `VECTORS` and `ACCEPTED` exactly.

    Groups have ranges of the ranks of people with equal probabilities; those of the first `order`ed ranks are
    accepted.
    """
    probabilities, group, accepted = [], [], []
    for vector, share in zip(VECTORS, ACCEPTED, strict=True):
        rank = (np.arange(rows) + 0.5) / rows
        group.append((rank[:, None] > vector.cumsum() - 1e-9).sum(1))
        accepted.append(order(rank) < share)
        probabilities.append(np.tile(vector, (rows, 1)))
    return np.concatenate(probabilities), np.concatenate(group), np.concatenate(accepted).astype(float)


def test_cells_are_equal_vectors_or_near_ones() -> None:
    draw = np.random.default_rng(0)
    which = draw.integers(4, size=1000)
    cell = cells(VECTORS[which], 0)
    assert len(np.unique(cell)) == len(np.unique(np.stack([cell, which]), axis=1).T) == 4
    many = cells(draw.dirichlet([1, 1, 1], 10_000), 0)
    assert len(np.unique(many)) == MOST_CELLS
    few = cells(draw.dirichlet([1, 1, 1], 200), 0)
    assert len(np.unique(few)) == 4


@pytest.mark.parametrize("most", [True, False])
def test_bounds_are_attained(most: bool) -> None:
    """Where group 0 is accepted first, or last, by a joint distribution of group and decision."""
    probabilities, group, accepted = exact((lambda rank: rank) if most else (lambda rank: 1 - rank))
    sample = Sample(len(group))
    bounds, _ = rate_bounds(accepted, probabilities, sample)
    rate = accepted[group == 0].mean()
    share = VECTORS[:, 0]
    ends = np.maximum(0, ACCEPTED + share - 1), np.minimum(ACCEPTED, share)
    low, high = (float(end.sum() / share.sum()) for end in ends)
    assert bounds[0].low.value == pytest.approx(low, abs=0.02)
    assert bounds[0].high.value == pytest.approx(high, abs=0.02)
    assert rate == pytest.approx(high if most else low, abs=1e-6)
    # Group 2 is then accepted last, or first: the ratio attains its end too.
    ratio = rate / accepted[group == 2].mean()
    sides = (bounds[0].high, bounds[2].low) if most else (bounds[0].low, bounds[2].high)
    assert ratio == pytest.approx(float(ratios(sides[0][None], sides[1][None]).value.item()), rel=0.05)


def test_coarser_cells_are_wider_and_known_groups_leave_no_width() -> None:
    probabilities, _, accepted = exact(lambda rank: rank)
    sample = Sample(len(accepted))
    fine, weighted = rate_bounds(accepted, probabilities, sample)
    coarse, _ = rate_bounds(accepted, np.tile(VECTORS.mean(0), (len(accepted), 1)), sample)
    for one, other in zip(fine, coarse, strict=True):
        assert other.low.value <= one.low.value + 0.02
        assert other.high.value >= one.high.value - 0.02
    assert coarse[0].high.value - coarse[0].low.value > fine[0].high.value - fine[0].low.value + 0.1
    sure = np.eye(2)[(np.arange(len(accepted)) % 3 == 0).astype(int)]
    bounds, weighted = rate_bounds(accepted, sure, sample)
    for k in range(2):
        rate = accepted[sure[:, k] == 1].mean()
        for estimate in (bounds[k].low, bounds[k].high, weighted[k]):
            assert estimate.value == pytest.approx(rate)


def drawn(rows: int, how: str, groups: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Probabilities, group and decision: independent given the probabilities, by group, or at an end."""
    draw = np.random.default_rng(seed)
    probabilities = draw.dirichlet([0.5, 0.9] if groups == 2 else [0.5, 0.4, 1.1], rows)
    rank = draw.random(rows)
    group = (rank[:, None] > probabilities.cumsum(1)).sum(1)
    chance = 0.2 + 0.5 * probabilities[:, -1]
    if how == "independent":
        return probabilities, group, draw.random(rows) < chance
    if how == "by group":
        return probabilities, group, draw.random(rows) < np.where(group == 0, 0.25, 0.6)
    if how == "both sides equal":  # everybody of group 0 is accepted, and nobody else
        return probabilities, group, rank < probabilities[:, 0]
    return probabilities, group, rank < chance if how == "first" else rank > 1 - chance


HOW = ("independent", "by group", "first", "last", "both sides equal")


def coverage(how: str, groups: int, rows: int, logs: int) -> dict[str, float]:
    """Shares of logs whose intervals hold the true rate (the least over groups), ratio, and weighted rate."""
    _, group, accepted = drawn(1_000_000, how, groups, seed=10**6)
    true = np.array([accepted[group == k].mean() for k in range(groups)])
    inside: dict[str, list[Any]] = {"rate": [], "ratio": [], "weighted": []}
    for seed in range(logs):
        probabilities, _, decided = drawn(rows, how, groups, seed)
        bounds, weighted = rate_bounds(decided.astype(float), probabilities, Sample(rows), seed)
        limits: list[Limits] = [one.limits() for one in bounds]
        inside["rate"].append(
            [own.interval_low <= rate <= own.interval_high for own, rate in zip(limits, true, strict=True)]
        )
        low = ratios(bounds[0].low[None], bounds[-1].high[None]).low.item()
        high = ratios(bounds[0].high[None], bounds[-1].low[None]).high.item()
        inside["ratio"].append(low * true[-1] <= true[0] <= high * true[-1] if true[-1] else high > 1e6)
        own = interval(weighted[0])
        inside["weighted"].append(own.low <= true[0] <= own.high)
    return {name: float(np.min(np.mean(of, axis=0))) for name, of in inside.items()}


@pytest.mark.whole
@pytest.mark.parametrize("how", HOW)
def test_the_truth_is_within_the_intervals(how: str) -> None:
    found = coverage(how, 3, 1000, logs=100)
    assert min(found["rate"], found["ratio"]) >= 0.9
    assert (found["weighted"] > 0.85) == (how == "independent")


@pytest.mark.slow
@pytest.mark.parametrize("rows", [1000, 2000, 10_000])
@pytest.mark.parametrize("groups", [2, 3])
@pytest.mark.parametrize("how", HOW)
def test_the_truth_is_within_the_intervals_of_92_of_100_logs(how: str, groups: int, rows: int) -> None:
    found = coverage(how, groups, rows, logs=1000)
    assert min(found["rate"], found["ratio"]) >= 0.92
    assert found["weighted"] >= 0.92 if how == "independent" else found["weighted"] <= 0.05
