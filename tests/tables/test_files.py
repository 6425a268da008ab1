"""Parquet files and DataFrames have typed cells, and mean what a CSV file of the same table means."""

import datetime as dt
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fairall.data.load import load_dataset
from fairall.errors import FairAllError
from fairall.tables import files
from fairall.tables.cells import words_of
from fairall.tables.declared import Declared
from fairall.tables.files import File, read_cells

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


DECLARED = Declared.of(missing_by_default=MISSING)


def read(source: Path | pd.DataFrame) -> pd.DataFrame:
    return read_cells(source, DECLARED).frame


def words(column: pd.Series) -> list[str | None]:
    codes, texts = words_of(column)
    return [None if code < 0 else texts[code] for code in codes]


def test_both_formats_give_the_same_cells_and_table(tmp_path: Path) -> None:
    one = people()
    one.to_csv(tmp_path / "people.csv", index=False)
    one.to_parquet(tmp_path / "people.PQ")
    cells = [read(source) for source in (tmp_path / "people.csv", tmp_path / "people.PQ", one)]
    for name in one:
        assert words(cells[1][name]) == words(cells[2][name])
        assert cells[1][name].isna().tolist() == cells[0][name].isna().tolist()
    assert cells[1].dtypes["income"] == cells[2].dtypes["income"] == np.float64
    assert cells[1].dtypes["rate"] == np.float32
    meaning = ("label=repaid", "positive=yes", "sensitive=sex", "advantaged=m", "separator=';'")
    keys = [f"dataset.{word}" for word in meaning]
    parquet = load_dataset("csv", f"dataset.path={tmp_path / 'people.PQ'}", *keys).table()
    table = load_dataset("csv", f"dataset.path={tmp_path / 'people.csv'}", *keys[:-1]).table()
    for typed, text in zip(parquet.schema, table.schema, strict=True):
        assert replace(typed, fill=None) == replace(text, fill=None)
        assert typed.fill == pytest.approx(text.fill)  # a float32 of Parquet is no decimal number
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
        ([Decimal("1.50"), None], ["1.5", None]),
        ([dt.datetime(2020, 1, 2, 3), None], ["2020-01-02 03:00:00", None]),
        ([dt.date(2020, 1, 2), None], ["2020-01-02", None]),
        ([" a b ", "NA"], ["a b", None]),
        (pa.array(["x", None]).dictionary_encode(), ["x", None]),
        (pa.nulls(2), [None, None]),
        (pa.array([0.5, None], pa.float16()), ["0.5", None]),
    ],
)
def test_cells_of_each_type(values: Any, cells: list[str | None], tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": values, "b": [1, 2]}), tmp_path / "one.parquet", row_group_size=1)
    assert words(read(tmp_path / "one.parquet")["a"]) == cells


def test_empty_rows_and_an_index_without_a_name_are_skipped(tmp_path: Path) -> None:
    given = pd.DataFrame({"a": [1.5, None, 2.5], "b": ["x", None, "y"]}, index=[5, 7, 9])
    given.to_parquet(tmp_path / "one.parquet")
    given.to_csv(tmp_path / "one.csv", index=False)
    table = read(tmp_path / "one.parquet")
    assert table.to_dict("list") == {"a": [1.5, 2.5], "b": ["x", "y"]}
    assert read(tmp_path / "one.csv").to_dict("list") == {"a": ["1.5", "2.5"], "b": ["x", "y"]}


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
        read(pd.DataFrame({"a": [[1]], "b": [2]}))


@pytest.mark.parametrize("name", ["people.csv", "people.parquet"])
def test_parts_of_a_table_are_those_of_the_whole(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "ROWS", 4)
    path = tmp_path / name
    people = pd.DataFrame({"age": [*range(9), None], "town": ["", *"abcdefgh", None]})
    people.to_csv(path, index=False) if name.endswith("csv") else people.to_parquet(path)
    file = File(path, Declared.of(missing_by_default=()))
    parts = list(file.parts())
    whole = read_cells(path, file.declared).frame
    assert [len(part.frame) for part in parts] == [4, 4, 1]
    assert [part.frame.index[0] for part in parts] == [0, 4, 8]
    for name in whole:
        assert [word for part in parts for word in words(part.frame[name])] == words(whole[name])
    typed = [part.typed for part in parts if part.typed is not None]
    assert not typed or pa.concat_tables(typed)["age"].to_pylist() == list(range(9))


def frames(tmp_path: Path, people: pd.DataFrame, declared: Declared) -> list[pd.DataFrame]:
    """Cells of a table as CSV, as Parquet and as a DataFrame."""
    people.to_csv(tmp_path / "one.csv", index=False)
    people.to_parquet(tmp_path / "one.parquet")
    sources = (tmp_path / "one.csv", tmp_path / "one.parquet", people)
    return [read_cells(source, declared).frame for source in sources]


@pytest.mark.parametrize("word", ["-999", "-999.0", "inf"])
def test_a_number_that_means_no_value_does_so_however_it_is_written(word: str, tmp_path: Path) -> None:
    people = pd.DataFrame({"score": [1.5, float(word), 3.0], "count": [1, -999, 2], "sex": ["f", "m", "f"]})
    for frame in frames(tmp_path, people, Declared.of(missing=[word])):
        assert frame["score"].isna().tolist() == [False, True, False]
        assert frame["count"].isna().any() == (word != "inf")


def test_one_word_is_one_value_of_a_key_of_several() -> None:
    people = pd.DataFrame({"score": [5, 9, -99], "sex": ["f", "m", "f"]})
    assert Declared.of(missing="-99").missing == ("-99",)
    assert Declared.of(drop="sex", missing=9).missing == ("9",)
    assert read_cells(people, Declared.of(missing=[9])).frame["score"].isna().tolist() == [False, True, False]


def test_unused_categories_are_no_words() -> None:
    people = pd.DataFrame({"label": pd.Categorical(["a", "b"], categories=["a", "b", "c"]), "x": [1, 2]})
    assert list(read(people)["label"].cat.categories) == ["a", "b"]


@pytest.mark.parametrize("cells", [[(1,), (2,)], [b"x", b"y"], [1j, 2j], [frozenset(), "x"]])
def test_cells_that_are_no_values_are_refused(cells: list[Any]) -> None:
    with pytest.raises(FairAllError, match="column 'a' holds nested or binary values"):
        read(pd.DataFrame({"a": pd.Series(cells, dtype=object), "b": [1, 2]}))
