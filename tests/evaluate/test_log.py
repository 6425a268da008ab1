"""Logs of past decisions: what is read, and which input is refused."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fairall.errors import FairAllError
from fairall.evaluate.log import DecisionLog, log_keywords
from tests.evaluate import simulated

KEYS = {
    "label": "repaid",
    "positive": "yes",
    "sensitive": "sex",
    "decision": "granted",
    "accepted": "granted",
}
WORDS = [f"dataset.{key}={value}" for key, value in KEYS.items()]


def applicants(n: int = 600, /, **columns: Any) -> pd.DataFrame:
    """Decisions and labels in words, and features of all kinds; other columns as given."""
    draw, people = np.random.default_rng(1), simulated.applicants(n)
    granted = people["granted"] == 1
    given = {
        "income": 30 + 10 * people["score"],
        "town": draw.choice(["Hull", "Leeds", "York"], n),
        "sex": people["sex"],
        "race": draw.choice(["black", "white"], n),
        "granted": np.where(granted, "granted", "refused"),
        "chance": people["p"],
        "officer": draw.choice(["A", "B"], n),
        "repaid": people["repaid"].map({1.0: "yes", 0.0: "no"}).astype(object).where(granted, None),
    }
    return pd.DataFrame(given | columns)


def log_of(people: Any, **keys: Any) -> DecisionLog:
    return DecisionLog.of(people, **(KEYS | {"drop": ("officer", "chance")} | keys))


def test_files_and_frames_give_the_same_log(tmp_path: Path) -> None:
    people, path = applicants(), tmp_path / "log.csv"
    people.to_csv(path, index=False)
    keys = log_keywords([*WORDS, "propensity=chance", "cost=0.4", "advantaged=m"])
    first = log_of(people, propensity="chance", cost=0.4, decision_maker="officer", drop=())
    for source in (path, people):
        log = DecisionLog.of(source, **keys, decision_maker="officer")
        for name in ("inputs", "label", "propensity", "decision_maker", "groups", "cost"):
            np.testing.assert_array_equal(getattr(log, name), getattr(first, name))
        assert [*log.x] == ["income", "town", "race"]
    with pytest.raises(FairAllError, match="a log is a DataFrame or a file with a row for each decision"):
        log_of([1, 2])


def test_roles_and_design() -> None:
    people = applicants()
    log, granted, income = log_of(people), people["granted"] == "granted", people["income"]
    np.testing.assert_array_equal([log.accepted, log.revealed], [granted, granted])
    np.testing.assert_array_equal(log.label[granted], people["repaid"][granted] == "yes")
    expected = [
        np.ones(600),
        (income - income.mean()) / income.std(ddof=0),
        *(people["town"] == town for town in ("Hull", "Leeds", "York")),
        people["race"] == "white",
        people["sex"] == "m",
    ]
    assert log.inputs.dtype == np.float32
    np.testing.assert_allclose(log.inputs, np.column_stack(expected), atol=1e-5)
    assert log.input_names == ["income", *["town"] * 3, "race", ""]
    assert (log.propensity, log.notes, log.cost, log.groups) == (None, (), 0.5, ("f", "m"))


def test_intersections_and_columns_that_are_no_features() -> None:
    people = applicants()
    log = log_of(people, sensitive=None, groups=["sex", "race"], not_features=["town", "elsewhere"])
    assert log.groups == ("f, black", "f, white", "m, black", "m, white")
    assert (np.array(log.groups)[log.group] == people["sex"] + ", " + people["race"]).all()
    assert log.input_names == ["income", *[""] * 3]


def test_probabilities_of_groups_take_the_place_of_indicators() -> None:
    probabilities = np.random.default_rng(1).dirichlet([1, 1, 2], 600).round(3)
    people = applicants(**dict(zip("abc", probabilities.T, strict=True)))
    log = log_of(people, sensitive=["a", "b", "c"])
    assert (log.groups, log.probable_groups) == (("everybody",), ("a", "b", "c"))
    assert log.input_names == ["income", *["town"] * 3, "sex", "race", "", ""]
    expected = probabilities / probabilities.sum(1, keepdims=True)
    np.testing.assert_allclose(log.probabilities, expected)  # type: ignore[arg-type]
    np.testing.assert_allclose(log.design[:, -2:], expected[:, 1:], rtol=1e-6)


def test_indicators_and_codes_are_known_groups() -> None:
    which = np.random.default_rng(1).integers(3, size=600)
    for kind in (int, float, bool):
        people = applicants(**{name: (which == k).astype(kind) for k, name in enumerate("cab")}, code=which)
        log = log_of(people, sensitive=["c", "a", "b"])
        assert (log.probabilities, log.groups) == (None, ("a", "b", "c"))
        np.testing.assert_array_equal(log.group, np.array([2, 0, 1])[which])
    assert len(log_of(people, sensitive=["sex", "code"]).groups) == 6


def test_only_labels_of_accepted_people_are_used() -> None:
    people = applicants(repaid=np.where(np.arange(600) % 3 == 0, "no", "yes"))
    log = log_of(people)
    assert (log.revealed == log.accepted).all()
    assert log.labels_complete
    assert log.notes[0].startswith(f"{(~log.accepted).sum()} rejected rows with a label: not used")
    people.loc[log.accepted.argmax(), "repaid"] = None
    assert not log_of(people).labels_complete


def test_a_log_without_labels_and_columns_that_tell_the_decision() -> None:
    people = applicants()
    people["reason"] = np.where(people["granted"] == "granted", "none", "income too low")
    log = log_of(people.drop(columns="repaid"), label=None)
    assert not log.revealed.any()
    assert log.notes[0].startswith("column 'reason' tells the decision (AUC 1.00)")
    assert log.telling == ("reason",)
    assert log_of(people, score="reason").telling == ()


def test_people_by_a_column() -> None:
    log = log_of(applicants(customer=[f"c{i}" for i in range(300)] * 2), person="customer")
    first, second = np.split(log.person, 2)  # type: ignore[arg-type]
    assert ((first == second).all(), len({*first})) == (True, 300)
    assert (log.several_rows, "customer" in log.x) == (True, False)
    some = log.rows(np.array([7, 300, 307, 2]))
    assert some.person.tolist() == [2, 0, 2, 1]  # type: ignore[union-attr]
    assert np.array(some.people_of(np.array([0, 0, 0, 1]), 2)).tolist() == [[1, 1, 0, 0], [0, 0, 0, 1]]


def test_amounts_of_each_row_or_one_cost() -> None:
    people, y = applicants(interest=np.linspace(1, 9, 600), credit=50.0), np.arange(600) % 2
    log = log_of(people, gain="interest", loss="credit")
    assert log.cost is None
    utility = y * people["interest"] - (1 - y) * people["credit"]
    np.testing.assert_allclose(log.stake * (y - log.break_even), utility)
    of_cost = log_of(people, cost=0.3)
    np.testing.assert_allclose([of_cost.gain, of_cost.break_even], np.full((2, 600), [[0.7], [0.3]]))


def test_missing_numbers_have_an_indicator() -> None:
    people = applicants(debt=np.random.default_rng(3).normal(size=600))
    poor, width = people["income"] < 25, log_of(people).design.shape[1]
    people.loc[poor, ["income", "debt"]] = None
    log = log_of(people)
    assert log.design.shape[1] == width + 1  # the same cells are missing in both
    np.testing.assert_array_equal(log.design[:, -2], poor)
    assert log.notes == ("empty cells of features are imputed, and marked by indicators: income, debt",)
    assert np.isnan(log.x["income"][poor]).all()
    assert np.isfinite(log.inputs).all()


def test_regions() -> None:
    people = applicants(2000)
    people.loc[:99, "income"] = None
    people.loc[:48, "race"] = "asian"  # too few for a region
    regions = dict(log_of(people).regions())
    assert len(regions) == 2 + 10 + 1 + 3 + 2
    for name, rows in (
        ("of group f", people["sex"] == "f"),
        ("with town=Hull", people["town"] == "Hull"),
        ("with income missing", people.index < 100),
    ):
        np.testing.assert_array_equal(regions[name], rows)


def test_recorded_propensities_stand_without_features() -> None:
    log = log_of(applicants(), propensity="chance", drop=("officer", "income", "town", "race"))
    assert ([*log.x], log.design.shape) == ([], (600, 1))


def test_names_of_columns_are_told_as_they_are_read() -> None:
    people = applicants().rename(columns={"income": "my  income", "sex": 3})
    log = log_of(people, sensitive=3)
    assert (log.groups, [*log.x]) == (("f", "m"), ["my income", "town", "race"])
    np.testing.assert_array_equal(log.raw["my income"], people["my  income"])
