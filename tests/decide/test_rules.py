"""What each rule accepts, and with which propensity."""

import numpy as np
import pytest

from fairall.decide.rules import MOST_DRAWN, Rule
from fairall.errors import FairAllError

PROBABILITY = np.array([0.4, 0.9, 0.5, 0.9, 0.9, 0.1])


def decided(rule: Rule, probability: np.ndarray = PROBABILITY) -> tuple[list[int], list[float]]:
    accepted, propensity = rule.decisions(probability, rule.generator())
    return np.flatnonzero(accepted).tolist(), propensity.tolist()


def test_a_threshold_accepts_whoever_reaches_it() -> None:
    assert decided(Rule(0.5)) == ([1, 2, 3, 4], [0, 1, 1, 1, 1, 0])


def test_places_go_to_the_most_probable_and_equal_ones_by_row() -> None:
    assert decided(Rule(0.5, places=2)) == ([1, 3], [0, 1, 0, 1, 0, 0])
    assert decided(Rule(0.5, places=0.5))[0] == [1, 3, 4]


def test_nobody_below_the_threshold_gets_a_place_that_is_left() -> None:
    assert decided(Rule(0.5, places=6))[0] == [1, 2, 3, 4]


def test_drawn_decisions_have_their_probability_as_propensity_and_can_be_repeated() -> None:
    probability = np.full(20_000, 0.3)
    accepted, propensity = decided(Rule(0.5, draw=4), probability)
    assert propensity == probability.tolist()
    assert len(accepted) / 20_000 == pytest.approx(0.3, abs=0.015)  # 4.6 standard errors
    assert decided(Rule(0.5, draw=4), probability)[0] == accepted
    assert decided(Rule(0.5, draw=5), probability)[0] != accepted


def test_draws_of_a_row_do_not_depend_on_the_parts_of_the_table() -> None:
    probability = np.linspace(0.0, 1.0, 500)
    rule = Rule(0.5, draw=1)
    generator = rule.generator()
    parts = [rule.decisions(part, generator)[0] for part in np.split(probability, [13, 14, 300])]
    assert np.flatnonzero(np.concatenate(parts)).tolist() == decided(rule, probability)[0]


def test_propensities_of_draws_for_few_places_are_the_frequencies_of_acceptance() -> None:
    draws = 4000
    accepted = np.zeros(6)
    for seed in range(draws):
        rule = Rule(0.5, draw=seed, places=2)
        own, propensity = rule.decisions(PROBABILITY, rule.generator())
        assert own.sum() <= 2
        accepted += own
    np.testing.assert_allclose(accepted / draws, propensity, atol=0.03)  # 3.8 standard errors
    assert not np.allclose(propensity, PROBABILITY, atol=0.1)


def test_rules_that_cannot_be_kept_are_refused() -> None:
    with pytest.raises(FairAllError, match="--capacity 1%: not one place for 99 people"):
        Rule(0.5, places=0.01).check(99)
    Rule(0.5, places=0.01).check(100)
    with pytest.raises(FairAllError, match=f"too long for {MOST_DRAWN + 1} rows"):
        Rule(0.5, draw=1, places=5).check(MOST_DRAWN + 1)
    Rule(0.5, draw=1, places=5).check(MOST_DRAWN)
    Rule(0.5, places=5).check(MOST_DRAWN + 1)
