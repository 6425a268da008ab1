"""What changes nothing but names in the estimates of all analyses."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from fairall.evaluate import compare
from tests.evaluate.simulated import KEYS, LOGISTIC, applicants

NAMES = {"f": "zzf", "m": "aam"}
OPTIONS: dict[str, Any] = {
    "propensity": "p",
    "score": "chance",
    "time": "row",
    "decision_maker": "officer",
    "person": "who",
    "reference": "f",
}


@pytest.fixture(scope="module")
def people() -> pd.DataFrame:
    rows = np.arange(900)
    officer = np.where(np.random.default_rng(0).random(900) < 0.5, "Ann", "Bob")
    return applicants(900).drop(columns="truth").assign(row=rows, who=rows, officer=officer)


def estimates(people: pd.DataFrame, **options: Any) -> pd.DataFrame:
    """Estimate and ends of all intervals of two policies, by what they are about; the last over time."""
    tables = compare("new", "steep", people, **KEYS | LOGISTIC | OPTIONS | options).to_plain()["tables"]
    rows = {
        ", ".join([table, *(word for word in record.values() if isinstance(word, str))]): record
        for table, records in tables.items()
        for record in records
        if "low" in record and record.get("time") in (None, 899) and record.get("view") != "bin"
    }
    return pd.DataFrame(rows).T[["estimate", "low", "high"]].astype(float).fillna(0.0)


@pytest.fixture(scope="module")
def usual(people: pd.DataFrame) -> pd.DataFrame:
    return estimates(people)


def check_alike(found: pd.DataFrame, usual: pd.DataFrame) -> None:
    """All estimates and ends, to half of the widths of intervals: folds of models are drawn."""
    assert {*found.index} == {*usual.index}
    widths = (usual["high"] - usual["low"]).clip(1e-6)
    apart = (found - usual).abs().max(axis=1) / widths
    assert apart.max() < 1 / 2, apart.idxmax()


def test_the_order_of_rows_does_not_matter(people: pd.DataFrame, usual: pd.DataFrame) -> None:
    check_alike(estimates(people.sample(frac=1.0, random_state=0)), usual)


def test_rows_of_a_person_count_as_one(people: pd.DataFrame, usual: pd.DataFrame) -> None:
    """But over time, and in the guarantee, which is of different people."""
    thrice = estimates(people.loc[people.index.repeat(3)])
    once = usual[~usual.index.str.contains("monitor|guarantee")]
    check_alike(thrice[~thrice.index.str.contains("monitor")], once)


def test_names_of_groups_do_not_matter(people: pd.DataFrame, usual: pd.DataFrame) -> None:
    found = estimates(people.replace({"sex": NAMES}), reference=NAMES["f"])
    found.index = found.index.str.replace("zzf", "f").str.replace("aam", "m")
    check_alike(found, usual)
