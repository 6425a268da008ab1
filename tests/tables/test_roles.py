"""Times, groups, labels, decisions, identifiers, propensities and amounts: values and refusals."""

import datetime as dt
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fairall.errors import FairAllError
from fairall.tables.applicants import Applicants, read
from fairall.tables.declared import Declared, Spelling

N = 60
WAYS = ["csv", "parquet", "frame"]
EAST = dt.timezone(dt.timedelta(hours=2))


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def given(table: pd.DataFrame, way: str, folder: Path, **keys: Any) -> Applicants:
    """The table read from a file or as it is."""
    path = folder / f"people.{way}"
    if way == "csv":
        table.to_csv(path, index=False)
    elif way == "parquet":
        table.to_parquet(path)
    return read(table if way == "frame" else path, Declared.of(**keys))


def refused(table: pd.DataFrame, way: str, folder: Path, **keys: Any) -> str:
    """The one fault of a table."""
    (fault,) = given(table, way, folder, **keys).faults
    assert "\n" not in fault
    return fault


def people(**columns: Any) -> pd.DataFrame:
    draw = np.random.default_rng(0)
    usual = {"income": draw.normal(size=N), "decided": np.arange(N) % 2, "sex": draw.choice(["f", "m"], N)}
    return pd.DataFrame(usual | columns)


# --- times


def times(*cells: Any, way: str = "csv", folder: Path) -> np.ndarray:
    found = given(pd.DataFrame({"t": list(cells), "a": 0.5}), way, folder, time="t")
    assert found.checked().time is not None
    return np.asarray(found.time)


def utc(*isoformats: str) -> np.ndarray:
    """The times of ISO 8601 in UTC, by the standard library."""
    moments = [dt.datetime.fromisoformat(one) for one in isoformats]
    return np.array(
        [one.astimezone(dt.UTC).replace(tzinfo=None) if one.tzinfo else one for one in moments], "M8[us]"
    )


@pytest.mark.parametrize(
    "cells",
    [
        ["2024-01-01 10:00:00.250+00:00", "2024-01-01 10:00:01+00:00", "2024-01-01 10:00:02.5+00:00"],
        [dt.datetime(2024, 1, 1, 10, 0, k, 5 * (k == 1), dt.UTC).isoformat() for k in range(3)],
        [dt.datetime(2024, 1, 1, 10, 0, k, 5 * (k == 1)).isoformat() for k in range(3)],
        ["2024-01-01T10:00:00Z", "2024-01-01T10:00:01.5Z"],
        ["2024-01-01", "2024-01-01 10:00:00", "2024-01-02T11:00"],
        ["2024-01-01 10:00:00", "2024-01-01", "2023-01-02T11:00:00.125"],
        ["2024-01-01T10:00:00+02:00", "2024-01-01T10:00:00+00:00", "2024-01-01T10:00:00-0500"],
        ["2024-01-01T10:00:00+02", "2024-01-01T11:00:00+02"],
        ["20240101T100000", "20240101T110000"],
        ["2024-01-01", "2023-12-31"],
    ],
    ids=lambda cells: cells[0],
)
def test_dates_of_iso_8601(cells: list[str], tmp_path: Path) -> None:
    np.testing.assert_array_equal(times(*cells, folder=tmp_path), utc(*cells))


@pytest.mark.parametrize(
    ("cells", "written"),
    [
        (["13/02/2024", "01/03/2024"], "%d/%m/%Y"),
        (["01/03/2024", "13/02/2024"], "%d/%m/%Y"),
        (["02/13/2024", "03/01/2024"], "%m/%d/%Y"),
        (["01/02/2024", "01/02/2024", "03/13/2024"], "%m/%d/%Y"),
        (["13.02.2024", "01.03.2024"], "%d.%m.%Y"),
        (["13-02-2024", "01-03-2024"], "%d-%m-%Y"),
        (["13/02/2024 10:00", "01/03/2024 23:59"], "%d/%m/%Y %H:%M"),
        (["2024/02/13", "2024/03/01"], "%Y/%m/%d"),
        (["02/02/2024", "03/03/2024"], "%d/%m/%Y"),
    ],
)
def test_other_dates_by_what_all_rows_allow(cells: list[str], written: str, tmp_path: Path) -> None:
    expected = np.array([dt.datetime.strptime(one, written) for one in cells], "M8[us]")
    np.testing.assert_array_equal(times(*cells, folder=tmp_path), expected)


