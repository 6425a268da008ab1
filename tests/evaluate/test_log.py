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
        "label": "repaid",
        "positive": "yes",
        "sensitive": "sex",
        "decision": "granted",
        "accepted": "granted",
        "drop": ("officer", "chance"),
    }
    return DecisionLog.of(people, **(given | keys))


def test_files_and_frames_give_the_same_log(tmp_path: Path) -> None:
    people = applicants()
    people.to_csv(tmp_path / "log.csv", index=False)
    people.to_parquet(tmp_path / "log.parquet")
    words = [*KEYS, "propensity=chance", "cost=0.4", "advantaged=m"]
    logs = [
        DecisionLog.read(tmp_path / "log.csv", words, decision_maker="officer"),
        DecisionLog.read(tmp_path / "log.parquet", words, decision_maker="officer"),
        DecisionLog.of(
            tmp_path / "log.csv",
            label="repaid",
            positive="yes",
            sensitive="sex",
            decision="granted",
            accepted="granted",
            propensity="chance",
            cost=0.4,
            decision_maker="officer",
        ),
        log_of(people, propensity="chance", cost=0.4, drop=(), decision_maker="officer"),
    ]
    for log in logs:
        for field in dataclasses.fields(DecisionLog):
            ours, first = getattr(log, field.name), getattr(logs[0], field.name)
            if isinstance(first, np.ndarray):
                np.testing.assert_array_equal(ours, first)
            elif isinstance(first, pd.DataFrame):
                assert list(ours) == list(first)
            elif field.name != "features":
                assert ours == first
    assert logs[0].names == ["income", "town", "race"]
    assert logs[0].cost == 0.4
    assert logs[0].person is None
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
    assert log.names == ["income"]
    assert log.design.shape == (600, 1 + 3)


def probable(n: int = 600) -> tuple[pd.DataFrame, np.ndarray]:
    """Applicants with probabilities of three groups, a, b and c."""
    probabilities = np.random.default_rng(1).dirichlet([1, 1, 2], n).round(3)
    return applicants(n, **dict(zip("abc", probabilities.T, strict=True))), probabilities


def test_probabilities_of_groups(tmp_path: Path) -> None:
    people, probabilities = probable()
    log = log_of(people, sensitive=["a", "b", "c"])
    assert log.probabilities is not None
    np.testing.assert_allclose(log.probabilities, probabilities / probabilities.sum(1, keepdims=True))
    assert (log.groups, log.probable_groups) == (("everybody",), ("a", "b", "c"))
    assert not {"a", "b", "c"} & set(log.names)
    assert log.input_names[-2:] == ("", "")  # where the indicators of groups would be
    np.testing.assert_allclose(log.design[:, -2:], log.probabilities[:, 1:], rtol=1e-6)
    assert log.rows(np.arange(10)).probabilities.shape == (10, 3)  # type: ignore[union-attr]
    path = tmp_path / "log.csv"
    people.to_csv(path, index=False)
    words = [word for word in KEYS if word != "sensitive=sex"]
    read = DecisionLog.read(path, [*words, "sensitive=[a,b,c]", "drop=[officer,chance]"])
    np.testing.assert_allclose(read.probabilities, log.probabilities)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", [int, float, bool])
def test_indicators_of_groups_are_known_groups(kind: type) -> None:
    which = np.random.default_rng(1).integers(3, size=600)
    people = applicants(600, **{name: (which == k).astype(kind) for k, name in enumerate("cab")})
    log = log_of(people, sensitive=["c", "a", "b"])
    assert log.probabilities is None
    assert log.groups == ("a", "b", "c")
    np.testing.assert_array_equal(log.group, np.array([2, 0, 1])[which])


def test_columns_of_words_or_codes_are_crossed() -> None:
    people = applicants(600, code=np.arange(600) % 3)
    crossed = log_of(people, sensitive=["sex", "code"])
    assert crossed.probabilities is None
    assert crossed.groups == log_of(people, sensitive=None, groups=["sex", "code"]).groups
    assert len(crossed.groups) == 6


