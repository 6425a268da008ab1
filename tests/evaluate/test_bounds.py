import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairall.evaluate.bounds import (
    bounds,
    gap_bounds,
    label_bounds,
    pseudo_labels,
    rate_bounds,
    sensitivity,
    turning_point,
    turning_points,
    value_bounds,
)
from fairall.evaluate.estimators import Rows
from fairall.evaluate.fairness import (
    BINS,
    MEASURES,
    bins,
    calibration_errors,
    gap,
    group_sums,
    label_columns,
    rates,
)
from fairall.evaluate.views import view_columns

COST = 0.4
GAPS = [name for name, one in MEASURES.items() if one.formula is not None]


def by_bin(columns: np.ndarray, a: np.ndarray, group: np.ndarray) -> np.ndarray:
    """Sums of w, w a, w y by group and bin of a, shape (2, BINS, 3)."""
    return group_sums(columns[:, :3], group * BINS + bins(a), 2 * BINS).reshape(2, BINS, 3)


def measured(a: np.ndarray, y: np.ndarray, group: np.ndarray) -> dict[str, np.ndarray]:
    """The rate of every measure by group, of two groups, all labels known."""
    columns = label_columns(a, y, np.ones(len(a)))
    errors = calibration_errors(by_bin(columns, a, group))
    return rates(group_sums(columns, group, 2), COST) | {"calibration_error": errors}


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 2**32 - 1))
def test_bounds_without_assumptions_are_the_extremes_over_all_labels(seed: int) -> None:
    generator = np.random.default_rng(seed)
    n = int(generator.integers(4, 9))
    group = np.r_[0, 1, generator.integers(2, size=n - 2)]
    # With ties and decisions of 0 and 1 among the probabilities.
    a = generator.choice([0.0, 0.2, 0.5, 0.55, 0.9, 1.0], n)
    label = np.where(generator.random(n) < 0.5, generator.integers(0, 2, n), np.nan)
    unknown = np.isnan(label)
    tried = []
    for labels in itertools.product([0.0, 1.0], repeat=int(unknown.sum())):
        y = label.copy()
        y[unknown] = labels
        tried.append((np.mean(a * (y - COST)), measured(a, y, group)))

    found = bounds(a, *label_bounds(label), group, COST)
    low, high = label_bounds(label)
    of_groups = [rate_bounds(a[who], low[who], high[who], COST) for who in (group == 0, group == 1)]
    assert found["utility"] == pytest.approx((min(v for v, _ in tried), max(v for v, _ in tried)))
    for name in GAPS:
        values = np.array([by_group[name] for _, by_group in tried])
        for one in (0, 1):
            defined = values[:, one][~np.isnan(values[:, one])]
            expected = (defined.min(), defined.max()) if len(defined) else (np.nan, np.nan)
            assert of_groups[one][name] == pytest.approx(expected, nan_ok=True)
        differences = gap(values)[~np.isnan(gap(values))]
        if len(differences) == 0:
            assert np.isnan(found[name]).all()
            continue
        assert found[name][1] == pytest.approx(differences.max())
        # Labels are whole: where the intervals of the rates overlap, no assignment need make the gap 0.
        assert found[name][0] == pytest.approx(differences.min()) or found[name][0] == 0 < differences.min()
        uncut = gap_bounds([one[name] for one in of_groups])[0]
        assert (found[name][0] == 0) == (uncut <= 0)


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 2**32 - 1))
def test_bounds_of_the_calibration_error_contain_it_and_are_reached(seed: int) -> None:
    generator = np.random.default_rng(seed)
    n = 40
    group, a = np.arange(n) % 2, generator.choice([0.03, 0.07, 0.3, 0.36, 0.9], n)
    label = np.where(generator.random(n) < 0.6, generator.integers(0, 2, n), np.nan)
    y_low, y_high = label_bounds(label)
    low, high = bounds(a, y_low, y_high, group, COST)["calibration_error"]
    for _ in range(50):
        y = np.where(np.isnan(label), generator.random(n) < generator.random(), label)
        assert low - 1e-12 <= measured(a, y, group)["calibration_error"].max() <= high + 1e-12
    # In every group and bin, all unknown labels at the farther end, and all at the nearest mean.
    farthest, nearest = y_low.copy(), y_low.copy()
    for one, code in itertools.product((0, 1), range(10)):
        who = (group == one) & (np.minimum((a * 10).astype(int), 9) == code)
        ends = [(y - a)[who].sum() for y in (y_low, y_high)]
        farthest[who] = (y_low if abs(ends[0]) > abs(ends[1]) else y_high)[who]
        share = np.clip(-ends[0] / max(ends[1] - ends[0], 1e-300), 0, 1)
        nearest[who] = y_low[who] + share * (y_high - y_low)[who]
    assert measured(a, farthest, group)["calibration_error"].max() == pytest.approx(high)
    assert measured(a, nearest, group)["calibration_error"].max() == pytest.approx(low, abs=1e-12)


