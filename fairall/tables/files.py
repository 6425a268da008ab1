"""CSV and Parquet files and DataFrames as cells: irregularities are errors that name the line or row.

Cells are what the file says. Columns of text are categorical without surrounding blanks; numbers, truth
values and times have their own types. A column of a CSV file holds numbers where all of its cells are plain
numbers and nothing of their form matters, else text.
"""

from __future__ import annotations

import codecs
import csv
import io
import itertools
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as arrow
import pyarrow.parquet as pq

from fairall.errors import FairAllError, count
from fairall.storage.stored import why_no_file
from fairall.tables.cells import (
    distinct,
    is_text,
    mean_no_value,
    no_cells,
    numbers_of,
    shown,
    taken,
)
from fairall.tables.declared import Declared
from fairall.tables.infer import LARGEST, POSTAL

FIRST_BLOCK, BLOCK = 1 << 20, 1 << 23  # bytes that are parsed at once
FIRST_ROWS, MANY = 1000, 100  # of real numbers
PARQUET_ENDINGS = (".parquet", ".pq")
UNNAMED_INDEX = "__index_level_"  # as pandas names the index of a filtered table: no column of the table
# By the kind that pandas finds among the cells of a column of objects.
TYPES = {"integer": "Int64"} | dict.fromkeys(("floating", "mixed-integer-float", "decimal"), "float64")
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
        pa.default_memory_pool().release_unused()
    emptied: defaultdict[str, pd.Series] = defaultdict(lambda: pd.Series(dtype=object))
    for name, column in pd.DataFrame(columns, copy=False).items():
        if is_text(column):
            words = column.cat.categories
            words = words[mean_no_value(words, declared.no_value)]
            if len(words):
                emptied[str(name)] = column[column.isin(words)].astype(str)
                columns[name] = column.cat.remove_categories(words)
        elif pd.api.types.is_numeric_dtype(column):
            nothing = mean_no_value(numbers_of(column), declared.no_value)
            columns[name] = column.mask(nothing) if nothing.any() else column
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
        return self.read(as_written=True)

    @cached_property
    def frame(self) -> pd.DataFrame:
        """Cells of the rows of `table`, empty ones missing; the index is the number of the row, from 0."""
        return _frame(self.table, self.declared)

    def read(self, *, as_written: bool = False) -> pa.Table:
        """All rows of which a cell is not empty; those of a CSV file as texts with `as_written`.

        Raises:
            FairAllError: if the file cannot be read, has no row, or has a malformed one.
        """
        if wrong := why_no_file(self.path):
            raise FairAllError(f"{self.path}: {wrong}; give the path of a CSV or Parquet file")
        is_parquet = self.path.name.lower().endswith(PARQUET_ENDINGS)
        try:
            table = pq.ParquetFile(self.path).read() if is_parquet else self._csv(as_written=as_written)
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

    def _csv(self, *, as_written: bool) -> pa.Table:
        """All rows of a CSV file.

        With `as_written` all cells are texts, missing where they are empty; else columns that are `_is_real`
        in the first block are numbers, unless a later block has another word.
        """
        source, is_quoted = self._source()
        read = arrow.ReadOptions(use_threads=False, block_size=FIRST_BLOCK)
        parse = arrow.ParseOptions(delimiter=self.declared.separator, newlines_in_values=is_quoted)
        convert = arrow.ConvertOptions(null_values=self.declared.no_value)
        with arrow.open_csv(source(), read, parse, convert) as rows:  # with the types of the first block
            first = pa.Table.from_batches(itertools.islice(rows, 1), rows.schema)
        names = first.column_names
        as_text, read.block_size = dict.fromkeys(names, pa.string()), BLOCK
        if not as_written:
            columns = zip(names, first.columns, strict=True)
            real = [name for name, column in columns if _is_real(column, _named(name), self.declared)]
            convert.column_types = as_text | dict.fromkeys(real, pa.float64())
            with suppress(pa.ArrowInvalid):  # a word in a later block
                table = arrow.open_csv(source(), read, parse, convert).read_all()
                if all(_are_possible(table[name]) for name in real):
                    return table
        convert = arrow.ConvertOptions(column_types=as_text, null_values=[""], strings_can_be_null=True)
        return arrow.open_csv(source(), read, parse, convert).read_all()

    def _source(self) -> tuple[Callable[[], pa.NativeFile], bool]:
        """The content of a CSV file as UTF-8, which can be opened again and again, and whether it is quoted.

        A file with quotation marks, or of another encoding, is read by Python's strict reader, and all of its
        cells are quoted anew: Arrow lets marks pass that are not closed, so that many rows may become a
        single cell, and takes those behind a blank for text.

        Raises:
            ValueError: where the file is empty, or no text, or a mark is not closed or not doubled.
        """
        encoding, separator = self.declared.text_encoding, self.declared.separator
        with self.path.open("rb") as content:
            blocks = iter(partial(content.read, BLOCK), b"")
            marks = {mark for block in blocks for mark in (b"\0", b'"') if mark in block}
        with self.path.open(encoding=encoding, newline="") as file:
            header = file.readline()
            if not header:
                raise ValueError("it is empty")
            if "\0" in header or (b"\0" in marks and b"\0" not in "a".encode(encoding)):
                raise ValueError("it holds a NUL byte, as workbooks, archives and text of UTF-16 do")
            if b'"' not in marks and codecs.lookup(encoding).name == "utf-8":
                return lambda: pa.OSFile(str(self.path)), False
            file.seek(0)
            reader = csv.reader(file, delimiter=separator, strict=True, skipinitialspace=separator != " ")
            text, line = io.StringIO(), 0
            writer = csv.writer(text, delimiter=separator, quoting=csv.QUOTE_ALL)
            try:
                for row in reader:
                    line = reader.line_num
                    writer.writerow(row if any(map(str.strip, row)) else [])
            except csv.Error as error:
                wrong = f"{error} in the row that begins at line {line + 1}"
                raise ValueError(f"{wrong}: a quotation mark is not closed, or not doubled") from error
        # Arrow's own memory: a thread of its reader that outlives the interpreter may not free Python's.
        quoted = pa.BufferOutputStream()
        quoted.write(text.getvalue().removeprefix("\ufeff").encode())
        buffer = quoted.getvalue()
        return lambda: pa.BufferReader(buffer), True


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
    """Cells with their types; a column of texts holds numbers where all are such, and it `_is_real`."""
    names, columns, cells = table.column_names, table.columns, {}
    del table  # and free each column when it is read
    for name in names:
        column = columns.pop(0)
        if pa.types.is_string(column.type):
            with suppress(pa.ArrowInvalid):  # a word
                if _is_real(_numbers(column[:FIRST_ROWS], declared), name, declared):
                    numbers = _numbers(column, declared)
                    column = numbers if _are_possible(numbers) else column
        cells[name] = _of_arrow(column, name).array
    return pd.DataFrame(cells, copy=False)


