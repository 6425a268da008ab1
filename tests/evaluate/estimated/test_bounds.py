"""Bounds against all labels that are possible, and against worst cases of the odds-ratio model."""

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, logit

from fairall.evaluate.estimated.bounds import (
    Bounds,
    Labels,
    Limits,
    benchmarks,
    difference_bounds,
    gap_bounds,
    manski,
    odds_ratio,
    rate_bounds,
    rate_difference_bounds,
    turning_point,
    value_bounds,
)
from fairall.evaluate.estimated.estimators import dr
from fairall.evaluate.estimated.fairness import MEASURES, rates
from fairall.evaluate.estimated.gaps import gap, gap_interval
from fairall.evaluate.estimated.influence import Estimate, Sample, Z
from fairall.evaluate.log import DecisionLog
from tests.evaluate.estimated.test_fairness import COST, people_of, rates_of
from tests.evaluate.simulated import applicants, judged, models_of


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 2**32 - 1), st.booleans())
def test_bounds_without_assumptions_are_the_extremes_over_all_labels(seed: int, logged: bool) -> None:
    """With amounts; of the logged decisions some of the accepted have no label."""
    generator = np.random.default_rng(seed)
    n = int(generator.integers(4, 9))
    group = np.r_[0, 1, generator.integers(2, size=n - 2)]
    # With ties and decisions of 0 and 1 among the probabilities.
    a = generator.choice([0.0, 1.0] if logged else [0.0, 0.2, 0.5, 0.55, 0.9, 1.0], n)
    known = (generator.random(n) < 0.6) & ((a == 1) if logged else True)
    label = np.where(known, generator.integers(0, 2, n), np.nan)
    stake = generator.uniform(1, 2, n)
    tried = []
    for labels in itertools.product([0.0, 1.0], repeat=int((~known).sum())):
        y = label.copy()
        y[~known] = labels
        with np.errstate(all="ignore"):
            tried.append((np.mean(stake * a * (y - COST)), rates_of(people_of(a, y, stake=stake), group)))

    people, sample = people_of(a, label, stake=stake), Sample(n)
    utility = value_bounds(people, manski(people), sample)
    utilities = [value for value, _ in tried]
    assert (utility.low.value, utility.high.value) == pytest.approx((min(utilities), max(utilities)))
    for name in MEASURES:
        low, high = rate_bounds(name, people, manski(people), sample.by(group, 2), logged=logged)
        values = np.array([of[name] for _, of in tried])
        for one in (0, 1):
            defined = values[:, one][~np.isnan(values[:, one])]
            expected = (defined.min(), defined.max()) if len(defined) else (np.nan, np.nan)
            assert (low.value[one], high.value[one]) == pytest.approx(expected, nan_ok=True), name
        differences = gap(values)[~np.isnan(gap(values))]
        ends = gap_bounds(low, high)
        if len(differences) == 0:
            assert np.isnan(ends[:4]).all()
            continue
        assert ends.high == pytest.approx(differences.max())
        # Labels are whole: where the bounds of the rates overlap, no assignment need make the gap 0.
        assert ends.low == pytest.approx(differences.min()) or ends.low == 0 < differences.min()


def test_bounds_of_a_difference_of_two_policies() -> None:
    label, nothing = np.array([np.nan, np.nan, 1.0, 0.0]), np.zeros(4)
    second = people_of(np.array([0.5, 0.0, 1.0, 0.2]), label)
    first = people_of(np.array([0.0, 0.5, 0.0, 1.0]), label)
    low, high = difference_bounds(first, second, manski(second), Sample(4))
    assert low.value == pytest.approx((0.5 * -0.4 - 0.5 * 0.6 + 0.6 + 0.8 * 0.4) / 4)
    assert high.value == pytest.approx((0.5 * 0.6 - 0.5 * -0.4 + 0.6 + 0.8 * 0.4) / 4)
    # The same labels count for both, so that these bounds are within those of unrelated ones.
    own, other = (value_bounds(one, manski(one), Sample(4)) for one in (second, first))
    assert own.low.value - other.high.value < low.value
    same = difference_bounds(second, second, manski(second), Sample(4))
    assert same.low.value == same.high.value == 0
    nobody = difference_bounds(people_of(nothing, label), second, manski(second), Sample(4))
    assert nobody.low.value == pytest.approx(own.low.value)


