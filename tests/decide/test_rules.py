"""What each rule accepts, and with which propensity."""

import numpy as np
import pytest

from fairall.decide.rules import MOST_DRAWN, Rule
from fairall.errors import FairAllError

PROBABILITY = np.array([0.4, 0.9, 0.5, 0.9, 0.9, 0.1])


def decided(rule: Rule, probability: np.ndarray = PROBABILITY) -> tuple[list[int], list[float]]:
    accepted, propensity = rule.decisions(probability)
    return np.flatnonzero(accepted).tolist(), propensity.tolist()


def test_a_threshold_accepts_whoever_reaches_it() -> None:
    assert decided(Rule(0.5)) == ([1, 2, 3, 4], [0, 1, 1, 1, 1, 0])


def test_places_go_to_the_greatest_margin_then_probability() -> None:
    assert decided(Rule(0.5, places=0.5))[0] == [1, 3, 4]
    rule, margin = Rule(0.5, places=2), np.array([9.0, 0.1, 0.3, 0.2, 0.1, 8.0])
    accepted, propensity = rule.decisions(PROBABILITY, margin)
    # Of those who reach the threshold; the first and the last do not.
    assert np.flatnonzero(accepted).tolist() == [2, 3]
    assert propensity.tolist() == [0, 0, 1, 1, 0, 0]
    rule = Rule(0.5, places=1)
    _, propensity = rule.decisions(PROBABILITY, np.zeros(6))
    assert propensity.tolist() == [0, 1 / 3, 0, 1 / 3, 1 / 3, 0]


@pytest.mark.whole
def test_equal_people_share_places_by_lot() -> None:
    assert decided(Rule(0.5, places=2))[1] == [0, 2 / 3, 0, 2 / 3, 2 / 3, 0]
    chosen, probability = np.zeros(200), np.ones(200)
    rule = Rule(0.5, places=60)
    accepted, propensity = rule.decisions(probability)
    assert accepted.sum() == 60
    assert set(propensity) == {0.3}
    assert (rule.decisions(probability)[0] == accepted).all()
    # Not by position: of the first 60 some 18 are chosen, standard deviation 3.
    assert 3 < accepted[:60].sum() < 33
    for seed in range(400):
        drawn = Rule(0.0, draw=seed, places=60)
        chosen += drawn.decisions(probability)[0]
    np.testing.assert_allclose(chosen / 400, 0.3, atol=0.115)  # 5 standard errors


def test_propensities_of_draws_by_margin_are_the_frequencies_of_acceptance() -> None:
    probability = np.array([0.9, 0.5, 0.8, 0.5, 0.5])
    margin, draws = np.array([-1.0, 2.0, 0.5, 2.0, 2.0]), 1500
    accepted = np.zeros(5)
    for seed in range(draws):
        rule = Rule(0.5, draw=seed, places=2)
        own, propensity = rule.decisions(probability, margin)
        accepted += own
    # Of three with ½ each at most two: (3·½ − ⅛)/3; then 0.8 and 0.9 times the places that are left.
    none, one = 1 / 8, 3 / 8
    expected = [0.9 * (none * 1 + one * 0.2), 11 / 24, 0.8 * (none + one), 11 / 24, 11 / 24]
    np.testing.assert_allclose(propensity, expected, atol=1e-12)
    np.testing.assert_allclose(accepted / draws, expected, atol=0.064)  # 5 standard errors


def test_nobody_below_the_threshold_gets_a_place_that_is_left() -> None:
    assert decided(Rule(0.5, places=6))[0] == [1, 2, 3, 4]


def test_drawn_decisions_have_their_probability_as_propensity_and_can_be_repeated() -> None:
    probability = np.full(20_000, 0.3)
    accepted, propensity = decided(Rule(0.5, draw=4), probability)
    assert propensity == probability.tolist()
    assert len(accepted) / 20_000 == pytest.approx(0.3, abs=0.015)  # 4.6 standard errors
    assert decided(Rule(0.5, draw=4), probability)[0] == accepted
    assert decided(Rule(0.5, draw=5), probability)[0] != accepted


def test_draws_of_a_row_do_not_depend_on_later_rows() -> None:
    probability, rule = np.linspace(0.0, 1.0, 500), Rule(0.5, draw=1)
    assert (rule.decisions(probability[:300])[0] == rule.decisions(probability)[0][:300]).all()


def test_lots_accept_with_the_propensities_and_in_each_group_as_many_as_expected() -> None:
    random = np.random.default_rng(0)
    propensity, group = random.choice([0.0, 0.2, 1 / 3, 0.9, 1.0], 60), random.integers(0, 3, 60)
    number, draws = np.zeros(60), 2000
    for seed in range(draws):
        accepted = Rule(0.5, draw=seed).by_lot(propensity, group)
        number += accepted
        members = [group >= 0, *(group == g for g in range(3))]
        assert all(abs(accepted[of].sum() - propensity[of].sum()) < 1.0 for of in members)
    np.testing.assert_allclose(number / draws, propensity, atol=0.056)  # 5 standard errors
    assert set(number[propensity == 0.0]) == {0.0}
    assert set(number[propensity == 1.0]) == {draws}


def test_propensities_of_draws_for_few_places_are_the_frequencies_of_acceptance() -> None:
    draws = 1000
    accepted = np.zeros(6)
    for seed in range(draws):
        rule = Rule(0.5, draw=seed, places=2)
        own, propensity = rule.decisions(PROBABILITY)
        assert own.sum() <= 2
        accepted += own
    np.testing.assert_allclose(accepted / draws, propensity, atol=0.06)  # 3.8 standard errors
    assert not np.allclose(propensity, PROBABILITY, atol=0.1)


def test_rules_that_cannot_be_kept_are_refused() -> None:
    with pytest.raises(FairAllError, match="it must be a place for one of 99 people"):
        Rule(0.5, places=0.01).check(99)
    Rule(0.5, places=0.01).check(100)
    with pytest.raises(FairAllError, match=f"too long for {MOST_DRAWN + 1} rows"):
        Rule(0.5, draw=1, places=5).check(MOST_DRAWN + 1)
    Rule(0.5, draw=1, places=5).check(MOST_DRAWN)
    Rule(0.5, places=5).check(MOST_DRAWN + 1)
    for wrong in (2.5, -1, True, "3", [3]):
        with pytest.raises(FairAllError, match="is not possible: it must be a whole number"):
            Rule(0.5, draw=wrong)  # type: ignore[arg-type]
    assert Rule(0.5, draw=np.int64(3)).told() == Rule(0.5, draw=3.0).told() == Rule(0.5, draw=3).told()  # type: ignore[arg-type]
