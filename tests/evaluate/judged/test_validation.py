"""What a model validation asks for, by hand and by simulation."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

from fairall.evaluate import evaluate
from fairall.evaluate.evaluation import Evaluation
from fairall.evaluate.judged import validation
from fairall.evaluate.judged.models import Models
from tests.evaluate.simulated import COST, applicants, judged, log_of, models_of


@pytest.fixture(scope="module")
def people() -> pd.DataFrame:
    return applicants(2000)


@pytest.fixture(scope="module")
def models(people: pd.DataFrame) -> Models:
    return models_of(people, propensity="p")


def scored(people: pd.DataFrame, score: Any, target: Any = None) -> Evaluation:
    """A policy, and the score of a model to be validated."""
    models = Models(log_of(people, propensity="p"), outcome_model="logistic", score=np.asarray(score))
    return judged(models, people["new"] if target is None else target)


# Four fifths


def test_the_acceptance_ratio_by_hand(models: Models, people: pd.DataFrame) -> None:
    women = (people["sex"] == "f").to_numpy()
    found = validation.acceptance_ratio(judged(models, np.where(women, 0.45, 0.6)))
    assert found[:3] == pytest.approx((0.75, 0.75, 0.75), abs=0.01)  # known but for people who did not come
    target = np.where(women, 0.6, 0.8) * people["truth"]
    rates = [target[women].mean(), target[~women].mean()]
    errors = [target[rows].std() / np.sqrt(rows.sum()) / target[rows].mean() for rows in (women, ~women)]
    found = validation.acceptance_ratio(judged(models, target))
    assert found.estimate == pytest.approx(min(rates) / max(rates))
    half = 1.96 * np.hypot(*errors)
    ends = np.log(found.estimate) + np.array([-half, half])
    assert np.log([found.low, found.high]) == pytest.approx(ends, abs=0.05 * half)
    assert found.high < 1
    never = validation.acceptance_ratio(judged(models, np.where(women, 0.0, 0.6)))
    assert never[:2] == (0.0, 0.0)
    assert 3 / (0.6 * women.sum()) < never.high < 6 / (0.6 * women.sum())
    nobody = validation.acceptance_ratio(judged(models, np.zeros(2000)))
    assert np.isnan(nobody.estimate)
    assert nobody.why == "nobody is accepted"


@pytest.mark.parametrize("women", [0.7, 0.65, 0.5])
def test_intervals_of_the_acceptance_ratio_cover(models: Models, people: pd.DataFrame, women: float) -> None:
    draw, covered = np.random.default_rng(0), []
    chance, truth = np.where(people["sex"] == "f", women, 0.7), women / 0.7
    for _ in range(300):
        found = validation.acceptance_ratio(judged(models, draw.random(2000) < chance))
        covered.append(found.low <= truth <= found.high)
    assert 0.92 <= np.mean(covered) <= 0.985


# Calibration


def test_the_true_probability_is_calibrated_and_another_is_not(people: pd.DataFrame) -> None:
    """Over all people, though labels of the accepted only are known."""
    for wrong in (0.0, 0.1):
        plain = scored(people, (people["chance"] - wrong).clip(0, 1)).to_plain()["calibration"]
        assert plain["of"] == "score"
        for one in plain["groups"].values():
            assert one["error"]["low"] < wrong < one["error"]["high"]
            assert one["error"]["estimate"] == pytest.approx(wrong, abs=0.06)
            assert sum(of["share"] for of in one["bins"]) == pytest.approx(1, abs=0.1)
            inside = [of["low"] - wrong <= of["score"] <= of["high"] for of in one["bins"]]
            assert np.mean(inside) >= 0.7
    own = judged(models_of(people), people["new"]).to_plain()["calibration"]
    assert own["of"] == "outcome model"
    assert all(abs(one["error"]["estimate"]) < 0.05 for one in own["groups"].values())


@pytest.mark.whole
def test_the_calibration_error_by_hand_and_its_coverage() -> None:
    covered = []
    for seed in range(60):
        people = applicants(600, seed=seed)
        one = scored(people, people["chance"])
        found = validation.calibration(one)
        if found is None:  # refused
            continue
        error = found["groups"]["f"]["error"]
        covered.append(error.low <= 0 <= error.high)
    assert len(covered) > 55
    assert np.mean(covered) >= 0.92
    women = (people["sex"] == "f").to_numpy()
    expected = np.mean((one.people.pseudo_label.value - people["chance"])[women])
    assert error.estimate == pytest.approx(expected)


def test_bins_of_few_labels_are_not_shown(people: pd.DataFrame) -> None:
    found = validation.calibration(scored(people, np.where(people.index < 12, 0.95, 0.5 * people["chance"])))
    assert found is not None
    for one in found["groups"].values():
        assert (one["bins"]["score"] < 0.6).all()


# Balance


def test_right_weights_balance_and_wrong_ones_do_not(people: pd.DataFrame, models: Models) -> None:
    right = judged(models, people["new"]).to_plain()["balance"]
    flat = people.assign(p=people["granted"].mean())
    wrong = validation.balance(judged(models_of(flat, propensity="p"), people["new"]))
    assert wrong is not None
    for group, of in right.items():
        assert abs(of["features"]["score"]["after"]) < 0.1
        assert of["features"]["score"]["before"] > 0.2
        assert of["accepted_by_expected"] == pytest.approx(1, abs=0.1)
        weighted = wrong[group]["features"]["score"]
        assert weighted["after"] == pytest.approx(weighted["before"])
    assert wrong["f"]["accepted_by_expected"] < 0.9 < 1.1 < wrong["m"]["accepted_by_expected"]
    # By hand: standardised by the deviation in the group.
    women = people[people["sex"] == "f"]
    accepted = women[women["granted"] == 1]
    by_hand = (accepted["score"].mean() - women["score"].mean()) / women["score"].std()
    assert right["f"]["features"]["score"]["before"] == pytest.approx(by_hand, rel=0.01)
    weighted = np.average(accepted["score"], weights=1 / accepted["p"])
    by_hand = (weighted - women["score"].mean()) / women["score"].std()
    assert right["f"]["features"]["score"]["after"] == pytest.approx(by_hand, abs=0.005)


def test_the_worst_balance_is_named(people: pd.DataFrame, models: Models) -> None:
    assert validation.worst_balance(models.log, judged(models, people["new"]).people) == ""
    flat = models_of(people.assign(p=0.5), propensity="p")
    assert "in score" in validation.worst_balance(flat.log, judged(flat, people["new"]).people)


# Thresholds and costs


def shifted(people: pd.DataFrame) -> np.ndarray:
    """A score that favours men."""
    return expit(people["score"].to_numpy() + 0.5 * (people["sex"] == "m").to_numpy())


def test_thresholds_are_policies_of_the_score(people: pd.DataFrame) -> None:
    score = shifted(people)
    one = scored(people, score)
    curve = one.to_plain()["thresholds"]
    assert len(curve) == len(validation.QUANTILES)
    for row in curve[::6]:
        policy = judged(one.models, score >= row["threshold"])
        assert row["acceptance"] == policy.target.mean()
        plain = policy.to_plain()
        own = plain["value"]["dr"]
        assert row["value"]["estimate"] == pytest.approx(own["estimate"])
        # The band is of the whole curve, and wider.
        assert row["value"]["low"] < own["low"] < own["high"] < row["value"]["high"]
        for name in validation.ON_CURVE:
            assert row[name]["estimate"] == pytest.approx(plain["fairness"][name]["dr"]["estimate"])
            assert row[name]["low"] <= plain["fairness"][name]["dr"]["low"] + 1e-9
            assert row[name]["high"] >= plain["fairness"][name]["dr"]["high"] - 1e-9
    assert scored(people, np.where(people["score"] > 0, 0.8, 0.2)).to_plain()["thresholds"] is None


def curves() -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Thresholds, and the true value and gaps of accepting who is above, of `applicants`."""
    people = applicants(400_000, seed=10**6)
    order = np.argsort(-shifted(people))
    chance, women = people["chance"].to_numpy()[order], (people["sex"] == "f").to_numpy()[order]

    def gap(weight: np.ndarray) -> np.ndarray:
        shares = [np.cumsum(weight * rows) / (weight * rows).sum() for rows in (women, ~women)]
        return np.abs(shares[0] - shares[1])

    value = np.cumsum(chance - COST) / len(chance)
    truth = {"value": value, "dpu": gap(np.ones(len(chance))), "equal_opportunity": gap(chance)}
    return shifted(people)[order][::-1], {name: curve[::-1] for name, curve in truth.items()}