def test_bounds_of_the_gap_of_three_groups() -> None:
    def of(*ends: tuple[float, float]) -> Limits:
        low, high = (Estimate(np.array(end), 0.001 * np.eye(len(ends), 4)) for end in zip(*ends, strict=True))
        return gap_bounds(low, high)

    overlapping = of((0.1, 0.9), (0.4, 0.5), (0.45, 0.6))
    assert overlapping[:2] == pytest.approx((0.0, 0.5))
    apart = of((0.1, 0.2), (0.4, 0.5), (0.45, 0.9))
    assert apart[:2] == pytest.approx((0.25, 0.8))
    assert 0.245 < apart.interval_low < 0.249
    assert apart.interval_high == pytest.approx(0.8 + Z * 0.001 * np.sqrt(2))
    assert np.isnan(of((0.1, 0.2), (np.nan, np.nan))[:4]).all()


def test_without_a_revealed_positive_the_rate_is_between_the_extreme_probabilities() -> None:
    a, group = np.array([0.2, 0.7, 0.9]), np.zeros(3, dtype=int)

    def of(low: list[float], high: list[float], name: str = "equal_opportunity") -> Bounds:
        people = people_of(a, np.full(3, np.nan))
        parts = np.stack([a, 1 - a])
        labels = Labels(parts * low, parts * high, parts)
        return rate_bounds(name, people, labels, Sample(3).by(group, 1))

    assert [end.value[0] for end in of([0, 0, 0], [1, 1, 0])] == pytest.approx([0.2, 0.7])
    assert [end.value[0] for end in of([0, 0, 0], [1, 1, 0], "false_negative")] == pytest.approx([0.3, 0.8])
    assert np.isnan(of([0, 0, 0], [0, 0, 0]).low.value).all()
    # Noisy pseudo-labels that sum to less than 0 say nothing about a share of them.
    assert [end.value[0] for end in of([-1.0, 0.1, 0.2], [1, 1, 1])] == [0.0, 1.0]


class Log:
    """A simulated log; the rejected have odds of a positive label `gamma` times those of the accepted."""

    def __init__(self, n: int = 20_000, gamma: float = 1.0, wrong: float = 0.0, seed: int = 0) -> None:
        generator = np.random.default_rng(seed)
        x, self.group = generator.random(n), generator.integers(2, size=n)
        p, q = 0.2 + 0.6 * x, 0.25 + 0.5 * x + 0.2 * self.group
        revealed = generator.random(n) < p
        mean = np.where(revealed, q, gamma * q / (1 + (gamma - 1) * q))
        self.y = (generator.random(n) < mean).astype(float)
        a = np.clip(0.2 + 0.5 * x + 0.2 * self.group, 0, 1)
        self.people = people_of(a, np.where(revealed, self.y, np.nan), 1 / p, np.clip(q + wrong, 0.01, 0.99))
        # E[y | x] = p q + (1 − p) q', exactly.
        self.mean = p * q + (1 - p) * gamma * q / (1 + (gamma - 1) * q)
        self.sample = Sample(n)

    def utility(self, gamma: float) -> Bounds:
        return value_bounds(self.people, odds_ratio(gamma, self.people), self.sample)

    def rates(self, name: str, labels: float | Labels) -> Bounds:
        labels = odds_ratio(labels, self.people) if isinstance(labels, float) else labels
        return rate_bounds(name, self.people, labels, self.sample.by(self.group, 2))


def test_an_odds_ratio_of_one_gives_the_doubly_robust_estimate() -> None:
    log = Log()
    for end in log.utility(1.0):
        expected = dr(log.people, log.sample)
        assert end.value == pytest.approx(expected.value)
        np.testing.assert_allclose(end.phi, expected.phi, atol=1e-12)
    expected_rates = rates("dr", log.people, log.sample.by(log.group, 2))
    for name in MEASURES:
        for end in log.rates(name, 1.0):
            np.testing.assert_allclose(end.value, expected_rates[name].value, atol=1e-9)
            np.testing.assert_allclose(end.phi, expected_rates[name].phi, atol=1e-9)


