"""Estimators against their formulas written out, identities between them, and the guaranteed interval."""

from typing import Any

import numpy as np
import pytest

from fairall.evaluate.estimated.estimates import Column, Sample
from fairall.evaluate.estimated.estimators import CLIP, ESTIMATORS, People, guaranteed_interval

COST = 0.4


def people_of(
    target: np.ndarray, revealed: np.ndarray, label: np.ndarray, p: Any, q: Any = None, **amounts: np.ndarray
) -> People:
    """People of propensities p, with an outcome model q and the cost `COST`."""
    one, weight = np.ones(len(target)), Column(revealed / p)
    columns = {"stake": one, "break_even": COST * one} | amounts
    return People(
        target, revealed, label, weight, weight * target, None if q is None else Column(q), **columns
    )


def made_up(n: int = 300, *, amounts: bool = False) -> People:
    """People of a random policy, whose labels have no effect where they are not revealed."""
    p, chance, target, label, q, stake, even = np.random.default_rng(0).uniform(0.2, 0.9, (7, n))
    more = {"stake": stake, "break_even": even} if amounts else {}
    return people_of(target, chance < p, (label < 0.7).astype(float), p, q, **more)


def value(people: People, estimator: str) -> float:
    return float(ESTIMATORS[estimator](people, Sample(len(people.target))).value)


def by_hand(people: People, estimator: str) -> float:
    """The formulas of the docstrings."""
    assert people.outcome is not None
    a, y, q, s, b = people.target, people.label, people.outcome.value, people.stake, people.break_even
    kept = a * people.weight.value * people.revealed
    return {
        "ips": np.mean(kept * s * (y - b)),
        "snips": a.mean() * np.average(s * (y - b), weights=kept),
        "dm": np.mean(a * s * (q - b)),
        "dr": np.mean(a * s * (q - b) + kept * s * (y - q)),
        "sndr": np.mean(a * s * (q - b)) + a.mean() * np.average(s * (y - q), weights=kept),
    }[estimator]


@pytest.mark.parametrize("amounts", [False, True])
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_formulas(estimator: str, amounts: bool) -> None:
    people = made_up(amounts=amounts)
    assert value(people, estimator) == pytest.approx(by_hand(people, estimator), abs=1e-12)


@pytest.mark.parametrize("wrong", ["propensities", "outcome", "neither"])
def test_doubly_robust_values_are_right_if_either_model_is(wrong: str) -> None:
    draw, n = np.random.default_rng(0), 200_000
    x = draw.random(n)
    p, q, target = 0.2 + 0.6 * x, 0.3 + 0.5 * x, x**2
    revealed, truth = draw.random(n) < p, np.mean(target * (q - COST))
    label, half = revealed * (draw.random(n) < q), np.full(n, 0.5)
    models = half if wrong == "propensities" else p, half if wrong == "outcome" else q
    people = people_of(target, revealed, label, *models)
    found = {name: abs(value(people, name) - truth) for name in ESTIMATORS}
    assert max(found["dr"], found["sndr"]) < 0.005
    assert (found["ips"] > 0.02) == (wrong == "propensities")
    assert (found["dm"] > 0.02) == (wrong == "outcome")


# The guaranteed interval


WORLDS = {  # propensities of the two kinds of people, and their probabilities of a positive label
    "moderate": ((0.5, 0.7), (0.8, 0.4)),
    "good and unlikely": ((0.02, 0.8), (0.95, 0.3)),
    "bad and unlikely": ((0.02, 0.8), (0.05, 0.9)),
}


@pytest.mark.parametrize("n", [100, 30_000])
@pytest.mark.parametrize("world", WORLDS)
def test_the_guaranteed_interval_covers(world: str, n: int) -> None:
    """With weights of up to 45 too, where clipped IPS is far off."""
    draw, target, (p, positive) = np.random.default_rng(n), np.array([0.9, 0.5]), map(np.array, WORLDS[world])
    truth, ends = float(np.mean(target * (positive - COST))), []
    for _ in range(40):
        kind, chances = draw.integers(2, size=n), draw.random((2, n))
        revealed = chances[0] < p[kind]
        people = people_of(target[kind], revealed, revealed * (chances[1] < positive[kind]), p[kind])
        ends.append(guaranteed_interval(people))
    low, high = np.array(ends).T
    assert np.mean((low <= truth) & (truth <= high)) >= 0.95
    assert (low >= -COST).all()
    assert (high <= 1 - COST).all()
    assert n == 100 or np.mean(high - low) < (0.06 if world == "moderate" else 0.55)
    clipped = np.mean(np.minimum(people.kept.value, CLIP) * (people.label - COST))
    assert n == 100 or (abs(clipped - truth) > 0.1) == (world != "moderate")


def test_no_value_is_possible_where_more_were_accepted_than_there_are() -> None:
    one = np.ones(20_000)
    assert np.isnan(guaranteed_interval(people_of(one, one > 0, one, 0.2))).all()
