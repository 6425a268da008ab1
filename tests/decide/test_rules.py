"""What each rule accepts, and with which propensity."""

from typing import Any

import numpy as np
import pytest

from fairall.decide.rules import MOST_DRAWN, Rule
from fairall.errors import FairAllError


@pytest.mark.parametrize(
    ("probability", "margin", "places"),
    [
        ([0.9, 0.5, 0.8, 0.5, 0.5], [-1.0, 2.0, 0.5, 2.0, 2.0], 2),
        (np.full(20, 0.3), 0.0, None),
        (np.ones(200), 0.0, 60),
    ],
)
def test_propensities_of_draws_are_the_frequencies_of_acceptance(
    probability: Any, margin: Any, places: int | None
) -> None:
    accepted: Any = 0
    for seed in range(1000):
        rule = Rule(0.0, draw=seed, places=places)
        own, propensity = rule.decisions(np.array(probability), np.array(margin))
        accepted += own / 1000
        assert places is None or own.sum() <= places
    np.testing.assert_allclose(accepted, propensity, atol=0.08)  # 5 standard errors


def test_draws_do_not_depend_on_later_rows() -> None:
    probability, rule = np.linspace(0.0, 1.0, 500), Rule(0.5, draw=1)
    assert (rule.decisions(probability[:300])[0] == rule.decisions(probability)[0][:300]).all()


def test_lots_accept_with_the_propensities_and_in_each_group_as_many_as_expected() -> None:
    random = np.random.default_rng(0)
    propensity, group = random.choice([0.0, 0.2, 1 / 3, 0.9, 1.0], 60), random.integers(0, 3, 60)
    share, members = np.zeros(60), [group >= 0, *(group == g for g in range(3))]
    for seed in range(2000):
        accepted = Rule(0.5, draw=seed).by_lot(propensity, group)
        share += accepted / 2000
        assert all(abs(accepted[of].sum() - propensity[of].sum()) < 1.0 for of in members)
    np.testing.assert_allclose(share, propensity, atol=0.056)  # 5 standard errors


def test_exact_propensities_are_for_so_many_and_a_seed_is_a_whole_number() -> None:
    with pytest.raises(FairAllError, match=f"too long for {MOST_DRAWN + 1} rows"):
        Rule(0.5, draw=1, places=5).n_places(MOST_DRAWN + 1)
    assert Rule(0.5, places=5).n_places(MOST_DRAWN + 1) == 5
    assert Rule(0.5, draw=1).n_places(MOST_DRAWN + 1) == MOST_DRAWN + 1
    wrong: Any = 2.5
    with pytest.raises(FairAllError, match="is not possible: it must be a whole number"):
        Rule(0.5, draw=wrong)


def test_who_is_referred_shares_no_place_with_equal_people() -> None:
    _, propensity = Rule(0.5, places=1).decisions(np.full(3, 0.9), referred=np.array([True, False, False]))
    assert propensity.tolist() == [0.0, 0.5, 0.5]
