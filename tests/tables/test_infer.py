"""Which columns of numbers identify people and which are features, by simulation of both."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.random import Generator

from fairall.errors import FairAllError
from fairall.tables.declared import Declared
from fairall.tables.features import Kind
from fairall.tables.infer import Column, LeftOut

Draw = Callable[[Generator, int], Any]


def unique(draw: Generator, low: int, high: int, n: int) -> np.ndarray:
    """Different whole numbers from `low` to `high` - 1 in a random order."""
    found = np.unique(draw.integers(low, high, 2 * n + 10))
    return draw.permutation(found)[:n]


def distinct_incomes(draw: Generator, n: int) -> np.ndarray:
    return draw.permutation(np.unique(draw.lognormal(10.3, 0.6, 3 * n).round()))[:n]


IDENTIFIERS: dict[str, tuple[str, Draw]] = {
    "shuffled": ("x", lambda draw, n: draw.permutation(n) + 1),
    "some missing": ("x", lambda draw, n: np.where(draw.random(n) < 0.05, np.nan, draw.permutation(n))),
    "index of CSV": ("column 1", lambda draw, n: np.sort(draw.choice(10 * n, n, replace=False))),
    "six digits": ("x", lambda draw, n: unique(draw, 10**5, 10**6, n)),
    "sixteen digits": ("x", lambda draw, n: unique(draw, 10**15, 10**16, n)),
    "milliseconds": ("x", lambda draw, n: 1000 * (1_600_000_000 + draw.integers(0, 10**8, n))),
}
FEATURES: dict[str, tuple[str, Draw]] = {
    "different incomes": ("x", distinct_incomes),
    "Pareto": ("x", lambda draw, n: (1e4 * (1 + draw.pareto(2, n))).round()),
    "floats": ("x", lambda draw, n: draw.normal(size=n)),
    "years": ("year", lambda draw, n: draw.integers(1950, 2020, n)),
    "days": ("x", lambda draw, n: draw.integers(-15_000, 0, n)),
    "seconds of use": ("x", lambda draw, n: draw.exponential(1e6, n).round()),
}


def kind(values: Any, name: str = "x", **keys: Any) -> str:
    """The kind of a column, or "" where it is left out."""
    column = pd.Series(values, name=name)
    try:
        return str(Column(column, Declared.of(**keys)).kind())
    except LeftOut:
        return ""


@pytest.mark.parametrize("case", [*IDENTIFIERS, *FEATURES])
def test_simulated_columns_are_told_apart(case: str) -> None:
    name, made = (IDENTIFIERS | FEATURES)[case]
    columns = [made(np.random.default_rng(seed), n) for seed in range(10) for n in (120, 300, 1000)]
    left_out = np.mean([not kind(values, name) for values in columns])
    assert abs(left_out - (case in IDENTIFIERS)) <= 0.03
    assert kind(columns[0], name, kinds={name: "real"}) == "real"


NAMES = "account_number loan_no LoanNo payment_nr userID phone client-id Ref".split()
OTHER_NAMES = "paid amount_paid Prepaid bid grid price_index fluid numbers_of".split()


@pytest.mark.parametrize("name", [*NAMES, *OTHER_NAMES])
def test_names_of_identifiers_end_in_such_a_word(name: str) -> None:
    expected = "" if name in NAMES else "real"
    assert kind(np.random.default_rng(0).lognormal(7, 1, 1000).round(), name) == expected


@pytest.mark.parametrize("as_type", ["int64", "Int64", "float", "category"])
def test_whole_numbers_beyond_what_floats_tell_apart_are_identifiers(as_type: str) -> None:
    values = pd.Series(2**53 + 2**12 * np.arange(600))  # as floats the next ones are the same
    assert kind((values.astype("str") if as_type == "category" else values).astype(as_type)) == ""


def test_rows_are_read_as_new_people_are_and_a_note_counts_the_others() -> None:
    cells = pd.Series(np.repeat(["1", "True", "red", "none", "Red"], [9, 3, 2, 1, 1]))
    column = Column(cells, Declared.of(max_categories=2))
    feature = column.feature(Kind.CATEGORICAL, np.arange(len(cells)))
    assert column.values(feature).tolist() == [0] * 12 + [1] * 4 == feature.encode(cells)[0].tolist()
    assert "the 3 rarest of its 5 values are merged" in column.remarks(feature)[0]


def test_an_infinite_number_among_those_of_rows_is_refused() -> None:
    with pytest.raises(FairAllError, match="inf is not a finite number"):
        kind([np.inf, *range(1, 200)])