@pytest.mark.parametrize(
    ("row", "value", "told"),
    [
        (3, -0.1, "column 'a', row 4: -0.1 and the others of a, b, c are no probabilities of groups"),
        (
            4,
            np.nan,
            "column 'a', row 5: an empty cell and the others of a, b, c are no probabilities of groups",
        ),
        (5, 1.0, "column 'a', row 6: 1.0 and the others of a, b, c are no probabilities of groups"),
    ],
)
def test_what_is_no_probability_of_a_group(row: int, value: float, told: str) -> None:
    people, _ = probable()
    people.loc[row, ["a", "b", "c"]] = [value, 0.5, 0.25]
    with pytest.raises(FairAllError) as error:
        log_of(people, sensitive=["a", "b", "c"])
    assert str(error.value).startswith(told)
    assert "\n" not in str(error.value)


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
    assert log.labels_complete
    assert not log_of(people).labels_complete
    assert any(
        "1 accepted row without a label: which labels are known is modelled from" in note for note in told
    )


def test_a_log_without_labels_and_columns_that_tell_the_decision() -> None:
    people = applicants(reason=None)
    people["reason"] = np.where(people["granted"] == "granted", "none", "income too low")
    log = log_of(people.drop(columns="repaid"), label=None)
    assert not log.revealed.any()
    assert "there is no label" in log.notes[0]
    assert log.notes[1].startswith("column 'reason' tells the decision (AUC 1.00)")
    assert log.notes[1] in log_of(people).notes
    assert log.telling == ("reason",)


def test_people_by_a_column() -> None:
    log = log_of(applicants(customer=[f"c{i}" for i in range(300)] * 2), person="customer")
    assert log.person is not None
    assert (log.person[:300] == log.person[300:]).all()
    assert sorted(set(log.person)) == list(range(300))
    backwards = log_of(applicants(customer=[f"c{i}" for i in range(300)] * 2)[::-1], person="customer")
    np.testing.assert_array_equal(backwards.person, log.person[::-1])
    assert "customer" not in log.names
    assert log.notes == ()


def test_rows_that_repeat_are_of_different_people_and_a_note_asks() -> None:
    people = applicants()
    log = log_of(pd.concat([people, people[100:200]], ignore_index=True))
    assert log.person is None
    (note,) = log.notes
    assert "in all features and the group: 100, the first is row 601;" in note
    assert "person=COLUMN" in note


def test_amounts_of_each_row(tmp_path: Path) -> None:
    draw = np.random.default_rng(2)
    people = applicants(interest=draw.uniform(0, 9, 600), credit=draw.uniform(10, 90, 600))
    log = log_of(people, gain="interest", loss="credit")
    assert log.cost is None
    np.testing.assert_allclose(log.gain, people["interest"])
    np.testing.assert_allclose(log.loss, people["credit"])
    y = draw.integers(0, 2, 600)
    utility = y * log.gain - (1 - y) * log.loss
    np.testing.assert_allclose(log.stake * (y - log.break_even), utility)
    assert {"interest", "credit"} <= set(log.names)
    dropped = log_of(people, gain="interest", loss="credit", drop=["interest", "credit", "officer", "chance"])
    assert dropped.names == ["income", "town", "race"]
    people.to_csv(tmp_path / "log.csv", index=False)
    words = [*KEYS, "drop=[officer,chance]", "dataset.gain=interest", "loss='credit'"]
    read = DecisionLog.read(tmp_path / "log.csv", words)
    np.testing.assert_allclose(read.break_even, log.break_even)
    with pytest.raises(FairAllError, match=r"^cost=0.2: each row has its own gain and loss"):
        DecisionLog.read(tmp_path / "log.csv", [*words, "dataset.cost=0.2"])


def test_one_cost_as_amounts() -> None:
    log = log_of(applicants(), cost=0.3)
    np.testing.assert_allclose(log.gain, np.full(600, 0.7))
    np.testing.assert_allclose(log.break_even, np.full(600, 0.3))
    assert log_of(applicants()).cost == 0.5