@pytest.mark.parametrize("way", ["parquet", "frame"])
@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Berlin", "America/New_York"])
@pytest.mark.parametrize("unit", ["ns", "us", "ms", "s"])
def test_columns_of_times(unit: str, zone: str | None, way: str, tmp_path: Path) -> None:
    moments = np.array(["2024-01-01T10:00", "2024-07-02T11:00:05", "2023-01-01"], f"M8[{unit}]")
    column = pd.DatetimeIndex(moments)
    if zone:
        column = column.tz_localize("UTC").tz_convert(zone)
    np.testing.assert_array_equal(times(*column, way=way, folder=tmp_path), moments)
    typed = pd.DataFrame({"t": column, "a": 0.5})
    np.testing.assert_array_equal(np.asarray(given(typed, way, tmp_path, time="t").time), moments)


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        ([dt.date(2024, 1, 2), dt.date(2024, 1, 1)], ["2024-01-02", "2024-01-01"]),
        ([dt.datetime(2024, 1, 1, 10, tzinfo=EAST), dt.datetime(2024, 1, 1, 10, tzinfo=dt.UTC)], None),
        ([dt.datetime(2024, 1, 1, 10, 0, 0, 5, EAST), dt.datetime(2024, 1, 1, 10, tzinfo=EAST)], None),
        ([dt.date(2024, 1, 1), dt.datetime(2024, 1, 1, 10)], None),
    ],
)
def test_objects_that_are_times(cells: list[Any], expected: list[str] | None, tmp_path: Path) -> None:
    column = pd.DataFrame({"t": pd.Series(cells, dtype=object), "a": 0.5})
    found = np.asarray(given(column, "frame", tmp_path, time="t").checked().time)
    np.testing.assert_array_equal(found, utc(*(expected or [one.isoformat() for one in cells])))


def test_numbers_are_times(way: str, tmp_path: Path) -> None:
    for cells in ([3, 1, 2], [1.5, 2.5, 2.0], [2021, 2022, 2023], [20240131, 20240201, 20240202]):
        np.testing.assert_array_equal(times(*cells, way=way, folder=tmp_path), cells)


def test_the_order_of_rows_is_noted(tmp_path: Path) -> None:
    late = pd.DataFrame({"t": ["2024-01-02", "2024-01-01"], "a": 0.5})
    assert any("not in the order of time" in note for note in given(late, "csv", tmp_path, time="t").notes)
    assert not any("order" in note for note in given(late[::-1], "csv", tmp_path, time="t").notes)


@pytest.mark.parametrize(
    ("cells", "told"),
    [
        (
            ["2024-01-01T10:00:00", "2024-01-01T10:00:00+00:00"],
            "row 2: .* is a time with a zone, unlike row 1",
        ),
        (["2024-01-01T10:00Z", "2024-01-01T10:00"], "row 2: .* is a time without a zone, unlike row 1"),
        (["2024-01-01", "2024-01-01T10:00:00Z"], "row 2: .* with a zone, unlike row 1"),
        (["01/02/2024", "03/04/2024"], "row 1: '01/02/2024' may be two dates: write them as 2025-12-31"),
        (["13/02/2024", "02/13/2024"], "row 2: '02/13/2024' is no time"),
        (["2024-01-01", "soon"], "row 2: 'soon' is no time"),
        (["2024-02-30", "2024-01-01"], "row 1: '2024-02-30' is no time"),
        (["5", "2024-01-01"], "row 2: '2024-01-01' is no time"),
        (["1", "inf"], "row 2: 'inf' is no time"),
        (["2024-01-01", None], "row 2: an empty cell is no time: complete it"),
        (["2024-01-01", "NA"], "row 2: 'NA', which means no value .* is no time: complete it"),
    ],
)
def test_what_is_no_time(cells: list[Any], told: str, tmp_path: Path) -> None:
    fault = refused(pd.DataFrame({"t": cells, "a": 0.5}), "csv", tmp_path, time="t")
    assert pd.Series(fault).str.match(f"column 't', {told}").all(), fault


