"""Which columns of numbers identify people and which are features, by simulation of both."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.random import Generator

from benchmarks.in_process import typed
from fairall.errors import FairAllError
from fairall.evaluate.log import DecisionLog
from fairall.tables.cells import numbers_of
from fairall.tables.declared import Declared
from fairall.tables.infer import Candidate, LeftOut

Draw = Callable[[Generator, int], Any]
DECLARED = Declared.of()


def unique(draw: Generator, low: int, high: int, n: int) -> np.ndarray:
    """Different whole numbers from `low` to `high` - 1 in a random order."""
    found = np.unique(draw.integers(low, high, 2 * n + 10))
    return draw.permutation(found)[:n]


def distinct_incomes(draw: Generator, n: int) -> np.ndarray:
    return draw.permutation(np.unique(draw.lognormal(10.3, 0.6, 3 * n).round()))[:n]


IDENTIFIERS: dict[str, tuple[str, Draw]] = {
    "from 1": ("row", lambda draw, n: np.arange(1, n + 1)),
    "shuffled": ("x", lambda draw, n: draw.permutation(n) + 1),
    "from 100001": ("x", lambda draw, n: 100_001 + draw.permutation(n)),
    "downwards": ("x", lambda draw, n: np.arange(n, 0, -1)),
    "some missing": ("x", lambda draw, n: np.where(draw.random(n) < 0.05, np.nan, draw.permutation(n))),
    "as floats": ("x", lambda draw, n: 1.0 + draw.permutation(n)),
    "index of CSV": ("column 1", lambda draw, n: np.sort(draw.choice(10 * n, n, replace=False))),
    "index of pandas": ("Unnamed: 0", lambda draw, n: draw.choice(100 * n, n, replace=False)),
    "six digits": ("x", lambda draw, n: unique(draw, 10**5, 10**6, n)),
    "seven digits": ("x", lambda draw, n: unique(draw, 10**6, 10**7, n)),
    "to ten million": ("case", lambda draw, n: unique(draw, 0, 10**7, n)),
    "nine digits": ("x", lambda draw, n: unique(draw, 10**8, 10**9, n)),
    "sixteen digits": ("x", lambda draw, n: unique(draw, 10**15, 10**16, n)),
    "seconds": ("x", lambda draw, n: 1_600_000_000 + draw.integers(0, 10**8, n)),
    "milliseconds": ("x", lambda draw, n: 1000 * (1_600_000_000 + draw.integers(0, 10**8, n))),
    "sorted seconds": ("made", lambda draw, n: np.sort(1_400_000_000 + draw.integers(0, 10**8, n))),
    "person_id": ("person_id", lambda draw, n: draw.integers(1, 10**4, n)),
    "customerId": ("customerId", lambda draw, n: draw.integers(10**6, 10**6 + n, n)),
    "ID": ("ID", lambda draw, n: np.repeat(np.arange(n // 2), 2)),
    "postal codes": ("zip_code", lambda draw, n: unique(draw, 10_000, 99_999, n)),
}
FEATURES: dict[str, tuple[str, Draw]] = {
    "income": ("income", lambda draw, n: draw.lognormal(10.3, 0.6, n).round()),
    "income without a name": ("x", lambda draw, n: draw.lognormal(10.3, 0.6, n).round()),
    "sorted incomes": ("x", lambda draw, n: np.sort(draw.lognormal(10.3, 0.6, n).round())),
    "different incomes": ("x", distinct_incomes),
    "different sorted incomes": ("x", lambda draw, n: np.sort(distinct_incomes(draw, n))),
    "normal incomes": ("x", lambda draw, n: draw.normal(40_000, 10_000, n).round()),
    "millions": ("x", lambda draw, n: draw.lognormal(13, 0.6, n).round()),
    "Pareto": ("x", lambda draw, n: (1e4 * (1 + draw.pareto(2, n))).round()),
    "floats": ("x", lambda draw, n: draw.normal(size=n)),
    "even floats": ("x", lambda draw, n: draw.random(n)),
    "ages": ("age", lambda draw, n: draw.integers(18, 90, n)),
    "counts": ("x", lambda draw, n: draw.poisson(2, n)),
    "large counts": ("x", lambda draw, n: draw.poisson(500, n)),
    "cents": ("x", lambda draw, n: (100 * draw.lognormal(7, 1, n)).round()),
    "amount": ("loan_amount", lambda draw, n: unique(draw, 10**5, 10**6, n)),
    "thousands": ("x", lambda draw, n: 1000 * draw.poisson(50, n)),
    "years": ("year", lambda draw, n: draw.integers(1950, 2020, n)),
    "scores": ("x", lambda draw, n: draw.normal(650, 100, n).round().clip(300, 850)),
    "percentages": ("x", lambda draw, n: draw.integers(0, 101, n)),
    "latitudes": ("lat", lambda draw, n: draw.uniform(40, 50, n).round(6)),
    "days": ("x", lambda draw, n: draw.integers(-15_000, 0, n)),
    "seconds of use": ("x", lambda draw, n: draw.exponential(1e6, n).round()),
}


def kind(values: Any, name: str = "x", declared: Declared = DECLARED) -> str:
    """The kind of a column, or "" where it is left out."""
    column = pd.Series(values, name=name)
    try:
        return str(Candidate(column, declared, numbers_of(column)).kind())
    except LeftOut:
        return ""


def left_out(which: tuple[str, Draw], sizes: list[int], times: int) -> float:
    """Share of random columns that are left out."""
    name, made = which
    return float(
        np.mean([not kind(made(np.random.default_rng(k), n), name) for k in range(times) for n in sizes])
    )


@pytest.mark.parametrize("name", IDENTIFIERS)
def test_identifiers_are_left_out(name: str) -> None:
    # The test of evenness refuses one even column in a hundred.
    assert left_out(IDENTIFIERS[name], [120, 600], 10) >= 0.9


@pytest.mark.parametrize("name", FEATURES)
def test_features_stay(name: str) -> None:
    assert left_out(FEATURES[name], [100, 600, 2000], 5) == 0.0


@pytest.mark.whole
def test_few_of_many_random_columns_are_judged_wrongly() -> None:
    identifiers = [left_out(one, [120, 300, 1000], 60) for one in IDENTIFIERS.values()]
    features = [left_out(one, [60, 300, 1000], 60) for one in FEATURES.values()]
    assert np.mean(identifiers) >= 0.99
    assert np.mean(features) <= 0.01


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (np.random.default_rng(0).integers(10_000, 10_060, 600), "categorical"),
        (pd.Categorical([f"{k % 60:05d}" for k in range(600)]), "categorical"),
        (pd.Categorical([f"{10_000 + k % 60}" for k in range(600)]), "categorical"),
        (10_000 + np.arange(600), ""),
    ],
    ids=["numbers", "leading zeros", "text", "another in each row"],
)
def test_postal_codes_are_categories(values: Any, expected: str) -> None:
    assert kind(values, "zip") == expected
    assert kind(values, "zip", Declared.of(kinds={"zip": "real"})) == "real"


def table(n: int = 400) -> pd.DataFrame:
    """People with an identifier, whose name needs quotation marks."""
    draw = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "Unnamed: 0": draw.permutation(10 * n)[:n],
            "income": draw.normal(size=n).round(3),
            "granted": draw.integers(0, 2, n),
            "repaid": draw.choice(["yes", "no"], n),
            "sex": draw.choice(["f", "m"], n),
        }
    )


@pytest.mark.parametrize("name", ["case", "Unnamed: 0", "column 1", "a, b", "it's"])
def test_what_is_left_out_is_named_with_the_word_that_keeps_it(name: str, tmp_path: Path) -> None:
    people = table().rename(columns={"Unnamed: 0": name})
    if name not in ("Unnamed: 0", "column 1"):
        people[name] = range(len(people))
    with pytest.raises(LeftOut) as told:
        Candidate(people[name], Declared.of(), numbers_of(people[name])).kind()
    assert str(told.value).endswith(f"; kinds={{{name}: real}} keeps it")
    keys: dict[str, Any] = {"decision": "granted", "label": "repaid", "positive": "yes", "sensitive": "sex"}
    log = DecisionLog.of(people, **keys)
    assert name not in log.names
    (note,) = (note for note in log.notes if "left out" in note)
    assert note.startswith(f"column {name!r} is left out: it ")
    assert name in DecisionLog.of(people, **keys, kinds={name: "real"}).names


@pytest.mark.parametrize("name", ["column 2"])
def test_the_pasted_word_keeps_it_in_commands(name: str, tmp_path: Path) -> None:
    people = table().rename(columns={"Unnamed: 0": name}).assign(**{name: range(400)})
    people.to_csv(tmp_path / "people.csv", index=False)
    path, *words = "people.csv", "dataset.label=repaid", "dataset.positive=yes", "dataset.sensitive=sex"
    words = [*words, "dataset.advantaged=m", "dataset.decision=granted"]
    ended = typed("data", "describe", path, *words, cwd=tmp_path)
    told = " ".join((ended.stdout + ended.stderr).split())
    assert f"column {name!r} is left out" in told
    kept = f"kinds={{{name}: real}}"
    assert f"; {kept} keeps it" in told
    again = typed("data", "describe", path, *words, f"dataset.{kept}", cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    assert f"column {name!r} is left out" not in " ".join((again.stdout + again.stderr).split())


def test_what_cannot_be_a_kind_is_still_refused() -> None:
    with pytest.raises(FairAllError, match="is not a count"):
        kind(np.arange(100) + 0.5, "x", Declared.of(kinds={"x": "count"}))


@pytest.mark.parametrize(
    "name", ["paid", "amount_paid", "Prepaid", "bid", "grid", "price_index", "house_price_index", "fluid"]
)
def test_words_that_end_as_identifiers_do_are_no_names_of_identifiers(name: str) -> None:
    assert kind(np.random.default_rng(0).lognormal(5, 1, 1000).round(), name) == "real"


@pytest.mark.parametrize("name", ["account_number", "loan_number", "loan_no", "LoanNo", "payment_nr"])
def test_numbers_of_accounts_are_identifiers(name: str) -> None:
    assert kind(unique(np.random.default_rng(0), 10**6, 10**7, 300), name) == ""


@pytest.mark.parametrize("first", [2**53, 2**60, 2**62])
@pytest.mark.parametrize("as_type", ["int64", "Int64", "float", "text"])
def test_whole_numbers_beyond_what_floats_tell_apart_are_identifiers(first: int, as_type: str) -> None:
    apart = 1 if as_type != "float" else 2**12  # as floats of this size the next ones are the same
    values = pd.Series(first + apart * np.arange(600))
    cells = pd.Categorical(values.astype(str)) if as_type == "text" else values.astype(as_type)
    assert kind(cells) == ""
    assert kind(pd.Series(first + np.random.default_rng(0).integers(0, 2**60, 600))) == ""
