"""Logs of several policy versions, whose truth is known."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

from fairall.errors import FairAllError
from fairall.evaluate import evaluate
from fairall.evaluate.evaluation import Evaluation
from fairall.evaluate.judged.monitor import Monitor
from tests.evaluate.simulated import COST, log_of

VERSIONED: dict[str, Any] = {"policy_version": "version"}


def changed(n: int = 3000, seed: int = 0, *, moved: float = 0.0, stopped: bool = False) -> pd.DataFrame:
    """Two policies, of which each nearly never accepts those whom the other one likes, after each other.

    Args:
        n: rows, half of either version.
        seed: of the draw.
        moved: how far the log odds of labels are higher in the second version.
        stopped: whether the second version accepts nobody.
    """
    draw = np.random.default_rng(seed)
    second = np.arange(n) >= n // 2
    score, sex = draw.normal(size=n) + 0.4 * second, draw.choice(["f", "m"], n)
    p = np.where(second, 0.0 if stopped else expit(-3.0 * score - 0.5), expit(3.0 * score + 0.5))
    accepted, chance = draw.random(n) < p, expit(0.3 + score + moved * second)
    repays = (draw.random(n) < chance).astype(float)
    return pd.DataFrame(
        {
            "score": score,
            "sex": sex,
            "granted": accepted.astype(int),
            "repaid": np.where(accepted, repays, np.nan),
            "version": np.where(second, "later", "first"),
            "day": np.arange(n) // 10,
            "p": p,
            "new": expit(1.5 * score),
            "truth": repays,
            "chance": chance,
        }
    )


def judged(people: pd.DataFrame, **keys: Any) -> Evaluation:
    """The policy `new`, by logistic regressions."""
    log = log_of(people, **({"drop": ["day"]} | VERSIONED | keys))
    return evaluate(people["new"].to_numpy(), log, propensity_model="logistic", outcome_model="logistic")


def test_the_mixture_is_that_of_the_versions() -> None:
    people = changed(8000)
    first = np.exp(-0.5 * people["score"] ** 2)
    later = np.exp(-0.5 * (people["score"] - 0.4) ** 2)
    share = later / (first + later)
    mixture = share * expit(-3.0 * people["score"] - 0.5) + (1 - share) * expit(3.0 * people["score"] + 0.5)
    model = judged(people).models.propensity
    assert model is not None
    assert np.abs(model.probability - mixture).max() < 0.06
    # One logistic regression for both policies knows of neither.
    pooled = judged(people, policy_version=None, drop=["version", "day"]).models.propensity
    assert pooled is not None
    assert np.abs(pooled.probability - mixture).max() > 0.2


@pytest.mark.slow
def test_intervals_cover_where_no_policy_alone_overlaps() -> None:
    """IPS is right with the mixture, not with the pooled regression; DR covers in 52 of 60 logs or more."""
    many = changed(400_000, 99)
    true = float((many["new"] * (many["chance"] - COST)).mean())
    covered, errors, pooled = [], [], []
    for seed in range(60):
        people = changed(2000, seed)
        found = judged(people).values
        covered.append(found["dr"].low <= true <= found["dr"].high)
        errors.append(found["ips"].estimate - true)
        without = judged(people, policy_version=None, drop=["version", "day"])
        pooled.append(without.values["ips"].estimate - true)
    assert np.mean(covered) >= 52 / 60
    assert abs(np.mean(errors)) < 4 * np.std(errors) / np.sqrt(60) + 0.002
    assert abs(np.mean(pooled)) > 2 * abs(np.mean(errors))


def test_a_new_policy_is_learnt_from_its_own_past() -> None:
    people = changed()
    found = judged(people, time="day", drop=[])
    watched = found.monitor
    assert isinstance(watched, Monitor)
    weight, second = watched.past.weight, (people["version"] == "later").to_numpy()
    known, accepted = np.isfinite(weight), people["granted"].to_numpy() == 1
    assert not known[second][:100].any()  # nothing is known yet of what the new policy does
    late = known & accepted & (np.arange(len(people)) % 1500 > 900)
    truth = np.minimum(1.0 / people["p"], 20.0)
    assert np.corrcoef(np.log(weight[late]), np.log(truth[late]))[0, 1] > 0.95
    pooled = judged(people, time="day", policy_version=None, drop=["version"]).monitor
    assert isinstance(pooled, Monitor)
    of_pooled = pooled.past.weight
    late &= np.isfinite(of_pooled) & second
    assert np.corrcoef(np.log(of_pooled[late]), np.log(truth[late]))[0, 1] < 0.5


def test_periods_tell_acceptance_and_drift() -> None:
    people = changed(6000)
    first, later = judged(people).models.periods
    assert (first.name, later.name, first.rows) == ("first", "later", 3000)
    own = people[people["version"] == "later"]
    assert later.acceptance.estimate == pytest.approx(own["granted"].mean())
    assert later.groups["m"].estimate == pytest.approx(own[own["sex"] == "m"]["granted"].mean())
    assert later.positive.estimate == pytest.approx(own["repaid"].mean())
    assert first.drift == {}
    assert later.drift["score"].p < 1e-6
    assert later.drift["group"].p > 0.001


def test_rows_of_the_same_person_are_no_more_people_for_drift() -> None:
    people = changed(600).assign(score=np.random.default_rng(1).normal(size=600))
    three = people.loc[people.index.repeat(3)].assign(who=np.arange(600).repeat(3))
    found = [
        judged(table, **keys).models.periods[1].drift["score"]
        for table, keys in ((people, {}), (three, {"person": "who"}))
    ]
    assert found[1].p == found[0].p


def test_without_versions_periods_are_quarters_and_a_change_is_told() -> None:
    found = judged(changed(), time="day", policy_version=None, drop=["version"])
    assert [one.name for one in found.models.periods][:2] == ["0 to 74", "75 to 149"]
    told = [text for text in found.warnings if "changed with time" in text]
    assert len(told) == 1
    assert "policy_version=COLUMN" in told[0]
    day = int(told[0].split("most about ")[1].split()[0])
    assert abs(day - 150) < 15


@pytest.mark.whole
def test_no_change_is_told_where_there_is_none() -> None:
    """Each of the two tests has an error of 1 %."""
    times, labels = 0, 0
    for seed in range(20):
        people = changed(1500, seed)
        people["p"] = expit(0.5 * people["score"])
        accepted = np.random.default_rng(100 + seed).random(len(people)) < people["p"]
        people["granted"], people["repaid"] = accepted.astype(int), people["truth"].where(accepted)
        unversioned = judged(people, time="day", policy_version=None, drop=["version"])
        times += any("changed with time" in text for text in unversioned.warnings)
        labels += any("the label has changed" in text for text in judged(people).warnings)
    assert times <= 1
    assert labels <= 1


def test_labels_that_change_with_the_version_are_told() -> None:
    (told,) = [text for text in judged(changed(4000, moved=1.5)).warnings if "the label has changed" in text]
    assert told.startswith("labels of policy version")


def test_a_version_without_acceptance_is_told() -> None:
    told = judged(changed(stopped=True)).warnings
    assert any("nobody was accepted by policy version later (1500 rows)" in text for text in told)


def test_recorded_propensities_are_used_as_they_are() -> None:
    people = changed()
    models = judged(people, propensity="p").models
    accepted = people["granted"] == 1
    assert models.weight.value[accepted] == pytest.approx(1.0 / people["p"][accepted])


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({0: None}, "'version', row 1: .* is no policy version"),
        (dict.fromkeys(range(3000), 0) | {k: k for k in range(60)}, "60 policy versions; at most 50"),
    ],
)
def test_versions_that_cannot_be_used(values: dict[int, Any], told: str) -> None:
    people = changed()
    people["version"] = people["version"].astype(object)
    for row, value in values.items():
        people.loc[row, "version"] = value
    with pytest.raises(FairAllError, match=told):
        judged(people)


def test_one_version_is_none() -> None:
    people = changed().assign(version="only")
    assert judged(people).log.policy_version is None
