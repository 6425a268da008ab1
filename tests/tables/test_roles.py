"""Times, groups, labels, decisions, identifiers, propensities and amounts: values and refusals."""

import datetime as dt
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml

from fairall.tables.applicants import Applicants
from fairall.tables.declared import Declared
from fairall.tables.roles import read

KNOWN = yaml.safe_load(Path(__file__).with_name("roles.yaml").read_text())
N = 60
EAST = dt.timezone(dt.timedelta(hours=2))
WHOLE = 2**60 + np.arange(N)
USUAL = Declared.of().missing_by_default
Read = Callable[..., Applicants]


@pytest.fixture(params=["csv", "parquet", "frame"])
def read_as(request: pytest.FixtureRequest, tmp_path: Path) -> Read:
    """Reads a table from a file, or as it is."""

    def read_table(table: pd.DataFrame, **keys: Any) -> Applicants:
        path = tmp_path / f"people.{request.param}"
        if request.param != "frame":
            {"csv": table.to_csv, "parquet": table.to_parquet}[request.param](path, index=False)
        return read(table if request.param == "frame" else path, Declared.of(**keys))

    return read_table


def ways(*names: str) -> pytest.MarkDecorator:
    """The test reads tables in these ways only."""
    return pytest.mark.parametrize("read_as", names, indirect=True)


def people(**columns: Any) -> pd.DataFrame:
    """`columns`, repeated to N rows, and others."""
    draw = np.random.default_rng(0)
    usual = {"income": draw.normal(size=N), "decided": np.arange(N) % 2, "sex": draw.choice(["f", "m"], N)}
    return pd.DataFrame(usual | {name: np.resize(cells, N) for name, cells in columns.items()})


def times(cells: Any, read_as: Read) -> np.ndarray:
    table_read = read_as(pd.DataFrame({"t": cells, "a": 0.5}), time="t").checked()
    assert [*table_read.columns] == ["a"]
    return np.asarray(table_read.time)


@pytest.mark.parametrize(("cells", "written"), KNOWN["times"].items())
@ways("csv")
def test_text_of_times(cells: str, written: str, read_as: Read) -> None:
    """The standard library reads them likewise, those of ISO 8601 or of the format of each cell."""
    texts = cells.split(", ")
    formats = np.resize(written.split(", "), len(texts))
    moments = map(dt.datetime.strptime, texts, formats) if written else map(dt.datetime.fromisoformat, texts)
    expected = [one.astimezone(dt.UTC).replace(tzinfo=None) if one.tzinfo else one for one in moments]
    np.testing.assert_array_equal(times(texts, read_as), np.array(expected, "M8[us]"))


@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Berlin"])
@pytest.mark.parametrize("unit", ["ns", "us", "ms", "s"])
@ways("parquet", "frame")
def test_columns_of_times(unit: str, zone: str | None, read_as: Read) -> None:
    moments = np.array(["2024-01-01T10:00", "2024-07-02T11:00:05", "2023-01-01"], f"M8[{unit}]")
    column = pd.DatetimeIndex(moments)
    np.testing.assert_array_equal(times(column.tz_localize("UTC").tz_convert(zone), read_as), moments)
    objects = [one.to_pydatetime() for one in column.tz_localize(zone and "UTC")]
    mixed = [objects[0].astimezone(EAST) if zone else objects[0], *objects[1:]]
    of_objects = pd.DataFrame({"t": pd.Series(mixed, dtype=object), "a": 0.5})
    np.testing.assert_array_equal(read(of_objects, Declared.of(time="t")).checked().time, moments)


@pytest.mark.parametrize("cells", [[3, 1, 2], [1.5, 2.5, 2.0], [20240131, 20240201, 20240202]])
def test_numbers_are_times_and_their_order_is_noted(cells: list[float], read_as: Read) -> None:
    table_read = read_as(pd.DataFrame({"t": cells, "a": 0.5}), time="t").checked()
    np.testing.assert_array_equal(table_read.time, cells)
    late = any("rows are not in the order of time" in note for note in table_read.notes)
    assert late == (sorted(cells) != cells)


@pytest.mark.parametrize(
    ("words", "cells", "told"),
    [(words, *case) for words, cases in KNOWN["faults"].items() for case in cases.items()],
)
def test_a_fault_is_told_in_one_line(words: str, cells: str, told: str, read_as: Read) -> None:
    keys = dict(word.split("=") for word in words.split())
    (fault,) = read_as(people(x=cells.split(",")), **keys).faults.told
    assert re.match(told, fault), fault
    assert "\n" not in fault


def test_faults_of_names_are_told_at_once_and_then_those_of_values() -> None:
    table, keys = people(y=["a", "b", "c"]), {"label": "y", "positive": "a", "loss": "sex"}
    wrong = {"decision": "z", "propensity": "q"}
    assert len(read(table, Declared.of(**keys | wrong)).faults.told) == 2
    assert len(read(table, Declared.of(**keys)).faults.told) == 2


