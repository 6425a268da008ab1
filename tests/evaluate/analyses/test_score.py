"""The analysis of a score: views, refusals, calibration and periods."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

from fairall.evaluate.analyses.score import MEASURES, SCORE
from fairall.evaluate.page import Page
from tests.evaluate.simulated import NOT_FEATURES, applicants, evaluated


def shown(people: pd.DataFrame, score: str | None = "chance", **options: Any) -> Page:
    unused = [name for name in NOT_FEATURES if name in people and name != score]
    return evaluated(people, None, score=score, drop=unused, not_features=[], **options).page


def values(about: Page) -> dict[str, Any]:
    """By what and view, as "everybody: AUC, dr"."""
    rows = [row for row in SCORE.records(about) if row["measure"] in MEASURES]
    return {f"{row['about']}, {row['view']}": row["value"] for row in rows}


def frame(about: Page, measure: str) -> pd.DataFrame:
    return pd.DataFrame(row for row in SCORE.records(about) if row["measure"] == measure)


@pytest.fixture(scope="module")
def people() -> pd.DataFrame:
    return applicants(3000)


@pytest.fixture(scope="module")
def card(people: pd.DataFrame) -> Page:
    return shown(people)


def test_measures_of_the_accepted_and_of_everybody(people: pd.DataFrame, card: Page) -> None:
    known, accepted = values(card), people.dropna()
    auc = known["everybody: AUC, accepted"].estimate
    assert auc == pytest.approx(roc_auc_score(accepted["repaid"], accepted["chance"]))
    truth = roc_auc_score(people["truth"], people["chance"])
    assert known["everybody: AUC, dr"].low < truth < known["everybody: AUC, dr"].high
    squares = (accepted["repaid"] - accepted["chance"]) ** 2
    assert known["f: Brier score, accepted"].estimate == pytest.approx(squares[accepted["sex"] == "f"].mean())
    for name in ("AUC", "Gini", "Brier score", "label − score"):
        bounds, estimate = known[f"m: {name}, bounds"], known[f"m: {name}, dr"].estimate
        assert bounds.interval_low <= bounds.low < estimate < bounds.high <= bounds.interval_high


def test_of_probable_groups_everybody_is_told_once(people: pd.DataFrame) -> None:
    likely = people.head(500).assign(f=0.7, m=0.3)
    told = [row["about"] for row in SCORE.records(shown(likely, sensitive=["f", "m"])) if row["view"] == "dr"]
    assert told == [f"everybody: {name}" for name in MEASURES.values()]


def test_bayesian_evaluation_is_the_mean_over_drawn_labels(people: pd.DataFrame, card: Page) -> None:
    """Of labels of the rejected that are drawn from the model of the label, as its authors do."""
    outcome, draw, aucs = card.first.models.outcome, np.random.default_rng(0), []
    assert outcome is not None
    for _ in range(100):
        label = np.where(people["repaid"].isna(), draw.random(3000) < outcome.probability, people["repaid"])
        aucs.append(roc_auc_score(label, people["chance"]))
    bayesian = values(card)["everybody: AUC, bayesian"]
    assert bayesian.estimate == pytest.approx(np.mean(aucs), abs=4 * np.std(aucs) / np.sqrt(100) + 1e-4)
    assert bayesian.why == "Bayesian evaluation gives no interval"


def test_what_cannot_be_told_is_refused(people: pd.DataFrame) -> None:
    never = people.assign(granted=(people["score"] > 0).astype(int))
    never["repaid"] = never["truth"].where(never["granted"] == 1)
    refused = shown(never)
    known, why = values(refused), refused.first.refused_rates
    for view in ("dr", "bayesian"):
        auc = known[f"everybody: AUC, {view}"]
        assert (np.isnan(auc.estimate), auc.why) == (True, why)
    assert not np.isnan(known["everybody: AUC, accepted"].low)
    assert SCORE.figure(refused) is None


def test_groups_with_few_labels_of_a_kind_are_not_shown(people: pd.DataFrame) -> None:
    bad = (people["repaid"] == 0) & (people["sex"] == "f")
    known = values(shown(people.assign(repaid=people["repaid"].mask(bad & (bad.cumsum() > 5)))))
    few, enough = (known[f"{sex}: Brier score, accepted"] for sex in "fm")
    assert few.why == "f has fewer than 10 negative labels that count"
    assert np.isnan([few.estimate, enough.low]).tolist() == [True, False]


def test_nothing_is_said_without_a_score_or_without_labels(people: pd.DataFrame) -> None:
    for about in (shown(people, None), shown(people.drop(columns="repaid"), label=None)):
        assert (SCORE.table(about), SCORE.figure(about)) == (None, None)


@pytest.mark.parametrize("wrong", [0.0, 0.1])
def test_the_true_probability_is_calibrated_and_another_is_not(people: pd.DataFrame, wrong: float) -> None:
    """Over all people, though labels of the accepted only are known; bins of few labels are not shown."""
    people = people.assign(chance=(people["chance"] - wrong).clip(0, 1).where(people.index > 3, 0.001))
    about = shown(people)
    error = values(about)["f: label − score, dr"]
    assert error.low < wrong < error.high
    assert error.estimate == pytest.approx(wrong, abs=0.06)
    bins = frame(about, "mean label")
    assert bins["score"].min() > 0.01
    estimate, low, high = np.transpose([value[:3] for value in bins["value"]])
    truth = bins["score"] + wrong
    assert ((low <= truth) & (truth <= high)).mean() >= 0.7
    figure = SCORE.figure(about)
    assert figure is not None
    assert figure.draw is not None
    women, _ = figure.draw().axes
    points = 100 * estimate[bins["group"] == "f"]
    assert [line.get_ydata()[0] for line in women.lines[1:]] == pytest.approx(points)
    assert 0 < len(frame(shown(people, smallest_cell=150), "mean label")) < len(bins)


def test_periods_have_their_measures_and_the_stability_of_the_score(people: pd.DataFrame) -> None:
    half = np.arange(3000) // 1500
    about = shown(
        people.assign(version=half, chance=people["chance"] ** (1 + half)), policy_version="version"
    )
    later = people[half == 1].dropna()
    gini = 2 * roc_auc_score(later["repaid"], later["chance"]) - 1
    assert values(about)["1: Gini, accepted"].estimate == pytest.approx(gini)
    (drift,) = frame(about, "psi").itertuples()
    assert (drift.period, drift.value) == ("1", f"{drift.psi:.3f} (p = {drift.p:.2g})")
    assert drift.psi > 0.1 > 1e-6 > drift.p
