import warnings

import fairlearn.metrics
import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import precision_score

from fairall.evaluate.estimators import Rows
from fairall.evaluate.fairness import (
    BINS,
    MEASURES,
    bins,
    calibration_errors,
    calibration_interval,
    gap,
    gap_interval,
    group_sums,
    label_columns,
    rates,
    reliability,
    undefined,
)
from fairall.evaluate.views import VIEWS, view_columns

COST = 0.4
OFTEN = 0.93  # least share of intervals that cover; 0.95 less three standard errors of 1,000 simulations
SIMULATIONS = 1000


def decided(groups: int, *, weighted: bool = False) -> tuple[np.ndarray, ...]:
    """Decisions, labels, groups and weights of 500 people, all labelled."""
    generator = np.random.default_rng(groups)
    group, y = generator.integers(groups, size=500), generator.integers(0, 2, 500).astype(float)
    a = (generator.random(500) < 0.2 + 0.1 * group + 0.3 * y).astype(float)
    return a, y, group, generator.choice([0.0, 1.0, 2.5], 500) if weighted else np.ones(500)


def gaps(a: np.ndarray, y: np.ndarray, group: np.ndarray, w: np.ndarray) -> dict[str, float]:
    sums = group_sums(label_columns(a, y, w), group, group.max() + 1)
    return {name: float(gap(values)) for name, values in rates(sums, COST).items()}


def test_rates_by_hand() -> None:
    a, y = np.array([1.0, 0.5, 0.0, 0.5, 1.0]), np.array([1.0, 0.0, 1.0, 1.0, 0.0])
    sums = group_sums(label_columns(a, y, np.ones(5)), np.array([0, 0, 0, 1, 1]), 2)
    found = rates(sums, COST)
    assert found["dpu"] == pytest.approx([0.5, 0.75])
    assert found["equal_opportunity"] == pytest.approx([0.5, 0.5])
    assert found["predictive_parity"] == pytest.approx([1 / 1.5, 0.5 / 1.5])
    assert found["false_positive"] == pytest.approx([0.5, 1.0])
    assert found["false_negative"] == pytest.approx([0.5, 0.5])
    assert found["utility_gap"] == pytest.approx([(0.6 - 0.2) / 3, (0.3 - 0.4) / 2])
    assert found.keys() == MEASURES.keys() - {"calibration_error"}


def test_sums_with_leading_axes_give_the_rates_of_each() -> None:
    generator = np.random.default_rng(0)
    sums = np.sort(generator.random((7, 5, 3, 4)))[..., [3, 1, 2, 0]]
    found = rates(sums, COST)
    for name, values in found.items():
        assert values.shape == (7, 5, 3)
        assert values[4, 2] == pytest.approx(rates(sums[4, 2], COST)[name])
        assert gap(values).shape == (7, 5)


@pytest.mark.parametrize("weighted", [False, True])
def test_gaps_agree_with_aif360(weighted: bool) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from aif360.datasets import BinaryLabelDataset
        from aif360.metrics import ClassificationMetric

    a, y, group, w = decided(2, weighted=weighted)
    people = BinaryLabelDataset(
        df=pd.DataFrame({"s": group.astype(float), "y": y, "w": w}),
        label_names=["y"],
        protected_attribute_names=["s"],
        instance_weights_name="w",
    )
    decisions = people.copy()
    decisions.labels = a.reshape(-1, 1)
    theirs = ClassificationMetric(people, decisions, [{"s": 0.0}], [{"s": 1.0}])
    ours = gaps(a, y, group, w)
    precision = [theirs.positive_predictive_value(privileged) for privileged in (True, False)]
    assert ours["dpu"] == pytest.approx(abs(theirs.mean_difference()), abs=1e-9)
    assert ours["equal_opportunity"] == pytest.approx(abs(theirs.equal_opportunity_difference()), abs=1e-9)
    assert ours["predictive_parity"] == pytest.approx(abs(precision[0] - precision[1]), abs=1e-9)
    assert ours["false_positive"] == pytest.approx(abs(theirs.false_positive_rate_difference()), abs=1e-9)
    assert ours["false_negative"] == pytest.approx(abs(theirs.false_negative_rate_difference()), abs=1e-9)
    assert min(ours.values()) > 0.005


