"""A score to be validated: views, refusals, and curves."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from fairall import FairAllError
from fairall.evaluate import evaluate
from fairall.evaluate.evaluation import Evaluation
from fairall.evaluate.judged.scorecard import MEASURES
from tests.evaluate.simulated import KEYS, NOT_FEATURES, applicants


def found(people: pd.DataFrame, score: Any = "chance", **options: Any) -> Evaluation:
    unused = [name for name in NOT_FEATURES if name in people and name != score]
    models = {"propensity_model": "logistic", "outcome_model": "logistic", "drop": unused}
    return evaluate(None, people, score=score, **(KEYS | models | options))


@pytest.fixture(scope="module")
def people() -> pd.DataFrame:
    return applicants(3000)


@pytest.fixture(scope="module")
def card(people: pd.DataFrame) -> dict[str, Any]:
    card = found(people).scorecard
    assert card is not None
    return card


def test_the_accepted_are_other_people_than_everybody(card: dict[str, Any], people: pd.DataFrame) -> None:
    known, truth = people["repaid"].notna(), roc_auc_score(people["truth"], people["chance"])
    accepted, everybody = card["everybody"]["auc"]["accepted"], card["everybody"]["auc"]["dr"]
    assert accepted.estimate == pytest.approx(roc_auc_score(people["repaid"][known], people["chance"][known]))
    assert everybody.low < truth < everybody.high
    for group, own in card["groups"].items():
        rows = known & (people["sex"] == group)
        assert own["brier"]["accepted"].estimate == pytest.approx(
            ((people["repaid"] - people["chance"])[rows] ** 2).mean()
        )


def test_bounds_hold_all_that_is_possible(card: dict[str, Any]) -> None:
    for measures in (card["everybody"], *card["groups"].values()):
        for name, views in measures.items():
            bounds = views["bounds"]
            assert bounds.interval_low <= bounds.low < views["dr"].estimate < bounds.high, name
            assert bounds.high <= bounds.interval_high


def test_gini_is_twice_the_auc_less_one(card: dict[str, Any]) -> None:
    auc, gini = card["everybody"]["auc"], card["everybody"]["gini"]
    for view in ("accepted", "dr", "bayesian"):
        assert gini[view].estimate == pytest.approx(2 * auc[view].estimate - 1)
        assert gini[view].low == pytest.approx(2 * auc[view].low - 1, nan_ok=True)
    assert gini["bounds"].high == pytest.approx(2 * auc["bounds"].high - 1)


def test_bayesian_evaluation_is_the_mean_over_drawn_labels(people: pd.DataFrame) -> None:
    """Of labels of the rejected that are drawn from the model of the label, as its authors do."""
    own = found(people)
    assert own.models.outcome is not None
    assert own.scorecard is not None
    draw, known = np.random.default_rng(0), people["repaid"].notna()
    aucs = []
    for _ in range(200):
        label = np.where(known, people["repaid"], draw.random(3000) < own.models.outcome.probability)
        aucs.append(roc_auc_score(label, people["chance"]))
    bayesian = own.scorecard["everybody"]["auc"]["bayesian"]
    assert bayesian.estimate == pytest.approx(np.mean(aucs), abs=4 * np.std(aucs) / np.sqrt(200) + 1e-4)
    assert bayesian.why == "Bayesian evaluation gives no interval"


def test_a_score_of_the_negative_label_is_turned_around(people: pd.DataFrame, card: dict[str, Any]) -> None:
    pd_ = people.assign(chance=1.0 - people["chance"])
    turned = found(pd_, score_of="negative").scorecard
    assert turned is not None
    for name in MEASURES:
        for view in ("accepted", "dr"):
            own, other = turned["everybody"][name][view], card["everybody"][name][view]
            assert own[:3] == pytest.approx(other[:3], abs=2e-3), name
    with pytest.raises(FairAllError, match="score_of=bad is not possible: it must be positive or negative"):
        found(people, score_of="bad")
    model = LogisticRegression().fit(people[["score"]], people["truth"])
    with pytest.raises(FairAllError, match="score LogisticRegression: it says itself what its probabilities"):
        found(people, model, score_of="negative")


def test_decisions_by_the_score_are_modelled_by_it() -> None:
    """Where a score is not a function of the features, decisions by it can only be told by it."""
    draw = np.random.default_rng(0)
    hidden, x, sex = draw.normal(size=4000), draw.normal(size=4000), draw.choice(["f", "m"], 4000)
    chance = expit(0.2 + 1.2 * hidden + 0.3 * x)
    granted, truth = draw.random(4000) < expit(1.5 * hidden), (draw.random(4000) < chance).astype(float)
    people = pd.DataFrame({"x": x, "sex": sex, "granted": granted.astype(int), "chance": chance})
    people["repaid"] = np.where(granted, truth, np.nan)
    own = found(people)
    assert own.scorecard is not None
    auc = own.scorecard["everybody"]["auc"]
    assert auc["dr"].low < roc_auc_score(truth, chance) < auc["dr"].high
    assert auc["accepted"].high < roc_auc_score(truth, chance)
    assert not any("'chance'" in note for note in own.log.notes)
    dropped = found(people, drop=["chance"])
    assert dropped.log.names == ["x"]
    assert dropped.scorecard is not None
    blind = dropped.scorecard["everybody"]["auc"]["dr"]
    assert blind.high < roc_auc_score(truth, chance)


def test_what_cannot_be_told_is_refused(people: pd.DataFrame) -> None:
    never = people.assign(granted=(people["score"] > 0).astype(int))
    never["repaid"] = never["truth"].where(never["granted"] == 1)
    own = found(never)
    assert own.scorecard is not None
    auc = own.scorecard["everybody"]["auc"]
    assert np.isnan(auc["dr"].estimate)
    assert auc["dr"].why == own.refused_rates
    assert not np.isnan(auc["accepted"].low)
    assert set(own.scorecard["curves"]["view"]) == {"accepted", "bounds"}
    few = people.copy()
    defaults = np.flatnonzero((few["repaid"] == 0) & (few["sex"] == "f"))
    few.loc[defaults[5:], "repaid"] = 1.0
    own = found(few)
    assert own.scorecard is not None
    why = own.scorecard["groups"]["f"]["brier"]["accepted"].why
    assert why == "f has fewer than 10 negative labels that count"
    assert np.isnan(own.scorecard["groups"]["f"]["brier"]["accepted"].estimate)
    assert not np.isnan(own.scorecard["groups"]["m"]["brier"]["accepted"].low)


def test_without_a_score_or_labels_there_is_no_scorecard(people: pd.DataFrame) -> None:
    assert found(people, None).scorecard is None
    unlabelled = people.drop(columns="repaid")
    keys = {name: value for name, value in KEYS.items() if name != "label"}
    assert evaluate(None, unlabelled, score="chance", drop=["truth"], **keys).scorecard is None


def test_curves_are_shares_of_people_above_thresholds(card: dict[str, Any], people: pd.DataFrame) -> None:
    curves = card["curves"]
    own = curves[(curves["view"] == "accepted") & (curves["label"] == "positive")]
    repaid = people["chance"][people["repaid"] == 1]
    for row in own.itertuples():
        assert row.acceptance == pytest.approx((people["chance"] >= row.threshold).mean())
        assert row.estimate == pytest.approx((repaid >= row.threshold).mean())
    true = people["chance"][people["truth"] == 0]
    for view in ("dr", "bounds"):
        own = curves[(curves["view"] == view) & (curves["label"] == "negative")]
        share = [(true >= level).mean() for level in own["threshold"]]
        assert (own["low"] <= share).all()
        assert (share <= own["high"]).all()