def test_bounds_widen_with_the_odds_ratio_and_tend_to_those_without_assumptions() -> None:
    log = Log(4000)
    gammas = [1.0, 1.2, 1.5, 2.0, 3.0, 10.0, 100.0, 1e9]
    utility = np.array([[end.value for end in log.utility(gamma)] for gamma in gammas])
    assert (np.diff(utility[:, 1] - utility[:, 0]) > 0.001).all()
    for name in MEASURES:
        without = log.rates(name, manski(log.people))
        low, high = (np.array([log.rates(name, gamma)[i].value for gamma in gammas]) for i in (0, 1))
        assert (np.diff(low, axis=0) <= 1e-9).all()
        assert (np.diff(high, axis=0) >= -1e-9).all()
        np.testing.assert_allclose(low[-1], without.low.value, atol=1e-4)
        np.testing.assert_allclose(high[-1], without.high.value, atol=1e-4)


@pytest.mark.parametrize("gamma", [0.5, 2.0])
def test_the_bounds_of_the_right_odds_ratio_contain_the_truth(gamma: float) -> None:
    """Every rejected person is at one end, so that the end of utility is the truth."""
    log = Log(200_000, gamma)
    truth, worst = np.mean(log.people.target * (log.y - COST)), 0 if gamma < 1 else 1
    assert log.utility(2.0)[worst].value == pytest.approx(truth, abs=0.004)
    narrow = log.utility(1.3)
    assert not narrow.low.value <= truth <= narrow.high.value
    for name, values in rates_of(people_of(log.people.target, log.y), log.group).items():
        low, high = log.rates(name, 2.0)
        assert (low.value - 0.008 <= values).all()
        assert (values <= high.value + 0.008).all()


def test_intervals_of_the_bounds_cover_in_the_worst_case() -> None:
    """At Γ = 2, where the truth is an end of the bounds: these alone contain it in half of the logs."""
    large = Log(400_000, 2.0)
    value = np.mean(large.people.target * (large.mean - COST))
    true_rates = rates_of(people_of(large.people.target, large.mean), large.group)["equal_opportunity"]
    covered: dict[str, list[bool]] = {"bounds": [], "utility": [], "rate": [], "gap": []}
    for seed in range(250):
        log = Log(600, 2.0, seed=seed + 1)
        low, high = log.utility(2.0)
        covered["bounds"].append(bool(low.value <= value <= high.value))
        covered["utility"].append(bool(low.value - Z * low.error <= value <= high.value + Z * high.error))
        low, high = log.rates("equal_opportunity", 2.0)
        inside = (low.value - Z * low.error <= true_rates) & (true_rates <= high.value + Z * high.error)
        covered["rate"].append(bool(inside[0]))
        ends = gap_interval(low, high)
        covered["gap"].append(bool(ends.low <= gap(true_rates) <= ends.high))
    often = {name: np.mean(values) for name, values in covered.items()}
    assert often["bounds"] < 0.65
    assert min(often["utility"], often["rate"], often["gap"]) >= 0.92


def test_an_error_of_the_outcome_model_has_a_small_effect() -> None:
    exact, wrong = (Log(200_000, wrong=error) for error in (0.0, 0.05))
    ends, plug_in = [], []
    for log in (exact, wrong):
        assert log.people.outcome is not None
        q = log.people.outcome.value
        ends.append(log.utility(2.0).high.value)
        label = np.where(log.people.revealed, log.people.label, 2 * q / (1 + q))
        plug_in.append(np.mean(log.people.target * (label - COST)))
    assert abs(ends[0] - ends[1]) < 0.002 < 0.008 < abs(plug_in[0] - plug_in[1])


def test_turning_points_by_hand() -> None:
    assert turning_point(lambda gamma: gamma < np.exp(0.5)) == pytest.approx(np.exp(0.5), abs=3e-3)
    assert turning_point(lambda gamma: True) is None
    assert turning_point(lambda gamma: False) == 1.0

    def sure(low: float, high: float, error: float) -> bool:
        return Bounds(*(Estimate(np.array(end), np.array([error])) for end in (low, high))).limits().exclude_0

    assert sure(0.2, 0.5, 0.1)
    assert not sure(0.19, 0.5, 0.1), "the interval counts, not the bounds alone"
    assert sure(-0.5, -0.2, 0.1)
    assert not sure(-0.5, 0.2, 0.1)


def test_turning_points_are_where_intervals_reach_zero() -> None:
    people = applicants(2000)
    less = np.where(people["sex"] == "m", people["new"], 0.7 * people["new"])
    one = judged(models_of(people, propensity="p", cost=0.6), less)
    assert one.sensitivity is not None
    points, log = one.sensitivity["turning_points"], one.log
    turning = {name: turn for name, turn in points.items() if turn is not None and turn > 1}
    assert {"utility", "false_positive"} <= turning.keys()
    for name, turn in turning.items():
        for gamma, certain in ((turn - 0.01, True), (turn + 0.01, False)):
            labels = odds_ratio(gamma, one.people)
            if name == "utility":
                assert value_bounds(one.people, labels, one.sample).limits().exclude_0 is certain
            else:
                ends = rate_bounds(name, one.people, labels, one.sample.by(log.group, 2))
                assert (gap_interval(*ends).low > 0) is certain


