"""Parquet files and DataFrames give what a CSV file of the same table gives."""

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fairall.data.csv.cells_as_text import of_frame
from fairall.data.csv.reader import read_parts, read_text
from fairall.data.load import load_dataset
from fairall.errors import FairAllError

MISSING = ("", "NA")


def people(n: int = 200) -> pd.DataFrame:
    """Columns of every type that a cell can have, with missing values."""
    draw = np.random.default_rng(0)
    some = draw.random(n) < 0.1
    return pd.DataFrame(
        {
            "income": np.where(some, np.nan, draw.normal(30, 10, n)),
            "rate": draw.normal(size=n).astype("float32"),
            "children": pd.Series(draw.integers(0, 5, n), dtype="Int64").mask(some),
            "age": draw.integers(20, 90, n),
            "owner": draw.random(n) < 0.5,
            "town": pd.Categorical(draw.choice(["Leeds", " York", "NA"], n)),
            "rooms": pd.Categorical(draw.integers(1, 4, n)),
            "sex": draw.choice(["f", "m"], n),
            "repaid": pd.Series(draw.choice(["yes", "no"], n)).mask(some, None),
        }
    )


def read(path: Path) -> pd.DataFrame:
    return read_text(path, separator=",", encoding="utf-8", missing=MISSING)


def test_both_formats_give_the_same_cells_and_table(tmp_path: Path) -> None:
    one = people()
    one.to_csv(tmp_path / "people.csv", index=False)
    one.to_parquet(tmp_path / "people.PQ")
    pd.testing.assert_frame_equal(read(tmp_path / "people.csv"), read(tmp_path / "people.PQ"))
    pd.testing.assert_frame_equal(read(tmp_path / "people.csv"), of_frame(one, MISSING))
    meaning = ("label=repaid", "positive=yes", "sensitive=sex", "advantaged=m", "separator=';'")
    words = [f"dataset.{word}" for word in meaning]
    parquet = load_dataset("csv", f"dataset.path={tmp_path / 'people.PQ'}", *words).table()
    table = load_dataset("csv", f"dataset.path={tmp_path / 'people.csv'}", *words[:-1]).table()
    assert list(parquet.schema) == list(table.schema)
    assert len(parquet.schema) == 7
    pd.testing.assert_frame_equal(parquet.x, table.x)
    assert (parquet.s == table.s).all()
    assert (parquet.label == table.label).all()
    assert parquet.missing == table.missing


@pytest.mark.parametrize(
    ("values", "cells"),
    [
        ([True, None], ["True", None]),
        (pa.array([2**60, None]), [str(2**60), None]),
        ([1.0, float("nan")], ["1.0", None]),
        ([1e16, 0.1], ["1e+16", "0.1"]),
        ([Decimal("1.50"), None], ["1.50", None]),
        ([dt.datetime(2020, 1, 2, 3), None], ["2020-01-02 03:00:00", None]),
        ([dt.date(2020, 1, 2), None], ["2020-01-02", None]),
        ([" a b ", "NA"], ["a b", None]),
        (pa.array(["x", None]).dictionary_encode(), ["x", None]),
        (pa.nulls(2), [None, None]),
        (pa.array([0.1, None], pa.float16()), ["0.1", None]),
    ],
)
def test_cells_of_each_type(values: Any, cells: list[str | None], tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": values, "b": [1, 2]}), tmp_path / "one.parquet", row_group_size=1)
    assert read(tmp_path / "one.parquet")["a"].tolist() == cells


def test_empty_rows_and_an_index_without_a_name_are_skipped(tmp_path: Path) -> None:
    given = pd.DataFrame({"a": [1.5, None, 2.5], "b": ["x", None, "y"]}, index=[5, 7, 9])
    given.to_parquet(tmp_path / "one.parquet")
    given.to_csv(tmp_path / "one.csv", index=False)
    table = read(tmp_path / "one.parquet")
    assert table.to_dict("list") == {"a": ["1.5", "2.5"], "b": ["x", "y"]}
    pd.testing.assert_frame_equal(table, read(tmp_path / "one.csv"))


@pytest.mark.parametrize(
    ("table", "told"),
    [
        ({"a": [[1], [2]], "b": [1, 2]}, "column 'a' holds nested or binary values"),
        ({"a": [b"x", b"y"], "b": [1, 2]}, "column 'a' holds nested or binary values"),
        ({"a": [1, 2]}, "there is a single column, 'a'; a table needs several"),
        ({}, "there are no columns"),
        ({"a": pa.array([], pa.int64()), "b": pa.array([], pa.int64())}, "there are columns, but no rows"),
        ({"a": pa.array([], pa.timestamp("ms")), "b": pa.array([], pa.float16())}, "columns, but no row"),
        ({"a": [1], " a": [1]}, "2 columns are named 'a'"),
    ],
)
def test_tables_that_cannot_be_read(table: dict[str, Any], told: str, tmp_path: Path) -> None:
    pq.write_table(pa.table(table), tmp_path / "one.parquet")
    with pytest.raises(FairAllError, match=told) as caught:
        read(tmp_path / "one.parquet")
    assert "\n" not in str(caught.value)


def test_endings_that_do_not_fit_and_damaged_files(tmp_path: Path) -> None:
    people().to_parquet(tmp_path / "one.csv")
    with pytest.raises(FairAllError, match=r"is a Parquet file, not a CSV file: .* end in \.parquet"):
        read(tmp_path / "one.csv")
    people().to_csv(tmp_path / "two.parquet")
    with pytest.raises(FairAllError, match=r"is not a Parquet file: rename it to end in \.csv"):
        read(tmp_path / "two.parquet")
    (tmp_path / "three.parquet").write_bytes((tmp_path / "one.csv").read_bytes()[:-9])
    with pytest.raises(FairAllError, match=r"three.parquet: cannot be read as Parquet \(.*\)$"):
        read(tmp_path / "three.parquet")
    with pytest.raises(FairAllError, match="column 'a' holds nested or binary values"):
        of_frame(pd.DataFrame({"a": [[1]]}), MISSING)


@pytest.mark.parametrize("name", ["people.csv", "people.parquet"])
def test_parts_of_a_table_are_those_of_the_whole(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    people = pd.DataFrame({"age": [*range(9), None], "town": ["", *"abcdefgh", None]})
    people.to_csv(path, index=False) if name.endswith("csv") else people.to_parquet(path)
    how: dict[str, Any] = {"separator": ",", "encoding": "utf-8", "missing": ("",)}
    parts = list(read_parts(path, 4, **how))
    whole = read_text(path, **how)
    assert [len(text) for text, _ in parts] == [4, 4, 1]
    assert [text.index[0] for text, _ in parts] == [0, 4, 8]
    pd.testing.assert_frame_equal(pd.concat([text for text, _ in parts]), whole)
    typed = [typed for _, typed in parts if typed is not None]
    assert not typed or pa.concat_tables(typed)["age"].to_pylist() == list(range(9))