@pytest.mark.parametrize("groups", [2, 4])
@pytest.mark.parametrize("weighted", [False, True])
def test_gaps_agree_with_fairlearn(groups: int, weighted: bool) -> None:
    a, y, group, w = decided(groups, weighted=weighted)
    ours = gaps(a, y, group, w)
    known = {"sensitive_features": group, "sample_weight": w}
    dpu = fairlearn.metrics.demographic_parity_difference(y, a, **known)
    assert ours["dpu"] == pytest.approx(dpu, abs=1e-9)
    opportunity = fairlearn.metrics.equal_opportunity_difference(y, a, **known)
    assert ours["equal_opportunity"] == pytest.approx(opportunity, abs=1e-9)
    by_name = {
        "predictive_parity": precision_score,
        "false_positive": fairlearn.metrics.false_positive_rate,
        "false_negative": fairlearn.metrics.false_negative_rate,
    }
    for name, metric in by_name.items():
        frame = fairlearn.metrics.MetricFrame(
            metrics=metric,
            y_true=y,
            y_pred=a,
            sensitive_features=group,
            sample_params={"sample_weight": w},
        )
        assert ours[name] == pytest.approx(frame.difference(method="between_groups"), abs=1e-9)


def test_rates_without_people_are_nan_and_named() -> None:
    a, y = np.array([1.0, 0.0, 0.5, 0.5]), np.array([0.0, 0.0, 0.0, 1.0])
    found = rates(group_sums(label_columns(a, y, np.ones(4)), np.array([0, 0, 1, 1]), 3), COST)
    assert np.isnan(found["equal_opportunity"]).tolist() == [True, False, True]
    assert np.isnan(found["false_positive"]).tolist() == [False, False, True]
    assert np.isnan(gap(found["equal_opportunity"]))
    lines = undefined(found, ["a", "b", "c"])
    assert lines[0] == "DPU: no value, since people are missing in group 'c'"
    assert (
        "equal-opportunity gap: no value, since people with a positive label are missing in groups 'a', 'c'"
    ) in lines
    assert np.isnan(gap_interval(np.array([0.5, np.nan]), np.ones((9, 2)))).all()


def test_only_the_corrected_views_find_the_rates_of_all_people() -> None:
    generator = np.random.default_rng(0)
    n = 200_000
    group, x = generator.integers(2, size=n), generator.random(n)
    q = 0.2 + 0.6 * x - 0.1 * group
    y = (generator.random(n) < q).astype(float)
    a, p = np.clip(x + 0.2 - 0.2 * group, 0, 1), 0.1 + 0.8 * x**2
    label = np.where(generator.random(n) < p, y, np.nan)
    recorded = np.where(np.isnan(label), np.nan, p)  # propensities of the rejected are not needed
    truth = rates(group_sums(label_columns(a, y, np.ones(n)), group, 2), COST)
    rows = Rows(a, recorded, ~np.isnan(label), np.nan_to_num(label), q)
    views = {view: group_sums(view_columns(view, rows, a).values[:, :4], group, 2) for view in VIEWS}
    found = {view: rates(sums, COST) for view, sums in views.items()}
    for name, true in truth.items():
        assert found["dr"][name] == pytest.approx(true, abs=0.01)
        assert found["ips"][name] == pytest.approx(true, abs=0.015)
        assert np.abs(found["naive"][name] - true).max() > 0.05
    assert found["dr"]["dpu"] == pytest.approx(truth["dpu"], abs=1e-12)
    everyone = rates(views["ips"], COST, everyone=views["dr"])
    assert (everyone["dpu"] == found["dr"]["dpu"]).all()
    assert (everyone["predictive_parity"] == found["ips"]["predictive_parity"]).all()