def _numbers(texts: pa.ChunkedArray, declared: Declared) -> pa.ChunkedArray:
    """The numbers in texts (N,), missing where they mean no value; raises ArrowInvalid for another word."""
    known = pc.if_else(pc.is_in(texts, pa.array(declared.no_value)), None, texts)
    return pc.utf8_trim_whitespace(known).cast(pa.float64())


def _is_real(column: pa.ChunkedArray, name: str, declared: Declared) -> bool:
    """Whether a column of a CSV file holds decimal numbers that need not be kept as they are written.

    Columns with a role, postal codes, and numbers whose point may group thousands are kept as texts, and so
    are columns with few different numbers.
    """
    if column.type != pa.float64() or name in declared.as_text or POSTAL.fullmatch(name):
        return False
    first = column[:FIRST_ROWS].drop_null().to_numpy()
    are_decimal = len(np.unique(first)) >= MANY and (np.round(first, 3) != first).any()
    return bool(are_decimal and _are_possible(column))


def _are_possible(numbers: pa.ChunkedArray) -> bool:
    """Whether all numbers (N,) that are not missing are finite and at most `LARGEST`."""
    small = pc.less_equal(pc.abs(numbers), LARGEST)
    return bool(pc.all(small, min_count=0).as_py())


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
    codes, values = distinct(column.cat.remove_unused_categories() if is_text(column) else column)
    if types.infer_dtype(values) == "bytes":
        raise no_cells(column)
    texts = np.array([str(value).strip() or None for value in values], dtype=object)
    numbers, words = pd.factorize(texts, sort=True)
    return pd.Series(pd.Categorical.from_codes(taken(numbers, codes, -1), words), name=column.name)