def test_objects_with_and_without_a_zone_are_refused(tmp_path: Path) -> None:
    moments = [dt.datetime(2024, 1, 1, 10, tzinfo=dt.UTC), dt.datetime(2024, 1, 1, 10)]
    column = pd.DataFrame({"t": pd.Series(moments, dtype=object), "a": 0.5})
    assert "row 2: '2024-01-01 10:00:00' is a time without a zone" in refused(
        column, "frame", tmp_path, time="t"
    )


@pytest.mark.parametrize(
    ("cells", "written"),
    [
        (["13/02/2024", "01/03/2024 11:30"], ["%d/%m/%Y", "%d/%m/%Y %H:%M"]),
        (["02/13/2024 11:30", "03/01/2024"], ["%m/%d/%Y %H:%M", "%m/%d/%Y"]),
        (["13.02.2024 11:30", "01.03.2024 11:30:05"], ["%d.%m.%Y %H:%M", "%d.%m.%Y %H:%M:%S"]),
        (["02/13/2024 10:00 PM", "03/01/2024 09:00 AM"], ["%m/%d/%Y %I:%M %p"] * 2),
        (["13/02/24", "01/03/24"], ["%d/%m/%y"] * 2),
        (
            ["2024-01-01 10:00:00 UTC", "2024-01-01 10:00:01.5 UTC"],
            ["%Y-%m-%d %H:%M:%S UTC", "%Y-%m-%d %H:%M:%S.%f UTC"],
        ),
    ],
)
def test_dates_with_and_without_a_time(cells: list[str], written: list[str], tmp_path: Path) -> None:
    pairs = zip(cells, written, strict=True)
    expected = np.array([dt.datetime.strptime(*pair) for pair in pairs], "M8[us]")
    np.testing.assert_array_equal(times(*cells, folder=tmp_path), expected)


@pytest.mark.parametrize(
    "cells",
    [
        ["2024-01-01T10:00:00", "2024-01-01T10:00:00+02"],
        ["2024-01-01T10:00:00-05", "2024-01-01T10:00:00"],
        ["10:00", "11:00"],
        ["now", "today"],
    ],
)
def test_times_that_would_be_guessed_are_refused(cells: list[str], tmp_path: Path) -> None:
    assert refused(pd.DataFrame({"t": cells, "a": 0.5}), "csv", tmp_path, time="t").startswith(
        "column 't', row "
    )


# --- groups


def test_groups_are_tuples_of_values(way: str, tmp_path: Path) -> None:
    races, origins = ["Asian", "Asian, Black", 'the "other"'], ["Black, other", "other"]
    draw = np.random.default_rng(0)
    table = people(race=draw.choice(races, N), origin=draw.choice(origins, N))
    found = given(table, way, tmp_path, intersections=("race", "origin")).checked()
    assert found.group is not None
    pairs = list(zip(table["race"], table["origin"], strict=True))
    assert list(found.groups) == sorted(set(pairs))
    assert [found.groups[k] for k in found.group] == pairs
    assert len(found.groups) == 6