def test_calibration_errors_and_reliability_by_hand() -> None:
    a = np.array([0.0, 0.05, 0.1, 0.99, 1.0, 1.0])
    assert bins(a).tolist() == [0, 0, 1, 9, 9, 9]
    y, w = np.array([0.0, 1.0, 0.0, 1.0, 0.0, np.nan]), np.array([1.0, 1.0, 2.0, 1.0, 1.0, 0.0])
    sums = group_sums(label_columns(a, y, w)[:, :3], bins(a), BINS)[None]
    assert calibration_errors(sums) == pytest.approx([(0.95 + 0.2 + 0.99) / 6])
    curve = reliability(sums)
    assert curve.score[0, [0, 1, 9]] == pytest.approx([0.025, 0.1, 0.995])
    assert curve.label[0, [0, 1, 9]] == pytest.approx([0.5, 0.0, 0.5])
    assert curve.share[0, [0, 1, 2, 9]] == pytest.approx([1 / 3, 1 / 3, 0, 1 / 3])
    assert np.isnan(curve.score[0, 2])


def test_the_interval_of_two_groups_is_the_symmetric_one_of_the_difference() -> None:
    draws = np.random.default_rng(0).normal([0.5, 0.8], 0.05, (999, 2))
    estimate = np.array([0.5, 0.8])
    half = np.sort(np.abs(draws[:, 1] - draws[:, 0] - 0.3))[949]
    assert gap_interval(estimate, draws) == pytest.approx((0.3 - half, 0.3 + half), abs=1e-3)
    assert gap_interval(estimate, draws * 10)[1] == 1.0
    assert gap_interval(estimate, draws * 10)[0] == 0.0


def test_draws_without_a_value_widen_the_interval() -> None:
    draws = np.full((100, 2), 0.5)
    estimate = np.array([0.5, 0.6])
    draws[:5, 1] = np.nan
    assert gap_interval(estimate, draws) == pytest.approx((0.0, 0.2))
    draws[:6, 1] = np.nan
    assert gap_interval(estimate, draws) == (0.0, 1.0)


@pytest.mark.parametrize("groups", [2, 4])
@pytest.mark.parametrize("distance", [0.0, 0.1])
def test_intervals_of_gaps_cover_the_true_gap(groups: int, distance: float) -> None:
    generator = np.random.default_rng(groups)
    size = 400
    truth = 0.4 + distance * np.arange(groups) / (groups - 1)
    covered, without = 0, 0
    for _ in range(SIMULATIONS):
        estimate = generator.binomial(size, truth) / size
        draws = generator.binomial(size, estimate, size=(400, groups)) / size
        low, high = gap_interval(estimate, draws)
        covered += low <= distance <= high
        # Percentiles of the gap's own draws, for comparison: they miss a gap of 0.
        low, high = np.quantile(gap(draws), [0.025, 0.975])
        without += low <= distance <= high
    assert covered >= OFTEN * SIMULATIONS
    if distance == 0:
        assert without < 0.9 * SIMULATIONS


def test_intervals_of_the_calibration_error_cover_it() -> None:
    generator = np.random.default_rng(5)
    size = 150  # of every bin of both groups
    score = np.tile((np.arange(BINS) + 0.5) / BINS, (2, 1))
    for offset in (0.0, 0.04):
        truth, covered = score + offset * np.array([[1.0], [-0.5]]), 0
        for _ in range(300):
            label = generator.binomial(size, truth) / size
            redrawn = generator.binomial(size, label, size=(300, 2, BINS)) / size
            estimate = np.stack([np.ones_like(score), score, label], -1)
            draws = np.broadcast_to(estimate, (300, *estimate.shape)).copy()
            draws[..., 2] = redrawn
            low, high = calibration_interval(estimate, draws)
            covered += low <= offset <= high
        assert covered >= OFTEN * 300
