"""Logs of several policy versions, whose truth is known: their models, what changed, and how it is shown."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

from fairall.errors import FairAllError
from fairall.evaluate import evaluate
from fairall.evaluate.analyses.monitor import MONITOR, by_version
from fairall.evaluate.evaluation import Evaluation
from tests.evaluate.simulated import log_of, models_of

UNVERSIONED: dict[str, Any] = {"policy_version": None, "drop": ["version"], "time": "day"}


def changed(n: int = 3000, seed: int = 0, *, moved: float = 0.0) -> pd.DataFrame:
    """Two policies, of which each nearly never accepts those whom the other one likes, after each other.

    Args:
        n: rows, half of either version.
        seed: of the draw.
        moved: how far the log odds of labels are higher in the second version.
    """
    draw = np.random.default_rng(seed)
    second = np.arange(n) >= n // 2
    score, sex = draw.normal(size=n) + 0.4 * second, draw.choice(["f", "m"], n)
    p = np.where(second, expit(-3.0 * score - 0.5), expit(3.0 * score + 0.5))
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
        }
    )


def judged(people: pd.DataFrame, **keys: Any) -> Evaluation:
    """The policy `new`, by logistic regressions."""
    log = log_of(people, **({"drop": ["day"], "policy_version": "version"} | keys))
    return evaluate(people["new"].to_numpy(), log, propensity_model="logistic", outcome_model="logistic")


def values(one: Evaluation, version: str) -> dict[str, Any]:
    return {
        str(record["what"]): record["value"]
        for record in by_version(one.models)
        if record["version"] == version
    }


def test_propensities_are_those_of_all_versions_together() -> None:
    people = changed(8000)
    first = np.exp(-0.5 * people["score"] ** 2)
    later = np.exp(-0.5 * (people["score"] - 0.4) ** 2)
    share = later / (first + later)
    mixture = share * expit(-3.0 * people["score"] - 0.5) + (1 - share) * expit(3.0 * people["score"] + 0.5)
    one = models_of(log_of(people, drop=["day"], policy_version="version"), "auto")
    assert np.abs(one.acceptance - mixture).mean() < 0.03


def test_a_new_policy_is_learnt_from_its_own_past() -> None:
    people = changed()
    second, accepted = people["version"] == "later", people["granted"] == 1
    late = second & accepted & (np.arange(len(people)) % 1500 > 900)
    truth = np.minimum(1.0 / people["p"], 20.0)
    correlations = []
    for keys in ({"time": "day", "drop": []}, UNVERSIONED):
        past = judged(people, **keys).models.past
        assert past is not None
        rows = late & np.isfinite(past.weight)
        correlations.append(np.corrcoef(np.log(past.weight[rows]), np.log(truth[rows]))[0, 1])
        # Nothing is known at first of what the new policy does.
        assert np.isfinite(past.weight[second][:100]).any() == (keys is UNVERSIONED)
    assert correlations[0] > 0.95
    assert correlations[1] < 0.5


def test_versions_have_acceptance_labels_and_drift() -> None:
    people = changed(6000)
    one = judged(people)
    first, later = values(one, "first"), values(one, "later")
    own = people[people["version"] == "later"]
    acceptance = own.groupby("sex")["granted"].mean()
    assert later["acceptance rate"].estimate == pytest.approx(own["granted"].mean())
    assert later["acceptance rate, m"].estimate == pytest.approx(acceptance["m"])
    assert later["gap of acceptance rates"].estimate == pytest.approx(abs(acceptance["m"] - acceptance["f"]))
    assert later["positive labels"].estimate == pytest.approx(own["repaid"].mean())
    assert "drift" not in first
    drift = {record["column"]: record["p"] for record in by_version(one.models) if record["what"] == "drift"}
    assert drift["score"] < 1e-6
    assert drift["group"] > 0.001
    found = MONITOR.table(one.page)
    assert found is not None
    assert [name for _, name in found.frame.index] == ["version first, 3000 rows", "version later, 3000 rows"]
    assert found.frame["drift"].iloc[-1].startswith("score 0.2")


def test_the_p_of_drift_is_corrected_for_all_versions() -> None:
    people = changed(600)
    three = pd.concat([people, people.tail(50).assign(version="last")])
    alone, among = (
        [record["p"] for record in by_version(judged(table).models) if record["what"] == "drift"]
        for table in (people, three)
    )
    assert len(among) == 2 * len(alone)
    assert among[: len(alone)] == pytest.approx([min(1.0, 2.0 * p) for p in alone])


def test_few_people_of_a_version_are_not_shown() -> None:
    people = changed()
    people.loc[people.index[-8:], "version"] = "rare"
    assert values(judged(people), "rare").keys() == {"drift"}


def test_rows_of_the_same_person_are_no_more_people_for_drift() -> None:
    people = changed(600).assign(score=np.random.default_rng(1).normal(size=600))
    three = people.loc[people.index.repeat(3)].assign(who=np.arange(600).repeat(3))
    once, thrice = (
        [record["p"] for record in by_version(one.models) if record["what"] == "drift"]
        for one in (judged(people), judged(three, person="who"))
    )
    assert once == thrice


def test_a_change_with_time_is_told() -> None:
    one = judged(changed(), **UNVERSIONED)
    assert [*by_version(one.models)] == []
    (told,) = [text for text in one.warnings if "changed with time" in text]
    assert "policy_version=COLUMN" in told
    day = int(told.split("most about ")[1].split()[0])
    assert abs(day - 150) < 15


def test_no_change_is_told_where_there_is_none() -> None:
    people = changed(1500)
    accepted = np.random.default_rng(100).random(1500) < expit(0.5 * people["score"])
    people["granted"], people["repaid"] = accepted.astype(int), people["truth"].where(accepted)
    for keys in ({}, UNVERSIONED):
        assert not [text for text in judged(people, **keys).warnings if "changed with" in text]


def test_labels_that_change_with_the_version_are_told() -> None:
    (told,) = [text for text in judged(changed(4000, moved=1.5)).warnings if "the label has changed" in text]
    assert told.startswith("labels of policy version ")


def test_recorded_propensities_are_used_as_they_are() -> None:
    people = changed()
    models = judged(people, propensity="p").models
    accepted = people["granted"] == 1
    assert models.weight.value[accepted] == pytest.approx(1.0 / people["p"][accepted])


def test_a_row_without_a_version_is_refused() -> None:
    people = changed()
    people["version"] = people["version"].where(people.index > 0)
    with pytest.raises(FairAllError, match=r"'version', row 1: .* is no policy version"):
        judged(people)


def test_one_version_is_none() -> None:
    assert judged(changed().assign(version="only")).log.policy_version is None