def test_a_missing_group_is_one_of_its_own_and_a_word_for_it_is_named(way: str, tmp_path: Path) -> None:
    table = people(sex=["m", None, "NA", "f"] * (N // 4))
    found = given(table, way, tmp_path, sensitive="sex").checked()
    assert list(found.groups) == [("(missing)",), ("f",), ("m",)]
    assert found.group is not None
    assert found.group.tolist() == [2, 0, 0, 1] * (N // 4)
    (note,) = (note for note in found.notes if "'sex'" in note)
    assert f"{N // 2} cells without a value, such as 'NA'" in note
    kept = given(table, way, tmp_path, sensitive="sex", missing_by_default=["None"]).checked()
    assert list(kept.groups) == [("(missing)",), ("NA",), ("f",), ("m",)]


# --- labels and decisions


@pytest.mark.parametrize(
    ("values", "positive"),
    [
        ([1, 0, 1], "1"),
        ([1, 0, 1], "1.0"),
        ([1.0, 0.0, 1.0], "1"),
        ([1.0, 0.0, np.nan], "1"),
        ([True, False, True], "1"),
        ([True, False, True], "true"),
        (["1.0", "0.0", None], "1"),
        (["yes", "no", None], "Yes"),
        (["Good risk", "bad", None], "good  risk"),
    ],
)
def test_a_label_in_another_spelling(values: list[Any], positive: str, way: str, tmp_path: Path) -> None:
    table = people(y=values * (N // 3))
    label = given(table, way, tmp_path, label="y", positive=positive).checked().label
    expected = [np.nan if one is None or one != one else float(k != 1) for k, one in enumerate(values)]
    np.testing.assert_array_equal(label, expected * (N // 3))


def test_a_label_with_one_value(way: str, tmp_path: Path) -> None:
    for values, positive, expected in (
        (["no", None], "yes", 0.0),
        (["yes", None], "yes", 1.0),
        ([0.0], "1", 0.0),
    ):
        found = given(
            people(y=values * (N // len(values))), way, tmp_path, label="y", positive=positive
        ).checked()
        assert found.label is not None
        assert set(found.label[~np.isnan(found.label)]) == {expected}
        assert any("is always" in note and "'y'" in note for note in found.notes) == (expected == 0.0)


@pytest.mark.parametrize("word", ["None", "NA", "?", "nan"])
@pytest.mark.parametrize("way", ["csv", "frame"])
def test_words_that_mean_no_value_are_named_with_the_key_that_keeps_them(
    word: str, way: str, tmp_path: Path
) -> None:
    others = [one for one in Declared.of().missing_by_default if one != word]
    table = people(y=["yes", word] * (N // 2), d=["1", word] * (N // 2))
    told = refused(table, way, tmp_path, label="y", positive="yes")
    assert f"has 1 value (yes) beside {word!r} in {N // 2} rows, which means no value" in told
    assert f"{Spelling().word('missing_by_default', others)} makes it a label" in told
    label = given(table, way, tmp_path, label="y", positive="yes", missing_by_default=others).checked().label
    np.testing.assert_array_equal(label, [1.0, 0.0] * (N // 2))
    unknown = given(table, way, tmp_path, label="y", positive="yes", missing=[word]).checked().label
    np.testing.assert_array_equal(unknown, [1.0, np.nan] * (N // 2))
    told = refused(table, way, tmp_path, decision="d")
    assert told.startswith(f"column 'd', row 2: {word!r}, which means no value (")
    assert Spelling().word("missing_by_default", others) in told
    decided = given(table, way, tmp_path, decision="d", missing_by_default=others).checked().accepted
    np.testing.assert_array_equal(decided, [True, False] * (N // 2))


@pytest.mark.parametrize(
    ("values", "accepted"),
    [([1, 0], "1"), ([1.0, 0.0], "1"), ([True, False], "1"), (["A", "R"], "a"), ([2, 1], "2")],
)
def test_decisions(values: list[Any], accepted: str, way: str, tmp_path: Path) -> None:
    found = (
        given(people(d=values * (N // 2)), way, tmp_path, decision="d", accepted=accepted).checked().accepted
    )
    np.testing.assert_array_equal(found, [True, False] * (N // 2))


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ([0, 1, 2], r"has 3 values \(0, 1, 2\); a decision must have two"),
        (["yes", "no"], "accepted=1: column 'd' has no such value; it has no, yes"),
        ([0], "nobody was accepted"),
        ([1], "nobody was rejected"),
        ([1, 0, None], "row 3: an empty cell is no decision"),
    ],
)
def test_what_is_no_decision(values: list[Any], told: str, way: str, tmp_path: Path) -> None:
    with pytest.raises(FairAllError, match=told):
        given(people(d=values * (N // len(values))), way, tmp_path, decision="d").checked()


def test_everybody_may_have_been_accepted(way: str, tmp_path: Path) -> None:
    declared = {"decision": "d", "accepts_all": True}
    found = given(people(d=[1] * N), way, tmp_path, **declared).checked().accepted
    np.testing.assert_array_equal(found, np.ones(N, dtype=bool))
    assert "column 'd' has no such value" in refused(people(d=[0] * N), way, tmp_path, **declared)


# --- identifiers, propensities, amounts


def test_identifiers_beyond_what_floats_tell_apart(way: str, tmp_path: Path) -> None:
    whole = 2**60 + np.arange(N)
    assert "row 1: " in (told := refused(people(p=whole.astype(float)), way, tmp_path, person="p"))
    assert told.endswith("write them as text")
    for values in (whole, whole.astype(str), whole.astype("uint64"), 2.0**40 + np.arange(N)):
        person = given(people(p=values), way, tmp_path, person="p").checked().person
        assert person is not None
        assert len(set(person)) == N
    for cells in ([7, 7.0, 8.0], ["7", "7.0", "8.0"], ["7.0", "7", "8"]):
        person = given(people(p=cells * (N // 3)), way, tmp_path, person="p").checked().person
        assert person is not None
        assert person[:3].tolist() == ["7", "7", "8"]
    assert "row 2: an empty cell is no person" in refused(
        people(p=["a", None] * (N // 2)), way, tmp_path, person="p"
    )


@pytest.mark.parametrize(
    ("values", "ways"),
    [
        ((1e8 + np.arange(N)).astype("float32"), ["parquet", "frame"]),
        ([f"{1e11 + k:.5E}" for k in range(N)], WAYS),
    ],
    ids=["float32", "as a spreadsheet writes them"],
)
def test_rounded_identifiers_are_refused(values: Any, ways: list[str], tmp_path: Path) -> None:
    """Of these N people few or one are left, as different ones are the same number."""
    for way in ways:
        assert refused(people(p=values), way, tmp_path, person="p").startswith("column 'p', row 1: ")


@pytest.mark.parametrize("chance", [0.0, -0.1, 1.1, np.inf, np.nan, 1.0, 1e-300])
@pytest.mark.parametrize("accepted", [True, False])
def test_limits_of_a_propensity(accepted: bool, chance: float, way: str, tmp_path: Path) -> None:
    values = np.full(N, 0.5)
    values[5 if accepted else 4] = chance
    keys = {"decision": "decided", "propensity": "p"}
    allowed = 0 < chance <= 1 or (not accepted and (chance == 0 or np.isnan(chance)))
    if allowed:
        found = given(people(p=values), way, tmp_path, **keys).checked().propensity
        np.testing.assert_array_equal(found, values)
    else:
        told = refused(people(p=values), way, tmp_path, **keys)
        assert told.startswith(f"column 'p', row {6 if accepted else 5}: ")
        assert told.endswith("is not a propensity, a number above 0 and at most 1")
        values[[5, 7] if accepted else [4, 6]] = chance
        assert refused(people(p=values), way, tmp_path, **keys).endswith("at most 1 (1 more such row)")


def test_amounts(way: str, tmp_path: Path) -> None:
    gain, loss = np.arange(N) / 2, np.arange(N, 0, -1)
    found = given(people(g=gain, l=loss), way, tmp_path, gain="g", loss="l").checked()
    np.testing.assert_array_equal(found.gain, gain)
    np.testing.assert_array_equal(found.loss, loss)
    for wrong, told in (
        ({"g": -gain - 1}, "column 'g', row 1: .* is no gain"),
        ({"l": np.where(loss == 3, np.nan, loss)}, f"column 'l', row {N - 2}: an empty cell is no loss"),
        ({"l": np.where(loss == N, 0, loss)}, "column 'g', row 1: .* is the gain, and the loss is 0 too"),
    ):
        with pytest.raises(FairAllError, match=told):
            given(people(**({"g": gain, "l": loss} | wrong)), way, tmp_path, gain="g", loss="l").checked()
    told = refused(people(g=gain), way, tmp_path, gain="g")
    assert told == "gain and loss are needed both: give dataset.loss=COLUMN too"


def test_all_faults_are_told_at_once(tmp_path: Path) -> None:
    table = people(y=["a", "b", "c"] * (N // 3))
    found = given(
        table, "csv", tmp_path, label="y", positive="a", decision="z", person="q", propensity="income"
    )
    assert len(found.faults) == 3
    with pytest.raises(FairAllError) as told:
        found.checked()
    assert len(str(told.value).splitlines()) == 3
