"""Rates by hand, and of all people from selective labels."""

import numpy as np
import pytest

from fairall.evaluate.estimated.estimates import Column, Sample
from fairall.evaluate.estimated.estimators import People
from fairall.evaluate.estimated.fairness import MEASURES, VIEWS, View, rates, support

COST = 0.4


def people_of(
    a: np.ndarray,
    label: np.ndarray,
    weight: np.ndarray | None = None,
    q: np.ndarray | None = None,
    stake: np.ndarray | None = None,
) -> People:
    """People whose label is NaN where it is not revealed."""
    revealed = ~np.isnan(label)
    w = Column(revealed * (1.0 if weight is None else weight))
    one = np.ones(len(a))
    outcome = None if q is None else Column(q)
    return People(
        a, revealed, np.nan_to_num(label), w, w * a, outcome, one if stake is None else stake, COST * one
    )


def rates_of(
    people: People, group: np.ndarray, view: View = "naive", groups: int = 2
) -> dict[str, np.ndarray]:
    found = rates(view, people, Sample(len(group)).by(group, groups))
    return {name: one.value for name, one in found.items()}


def test_rates_by_hand() -> None:
    a, y = np.array([1.0, 0.5, 0.0, 0.5, 1.0]), np.array([1.0, 0.0, 1.0, 1.0, 0.0])
    stake = np.array([1.0, 2.0, 1.0, 1.0, 3.0])
    found = rates_of(people_of(a, y, stake=stake), np.array([0, 0, 0, 1, 1]))
    assert found["dpu"] == pytest.approx([0.5, 0.75])
    assert found["equal_opportunity"] == pytest.approx([0.5, 0.5])
    assert found["predictive_parity"] == pytest.approx([1 / 1.5, 0.5 / 1.5])
    assert found["false_positive"] == pytest.approx([0.5, 1.0])
    assert found["utility_gap"] == pytest.approx([(0.6 - 0.4) / 3, (0.3 - 1.2) / 2])
    assert found.keys() == MEASURES.keys()


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
    assert np.isnan(np.ptp(found["equal_opportunity"], -1))


def test_only_the_corrected_views_find_the_rates_of_all_people() -> None:
    generator, n = np.random.default_rng(0), 200_000
    group, x = generator.integers(2, size=n), generator.random(n)
    q = 0.2 + 0.6 * x - 0.1 * group
    y = (generator.random(n) < q).astype(float)
    a, p = np.clip(x + 0.2 - 0.2 * group, 0, 1), 0.1 + 0.8 * x**2
    label = np.where(generator.random(n) < p, y, np.nan)
    truth = rates_of(people_of(a, y), group)
    people = people_of(a, label, 1 / p, q)
    found = {view: rates_of(people, group, view) for view in VIEWS}
    for name, true in truth.items():
        assert found["dr"][name] == pytest.approx(true, abs=0.01)
        assert found["ips"][name] == pytest.approx(true, abs=0.015)
        assert np.abs(found["naive"][name] - true).max() > 0.05
    for view in ("ips", "dr"):
        assert found[view]["dpu"] == pytest.approx(truth["dpu"], abs=1e-12)
