"""Columns that tell the decision or the label: each has one warning, and ordinary features have none."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.random import Generator

from fairall.tables.applicants import read
from fairall.tables.declared import Declared

N = 1000


def logistic(values: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-values))


def area(score: np.ndarray, target: np.ndarray) -> float:
    """Area under the ROC curve by the ranks of the positive (Mann and Whitney)."""
    ranks, ones = pd.Series(score).rank().to_numpy(), int(target.sum())
    return float((ranks[target].sum() - ones * (ones + 1) / 2) / ones / (len(target) - ones))


def people(draw: Generator, n: int = N, slope: float = 1.0) -> tuple[pd.DataFrame, np.ndarray]:
    """Applicants with decisions and labels that depend on income, and P(granted)."""
    income, sex = draw.normal(size=n), draw.choice(["f", "m"], n)
    chance = logistic(slope * income + 0.3 * (sex == "m"))
    columns = {
        "income": income.round(3),
        "age": draw.integers(18, 80, n),
        "town": draw.choice(list("abcdef"), n),
        "owner": draw.random(n) < 0.4,
        "sex": sex,
        "granted": (draw.random(n) < chance).astype(int),
        "repaid": np.where(draw.random(n) < logistic(1 + slope * income), "yes", "no"),
    }
    return pd.DataFrame(columns), chance


def told(table: pd.DataFrame, **keys: Any) -> tuple[list[str], list[str]]:
    """Notes and warnings on leaks of a table."""
    given = {"label": "repaid", "positive": "yes", "sensitive": "sex", "decision": "granted"}
    applicants = read(table, Declared.of(person="", **given | keys)).checked()
    features, _ = applicants.features()
    notes, warnings = applicants.leaks(features)
    return notes, [*applicants.warnings, *warnings]


def selected(table: pd.DataFrame, rejected: str | None = None) -> pd.DataFrame:
    """The table with the labels of rejected people unknown, or all the same."""
    return table.assign(repaid=table["repaid"].where(table["granted"] == 1, rejected))


@pytest.fixture(scope="module")
def table() -> tuple[pd.DataFrame, np.ndarray]:
    return people(np.random.default_rng(0))


def test_rejected_people_coded_as_defaulters(table: tuple[pd.DataFrame, np.ndarray]) -> None:
    coded = selected(table[0], "no")
    n = int((coded["granted"] == 0).sum())
    notes, (warning,) = told(coded)
    assert warning.startswith(f"all {n} rejected rows have a negative label in column 'repaid'")
    notes, (warning,) = told(coded, decision=None)
    assert warning.startswith(f"column 'granted': none of {n} rows with '0' has a positive label")
    assert "(dataset.decision=granted 'dataset.accepted=\"1\"')" in warning
    assert "('dataset.drop=[granted]')" in warning
    assert notes == []
    assert told(selected(table[0])) == ([], [])
    assert told(table[0]) == ([], [])


@pytest.mark.parametrize("n_rejected", [3, 10])
def test_few_rejected_people_may_have_failed_by_chance(n_rejected: int) -> None:
    """With a rate of 5 % failures are no surprise, with 70 % ten of them are none either at 1e-6."""
    draw = np.random.default_rng(0)
    table, _ = people(draw, 200)
    table["granted"] = (np.arange(200) >= n_rejected).astype(int)
    table["repaid"] = np.where((draw.random(200) < 0.7) & (table["granted"] == 1), "yes", "no")
    rate = (table["repaid"] == "yes")[n_rejected:].mean()
    expected = int((1 - rate) ** n_rejected <= 1e-6)
    assert len(told(table)[1]) == expected


@pytest.mark.parametrize("columns", ["copy", "words", "swapped", "nearly", "numbers"])
@pytest.mark.parametrize("labels", ["selected", "all"])
def test_a_copy_of_the_decision_is_named_once(
    columns: str, labels: str, table: tuple[pd.DataFrame, np.ndarray]
) -> None:
    whole, _ = table
    granted = whole["granted"].to_numpy()
    draw = np.random.default_rng(1)
    copy = {
        "copy": granted,
        "words": np.where(granted, "A", "R"),
        "swapped": 1 - granted,
        "nearly": np.where(np.arange(N) < 5, 1 - granted, granted),
        "numbers": granted + draw.random(N).round(3),
    }[columns]
    given = (selected(whole) if labels == "selected" else whole).assign(status=copy)
    notes, warnings = told(given)
    (line,) = [*notes, *warnings]
    assert line.startswith("column 'status' ")
    assert "leave it out ('dataset.drop=[status]')" in line
    assert told(given, drop=("status",)) == ([], [])


@pytest.mark.parametrize("name", ["propensity", "prob_granted", "model_decision", "approved_by_model"])
def test_recorded_propensities_are_known_by_name(name: str, table: tuple[pd.DataFrame, np.ndarray]) -> None:
    given = selected(table[0]).assign(**{name: table[1]})
    notes, (warning,) = told(given)
    assert notes == []
    assert warning.startswith(f"column {name!r} is named like a decision or its probability")
    assert f"(dataset.propensity={name})" in warning
    assert f"('dataset.drop=[{name}]')" in warning
    assert told(given, propensity=name) == told(given, drop=(name,)) == ([], [])


@pytest.mark.parametrize(("slope", "decimals"), [(1.0, 15), (2.0, 15), (6.0, 15), (2.0, 1)])
@pytest.mark.parametrize("name", ["model_score", "rating", "x"])
def test_scores_are_told_by_how_well_they_rank_the_decisions(name: str, slope: float, decimals: int) -> None:
    whole, chance = people(np.random.default_rng(2), slope=slope)
    chance = chance.round(decimals)  # ties count as half
    auc = area(chance, whole["granted"].to_numpy() == 1)
    expected = auc >= (0.95 if name == "x" else 0.75)
    _, warnings = told(selected(whole.drop(columns="income")).assign(**{name: chance}))
    assert len(warnings) == expected
    for warning in warnings:
        assert warning.startswith(f"column {name!r} ranks people nearly as the decision 'granted' does")
        assert f"(AUC {auc:.2f})" in warning


@pytest.mark.parametrize("n", [200, 8000])
def test_a_good_predictor_with_an_ordinary_name_is_no_warning(n: int) -> None:
    whole, chance = people(np.random.default_rng(3), n, slope=1.7)
    assert 0.78 < area(chance, whole["granted"].to_numpy() == 1) < 0.86
    assert told(whole) == told(selected(whole)) == told(whole, decision=None, drop=("granted",)) == ([], [])


def ordinary(draw: Generator, n: int) -> pd.DataFrame:
    """A table with features of all kinds that predict decision and label moderately or not at all."""
    whole, _ = people(draw, n, slope=float(draw.uniform(0, 1.5)))
    further: dict[str, Any] = {f"x{k}": draw.normal(size=n) for k in range(3)}
    further |= {f"k{k}": draw.integers(int(draw.integers(2, 40)), size=n).astype(str) for k in range(3)}
    further |= {"debt": np.where(draw.random(n) < 0.3, np.nan, draw.lognormal(8, 1, n))}
    further |= {"rare": np.where(draw.random(n) < 0.01, "yes", "no"), "count": draw.poisson(1, n)}
    return whole.assign(**further)


@pytest.mark.whole
def test_ordinary_tables_have_hardly_any_warning() -> None:
    found = []
    for seed in range(200):
        draw = np.random.default_rng(seed)
        whole = ordinary(draw, int(draw.choice([60, 200, 1000])))
        for table, keys in (
            (whole, {}),
            (selected(whole), {}),
            (whole.drop(columns="granted"), {"decision": None}),
        ):
            notes, warnings = told(table, **keys)
            found.append(bool(notes or warnings))
    assert np.mean(found) <= 0.01


def test_a_propensity_is_not_proposed_as_the_decision(table: tuple[pd.DataFrame, np.ndarray]) -> None:
    whole = table[0].drop(columns="granted").assign(propensity=table[1])
    _, (warning,) = told(whole, decision=None)
    assert warning.startswith("column 'propensity' is named like a decision or its probability")
    assert "dataset.decision=propensity" not in warning


def test_rejected_people_coded_as_defaulters_with_a_decision_of_three_values(
    table: tuple[pd.DataFrame, np.ndarray],
) -> None:
    status = np.where(table[0]["granted"] == 1, np.random.default_rng(1).choice(["full", "half"], N), "none")
    coded = selected(table[0], "no").drop(columns="granted").assign(status=status)
    notes, warnings = told(coded, decision=None)
    (line,) = [*notes, *warnings]
    assert line.startswith("column 'status'")
    assert "'dataset.drop=[status]'" in line


@pytest.mark.parametrize("labels", ["all", "selected", "unlabelled"])
def test_large_tables_are_read_by_position(labels: str) -> None:
    """Beyond 5000 labelled rows a part is looked at first; rows without a label leave gaps in the index."""
    whole, _ = people(np.random.default_rng(0), 12_000)
    given = {"all": whole, "selected": selected(whole), "unlabelled": whole}[labels]
    if labels == "unlabelled":
        given = whole.assign(repaid=whole["repaid"].where(np.arange(len(whole)) % 3 > 0)).drop(
            columns="granted"
        )
    keys = {"decision": None} if labels == "unlabelled" else {}
    assert told(given, **keys) == ([], [])
