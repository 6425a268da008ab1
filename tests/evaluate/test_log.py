"""Logs of past decisions: what is read, and which input is refused."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fairall.errors import FairAllError
from fairall.evaluate.log import DecisionLog

NO_FEATURES = ["income", "town", "race", "officer", "chance"]
KEYS = ["label=repaid", "dataset.positive=yes", "sensitive=sex", "decision=granted", "accepted=granted"]


def applicants(n: int = 600, /, **columns: Any) -> pd.DataFrame:
    """Decisions that depend on income; a third of the accepted repays not; other columns as given."""
    draw = np.random.default_rng(1)
    income = draw.normal(30, 10, n)
    granted = draw.random(n) < 1 / (1 + np.exp((30 - income) / 10))
    repaid = pd.Series(np.where(draw.random(n) < 0.7, "yes", "no"), dtype=object).where(granted, None)
    given = {
        "income": income,
        "town": draw.choice(["Hull", "Leeds", "York"], n),
        "sex": draw.choice(["f", "m"], n),
        "race": draw.choice(["black", "white"], n),
        "granted": np.where(granted, "granted", "refused"),
        "chance": 1 / (1 + np.exp((30 - income) / 10)),
        "officer": draw.choice(["A", "B"], n),
        "repaid": repaid,
    }
    return pd.DataFrame(given | columns)


def log_of(people: pd.DataFrame, **keys: Any) -> DecisionLog:
    given = {
        "label": "repaid", "positive": "yes", "sensitive": "sex", "decision": "granted",
        "accepted": "granted", "drop": ("officer", "chance"),
    }  # fmt: skip
    return DecisionLog.of(people, **(given | keys))


def test_files_and_frames_give_the_same_log(tmp_path: Path) -> None:
    people = applicants()
    people.to_csv(tmp_path / "log.csv", index=False)
    people.to_parquet(tmp_path / "log.parquet")
    words = [*KEYS, "propensity=chance", "cost=0.4", "advantaged=m"]
    logs = [
        DecisionLog.read(tmp_path / "log.csv", words, decision_maker="officer"),
        DecisionLog.read(tmp_path / "log.parquet", words, decision_maker="officer"),
        log_of(people, propensity="chance", cost=0.4, drop=(), decision_maker="officer"),
    ]
    for log in logs:
        for field in dataclasses.fields(DecisionLog):
            ours, first = getattr(log, field.name), getattr(logs[0], field.name)
            if isinstance(first, np.ndarray):
                np.testing.assert_array_equal(ours, first)
            elif isinstance(first, pd.DataFrame):
                assert list(ours) == list(first)
            elif field.name != "schema":
                assert ours == first
    assert logs[0].schema.names == ["income", "town", "race"]
    assert logs[0].cost == 0.4
    assert set(logs[0].decision_maker) == {"A", "B"}  # type: ignore[arg-type]


def test_roles_and_design() -> None:
    people = applicants()
    log = log_of(people)
    granted = (people["granted"] == "granted").to_numpy()
    assert (log.accepted == granted).all()
    assert (log.revealed == granted).all()
    np.testing.assert_array_equal(log.label[granted], people["repaid"][granted] == "yes")
    assert log.groups == ("f", "m")
    income = people["income"].to_numpy()
    expected = [
        (income - income.mean()) / income.std(),
        *(people["town"] == town for town in ("Hull", "Leeds", "York")),
        people["race"] == "white",
        people["sex"] == "m",
    ]
    assert log.design.dtype == np.float32
    np.testing.assert_allclose(log.design, np.column_stack(expected), atol=1e-5)
    assert (log.inputs[:, 0] == 1).all()
    assert log.propensity is None
    assert log.notes == ()


def test_intersections_and_columns_that_are_no_features() -> None:
    people = applicants()
    log = log_of(people, sensitive=None, groups=["sex", "race"], not_features=["town", "elsewhere"])
    assert log.groups == ("f, black", "f, white", "m, black", "m, white")
    named = people["sex"] + ", " + people["race"]
    assert (np.array(log.groups)[log.group] == named).all()
    assert log.schema.names == ["income"]
    assert log.design.shape == (600, 1 + 3)


def test_only_labels_of_accepted_people_are_used() -> None:
    people = applicants()
    people["repaid"] = np.where(np.arange(600) % 3 == 0, "no", "yes")
    log = log_of(people)
    assert (log.revealed == log.accepted).all()
    assert log.notes == (
        f"{(~log.accepted).sum()} rejected rows with a label: not used, since no decision revealed it",
    )
    people.loc[log.accepted.argmax(), "repaid"] = None
    told = log_of(people).notes
    assert "1 accepted row without a label: taken to be a random part of the accepted" in told


def test_a_log_without_labels_and_columns_that_tell_the_decision() -> None:
    people = applicants(reason=None)
    people["reason"] = np.where(people["granted"] == "granted", "none", "income too low")
    log = log_of(people.drop(columns="repaid"), label=None)
    assert not log.revealed.any()
    assert "there is no label" in log.notes[0]
    assert "column 'reason' reveals who was accepted" in log.notes[1]
    assert "'reason' reveals who has a label" in log_of(people).notes[0]


def test_regions_where_nobody_was_accepted() -> None:
    people = applicants(2000)
    never = (people["sex"] == "f") & (people["town"] == "York")
    people.loc[never, ["granted", "repaid"]] = ["refused", None]
    log = log_of(people)
    everybody = np.ones(len(log))
    ((name, rows),) = log.regions_without_acceptance(everybody)
    assert name == "of group f with town=York"
    assert (rows == never).all()
    assert log.regions_without_acceptance(np.where(never, 0.01, 1.0)) == []
    assert log.regions_without_acceptance(np.zeros(len(log))) == []

    people.loc[people["sex"] == "f", ["granted", "repaid"]] = ["refused", None]
    names = [name for name, _ in log_of(people).regions_without_acceptance(everybody)]
    assert names == ["of group f"]


@pytest.mark.parametrize(
    ("columns", "keys", "told"),
    [
        ({"granted": "granted"}, {}, "column 'granted' is always 'granted': nobody was rejected"),
        ({"granted": "refused"}, {}, "column 'granted' is always 'refused': nobody was accepted"),
        ({}, {"accepted": "yes"}, "dataset.accepted=yes: column 'granted' has no such value"),
        ({}, {"decision": "grant"}, "dataset.decision=grant: the table has no such column"),
        ({}, {"groups": ["sex", "colour"]}, "groups=colour: the table has no such column"),
        ({}, {"sensitive": None}, "a log needs groups of people: give sensitive=COLUMN"),
        ({"sex": "m"}, {}, "column 'sex' has 1 group (m); from 2 to 50 are needed"),
        ({}, {"sensitive": "income"}, "column 'income' has 600 groups"),
        ({"sex": ["m", None, "f"] * 200}, {}, "column 'sex', row 2: an empty cell is no sensitive"),
        ({"repaid": ["yes", "no", "late"] * 200}, {}, "column 'repaid' has 3 values (late, no, yes)"),
        ({}, {"positive": ""}, "column 'repaid' has 2 values (no, yes): give the good"),
        ({}, {"drop": NO_FEATURES}, "no propensity is recorded"),
        ({"officer": [None, "A"] * 300}, {"decision_maker": "officer", "drop": []}, "is no decision maker"),
        ({"income": [[1]] * 600}, {}, "column 'income' holds nested or binary values"),
    ],
)  # fmt: skip
def test_what_is_no_log(columns: dict[str, Any], keys: dict[str, Any], told: str) -> None:
    with pytest.raises(FairAllError) as caught:
        log_of(applicants(**columns), **keys)
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("chance", [0.0, np.nan, 1.2, -0.1])
def test_propensities_of_accepted_people_that_are_none(chance: float) -> None:
    people = applicants()
    accepted = np.flatnonzero(people["granted"] == "granted")
    people.loc[accepted[:3], "chance"] = chance
    told = rf"column 'chance', row {accepted[0] + 1}: .* is no propensity, .* \(2 more such rows\)"
    with pytest.raises(FairAllError, match=told):
        log_of(people, propensity="chance", drop=("officer",))


def test_propensities_of_rejected_people_may_be_missing() -> None:
    people = applicants()
    rejected = np.flatnonzero(people["granted"] == "refused")
    people.loc[rejected[0], "chance"] = np.nan
    log = log_of(people, propensity="chance", drop=("officer", "income", "town", "race"))
    assert log.propensity is not None
    assert np.flatnonzero(np.isnan(log.propensity)).tolist() == [rejected[0]]
    assert log.design.shape == (600, 1)


@pytest.mark.parametrize(
    ("word", "told"),
    [
        ("lable=repaid", "did you mean label?"),
        ("label", "no such key"),
        ("x=1", "no such key of a log; there are"),
    ],
)
def test_words_that_are_no_keys(word: str, told: str, tmp_path: Path) -> None:
    with pytest.raises(FairAllError) as caught:
        DecisionLog.read(tmp_path, [word])
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_log_without_decisions(tmp_path: Path) -> None:
    applicants().to_csv(tmp_path / "log.csv", index=False)
    with pytest.raises(FairAllError, match="a log needs the past decisions: give decision=COLUMN"):
        DecisionLog.read(tmp_path / "log.csv", KEYS[:3])
