"""Logs of several policy versions, whose truth is known: their models, what changed, and how it is shown."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

from fairall.evaluate.analyses.monitor import by_version
from fairall.evaluate.evaluation import Evaluation
from tests.evaluate.simulated import decided, evaluated

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
    p = expit(np.where(second, -1.0, 1.0) * (3.0 * score + 0.5))
    version = np.where(second, "later", "first")
    people = pd.DataFrame({"score": score, "sex": sex, "version": version, "day": np.arange(n) // 10})
    return decided(people, p, expit(0.3 + score + moved * second), draw)


def judged(people: pd.DataFrame, **options: Any) -> Evaluation:
    return evaluated(people, **({"drop": ["day"], "policy_version": "version"} | options))


def of_versions(people: pd.DataFrame) -> pd.DataFrame:
    return pd.DataFrame(by_version(judged(people).models))


def test_propensities_are_those_of_all_versions_together() -> None:
    people = changed(8000)
    score = people["score"]
    later = expit(0.4 * score - 0.08)  # the share of the second version at a score
    mixture = later * expit(-3.0 * score - 0.5) + (1 - later) * expit(3.0 * score + 0.5)
    models = judged(people, propensity_model="auto").models
    assert np.abs(models.acceptance - mixture).mean() < 0.03


def test_versions_have_acceptance_labels_and_drift() -> None:
    people = changed(6000)
    table = judged(people).page.tables["monitor"]
    assert table.frame["drift"].iloc[-1].startswith("score 0.2")
    later = people[people["version"] == "later"]
    gap = np.ptp(later.groupby("sex")["granted"].mean())
    estimates = table.records.query("version == 'later'").set_index("what")["estimate"]
    assert estimates[:3].to_dict() == pytest.approx(
        {
            "acceptance rate": later["granted"].mean(),
            "gap of acceptance rates": gap,
            "positive labels": later["repaid"].mean(),
        }
    )


def test_the_p_of_drift_is_corrected_for_all_versions() -> None:
    people = changed(600)
    alone = of_versions(people)["p"].dropna()
    three = of_versions(pd.concat([people, people.tail(50).assign(version="last")]))["p"].dropna()
    assert len(three) == 2 * len(alone)
    assert three.min() > alone.min()


def test_few_people_of_a_version_are_not_shown() -> None:
    people = changed()
    people.loc[people.index[-8:], "version"] = "rare"
    assert set(of_versions(people).query("version == 'rare'")["what"]) == {"drift"}


@pytest.mark.parametrize(
    ("moved", "keys", "warned"),
    [(0.0, UNVERSIONED, "changed with time"), (1.5, {}, "labels of policy version ")],
)
def test_a_change_has_a_warning_and_none_has_none(moved: float, keys: dict[str, Any], warned: str) -> None:
    people = changed(4000, moved=moved)
    (warning,) = [text for text in judged(people, **keys).warnings if warned in text]
    assert moved or abs(int(warning.split("most about ")[1].split(",")[0]) - 200) < 15  # the day
    same, draw = changed(1500), np.random.default_rng(100)
    same = decided(same, expit(0.5 * same["score"]), same["truth"].to_numpy(), draw)
    assert "changed with" not in str(judged(same, **keys).warnings)


def test_one_version_is_none() -> None:
    assert judged(changed().assign(version="only")).log.policy_version is None