def test_missing_numbers_have_an_indicator() -> None:
    people = applicants(debt=np.random.default_rng(3).normal(size=600))
    poor = people["income"] < 25
    complete = log_of(people).design.shape[1]
    people.loc[poor, ["income", "debt"]] = None
    log = log_of(people)
    assert log.design.shape[1] == complete + 1  # the same cells are missing in both
    np.testing.assert_array_equal(log.design[:, -2], poor)
    (note,) = log.notes
    assert note.endswith(f"indicators of their own: income ({poor.sum()}), debt ({poor.sum()})")
    assert np.isnan(log.x["income"][poor]).all()
    assert np.isfinite(log.inputs).all()
    people["town"] = people["town"].where(~poor)
    levels = log_of(people)  # the level of missing towns tells of missing numbers too
    assert levels.design.shape[1] == complete + 1
    assert not any("town" in note for note in levels.notes)
    assert "(missing)" in levels.features[levels.names.index("town")].levels
    rare = people["town"].where(people.index != people.index[~poor][0]).where(~poor, "Bath")
    people["town"] = rare.where(rare.isna() | poor, [f"t{i % 80}" for i in range(600)])
    merged = log_of(people)  # into (other)
    assert any("town (1)" in note for note in merged.notes)
    assert (merged.design == rare.isna().to_numpy()[:, None]).all(0).any()


def test_regions() -> None:
    people = applicants(2000)
    people.loc[:99, "income"] = None
    people.loc[:48, "race"] = "asian"  # too few for a region
    regions = dict(log_of(people).regions())
    assert len(regions) == 2 + 10 + 1 + 3 + 2
    assert (regions["of group f"] == (people["sex"] == "f")).all()
    assert (regions["with town=Hull"] == (people["town"] == "Hull")).all()
    assert (regions["with income missing"] == (people.index < 100)).all()
    numbers = [rows for name, rows in regions.items() if name.startswith("with income from")]
    assert [rows.sum() for rows in numbers] == [190] * 10
    low, high = people["income"][numbers[3]].min(), people["income"][numbers[3]].max()
    assert f"with income from {low:g} to {high:g}" in regions


def test_the_order_of_rows_does_not_matter() -> None:
    people = applicants(number=np.arange(1, 601))
    people.loc[50:60, ["income", "sex"]] = None
    people = pd.concat([people, people[100:200].assign(number=range(601, 701))], ignore_index=True)
    order = np.random.default_rng(4).permutation(700)
    log, other = log_of(people), log_of(people.iloc[order])
    np.testing.assert_allclose(other.inputs, log.inputs[order], atol=1e-6)
    for name in ("group", "accepted", "label", "gain"):
        np.testing.assert_array_equal(getattr(other, name), getattr(log, name)[order])
    assert log.groups == other.groups
    assert log.names == other.names == ["income", "town", "race"]
    assert [note for note in log.notes if "equal an earlier" not in note] == [
        note for note in other.notes if "equal an earlier" not in note
    ]
    declared = log_of(people, kinds={"number": "real"})
    assert "number" in declared.names


@pytest.mark.parametrize(
    ("columns", "keys", "told"),
    [
        ({}, {"decision": "grant"}, "decision=grant: the table has no such column"),
        ({}, {"groups": ["sex", "colour"]}, "groups=colour: the table has no such column"),
        ({}, {"sensitive": None}, "a log needs groups of people: give sensitive=COLUMN"),
        ({"sex": "m"}, {}, "sex: 1 group (m); from 2 to 50 are needed"),
        ({}, {"sensitive": "income"}, "income: 600 groups"),
        ({}, {"person": "name"}, "person=name: the table has no such column"),
        (
            {"won": 1},
            {"gain": "incomes", "loss": "won"},
            "gain=incomes: the table has no such column, did you",
        ),
        ({"won": [1, np.inf] * 300, "lost": 1}, {"gain": "won", "loss": "lost"}, "row 2: inf is no gain"),
        ({"won": 1}, {"gain": "won"}, "gain= and loss= are needed both"),
        ({"lost": 1}, {"gain": "lost", "loss": "lost", "cost": 0.4}, "cost=0.4: each row has its own gain"),
        ({}, {"positive": ""}, "positive=: column 'repaid' has no such value; it has 2 values (no, yes)"),
        ({}, {"drop": NO_FEATURES}, "no propensity is recorded"),
        ({"officer": [None, "A"] * 300}, {"decision_maker": "officer", "drop": []}, "is no decision maker"),
    ],
)
def test_what_is_no_log(columns: dict[str, Any], keys: dict[str, Any], told: str) -> None:
    with pytest.raises(FairAllError) as caught:
        log_of(applicants(**columns), **keys)
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "dataset." not in str(caught.value)


