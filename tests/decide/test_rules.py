"""What each rule accepts, and with which propensity."""

import numpy as np
import pytest

from fairall.decide.rules import MOST_DRAWN, Rule
from fairall.errors import FairAllError

PROBABILITY = np.array([0.4, 0.9, 0.5, 0.9, 0.9, 0.1])
MARGIN = np.array([9.0, 0.1, 0.3, 0.2, 0.1, 8.0])
SECOND = np.array([0, 1, 0, 0, 0, 0], dtype=bool)


@pytest.mark.parametrize(
    ("rule", "margin", "referred", "propensity"),
    [
        (Rule(0.5), None, False, [0, 1, 1, 1, 1, 0]),
        (Rule(0.5), None, SECOND, [0, 0, 1, 1, 1, 0]),
        (Rule(0.5, places=0.5), None, False, [0, 1, 0, 1, 1, 0]),
        # Of those who reach the threshold; the first and the last do not.
        (Rule(0.5, places=2), MARGIN, False, [0, 0, 1, 1, 0, 0]),
        (Rule(0.5, places=3), MARGIN, SECOND, [0, 0, 1, 1, 1, 0]),
        (Rule(0.5, places=1), np.zeros(6), False, [0, 1 / 3, 0, 1 / 3, 1 / 3, 0]),
        (Rule(0.5, places=2), None, False, [0, 2 / 3, 0, 2 / 3, 2 / 3, 0]),
        # Nobody below the threshold gets a place that is left.
        (Rule(0.5, places=6), None, False, [0, 1, 1, 1, 1, 0]),
        (Rule(0.5, draw=0), None, SECOND, [0.4, 0, 0.5, 0.9, 0.9, 0.1]),
    ],
)
def test_who_is_accepted_with_which_propensity(
    rule: Rule, margin: np.ndarray | None, referred: np.ndarray | bool, propensity: list[float]
) -> None:
    accepted, found = rule.decisions(PROBABILITY, margin, referred)
    np.testing.assert_allclose(found, propensity)
    assert not accepted[found == 0].any()
    assert accepted[found == 1].all()


@pytest.mark.parametrize(
    ("probability", "margin", "places"),
    [
        (PROBABILITY, None, 2),
        (np.array([0.9, 0.5, 0.8, 0.5, 0.5]), np.array([-1.0, 2.0, 0.5, 2.0, 2.0]), 2),
        (np.full(20, 0.3), None, None),
        (np.ones(200), None, 60),
    ],
)
def test_propensities_of_draws_are_the_frequencies_of_acceptance(
    probability: np.ndarray, margin: np.ndarray | None, places: int | None
) -> None:
    draws, accepted = 1000, np.zeros(len(probability))
    for seed in range(draws):
        own, propensity = Rule(0.0, draw=seed, places=places).decisions(probability, margin)
        accepted += own
        assert places is None or own.sum() <= places
    np.testing.assert_allclose(accepted / draws, propensity, atol=0.08)  # 5 standard errors
    if margin is not None:
        # Of three with ½ each at most two: (3·½ − ⅛)/3; then 0.8 and 0.9 times the places that are left.
        none, one = 1 / 8, 3 / 8
        expected = [0.9 * (none * 1 + one * 0.2), 11 / 24, 0.8 * (none + one), 11 / 24, 11 / 24]
        np.testing.assert_allclose(propensity, expected, atol=1e-12)


def test_draws_can_be_repeated_and_do_not_depend_on_later_rows() -> None:
    probability, rule = np.linspace(0.0, 1.0, 500), Rule(0.5, draw=1)
    whole = rule.decisions(probability)[0]
    assert (rule.decisions(probability[:300])[0] == whole[:300]).all()
    assert (rule.decisions(probability)[0] == whole).all()
    assert (Rule(0.5, draw=5).decisions(probability)[0] != whole).any()


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


def test_rules_that_cannot_be_kept_are_refused() -> None:
    with pytest.raises(FairAllError, match="it must be a place for one of 99 people"):
        Rule(0.5, places=0.01).check(99)
    with pytest.raises(FairAllError, match=f"too long for {MOST_DRAWN + 1} rows"):
        Rule(0.5, draw=1, places=5).check(MOST_DRAWN + 1)
    for possible, n in ((Rule(0.5, places=0.01), 100), (Rule(0.5, places=5), MOST_DRAWN + 1)):
        possible.check(n)
    for wrong in (2.5, -1, True, "3", [3]):
        with pytest.raises(FairAllError, match="is not possible: it must be a whole number"):
            Rule(0.5, draw=wrong)  # type: ignore[arg-type]
    assert Rule(0.5, draw=np.int64(3)).told() == Rule(0.5, draw=3.0).told() == Rule(0.5, draw=3).told()  # type: ignore[arg-type]