@pytest.mark.whole
def test_bands_cover_the_whole_curve() -> None:
    levels, truth = curves()
    covered: dict[str, list[bool]] = {name: [] for name in truth}
    for seed in range(60):
        people = applicants(600, seed=seed)
        curve = validation.thresholds(scored(people, shifted(people)))
        if curve is None:  # refused
            continue
        thresholds = [row["threshold"] for row in curve]
        for name, values in truth.items():
            expected = np.interp(thresholds, levels, values)
            ends = [row[name] for row in curve]
            covered[name].append(
                all(own.low <= at <= own.high for own, at in zip(ends, expected, strict=True))
            )
    assert len(covered["value"]) > 55
    for name, often in covered.items():
        assert np.mean(often) >= 0.92, name


def test_the_value_is_linear_in_the_cost(people: pd.DataFrame, models: Models) -> None:
    one = judged(models, people["new"])
    rows = validation.costs(one)
    assert rows is not None
    costs, values = rows["cost"], rows["estimate"]
    np.testing.assert_allclose(np.diff(values) / np.diff(costs), -people["new"].mean())
    own = rows.iloc[int(np.argmin(np.abs(costs - COST)))]
    plain = one.to_plain()["value"]["dr"]
    assert [own[key] for key in ("estimate", "low", "high")] == pytest.approx(list(plain.values()))
    dearer = log_of(people, propensity="p", cost=0.7)
    other = evaluate(people["new"].to_numpy(), dearer, outcome_model="logistic").to_plain()["value"]["dr"]
    high = rows.iloc[int(np.argmin(np.abs(costs - 0.7)))]
    assert [high[key] for key in ("estimate", "low", "high")] == pytest.approx(list(other.values()))