def test_bounds_of_a_difference_of_two_policies() -> None:
    difference, label = np.array([0.5, -0.5, 1.0, -1.0]), np.array([np.nan, np.nan, 1.0, 0.0])
    low, high = value_bounds(difference, *label_bounds(label), COST)
    assert low == pytest.approx((0.5 * -0.4 - 0.5 * 0.6 + 0.6 + 0.4) / 4)
    assert high == pytest.approx((0.5 * 0.6 - 0.5 * -0.4 + 0.6 + 0.4) / 4)


def test_bounds_of_the_gap_of_three_groups() -> None:
    assert gap_bounds([(0.1, 0.9), (0.4, 0.5), (0.45, 0.6)]) == pytest.approx((-0.05, 0.5))
    assert gap_bounds([(0.1, 0.2), (0.4, 0.5), (0.45, 0.9)]) == pytest.approx((0.25, 0.8))
    assert np.isnan(gap_bounds([(0.1, 0.2), (np.nan, np.nan)])).all()


def test_without_a_revealed_positive_the_rate_is_between_the_extreme_probabilities() -> None:
    a, y = np.array([0.2, 0.7, 0.9]), np.array([np.nan, np.nan, 0.0])
    found = rate_bounds(a, *label_bounds(y), COST)
    assert found["equal_opportunity"] == pytest.approx((0.2, 0.7))
    assert found["false_negative"] == pytest.approx((0.3, 0.8))
    assert np.isnan(rate_bounds(a, np.zeros(3), np.zeros(3), COST)["equal_opportunity"]).all()
    # Noisy pseudo-labels that sum to less than 0 say nothing about a share of them.
    assert rate_bounds(a, np.array([-1.0, 0.1, 0.2]), np.ones(3), COST)["equal_opportunity"] == (0.0, 1.0)


class Log:
    """A simulated log; the rejected have odds of a positive label `gamma` times those of the accepted."""

    def __init__(self, n: int = 20_000, gamma: float = 1.0, wrong: float = 0.0) -> None:
        generator = np.random.default_rng(0)
        x, self.group = generator.random(n), generator.integers(2, size=n)
        self.p = 0.2 + 0.6 * x
        true_q = 0.25 + 0.5 * x + 0.2 * self.group
        revealed = generator.random(n) < self.p
        mean = np.where(revealed, true_q, gamma * true_q / (1 + (gamma - 1) * true_q))
        self.y = (generator.random(n) < mean).astype(float)
        self.label = np.where(revealed, self.y, np.nan)
        self.q = np.clip(true_q + wrong, 0.01, 0.99)
        self.a = np.clip(0.2 + 0.5 * x + 0.2 * self.group, 0, 1)

    @property
    def columns(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("a", "label", "q", "p", "group")}


def test_an_odds_ratio_of_one_gives_the_doubly_robust_estimate() -> None:
    log = Log()
    revealed = ~np.isnan(log.label)
    rows = Rows(log.a, np.where(revealed, log.p, np.nan), revealed, np.nan_to_num(log.label), log.q)
    columns = view_columns("dr", rows, log.a).values[:, :4]
    expected = {name: gap(values) for name, values in rates(group_sums(columns, log.group, 2), COST).items()}
    expected["calibration_error"] = calibration_errors(by_bin(columns, log.a, log.group)).max()
    found = bounds(log.a, *pseudo_labels(1.0, log.label, log.q, log.p), log.group, COST)
    assert found.pop("utility") == pytest.approx((np.mean(columns[:, 3] - COST * log.a),) * 2)
    assert found.keys() == expected.keys()
    for name, interval in found.items():
        assert interval == pytest.approx((expected[name],) * 2, abs=1e-9)