def test_propensities_of_rejected_people_may_be_missing() -> None:
    people = applicants()
    rejected = np.flatnonzero(people["granted"] == "refused")
    people.loc[rejected[0], "chance"] = np.nan
    log = log_of(people, propensity="chance", drop=("officer", "income", "town", "race"))
    assert log.propensity is not None
    assert np.flatnonzero(np.isnan(log.propensity)).tolist() == [rejected[0]]
    assert log.design.shape == (600, 1)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ({"lable": "repaid"}, "lable=repaid: no such key, did you mean label?"),
        ({"persons": "customer"}, "persons=customer: no such key, did you mean person?"),
        ({"x": "1"}, "x=1: no such key; there are"),
        ({"gain": "a(b"}, "gain= and loss= are needed both"),
        ({"drop": "[sex"}, "cannot read 'drop=[sex': give a text, [A,B]"),
        ({"max_categories": "1"}, "max_categories=1 is not possible: it must be at least 2"),
        ({"kinds": "{income: number}"}, "kinds.income=number is not possible: it must be real or count"),
        ({"decision": "null"}, "a log needs the past decisions: give decision=COLUMN"),
        ({"label": "repayed"}, "label=repayed: {path} has no such column, did you mean repaid?"),
        ({"cost": "2"}, "cost=2.0 is not possible"),
        ({"dataset.accepted": "yes"}, "accepted=yes: column 'granted' has no such value"),
        ({"label": "granted"}, "column 'granted' cannot be both label and decision"),
        ({"person": "sex"}, "column 'sex' cannot be both person and sensitive"),
        ({"separator": "';'"}, "{path}: "),
        ({"separator": "';;'"}, "separator=;; is not possible: it must be one ASCII character"),
    ],
)
def test_messages_have_the_words_that_can_be_typed(words: dict[str, str], told: str, tmp_path: Path) -> None:
    path = tmp_path / "loans.csv"
    applicants().to_csv(path, index=False)
    given = {"label": "repaid", "positive": "yes", "sensitive": "sex", "dataset.decision": "granted"}
    typed = [f"{key}={value}" for key, value in (given | {"accepted": "granted"} | words).items()]
    with pytest.raises(FairAllError) as caught:
        DecisionLog.read(path, typed)
    assert str(caught.value).startswith(told.format(path=path))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "nope.csv: there is no such file"),
        (["label"], "label: no such key"),
        (["decision_maker=officer"], "decision_maker=officer: no such key"),
    ],
)
def test_neither_file_nor_key(words: list[str], told: str) -> None:
    with pytest.raises(FairAllError, match=f"^{told}"):
        DecisionLog.read("nope.csv", words)


@pytest.mark.parametrize("names", [{"income": "my  income", "sex": 3}, {"income": "", "sex": "a,b"}])
def test_names_of_columns_are_told_as_they_are_read(names: dict[str, Any]) -> None:
    people = applicants().rename(columns=names).assign(town=applicants()["town"])
    log = log_of(people, sensitive=names["sex"], kinds={})
    assert log.groups == ("f", "m")
    assert {"my  income": "my income", "": "column 1"}[names["income"]] in log.names
    np.testing.assert_array_equal(log.accepted, log.raw["granted"] == "granted")


@pytest.mark.parametrize("people", [[1, 2], {"granted": ["yes"]}, pd.Series([1])])
def test_what_is_no_table_is_refused(people: Any) -> None:
    with pytest.raises(FairAllError, match=r"a log is a DataFrame or a file .*, not (list|dict|Series)"):
        log_of(people)


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ({"sensitive_features": "sex"}, "sensitive_features=...: no such keyword, did you mean "),
        ({"quantum": 1}, "quantum=...: no such keyword"),
    ],
)
def test_unknown_keywords_are_answered(keys: dict[str, Any], told: str) -> None:
    with pytest.raises(FairAllError) as caught:
        log_of(applicants(), **keys)
    assert str(caught.value).startswith(told)
