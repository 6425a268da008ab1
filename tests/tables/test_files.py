"""CSV and Parquet files and DataFrames of one table have the same cells, or are refused in one line."""

import datetime as dt
import gzip
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fairall.errors import FairAllError
from fairall.tables import files
from fairall.tables.cells import is_text, numbers_of, words_of
from fairall.tables.declared import Declared
from fairall.tables.files import File, read_cells

DECLARED = Declared.of(missing_by_default=("", "NA"))


def cells_of(source: Path | pd.DataFrame) -> pd.DataFrame:
    return read_cells(source, DECLARED).frame


def words(column: pd.Series) -> list[str | None]:
    codes, texts = words_of(column)
    return [None if code < 0 else texts[code] for code in codes]


@pytest.mark.parametrize(
    ("values", "cells"),
    [
        ([True, None], ["True", None]),
        (pa.array([2**60, None]), [str(2**60), None]),
        ([1.0, float("nan")], ["1.0", None]),
        ([1e16, 0.1], ["1e+16", "0.1"]),
        ([Decimal("1.50"), None], ["1.5", None]),
        ([Decimal(2**60 + 1), None], [str(2**60 + 1), None]),
        ([dt.datetime(2020, 1, 2, tzinfo=dt.UTC)] * 2, ["2020-01-02 00:00:00+00:00"] * 2),
        ([dt.date(2020, 1, 2), None], ["2020-01-02", None]),
        ([dt.time(3), None], ["03:00:00", None]),
        ([" a b ", "NA"], ["a b", None]),
        (pa.array([7, None]).dictionary_encode(), ["7", None]),
        (pa.nulls(2), [None, None]),
        (pa.array([0.5, None], pa.float16()), ["0.5", None]),
        (pa.array([0.1, None], pa.float32()), ["0.10000000149011612", None]),  # no decimal number
        (pd.Categorical([7, None]), ["7", None]),
    ],
)
def test_cells_of_each_type(values: Any, cells: list[str | None], tmp_path: Path) -> None:
    table = pa.table({"a": values, "b": [1, 2]})
    pq.write_table(table, tmp_path / "one.parquet", row_group_size=1)
    for source in (tmp_path / "one.parquet", table.to_pandas(types_mapper=pd.ArrowDtype)):
        assert words(cells_of(source)["a"]) == cells


def test_empty_rows_and_an_index_without_a_name_are_skipped(tmp_path: Path) -> None:
    given = pd.DataFrame({"a": [1.5, None, 2.5], "b": ["x", None, "y"]}, index=[5, 7, 9])
    given.to_parquet(tmp_path / "one.parquet")
    given.to_csv(tmp_path / "one.csv", index=False)
    table = cells_of(tmp_path / "one.parquet")
    assert table.to_dict("list") == {"a": [1.5, 2.5], "b": ["x", "y"]}
    assert cells_of(tmp_path / "one.csv").to_dict("list") == {"a": ["1.5", "2.5"], "b": ["x", "y"]}


NO_TABLES = [
    ("csv", b"", "it is empty"),
    ("csv", b"a,b\n", "there are columns, but no rows"),
    ("csv", b"a,b\n1,2\n3\n", "row 2 has 1 cell where the header has 2"),
    ("csv", b"a,b\n1,2\n3,4,5\n", "row 2 has 3 cells where the header has 2"),
    ("csv", b'a,b\n1,2\n3,"4\n5,6\n', "in the row that begins at line 3: a quotation mark is not closed"),
    ("csv", b'a,b\n"x" y,2\n', "in the row that begins at line 2: a quotation mark is not closed"),
    ("csv", b"a, a\n1,2\n", "2 columns are named 'a'"),
    ("csv", b"a;b\n1;2\n", "it has 1 column, 'a;b', and a table needs several: give another separator="),
    ("csv", b"a,b\n\xff,2\n", "text_encoding=cp1252"),
    ("csv", "a,b\n1,2\n".encode("utf-16-le"), "NUL byte, .*UTF-16"),
    ("csv", b"a,b\n1,2\n3,x\0y\n", "NUL byte"),
    ("csv", gzip.compress(b"a,b\n1,2\n", mtime=0), "invalid start byte"),
    ("parquet", b"a,b\n1,2\n", "one.parquet: cannot be read"),
    ("parquet", pd.DataFrame({"a": [1], "b": [2]}).to_parquet()[:-9], "cannot be read .*; is it cut off"),
    ("parquet", {}, "it has 0 columns"),
    ("parquet", {"a": [b"x", b"y"], "b": [1, 2]}, "lists and binary values are no cells"),
    ("parquet", {"a": pa.array([], pa.timestamp("ms")), "b": pa.array([], pa.float16())}, "but no rows"),
]


