"""CSV and Parquet files and DataFrames as cells: irregularities are errors that name the line or row.

Cells are what the file says. Columns of text are categorical without surrounding blanks; numbers, truth
values and times have their own types. A column of a CSV file holds numbers where all of its cells are plain
numbers and nothing of their form matters, else text.
"""

from __future__ import annotations

import csv
import io
import mmap
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as arrow
import pyarrow.parquet as pq

from fairall.errors import FairAllError, count
from fairall.runtime.reading import why_no_file
from fairall.tables.cells import EXACT, distinct, is_text, no_cells, numbers_of, parsed, shown, taken
from fairall.tables.declared import Declared
from fairall.tables.infer import LARGEST, POSTAL

BLOCK = 1 << 23  # bytes that are parsed at once
FIRST_ROWS, MANY = 5000, 1000  # fewer distinct texts in the first rows stay texts
PARQUET_ENDINGS = (".parquet", ".pq")
UNNAMED_INDEX = "__index_level_"  # as pandas names the index of a filtered table: no column of the table
# By the kind that pandas finds among the cells of a column of objects.
TYPES = {"integer": "Int64"} | dict.fromkeys(("floating", "mixed-integer-float", "decimal"), "float64")
QUOTED = "utf-8-sig"  # encoding of what is quoted anew
WRONG_ROW = re.compile(r"Row #(\d+): Expected (\d+) columns?, got (\d+)")


@dataclass(frozen=True)
class Cells:
    """Columns of N rows as a table has them.

    Attributes:
        frame: cells, missing where they mean no value; the index is the number of the row, from 0.
        emptied: by column the words that were taken for no value, by number of their row; of other columns
            none.
        declared: meanings of columns.
    """

    frame: pd.DataFrame
    emptied: defaultdict[str, pd.Series]
    declared: Declared

    def rows(self, kept: np.ndarray) -> Cells:
        """Some rows, a mask (N,), with the words of text that are left."""
        frame = self.frame[kept]
        texts = {name: frame[name].cat.remove_unused_categories() for name in frame if is_text(frame[name])}
        return Cells(frame.assign(**texts), self.emptied, self.declared)


def read_cells(source: Path | pd.DataFrame, declared: Declared) -> Cells:
    """All rows of a file or a DataFrame.

    Raises:
        FairAllError: if the file cannot be read, has no row, or has a malformed one; if a column holds lists
            or other nested values.
    """
    if isinstance(source, pd.DataFrame):
        names = _names(map(str, source), declared.path)
        if not len(source):
            raise FairAllError(f"{declared.path}: there are columns, but no rows")
        columns = {name: _typed(source.iloc[:, k].rename(name)).array for k, name in enumerate(names)}
    else:
        columns = dict(_frame(File(source, declared).read(), declared).items())
    numbers = parsed(declared.no_value)
    numbers = numbers[~np.isnan(numbers)]
    emptied: defaultdict[str, pd.Series] = defaultdict(lambda: pd.Series(dtype=object))
    for name, column in pd.DataFrame(columns, copy=False).items():
        if is_text(column):
            words = column.cat.categories
            words = words[words.isin(declared.no_value) | np.isin(parsed(words), numbers)]
            if len(words):
                emptied[str(name)] = column[column.isin(words)].astype(str)
                columns[name] = column.cat.remove_categories(words)
        elif len(numbers) and pd.api.types.is_numeric_dtype(column):
            columns[name] = column.mask(column.isin(numbers))
    return Cells(pd.DataFrame(columns, copy=False), emptied, declared)


