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
from tests.evaluate.simulated import decided, log_of, models_of

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
    version = np.where(second, "later", "first")
    people = pd.DataFrame({"score": score, "sex": sex, "version": version, "day": np.arange(n) // 10})
    return decided(people, p, expit(0.3 + score + moved * second), draw)


def judged(people: pd.DataFrame, **keys: Any) -> Evaluation:
    """The policy `new`, by logistic regressions."""
    log = log_of(people, **({"drop": ["day"], "policy_version": "version"} | keys))
    return evaluate(people["new"].to_numpy(), log, propensity_model="logistic", outcome_model="logistic")


def drift(table: pd.DataFrame, **keys: Any) -> list[float]:
    """P of all columns of all later versions."""
    return [record["p"] for record in by_version(judged(table, **keys).models) if record["what"] == "drift"]


def test_propensities_are_those_of_all_versions_together() -> None:
    people = changed(8000)
    later = expit(0.4 * people["score"] - 0.08)  # the share of the second version at a score
    mixture = later * expit(-3.0 * people["score"] - 0.5) + (1 - later) * expit(3.0 * people["score"] + 0.5)
    models = models_of(log_of(people, drop=["day"], policy_version="version"), "auto")
    assert np.abs(models.acceptance - mixture).mean() < 0.03


def test_versions_have_acceptance_labels_and_drift() -> None:
    people = changed(6000)
    table = MONITOR.table(judged(people).page)
    assert table is not None
    assert [name for _, name in table.frame.index] == ["version first, 3000 rows", "version later, 3000 rows"]
    assert table.frame["drift"].iloc[-1].startswith("score 0.2")
    later = people[people["version"] == "later"]
    female, male = later.groupby("sex")["granted"].mean()
    means = [later["granted"].mean(), abs(female - male), later["repaid"].mean()]
    estimates = table.records.query("version == 'later'").set_index("what")["estimate"]
    names = ["acceptance rate", "gap of acceptance rates", "positive labels"]
    assert estimates[names].tolist() == pytest.approx(means)


def test_the_p_of_drift_is_corrected_for_all_versions() -> None:
    people = changed(600)
    alone, three = drift(people), drift(pd.concat([people, people.tail(50).assign(version="last")]))
    assert len(three) == 2 * len(alone)
    assert min(three) > min(alone)


def test_few_people_of_a_version_are_not_shown() -> None:
    people = changed()
    people.loc[people.index[-8:], "version"] = "rare"
    records = by_version(judged(people).models)
    assert {record["what"] for record in records if record["version"] == "rare"} == {"drift"}


def test_rows_of_the_same_person_are_no_more_people_for_drift() -> None:
    people = changed(600)
    assert drift(people) == drift(
        people.loc[people.index.repeat(3)].assign(who=np.arange(600).repeat(3)), person="who"
    )


def test_a_change_with_time_has_a_warning() -> None:
    (warning,) = [text for text in judged(changed(), **UNVERSIONED).warnings if "changed with time" in text]
    day = int(warning.split("most about ")[1].split(",")[0])
    assert abs(day - 150) < 15


def test_no_change_has_no_warning() -> None:
    people = changed(1500)
    accepted = np.random.default_rng(100).random(1500) < expit(0.5 * people["score"])
    people["granted"], people["repaid"] = accepted.astype(int), people["truth"].where(accepted)
    for keys in ({}, UNVERSIONED):
        assert "changed with" not in str(judged(people, **keys).warnings)


def test_labels_that_change_with_the_version_have_a_warning() -> None:
    assert "labels of policy version " in str(judged(changed(4000, moved=1.5)).warnings)


def test_a_row_without_a_version_is_refused() -> None:
    people = changed()
    people["version"] = people["version"].where(people.index > 0)
    with pytest.raises(FairAllError, match=r"'version', row 1: .* is no policy version"):
        judged(people)


def test_one_version_is_none() -> None:
    assert judged(changed().assign(version="only")).log.policy_version is None