def test_bounds_widen_with_the_odds_ratio_and_tend_to_those_without_assumptions() -> None:
    log = Log(5000)
    table = sensitivity(**log.columns, cost=COST, gammas=[1.0, 1.2, 1.5, 2.0, 3.0, 10.0, 100.0, 1e9])
    without = bounds(log.a, *label_bounds(log.label), log.group, COST)
    assert table["gamma"].nunique() == 8
    for name, rows in table.groupby("measure"):
        assert (np.diff(rows["low"]) <= 1e-9).all()
        assert (np.diff(rows["high"]) >= -1e-9).all()
        assert rows[["low", "high"]].iloc[-1].tolist() == pytest.approx(list(without[name]), abs=1e-4)
    utility = table[table["measure"] == "utility"]
    assert (np.diff(utility["high"] - utility["low"]) > 0.001).all()


@pytest.mark.parametrize("gamma", [0.5, 2.0])
def test_the_bounds_of_the_right_odds_ratio_contain_the_truth(gamma: float) -> None:
    """Every rejected person is at one end, so the end of utility is the truth."""
    log = Log(200_000, gamma)
    found = bounds(log.a, *pseudo_labels(2.0, log.label, log.q, log.p), log.group, COST)
    end = found["utility"][0 if gamma < 1 else 1]
    assert end == pytest.approx(np.mean(log.a * (log.y - COST)), abs=0.004)
    noise = 0.008
    for name, values in measured(log.a, log.y, log.group).items():
        low, high = found[name]
        truth = values.max() if name == "calibration_error" else gap(values)
        assert low - noise <= truth <= high + noise
    narrow = bounds(log.a, *pseudo_labels(1.3, log.label, log.q, log.p), log.group, COST)["utility"]
    assert not narrow[0] <= np.mean(log.a * (log.y - COST)) <= narrow[1]


def test_an_error_of_the_outcome_model_has_a_small_effect() -> None:
    exact, wrong = (Log(200_000, wrong=error) for error in (0.0, 0.05))
    ends = []
    for log in (exact, wrong):
        labels = pseudo_labels(2.0, log.label, log.q, log.p)
        plug_in = np.where(np.isnan(log.label), 2 * log.q / (1 + log.q), log.label)
        ends.append((value_bounds(log.a, *labels, COST)[1], np.mean(log.a * (plug_in - COST))))
    assert abs(ends[0][0] - ends[1][0]) < 0.002 < 0.008 < abs(ends[0][1] - ends[1][1])


def test_turning_points_by_hand() -> None:
    assert turning_point(lambda gamma: (0.5 - np.log(gamma), 9.0)) == pytest.approx(np.exp(0.5), abs=1e-3)
    assert turning_point(lambda gamma: (-9.0, np.log(gamma) - 0.5)) == pytest.approx(np.exp(0.5), abs=1e-3)
    assert turning_point(lambda gamma: (5 - np.log(gamma), 5 + np.log(gamma))) is None
    assert turning_point(lambda gamma: (1 - gamma, gamma - 1)) == 1.0
    assert turning_point(lambda gamma: (np.nan, np.nan)) is None


def test_turning_points_are_where_the_bound_reaches_zero() -> None:
    log, cost = Log(4000), 0.55
    found = turning_points(**log.columns, cost=cost)
    table = sensitivity(**log.columns, cost=cost, gammas=np.linspace(1, 10, 46).tolist())
    assert found["utility"] is not None
    for name, gamma in found.items():
        low = table[table["measure"] == name].set_index("gamma")["low"]
        turned = low[low <= 0].index
        assert (gamma is None) == (len(turned) == 0)
        if gamma is not None:
            assert turned[0] - 0.201 <= gamma <= turned[0] + 0.001
