"""The analysis of a score: views, refusals, calibration, periods and curves."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from sklearn.metrics import roc_auc_score

from fairall.evaluate import evaluate
from fairall.evaluate.analyses.score import MEASURES, SCORE
from fairall.evaluate.page import Page
from tests.evaluate.simulated import KEYS, NOT_FEATURES, applicants


def shown(people: pd.DataFrame, score: Any = "chance", **options: Any) -> Page:
    unused = people.columns.intersection(NOT_FEATURES).drop(score or [])
    models = {"propensity_model": "logistic", "outcome_model": "logistic", "drop": [*unused]}
    return evaluate(None, people, score=score, **(KEYS | models | options)).page


def values(about: Page) -> dict[str, Any]:
    """By group or period, measure and view, as "everybody auc dr"."""
    rows = [row for row in SCORE.records(about) if row["measure"] in MEASURES]
    return {
        f"{row.get('group', row.get('period'))} {row['measure']} {row['view']}": row["value"] for row in rows
    }


def frame(about: Page, measure: str) -> pd.DataFrame:
    return pd.DataFrame(row for row in SCORE.records(about) if row["measure"] == measure)


@pytest.fixture(scope="module")
def people() -> pd.DataFrame:
    return applicants(3000)


@pytest.fixture(scope="module")
def card(people: pd.DataFrame) -> Page:
    return shown(people)


@pytest.fixture(scope="module")
def known(card: Page) -> dict[str, Any]:
    return values(card)


def test_measures_of_the_accepted_and_of_everybody(
    people: pd.DataFrame, card: Page, known: dict[str, Any]
) -> None:
    accepted = people.dropna()
    auc = known["everybody auc accepted"].estimate
    assert auc == pytest.approx(roc_auc_score(accepted["repaid"], accepted["chance"]))
    truth = roc_auc_score(people["truth"], people["chance"])
    assert known["everybody auc dr"].low < truth < known["everybody auc dr"].high
    squares = (accepted["repaid"] - accepted["chance"]) ** 2
    assert known["f brier accepted"].estimate == pytest.approx(squares[accepted["sex"] == "f"].mean())
    for name in [*MEASURES][:-1]:
        bounds, estimate = known[f"m {name} bounds"], known[f"m {name} dr"].estimate
        assert bounds.interval_low <= bounds.low < estimate < bounds.high <= bounds.interval_high
    table, gini = SCORE.table(card), known["everybody gini dr"]
    assert table is not None
    text = f"{100 * gini.estimate:.1f} [{100 * gini.low:.1f}, {100 * gini.high:.1f}]"
    assert table.frame.loc[("", "everybody: Gini"), "everybody, DR"] == text
    assert f"doubly robust: {text}" in "".join(SCORE.told(card))


def test_bayesian_evaluation_is_the_mean_over_drawn_labels(people: pd.DataFrame, card: Page) -> None:
    """Of labels of the rejected that are drawn from the model of the label, as its authors do."""
    outcome, draw, aucs = card.first.models.outcome, np.random.default_rng(0), []
    assert outcome is not None
    for _ in range(200):
        label = people["repaid"].fillna(pd.Series(draw.random(3000) < outcome.probability).astype(float))
        aucs.append(roc_auc_score(label, people["chance"]))
    bayesian = values(card)["everybody auc bayesian"]
    assert bayesian.estimate == pytest.approx(np.mean(aucs), abs=4 * np.std(aucs) / np.sqrt(200) + 1e-4)
    assert bayesian.why == "Bayesian evaluation gives no interval"


def test_a_score_of_the_negative_label_is_turned_around(people: pd.DataFrame, known: dict[str, Any]) -> None:
    turned = values(shown(people.assign(chance=1.0 - people["chance"]), score_of="negative"))
    for name in [*MEASURES][:-1]:
        for key in (f"everybody {name} accepted", f"everybody {name} dr"):
            assert turned[key][:3] == pytest.approx(known[key][:3], abs=2e-3), key


def test_decisions_by_the_score_are_modelled_by_it() -> None:
    """Where a score is not a function of the features, decisions by it can only be told by it."""
    draw = np.random.default_rng(0)
    people = pd.DataFrame(draw.normal(size=(2, 4000)).T, columns=["hidden", "x"])
    people["chance"] = expit(0.2 + 1.2 * people["hidden"] + 0.3 * people["x"])
    people["sex"] = draw.choice(["f", "m"], 4000)
    people["granted"] = (draw.random(4000) < expit(1.5 * people.pop("hidden"))).astype(int)
    label = pd.Series(draw.random(4000) < people["chance"]).astype(float)
    people["repaid"], truth = label.where(people["granted"] == 1), roc_auc_score(label, people["chance"])
    auc = values(shown(people))
    assert auc["everybody auc dr"].low < truth < auc["everybody auc dr"].high
    assert auc["everybody auc accepted"].high < truth
    blind = shown(people, drop=["chance"])
    assert [*blind.log.x] == ["x"]
    assert values(blind)["everybody auc dr"].high < truth


def test_what_cannot_be_told_is_refused(people: pd.DataFrame) -> None:
    never = people.assign(granted=(people["score"] > 0).astype(int))
    never["repaid"] = never["truth"].where(never["granted"] == 1)
    refused = shown(never)
    auc, why = values(refused), refused.first.refused_rates
    assert np.isnan(auc["everybody auc dr"].estimate)
    assert auc["everybody auc dr"].why == why
    assert not np.isnan(auc["everybody auc accepted"].low)
    assert set(frame(refused, "share above")["view"]) == {"accepted", "bounds"}
    assert frame(refused, "mean label").empty
    assert f"Score: Gini of everybody, doubly robust: {why}" in "".join(SCORE.told(refused))
    few = people.copy()
    few.loc[np.flatnonzero((few["repaid"] == 0) & (few["sex"] == "f"))[5:], "repaid"] = 1.0
    few.loc[np.flatnonzero((few["repaid"] == 1) & (few["sex"] == "f"))[20:], "repaid"] = np.nan
    brier = values(shown(few))
    assert brier["f brier accepted"].why == "f has fewer than 10 negative labels that count"
    assert np.isnan(brier["f brier accepted"].estimate)
    assert not np.isnan(brier["m brier accepted"].low)
    keys = {name: value for name, value in KEYS.items() if name != "label"}
    unlabelled = evaluate(None, people.drop(columns="repaid"), score="chance", drop=["truth"], **keys)
    assert not [*SCORE.records(unlabelled.page)]


def test_without_a_score_it_is_the_calibration_of_the_model(people: pd.DataFrame) -> None:
    plain = shown(people, None)
    assert SCORE.figure(plain) is None
    assert not [*SCORE.told(plain)]
    table, evaluation, women = SCORE.table(plain), plain.first, (people["sex"] == "f").to_numpy()
    assert table is not None
    assert [name for _, name in table.frame.index] == [
        f"{group}: label − probability" for group in ("everybody", "f", "m")
    ]
    assert evaluation.models.outcome is not None
    error = (evaluation.people.pseudo_label.value - evaluation.models.outcome.probability)[women]
    half = 1.96 * error.std() / np.sqrt(women.sum())
    expected = error.mean() + half * np.array([0, -1, 1])
    assert values(plain)["f error dr"][:3] == pytest.approx(expected, abs=0.002)


@pytest.mark.parametrize("wrong", [0.0, 0.1])
def test_the_true_probability_is_calibrated_and_another_is_not(people: pd.DataFrame, wrong: float) -> None:
    """Over all people, though labels of the accepted only are known; bins of few labels are not shown."""
    chance = (people["chance"] - wrong).clip(0, 1).where(people.index > 3, 0.001)
    about = shown(people.assign(chance=chance))
    error = values(about)["f calibration dr"]
    assert error.low < wrong < error.high
    assert error.estimate == pytest.approx(wrong, abs=0.06)
    bins = frame(about, "mean label")
    assert bins.groupby("group")["share"].sum().tolist() == pytest.approx([1, 1], abs=0.1)
    ends = pd.DataFrame([*bins["value"]])
    assert ends["low"].le(bins["score"] + wrong).mul(ends["high"].ge(bins["score"] + wrong)).mean() >= 0.7
    strict = shown(people.assign(chance=chance), smallest_cell=150)
    assert 0 < len(frame(strict, "mean label")) < len(bins)


def test_periods_have_their_measures_and_the_stability_of_the_score(people: pd.DataFrame) -> None:
    half = np.arange(3000) // 1500
    about = shown(
        people.assign(version=half, chance=people["chance"] ** (1 + half)), policy_version="version"
    )
    later = people[half == 1].dropna()
    gini = 2 * roc_auc_score(later["repaid"], later["chance"]) - 1
    assert values(about)["1 gini accepted"].estimate == pytest.approx(gini)
    (drift,) = frame(about, "psi").itertuples()
    assert (drift.period, drift.value) == ("1", f"{drift.psi:.3f} (p = {drift.p:.2g})")
    assert drift.psi > 0.1 > 1e-6 > drift.p


def test_curves_are_shares_of_people_above_thresholds(people: pd.DataFrame, card: Page) -> None:
    curves = dict(iter(frame(card, "share above").groupby(["view", "label"])))
    repaid, true = (people["chance"][people[name] == label] for name, label in (("repaid", 1), ("truth", 0)))
    for row in curves["accepted", "positive"].itertuples():
        assert row.acceptance == pytest.approx((people["chance"] >= row.threshold).mean())
        assert row.estimate == pytest.approx((repaid >= row.threshold).mean())
    for view in ("dr", "bounds"):
        curve = curves[view, "negative"]
        share = [(true >= level).mean() for level in curve["threshold"]]
        assert (curve["low"].le(share) & curve["high"].ge(share)).all()
    figure = SCORE.figure(card)
    assert figure is not None
    assert figure.draw is not None
    assert [axes.get_title() for axes in figure.draw().axes] == ["accepted", "everybody, DR", "no assumption"]