def test_groups_are_tuples_of_values(read_as: Read) -> None:
    races, origins = ["Asian", "Asian, Black", 'the "other"'], ["Black, other", "other"]
    draw = np.random.default_rng(0)
    table = people(race=draw.choice(races, N), origin=draw.choice(origins, N))
    table_read = read_as(table, intersections=("race", "origin")).checked()
    pairs = list(zip(table["race"], table["origin"], strict=True))
    assert list(table_read.groups) == sorted(set(pairs))
    assert [table_read.groups[k] for k in np.asarray(table_read.group)] == pairs


def test_a_group_of_a_run_may_be_called_none() -> None:
    declared = Declared.of(sensitive="race", missing_by_default=["NA"])
    assert len(read(people(race=["None", "b", "c"]), declared, to_learn=True).groups) == 3


@pytest.mark.parametrize(("values", "positive"), KNOWN["spellings"])
def test_a_label_or_decision_in_any_spelling(values: list[Any], positive: str, read_as: Read) -> None:
    table = people(y=np.array([*values, None], dtype=object))
    label = read_as(table, label="y", positive=positive).checked().label
    np.testing.assert_array_equal(np.asarray(label)[:3], [1.0, 0.0, np.nan])
    for cells in (values, values[:1]):
        decided = read_as(people(d=cells), decision="d", accepted=positive, accepts_all=len(cells) == 1)
        assert np.asarray(decided.checked().accepted)[:2].tolist() == [True, len(cells) == 1]


@pytest.mark.parametrize("word", ["None", "NA", "?", "nan"])
@ways("csv", "frame")
def test_words_that_mean_no_value_are_named_with_the_keys_that_settle_it(word: str, read_as: Read) -> None:
    table, n = people(y=["yes", word]), N // 2
    keys, others = {"label": "y", "positive": "yes"}, [one for one in USUAL if one != word]
    (fault,) = read_as(table, **keys).faults.told
    assert fault.startswith(
        f"column 'y' has 1 value (yes); {word!r} in {n} rows means no value: leave it out of"
    )
    label = read_as(table, **keys, missing_by_default=others).checked().label
    np.testing.assert_array_equal(label, [1.0, 0.0] * n)
    label = read_as(table, **keys, missing=[word]).checked().label
    np.testing.assert_array_equal(label, [1.0, np.nan] * n)
    third = read_as(people(y=["yes", "no", word]), **keys).checked()
    assert any(f"{word!r} in {N // 3} rows means no value" in note for note in third.notes)


@pytest.mark.parametrize(
    ("cells", "numbers"),
    [
        *((cells, WHOLE) for cells in (WHOLE, WHOLE.astype(str), WHOLE.astype("uint64"))),
        (2.0**40 + np.arange(N), 2**40 + np.arange(N)),
        *((cells, [7, 7, 8]) for cells in ([7, 7.0, 8.0], ["7", "7.0", "8.0"], ["7.0", "7", "8"])),
    ],
)
def test_identifiers(cells: Any, numbers: Any, read_as: Read) -> None:
    person = read_as(people(p=cells), person="p").checked().person
    assert np.asarray(person).tolist() == [*map(str, np.resize(numbers, N))]


@pytest.mark.parametrize("cells", [WHOLE.astype(float), (1e8 + np.arange(N)).astype("float32")], ids=str)
@ways("parquet", "frame")
def test_floats_that_do_not_tell_people_apart_are_refused(cells: np.ndarray, read_as: Read) -> None:
    (fault,) = read_as(people(p=cells), person="p").faults.told
    assert re.fullmatch("column 'p', row 1: .* is a rounded number.*: write them as text", fault)


@pytest.mark.parametrize("chance", [0.0, -0.1, 1.1, np.inf, np.nan, 1.0, 1e-300])
@pytest.mark.parametrize("accepted", [True, False])
def test_limits_of_a_propensity(accepted: bool, chance: float, read_as: Read) -> None:
    values, row = np.full(N, 0.5), 5 if accepted else 4
    values[row] = chance
    table_read = read_as(people(p=values), decision="decided", propensity="p")
    if 0 < chance <= 1 or (not accepted and (chance == 0 or np.isnan(chance))):
        np.testing.assert_array_equal(table_read.checked().propensity, values)
    else:
        (fault,) = table_read.faults.told
        assert fault.startswith(f"column 'p', row {row + 1}: ")
        assert fault.endswith("is no propensity, a number above 0 and at most 1")


def test_repeated_rows_get_one_warning_that_asks_for_a_person(read_as: Read) -> None:
    once = people(job=["a", "b", "c"])
    twice = pd.concat([once, once[10:30]], ignore_index=True).assign(id=range(N + 20))
    keys, again = {"sensitive": "sex", "drop": "id"}, twice.index >= N
    (warning,) = read_as(twice, **keys).checked().warnings
    assert "in all features and the group: 20, the first is row 61;" in warning
    assert "person=COLUMN" in warning
    for unlike in (
        twice.assign(sex=twice["sex"].mask(again, "x")),
        twice.assign(income=twice["income"] + again),
        twice.assign(income=twice["income"].mask(twice["income"].duplicated(keep=False))),
        twice.assign(income=twice["income"].round()),
    ):
        assert not read_as(unlike, **keys).checked().warnings
    assert not read_as(twice, sensitive="sex", person="id").checked().warnings
