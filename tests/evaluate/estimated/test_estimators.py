"""Estimators against their formulas written out, identities between them, and the guaranteed interval."""

from dataclasses import replace

import numpy as np
import pytest

from fairall.evaluate.estimated.estimates import Sample
from fairall.evaluate.estimated.estimators import CLIP, ESTIMATORS, People, guaranteed_interval
from tests.evaluate.estimated.test_fairness import COST, people_of, selective


def value(people: People, estimator: str) -> float:
    return float(ESTIMATORS[estimator](people, Sample(len(people.target))).value)


def by_hand(people: People, estimator: str) -> float:
    """The formulas of the docstrings."""
    assert people.outcome is not None
    a, y, q, s, b = people.target, people.label, people.outcome.value, people.stake, people.break_even
    kept, modelled, residual = a * people.weight.value, np.mean(a * s * (q - b)), s * (y - q)
    return {
        "ips": np.mean(kept * s * (y - b)),
        "snips": a.mean() * np.average(s * (y - b), weights=kept),
        "dm": modelled,
        "dr": modelled + np.mean(kept * residual),
        "sndr": modelled + a.mean() * np.average(residual, weights=kept),
    }[estimator]


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_formulas(estimator: str) -> None:
    p, chance, target, label, q, stake, even = np.random.default_rng(0).uniform(0.2, 0.9, (7, 300))
    of_cost = people_of(target, np.where(chance < p, label < 0.7, np.nan), 1 / p, q)
    for people in (of_cost, replace(of_cost, stake=stake, break_even=even)):
        assert value(people, estimator) == pytest.approx(by_hand(people, estimator), abs=1e-12)


@pytest.mark.parametrize("wrong", ["propensities", "outcome", "neither"])
def test_doubly_robust_values_are_right_if_either_model_is(wrong: str) -> None:
    people, *_ = selective()
    assert people.outcome is not None
    w, q = people.weight.value, people.outcome.value
    weight, outcome = 2.0 if wrong == "propensities" else w, q * (wrong != "outcome")
    truth = np.mean(people.target * (q - COST))
    people = people_of(people.target, np.where(people.revealed, people.label, np.nan), weight, outcome)
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
    """In each of 20 logs: with weights of up to 45 too, where clipped IPS is far off."""
    draw, target, (p, positive) = np.random.default_rng(n), np.array([0.9, 0.5]), map(np.array, WORLDS[world])
    truth = np.mean(target * (positive - COST))
    for _ in range(20):
        kind = draw.integers(2, size=n)
        label = np.where(draw.random(n) < p[kind], draw.random(n) < positive[kind], np.nan)
        people = people_of(target[kind], label, 1 / p[kind])
        low, high = guaranteed_interval(people)
        assert -COST <= low <= truth <= high <= 1 - COST
        clipped = np.mean(np.minimum(people.kept.value, CLIP) * (people.label - COST))
        if n > 100:
            assert high - low < (0.06 if world == "moderate" else 0.55)
            assert (abs(clipped - truth) > 0.1) == (world != "moderate")


def test_no_value_is_possible_where_more_were_accepted_than_there_are() -> None:
    one = np.ones(20_000)
    assert np.isnan(guaranteed_interval(people_of(one, one, 5.0 * one))).all()