@dataclass(frozen=True)
class File:
    """A CSV or, by the ending of its name, Parquet file of people, which is read into memory once.

    The first row of a CSV file holds the column names. Empty rows and a byte-order mark are skipped; quoted
    cells may hold separators and line breaks. Line breaks in column names become blanks; unnamed columns are
    called `column 1` and so on.
    """

    path: Path
    declared: Declared

    @cached_property
    def table(self) -> pa.Table:
        """All rows as the file has them, cells of a CSV file as text."""
        return self.read()

    @cached_property
    def frame(self) -> pd.DataFrame:
        """Cells of the rows of `table`, empty ones missing; the index is the number of the row, from 0."""
        return _frame(self.table, self.declared)

    def read(self) -> pa.Table:
        """All rows of which a cell is not empty, as `table`, which keeps them.

        Raises:
            FairAllError: if the file cannot be read, has no row, or has a malformed one.
        """
        if wrong := why_no_file(self.path):
            raise FairAllError(f"{self.path}: {wrong}; give the path of a CSV or Parquet file")
        is_parquet = self.path.name.lower().endswith(PARQUET_ENDINGS)
        try:
            table = pq.ParquetFile(self.path).read() if is_parquet else self._csv()
        except (LookupError, ValueError, OSError) as error:
            reason, declared = shown(str(error), 150), self.declared
            hint = "is it cut off, or no Parquet file?"
            if not is_parquet:
                hint = (
                    f"it is read by separator={declared.separator!r} text_encoding={declared.text_encoding}: "
                    "are they others, as separator=';' text_encoding=cp1252, or is it cut off?"
                )
            if row := WRONG_ROW.search(reason):
                number, expected, cells = map(int, row.groups())
                reason = f"row {number - 1} has {count(cells, 'cell')} where the header has {expected}"
            raise FairAllError(f"{self.path}: cannot be read ({reason}); {hint}") from error
        if is_parquet:
            table = table.select(
                [k for k, name in enumerate(table.column_names) if not name.startswith(UNNAMED_INDEX)]
            )
        table = table.rename_columns(_names(table.column_names, self.path))
        filled = np.zeros(len(table), dtype=bool)
        for name in table.column_names:
            if not filled.all():
                filled |= _of_arrow(table[name], name).notna().to_numpy()
        if not filled.any():
            raise FairAllError(f"{self.path}: there are columns, but no rows")
        return table if filled.all() else table.filter(filled)

    def _csv(self) -> pa.Table:
        """All rows of a CSV file as texts, missing where they are empty."""
        source, encoding = self._source()
        read = arrow.ReadOptions(use_threads=False, block_size=BLOCK, encoding=encoding)
        parse = arrow.ParseOptions(delimiter=self.declared.separator, newlines_in_values=encoding == QUOTED)
        convert = arrow.ConvertOptions(null_values=[""], strings_can_be_null=True)
        names = arrow.open_csv(source(), read, parse).schema.names
        convert.column_types = dict.fromkeys(names, pa.string())
        return arrow.open_csv(source(), read, parse, convert).read_all()

    def _source(self) -> tuple[Callable[[], pa.NativeFile], str]:
        """The content of a CSV file as it can be opened again and again, and its encoding.

        A file with quotation marks is read by Python's strict reader, and all of its cells are quoted anew:
        Arrow lets marks pass that are not closed, so that many rows may become a single cell, and takes those
        behind a blank for text.

        Raises:
            ValueError: where the file is empty, or no text, or a mark is not closed or not doubled.
        """
        encoding, separator, line = self.declared.text_encoding, self.declared.separator, 0
        if not self.path.stat().st_size:
            raise ValueError("it is empty")
        with (
            self.path.open(encoding=encoding, newline="") as file,
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content,
        ):
            if "\0" in file.readline() or (content.find(b"\0") >= 0 and b"\0" not in "a".encode(encoding)):
                raise ValueError("it holds a NUL byte, as workbooks, archives and text of UTF-16 do")
            if content.find(b'"') < 0:
                return lambda: pa.OSFile(str(self.path)), encoding
            file.seek(0)
            reader = csv.reader(file, delimiter=separator, strict=True, skipinitialspace=separator != " ")
            text = io.StringIO()
            writer = csv.writer(text, delimiter=separator, quoting=csv.QUOTE_ALL)
            try:
                for row in reader:
                    line = reader.line_num
                    writer.writerow(row if any(map(str.strip, row)) else [])
            except csv.Error as error:
                wrong = f"{error} in the row that begins at line {line + 1}"
                raise ValueError(f"{wrong}: a quotation mark is not closed, or not doubled") from error
        quoted = pa.py_buffer(text.getvalue().removeprefix("\ufeff").encode())
        return lambda: pa.BufferReader(quoted), QUOTED


