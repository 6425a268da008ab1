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
from fairall.tables.roles import read

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
    ("csv", b"a,b\n1,2\n3\n", "Row #3: Expected 2 columns, got 1"),
    ("csv", b"a,b\n1,2\n3,4,5\n", "Row #3: Expected 2 columns, got 3"),
    ("csv", b'a,b\n1,2\n3,"4\n5,6\n', "in the row that begins at line 3: a quotation mark is not closed"),
    ("csv", b'a,b\n"x" y,2\n', "in the row that begins at line 2: a quotation mark is not closed"),
    ("csv", b"a, a\n1,2\n", "2 columns are named 'a'"),
    ("csv", b"a;b\n1;2\n", "it has 1 column, 'a;b', and a table needs several: give another separator="),
    ("csv", b"a,b\n\xff,2\n", "text_encoding=cp1252"),
    ("csv", "a,b\n1,2\n".encode("utf-16-le"), "NUL byte, .* text_encoding=utf-16"),
    ("csv", gzip.compress(b"a,b\n1,2\n", mtime=0), "invalid start byte"),
    ("parquet", b"a,b\n1,2\n", "one.parquet: cannot be read"),
    ("parquet", pd.DataFrame({"a": [1], "b": [2]}).to_parquet()[:-9], "cannot be read .*; is it cut off"),
    ("parquet", {}, "it has 0 columns"),
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


def test_unused_categories_are_no_words() -> None:
    frame = pd.DataFrame({"label": pd.Categorical(["a", "b"], categories=["a", "b", "c"]), "x": [1, 2]})
    assert list(cells_of(frame)["label"].cat.categories) == ["a", "b"]


N = 1500


def texts() -> pd.DataFrame:
    """Columns of text in every form that matters: numbers, numbers with words, codes, and others."""
    draw = np.random.default_rng(0)
    number, some = draw.normal(50, 20, N), draw.random(N) < 0.1
    granted = draw.random(N) < 0.5
    late = {"late word": "many", "infinite": "inf", "no number": "nan", "enormous": "1e40"}
    columns = {
        "number": number.round(4),
        "blank": [f"  {value:.4f} " for value in number],
        "with words": np.where(some, draw.choice(["", "NA", "?", "none", "-999", "-999.0"], N), number),
        "exponent": [f"{value:.25e}" for value in number * 1e-9],
        "decimals": [f"{value:.3f}" for value in number + 1000],
        "whole": draw.permutation(N * 3)[:N] + 10_000,
        "code": [f"{value:05d}" for value in draw.permutation(N)],
        "zip": draw.permutation(90_000)[:N] + 10_000,
        "grouped": [f"{k // 1000}.{k % 1000:03d}" if k >= 1000 else str(k) for k in range(5, 5 + 10 * N, 10)],
        **{name: [*number[:-1].round(3), word] for name, word in late.items()},
        "few": draw.integers(0, 4, N),
        "town": draw.choice(["Köln", " York ", 'the "old"', "a;b", "", "NA"], N),
        "sex": draw.choice(["f", "m"], N),
        "p": draw.uniform(0.2, 0.8, N),
        "granted": granted.astype(int),
        "repaid": np.where(granted, draw.choice(["yes", "no"], N), ""),
    }
    return pd.DataFrame(columns).astype(str)


def test_numbers_of_a_csv_file_mean_what_their_texts_mean(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "BLOCK", 1 << 16)  # the late words are not in the first
    monkeypatch.setattr(files, "MANY", 100)
    declared = Declared.of(
        **{"label": "repaid", "positive": "yes", "sensitive": "sex", "decision": "granted", "accepted": "1"},
        propensity="p",
        missing=["-999", "none"],
        missing_by_default=["NA", "?"],
        separator=";",
    )
    lines = texts().to_csv(index=False, sep=";").splitlines()
    rows = [lines[0].replace("few", " few "), *lines[1:3], "", ";" * (lines[0].count(";")), *lines[3:]]
    (tmp_path / "log.csv").write_bytes(("\ufeff\r\n" + "\r\n".join(rows)).encode())
    file, frame = (read_cells(source, declared) for source in (tmp_path / "log.csv", texts()))
    assert {name for name in file.frame if not is_text(file.frame[name])} == {
        *("number", "blank", "with words", "exponent", "decimals", "whole")
    }
    for name, column in frame.frame.items():
        np.testing.assert_array_equal(numbers_of(file.frame[name]), numbers_of(column), err_msg=str(name))
        np.testing.assert_array_equal(file.frame[name].isna(), column.isna())
        if is_text(file.frame[name]):
            assert all(map(np.array_equal, words_of(file.frame[name]), words_of(column)))
    of_file, of_frame = (read(cells, declared) for cells in (file, frame))
    for attribute in ("kinds", "left_out", "notes"):
        assert getattr(of_file, attribute) == getattr(of_frame, attribute)
    assert of_file.faults.told == of_frame.faults.told