@pytest.mark.parametrize(("ending", "content", "told"), NO_TABLES)
def test_no_table_is_refused_in_one_line(ending: str, content: Any, told: str, tmp_path: Path) -> None:
    path = tmp_path / f"one.{ending}"
    path.write_bytes(content) if isinstance(content, bytes) else pq.write_table(pa.table(content), path)
    with pytest.raises(FairAllError, match=rf"^[^\n]*{told}[^\n]*$") as caught:
        read_cells(path, DECLARED)
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize("cell", [[1], (1,), b"x", 1j, frozenset()])
def test_cells_that_are_no_values_are_refused(cell: Any) -> None:
    with pytest.raises(FairAllError, match="column 'a' must hold numbers or texts"):
        cells_of(pd.DataFrame({"a": pd.Series([cell, cell], dtype=object), "b": [1, 2]}))


@pytest.mark.parametrize("name", ["people.csv", "people.parquet"])
def test_a_file_is_read_once_as_it_is_written_and_its_cells_are_of_that(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    frame = pd.DataFrame({"age": [*range(9), None], "town": [None, " a ", *"bcdefgh", None]})
    frame.to_csv(path, index=False) if name.endswith("csv") else frame.to_parquet(path)
    file = File(path, DECLARED)
    assert file.table["town"].to_pylist() == [None, " a ", *"bcdefgh"]
    path.write_text("age,town\n1,x\n")
    assert numbers_of(file.frame["age"]).tolist() == [*range(9)]
    assert words(file.frame["town"]) == [None, *"abcdefgh"]


@pytest.mark.parametrize("word", ["-999", "-999.0", "inf"])
def test_a_number_that_means_no_value_does_so_however_it_is_written(word: str, tmp_path: Path) -> None:
    frame = pd.DataFrame({"score": [1.5, float(word), 3.0], "count": [1, -999, 2], "sex": ["f", "m", "f"]})
    frame.to_csv(tmp_path / "one.csv", index=False)
    frame.to_parquet(tmp_path / "one.parquet")
    for source in (tmp_path / "one.csv", tmp_path / "one.parquet", frame):
        cells = read_cells(source, Declared.of(missing=word)).frame
        assert cells["score"].isna().tolist() == [False, True, False]
        assert cells["count"].isna().any() == (word != "inf")


def test_quotation_marks_may_follow_a_blank(tmp_path: Path) -> None:
    (tmp_path / "one.csv").write_text('a, "b, c"\n1, "x, ""y"""\n\n 2 ,"z\n"\n')
    assert cells_of(tmp_path / "one.csv").to_dict("list") == {"a": ["1", "2"], "b, c": ['x, "y"', "z"]}


def test_unused_categories_are_no_words() -> None:
    frame = pd.DataFrame({"label": pd.Categorical(["a", "b"], categories=["a", "b", "c"]), "x": [1, 2]})
    assert list(cells_of(frame)["label"].cat.categories) == ["a", "b"]


@pytest.mark.parametrize("word", ["7.5", "", "NA", "-999.0", "inf", "nan", "1e40", "many"])
@pytest.mark.parametrize(
    ("form", "largest", "plain"),
    [
        ("{:.4f}", 99, True),
        ("  {:.4f} ", 99, True),
        ("{:.25e}", 1e-9, True),
        ("{:.3f}", 9000, False),
        ("{:.0f}", 60_000, False),
        ("{:05.0f}", 9999, False),  # codes
        ("{:.3f}", 99, False),  # a point may group thousands
        ("{:.0f}", 900, False),
        ("{:.0f}", 9, False),  # few
    ],
)
def test_numbers_of_a_csv_file_mean_what_their_texts_mean(
    form: str, largest: float, plain: bool, word: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "FIRST_BLOCK", 1 << 10)  # the word is in a later one
    monkeypatch.setattr(files, "MANY", 10)
    declared = Declared.of(person="p", missing=["-999", "none"], missing_by_default=["NA"], separator=";")
    cells = [*map(form.format, np.random.default_rng(0).uniform(0, largest, 300)), word]
    table = pd.DataFrame({"a": cells, "zip": cells, "p": np.arange(301).astype(str)})
    rows = table.to_csv(index=False, sep=";", lineterminator="\r\n;;\r\n\r\n")
    rows = rows.replace("a;zip;p", "a; zip ; p", 1)
    (tmp_path / "one.csv").write_bytes(("\ufeff\r\n" + rows).encode())
    file, frame = (read_cells(source, declared) for source in (tmp_path / "one.csv", table))
    numeric = plain and word in ("7.5", "", "NA", "-999.0")
    assert [is_text(file.frame[name]) for name in table] == [not numeric, True, True]
    for name, column in frame.frame.items():
        np.testing.assert_array_equal(numbers_of(file.frame[name]), numbers_of(column))
        np.testing.assert_array_equal(file.frame[name].isna(), column.isna())
        if is_text(file.frame[name]):
            assert all(map(np.array_equal, words_of(file.frame[name]), words_of(column)))