def _named(name: str) -> str:
    return " ".join(name.split())


def _names(header: Iterable[str], path: object) -> list[str]:
    """Column names without blanks around them; raises FairAllError where two are equal, or there are few."""
    names = [_named(name) or f"column {k}" for k, name in enumerate(header, start=1)]
    name, times = Counter(names).most_common(1)[0] if names else ("", 0)
    if times > 1:
        raise FairAllError(f"{path}: {times} columns are named {name!r}: rename or remove all but one")
    if len(names) < 2:
        told = f"{count(len(names), 'column')}, {shown(name)!r}, and a table needs several"
        raise FairAllError(f"{path}: it has {told}: give another separator=")
    return names


def _frame(table: pa.Table, declared: Declared) -> pd.DataFrame:
    """Cells with their types; texts are numbers where all are, and nothing of their form matters."""
    names, columns, cells, as_text = table.column_names, table.columns, {}, declared.as_text
    del table  # and free each column when it is read
    for name in names:
        column, numbers = columns.pop(0), None
        if pa.types.is_string(column.type) and name not in as_text and not POSTAL.fullmatch(name):
            numbers = _plain(column, declared.no_value)
        cells[name] = _of_arrow(column, name).array if numbers is None else numbers
    return pd.DataFrame(cells, copy=False)


def _plain(texts: pa.ChunkedArray, no_value: Sequence[str]) -> np.ndarray | None:
    """The numbers of texts, shape (N,), NaN where they mean no value; None where they must stay texts.

    They must where one is no number, where a point may group thousands, and where whole numbers are not exact
    or may be codes with leading zeros. They do where few are distinct.
    """
    if pc.count_distinct(texts[:FIRST_ROWS]).as_py() < MANY:
        return None
    numbers = np.full(len(texts), np.nan)
    with suppress(pa.ArrowInvalid):  # blanks, or a word
        numbers = texts.cast(pa.float64()).to_numpy()
    if np.isnan(numbers).sum() > texts.null_count:
        column = _of_arrow(texts, "")
        numbers = numbers_of(column)
        if (np.isnan(numbers) & ~(column.isna() | column.isin(no_value))).any():
            return None
    known = numbers[~np.isnan(numbers)]
    largest = np.abs(known).max(initial=0)
    if largest > LARGEST:
        return None
    if (np.round(known[:FIRST_ROWS], 3) != known[:FIRST_ROWS]).any():  # a point does not group thousands
        return numbers
    codes = pc.any(pc.match_substring_regex(texts, r"^\s*0[0-9]")).as_py()
    return numbers if 1000 <= largest < EXACT and not codes else None


def _of_arrow(column: pa.ChunkedArray, name: str) -> pd.Series:
    """A column of a file with the type of its cells."""
    if pa.types.is_decimal(column.type) and column.type.scale == 0:
        with suppress(pa.ArrowInvalid):  # too many digits
            column = column.cast(pa.int64())
    cells = column.to_pandas(strings_to_categorical=True, integer_object_nulls=True, date_as_object=False)
    return _typed(cells.rename(name))


def _typed(column: pd.Series) -> pd.Series:
    """A column of pandas with the type of its cells: numbers, truth values, times, or categorical texts."""
    types = pd.api.types
    if isinstance(column.dtype, pd.ArrowDtype):
        return _of_arrow(pa.chunked_array([pa.array(column)]), str(column.name))
    if types.is_datetime64_any_dtype(column) or (
        types.is_numeric_dtype(column) and not types.is_complex_dtype(column)
    ):
        return column
    kind = types.infer_dtype(column, skipna=True)
    with suppress(ValueError, TypeError, OverflowError):  # too large a number
        if kind in TYPES:
            return column.astype(TYPES[kind])
    codes, values = distinct(column)
    if types.infer_dtype(values) == "bytes":
        raise no_cells(column)
    texts = [str(value).strip() or None for value in values]
    return pd.Series(pd.Categorical(taken(np.array(texts, dtype=object), codes, None)), name=column.name)
