"""Bounds against all labels that are possible, and against worst cases of the odds-ratio model."""

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit

from fairall.evaluate.estimated.bounds import (
    Bounds,
    Labels,
    Limits,
    greatest_benchmark,
    manski,
    odds_ratio,
    rate_bounds,
    turning_point,
    value_bounds,
)
from fairall.evaluate.estimated.estimates import Estimate, Sample, Z
from fairall.evaluate.estimated.estimators import People, dr
from fairall.evaluate.estimated.fairness import MEASURES, rates
from tests.evaluate.estimated.test_fairness import COST, people_of, rates_of, selective
from tests.evaluate.simulated import applicants, evaluated, log_of


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 2**32 - 1), st.booleans())
def test_bounds_without_assumptions_are_the_extremes_over_all_labels(seed: int, logged: bool) -> None:
    """With amounts; of the logged decisions some of the accepted have no label."""
    generator = np.random.default_rng(seed)
    n = int(generator.integers(4, 9))
    group = np.r_[0, 1, generator.integers(2, size=n - 2)]
    # With ties and decisions of 0 and 1 among the probabilities.
    a, other = generator.choice([0.0, 1.0] if logged else [0.0, 0.2, 0.5, 0.55, 0.9, 1.0], (2, n))
    known = (generator.random(n) < 0.6) & ((a == 1) if logged else True)
    label, stake = np.where(known, generator.integers(0, 2, n), np.nan), generator.uniform(1, 2, n)
    every = np.array([*itertools.product([0.0, 1.0], repeat=n)])
    possible = every[(every[:, known] == label[known]).all(1)]
    for accepts in (a, a - other):  # a value, and the difference of two
        people = people_of(accepts, label, stake=stake)
        ends, values = (
            value_bounds(people, manski(people), Sample(n)),
            (possible - COST) @ (stake * accepts) / n,
        )
        assert [end.value for end in ends] == pytest.approx([values.min(), values.max()])
    people = people_of(a, label, stake=stake)
    rates_of_all = [rates_of(people_of(a, y, stake=stake), group) for y in possible]
    for name in MEASURES:
        bounds = rate_bounds(name, people, manski(people), Sample(n).by(group, 2))
        tried = pd.DataFrame([by_group[name] for by_group in rates_of_all])
        np.testing.assert_allclose(bounds.low.value, tried.min(), atol=1e-12)
        np.testing.assert_allclose(bounds.high.value, tried.max(), atol=1e-12)
        gaps, limits = abs(tried[1] - tried[0]), bounds.gap(np.arange(2))
        assert limits.high == pytest.approx(gaps.max(), nan_ok=True)
        # Labels are whole: where the bounds of the rates overlap, no assignment need make the gap 0.
        assert limits.low == pytest.approx(gaps.min(), nan_ok=True) or limits.low == 0 < gaps.min()


def test_bounds_of_the_gap_of_three_groups() -> None:
    ends = [0.1, 0.4, 0.45], [0.2, 0.5, 0.9]
    apart = Bounds(*(Estimate(np.array(end), 0.001 * np.eye(3, 4)) for end in ends)).gap(np.arange(3))
    assert apart[:2] == pytest.approx((0.25, 0.8))
    assert 0.245 < apart.interval_low < 0.249
    assert apart.interval_high == pytest.approx(0.8 + Z * 0.001 * np.sqrt(2))


def test_noisy_labels_that_sum_to_less_than_zero_say_nothing_about_a_share() -> None:
    people = people_of(np.array([0.2, 0.7, 0.9]), np.full(3, np.nan))
    labels = Labels(people.target, np.array([[-1.0, 0.1, 0.2], [1.0, 1.0, 1.0]]), 1.0)
    ends = rate_bounds("equal_opportunity", people, labels, Sample(3).everybody)
    assert [end.value[0] for end in ends] == [0.0, 1.0]


def utility(people: People, gamma: float) -> Bounds:
    """Bounds of the value for an odds ratio."""
    return value_bounds(people, odds_ratio(gamma, people), Sample(len(people.target)))


def test_an_odds_ratio_of_one_gives_the_doubly_robust_estimate() -> None:
    people, _, group = selective(n=20_000)
    sample, labels = Sample(len(group)), odds_ratio(1.0, people)
    pairs = [(utility(people, 1.0), dr(people, sample))]
    for name, rate in rates("dr", people, sample.by(group, 2)).items():
        pairs.append((rate_bounds(name, people, labels, sample.by(group, 2)), rate))
    for bounds, estimate in pairs:
        for end in bounds:
            np.testing.assert_allclose(end.value, estimate.value, atol=1e-9)
            np.testing.assert_allclose(end.phi, estimate.phi, atol=1e-9)


@pytest.mark.parametrize("worst", [0, 1])
def test_the_bounds_of_the_right_odds_ratio_contain_the_truth(worst: int) -> None:
    """Every rejected person is at one end, so that the end of utility is the truth."""
    people, y, group = selective((0.5, 2.0)[worst])
    truth = np.mean(people.target * (y - COST))
    assert utility(people, 2.0)[worst].value == pytest.approx(truth, abs=0.004)
    for name, values in rates_of(people_of(people.target, y), group).items():
        low, high = rate_bounds(name, people, odds_ratio(2.0, people), Sample(len(y)).by(group, 2))
        assert (low.value - 0.008 <= values).all()
        assert (values <= high.value + 0.008).all()


def test_an_error_of_the_outcome_model_has_a_small_effect() -> None:
    """By the label put in the place of a missing one alone it is more than .008."""
    exact, wrong = (utility(selective(wrong=error)[0], 2.0).high.value for error in (0.0, 0.05))
    assert wrong == pytest.approx(exact, abs=0.002)


@pytest.mark.parametrize(("root", "expected"), [(1.6, 1.6), (20.0, None), (0.9, 1.0)])
def test_the_turning_point_is_where_limits_reach_zero(root: float, expected: float | None) -> None:
    found = turning_point(lambda gamma: {"utility": Limits(0.0, 1.0, root - gamma, 1.0)})
    assert found == (expected and pytest.approx(expected, abs=4e-3))


def test_the_greatest_benchmark_is_that_of_a_regression_without_the_feature() -> None:
    """Also where columns are sums of others: all levels of a word, and the same column twice."""
    people, word = applicants(3000), np.random.default_rng(1).choice(["a", "b", "c"], 3000)
    accepted, x = people["granted"].mask(word == "a", 1), people["score"]
    log_odds = 0.5 * (word == "a") + 0.1 * x
    log = log_of(people.assign(granted=accepted, twice=x, word=word), label=None, drop=["repaid"])
    others = np.column_stack([accepted, np.ones(3000), x, people["sex"] == "f"]).astype(float)
    slope = np.linalg.lstsq(others, log_odds, rcond=None)[0][0]
    gamma, feature = greatest_benchmark(log, expit(log_odds).to_numpy()) or (0.0, "")
    assert feature == "word"
    assert gamma == pytest.approx(np.exp(abs(slope)), rel=1e-5)


@pytest.mark.parametrize(("label", "measure"), [(1.0, "false_positive"), (0.0, "equal_opportunity")])
def test_a_label_that_was_never_seen_tells_nothing_of_its_people(label: float, measure: str) -> None:
    """Among the accepted none has it, so that the rejected decide whether there is a rate at all."""
    people = applicants(1000)
    people["repaid"] = np.where(people["granted"] == 1, label, np.nan)
    limits = evaluated(people, None).bounds["no assumption"][measure]
    assert (limits.interval_low, limits.interval_high) == (0.0, 1.0)