@pytest.mark.parametrize("strength", [0.0, 0.8])
def test_hiding_a_feature_makes_an_odds_ratio_as_large_as_its_benchmark(strength: float) -> None:
    """With u hidden, labels of rejected and accepted people of equal x differ by that odds ratio."""
    draw, n = np.random.default_rng(0), 60_000
    x, u, s = draw.normal(size=n), draw.normal(size=n), draw.choice(["a", "b"], n)
    accepted = draw.random(n) < expit(0.5 * x + strength * u)
    q = expit(0.3 * x + strength * u)
    y = draw.random(n) < q
    table = pd.DataFrame({"x": x, "u": u, "s": s, "d": accepted.astype(int)})
    found = benchmarks(DecisionLog.of(table, decision="d", sensitive="s"), q)
    assert found.keys() == {"x", "u"}
    assert list(found.values()) == sorted(found.values(), reverse=True)
    near = np.abs(x) < 0.2  # people of equal x
    odds = [logit(y[near & (accepted == one)].mean()) for one in (True, False)]
    assert found["u"] == pytest.approx(np.exp(odds[0] - odds[1]), rel=0.25)
    assert found["u"] < 1.05 if strength == 0 else found["u"] > 1.3


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 2**32 - 1))
def test_bounds_of_differences_of_rates_are_the_extremes_over_all_labels(seed: int) -> None:
    generator = np.random.default_rng(seed)
    n = int(generator.integers(3, 9))
    label = np.where(generator.random(n) < 0.5, generator.integers(0, 2, n), np.nan)
    a, b = generator.choice([0.0, 0.3, 0.5, 1.0], (2, n))
    a[0] = b[0] = 0.5  # nobody is accepted by neither
    first, second = people_of(a, label), people_of(b, label)
    tried = []
    for labels in itertools.product([0.0, 1.0], repeat=int(np.isnan(label).sum())):
        y = label.copy()
        y[np.isnan(label)] = labels
        with np.errstate(all="ignore"):
            tried.append(
                [
                    (b * of).sum() / below[1] - (a * of).sum() / below[0]
                    for of, below in (
                        (y, [y.sum()] * 2),
                        (1 - y, [(1 - y).sum()] * 2),
                        (y, [a.sum(), b.sum()]),
                    )
                ]
            )
    names = ("equal_opportunity", "false_positive", "predictive_parity")
    for name, values in zip(names, np.array(tried).T, strict=True):
        low, high = rate_difference_bounds(name, first, second, manski(second), Sample(n))
        defined = values[~np.isnan(values)]
        expected = (defined.min(), defined.max()) if len(defined) else (np.nan, np.nan)
        assert (low.value, high.value) == pytest.approx(expected, nan_ok=True), name


def test_benchmarks_are_those_of_a_regression_without_the_feature() -> None:
    """Also where columns are sums of others: all levels of a word, and the same column twice."""
    draw, n = np.random.default_rng(1), 3000
    x, word = draw.normal(size=n), draw.choice(["a", "b", "c"], n)
    accepted = draw.random(n) < expit(x + (word == "a"))
    table = pd.DataFrame({"x": x, "word": word, "z": draw.normal(size=n), "s": draw.choice(["f", "m"], n)})
    table = table.assign(twice=table["z"], count=draw.poisson(3, n), d=accepted.astype(int))
    log, q = DecisionLog.of(table, decision="d", sensitive="s"), expit(x + 0.3 * accepted)
    found = benchmarks(log, q)
    assert list(found) == sorted(found, key=lambda name: -found[name])
    assert found.keys() == {"x", "word", "z", "twice", "count"}
    names = np.array(["", "", *log.input_names])
    inputs = np.column_stack([log.accepted, log.inputs]).astype(float)
    for name, gamma in found.items():
        coefficient = np.linalg.lstsq(inputs[:, names != name], logit(q), rcond=None)[0][0]
        assert gamma == pytest.approx(np.exp(abs(coefficient)), rel=1e-7)
