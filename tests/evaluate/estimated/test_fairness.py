"""Rates by hand, and of all people from selective labels."""

from typing import Any

import numpy as np
import pytest

from fairall.evaluate.estimated.estimates import Column, Sample
from fairall.evaluate.estimated.estimators import People
from fairall.evaluate.estimated.fairness import MEASURES, VIEWS, View, rates, support

COST = 0.4


def people_of(a: np.ndarray, label: np.ndarray, weight: Any = 1.0, q: Any = None, stake: Any = 1.0) -> People:
    """People whose label is NaN where it is not revealed."""
    revealed, one = ~np.isnan(label), np.ones(len(a))
    w, outcome = Column(revealed * weight), None if q is None else Column(q)
    return People(a, revealed, np.nan_to_num(label), w, w * a, outcome, stake * one, COST * one)


def rates_of(
    people: People, group: np.ndarray, view: View = "naive", groups: int = 2
) -> dict[str, np.ndarray]:
    found = rates(view, people, Sample(len(group)).by(group, groups))
    return {name: one.value for name, one in found.items()}


def selective(
    gamma: float = 1.0, *, n: int = 200_000, wrong: float = 0.0
) -> tuple[People, np.ndarray, np.ndarray]:
    """People, all labels, and groups; the rejected have odds of a good label `gamma` times the others'.

    Args:
        gamma: Γ.
        n: number of people.
        wrong: what is added to the true mean of the labels in the place of its model.
    """
    generator = np.random.default_rng(0)
    x, group = generator.random(n), generator.integers(2, size=n)
    p, q = 0.2 + 0.6 * x, 0.2 + 0.5 * x + 0.2 * group
    revealed = generator.random(n) < p
    mean = np.where(revealed, q, gamma * q / (1 + (gamma - 1) * q))
    y = (generator.random(n) < mean).astype(float)
    return people_of(q, np.where(revealed, y, np.nan), 1 / p, q + wrong), y, group


def test_rates_by_hand() -> None:
    a, y = np.array([1.0, 0.5, 0.0, 0.5, 1.0]), np.array([1.0, 0.0, 1.0, 1.0, 0.0])
    stake = np.array([1.0, 2.0, 1.0, 1.0, 3.0])
    found = rates_of(people_of(a, y, stake=stake), np.array([0, 0, 0, 1, 1]))
    expected = {
        "dpu": [0.5, 0.75],
        "equal_opportunity": [0.5, 0.5],
        "predictive_parity": [1 / 1.5, 0.5 / 1.5],
        "false_positive": [0.5, 1.0],
        "utility_gap": [(0.6 - 0.4) / 3, (0.3 - 1.2) / 2],
    }
    assert found.keys() == MEASURES.keys()
    assert found == {name: pytest.approx(rates) for name, rates in expected.items()}


def test_labels_that_a_rate_rests_on() -> None:
    people = people_of(np.array([0.5, 0.8, 1.0]), np.array([1.0, 0.0, np.nan]), np.array([4.0, 2.0, 1.0]))
    expected: dict[tuple[str, View], list[float]] = {
        ("equal_opportunity", "ips"): [4, 0, 0],
        ("equal_opportunity", "naive"): [1, 0, 0],
        ("false_positive", "dr"): [0, 2, 0],
        ("predictive_parity", "naive"): [0.5, 0.8, 0],
        ("utility_gap", "ips"): [2, 1.6, 0],
    }
    for (name, view), weights in expected.items():
        np.testing.assert_allclose(support(MEASURES[name], view, people), weights)


def test_rates_without_people_are_nan() -> None:
    a, y = np.array([1.0, 0.0, 0.5, 0.5]), np.array([0.0, 0.0, 0.0, 1.0])
    found = rates_of(people_of(a, y), np.array([0, 0, 1, 1]), groups=3)
    assert np.isnan(found["equal_opportunity"]).tolist() == [True, False, True]
    assert np.isnan(found["false_positive"]).tolist() == [False, False, True]


def test_only_the_corrected_views_find_the_rates_of_all_people() -> None:
    people, y, group = selective()
    truth, found = (
        rates_of(people_of(people.target, y), group),
        {view: rates_of(people, group, view) for view in VIEWS},
    )
    for name, true in truth.items():
        assert found["dr"][name] == pytest.approx(true, abs=0.01)
        assert found["ips"][name] == pytest.approx(true, abs=0.015)
        assert np.abs(found["naive"][name] - true).max() > 0.02
    for view in ("ips", "dr"):
        assert found[view]["dpu"] == pytest.approx(truth["dpu"], abs=1e-12)
