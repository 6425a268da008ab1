"""CSV and Parquet files and DataFrames as cells: irregularities are errors that name the line or row.

Cells are what the file says. Columns of text are categorical without surrounding blanks; numbers, truth
values and times have their own types. A column of a CSV file holds numbers where all of its cells are plain
numbers and nothing of their form matters, else text.
"""

from __future__ import annotations

import csv
import itertools
import mmap
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
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

from fairall.errors import FairAllError
from fairall.runtime.reading import why_no_file
from fairall.tables.cells import distinct, is_text, parsed, shown
from fairall.tables.declared import Declared
from fairall.tables.infer import LARGEST, POSTAL

ROWS = 10_000  # of a part of a file; another number may change the last decimal of probabilities
BLOCK = 1 << 23  # bytes that are parsed at once
MANY = 1000  # distinct numbers of a column of numbers; fewer take less memory as texts
PARQUET_ENDINGS = (".parquet", ".pq")
UNNAMED_INDEX = "__index_level_"  # as pandas names the index of a filtered table: no column of the table
# One such number tells that its column has neither codes with leading zeros nor points that group thousands.
FRACTION = r"\.(?:[0-9]{0,2}|[0-9]{4,})$|^[-+]?0?\.|[0-9]{4}\.|[eE]"
WHOLE = "^[-+]?[1-9][0-9]{3,}$"  # that points do not group thousands
CODE = "^0[0-9]"
# By the kind that pandas finds among the cells of a column of objects.
TYPES = {"integer": "Int64", "boolean": "boolean"} | dict.fromkeys(
    ("floating", "mixed-integer-float", "decimal"), "float64"
)
TIMES = ("date", "datetime", "datetime64")
BLANK_BEFORE_QUOTE = re.compile(r'^\s+"([^"]*)"\s*$')
HINT = (
    "is it cut off? Row 1 of a CSV file is the header, and it is read by separator= and text_encoding=, for "
    "instance separator=';' text_encoding=cp1252 (or utf-16)"
)


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
        return Cells(_some(self.frame, kept), self.emptied, self.declared)


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
        columns = dict(File(source, declared).frame.items())
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
class Chunk:
    """Some rows of a file.

    Attributes:
        frame: as of `File.frame`.
        table: the same rows as of `File.table`.
    """

    frame: pd.DataFrame
    table: pa.Table

    def rows(self, kept: np.ndarray) -> Chunk:
        """The rows of a mask (N,)."""
        return Chunk(self.frame[kept], self.table.filter(kept))


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
        """Cells of all rows, empty ones missing; the index is the number of the row, from 0."""
        return _frame(self.read(numbers=True))

    def parts(self) -> Iterator[Chunk]:
        """The rows in parts of `ROWS` at most; raises FairAllError as `read`."""
        for start in range(0, len(self.frame), ROWS):
            rows = slice(start, start + ROWS)
            yield Chunk(_some(self.frame, rows), self.table[rows])

    def row(self, number: int) -> pd.DataFrame:
        """One row, counted from 1; raises FairAllError where the file ends before, and as `read`."""
        if number > (n := len(self.frame)):
            raise FairAllError(f"{self.path}: there is no row {number}, only {n}")
        return self.frame[number - 1 : number]

    @property
    def is_parquet(self) -> bool:
        """Whether the name ends as that of a Parquet file."""
        return self.path.suffix.lower() in PARQUET_ENDINGS

    def read(self, *, numbers: bool = False) -> pa.Table:
        """All rows of which a cell is not empty.

        Args:
            numbers: whether columns of plain numbers of a CSV file become float64; else all cells are text.

        Raises:
            FairAllError: if the file cannot be read, has no row, or has a malformed one.
        """
        if wrong := why_no_file(self.path):
            raise FairAllError(f"{self.path}: {wrong}; give the path of a CSV or Parquet file")
        try:
            table = pq.ParquetFile(self.path).read() if self.is_parquet else self._csv(numbers)
        except (AttributeError, LookupError, ValueError, OSError) as error:
            reason = shown(getattr(error, "strerror", None) or str(error), 150)
            raise FairAllError(f"{self.path}: cannot be read ({reason}); {HINT}") from error
        # By position, since names may be repeated.
        named = [k for k, name in enumerate(table.column_names) if not name.startswith(UNNAMED_INDEX)]
        table = table.select(named)
        table = table.rename_columns(_names(table.column_names, self.path))
        filled = np.zeros(len(table), dtype=bool)
        for name in table.column_names:
            filled |= _of_arrow(table[name], name).notna().to_numpy()
            if filled.all():
                break
        else:
            table = table.filter(filled)
        if not len(table):
            raise FairAllError(f"{self.path}: there are columns, but no rows")
        return table

    def _csv(self, numbers: bool) -> pa.Table:
        declared, names = self.declared, self._rows({}).schema.names
        text = pa.dictionary(pa.int32(), pa.string()) if numbers else pa.string()
        types = dict.fromkeys(names, text)
        as_text = {name for name in names if _named(name) in declared.as_text or POSTAL.fullmatch(name)}
        # Columns with fractions in the first rows are parsed as numbers, which spares their texts.
        for first in itertools.islice(self._rows(types), numbers):
            for name, column in zip(names, first.columns, strict=True):
                if name not in as_text and _plain(column.dictionary, declared, FRACTION) is not None:
                    types[name] = pa.float64()
        try:
            columns = self._rows(types).read_all().columns
            if not all(map(_moderate, (column for column in columns if column.type != text))):
                raise pa.ArrowInvalid("a number is too large")
        except pa.ArrowInvalid:  # where a later cell is no number
            columns = self._rows(dict.fromkeys(names, text)).read_all().columns
        for k, name in enumerate(names):
            if numbers and name not in as_text and columns[k].type == text:
                encoded = columns[k].unify_dictionaries().combine_chunks()
                plain = _plain(encoded.dictionary, declared, f"{FRACTION}|{WHOLE}")
                columns[k] = encoded if plain is None else plain.take(encoded.indices)
        return pa.table(columns, names)

    @cached_property
    def _is_quoted(self) -> bool:
        """Whether a CSV file has quotation marks.

        Raises:
            ValueError: where it is no CSV file, or a quotation mark is not closed or not doubled, which Arrow
                lets pass.
        """
        separator, encoding, line = self.declared.separator, self.declared.text_encoding, 0
        with (
            self.path.open(encoding=encoding, newline="") as file,
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content,
        ):
            if content.find(b"\0") >= 0 and b"\0" not in "a".encode(encoding):
                raise ValueError("it holds a NUL byte, as workbooks, archives and text_encoding=utf-16 do")
            quoted = content.find(b'"') >= 0
            # Blanks are allowed before a quotation mark.
            reader = csv.reader(file, delimiter=separator, strict=True, skipinitialspace=separator != " ")
            try:
                for _ in reader if quoted else ():
                    line = reader.line_num
            except csv.Error as error:
                wrong = f"{error} in the row that begins at line {line + 1}"
                raise ValueError(f"{wrong}: a quotation mark is not closed, or not doubled") from error
        return quoted

    def _rows(self, types: dict[str, pa.DataType]) -> arrow.CSVStreamingReader:
        """Rows of a CSV file, whose columns have these types, others any; empty cells are missing."""
        declared = self.declared
        return arrow.open_csv(
            pa.OSFile(str(self.path)),
            arrow.ReadOptions(use_threads=False, block_size=BLOCK, encoding=declared.text_encoding),
            arrow.ParseOptions(delimiter=declared.separator, newlines_in_values=self._is_quoted),
            arrow.ConvertOptions(column_types=types, null_values=declared.no_value),
        )


def _moderate(numbers: pa.ChunkedArray | pa.Array) -> bool:
    """Whether all numbers are finite and not too large, and there are some."""
    return bool(pc.all(pc.less_equal(pc.abs(numbers), LARGEST)).as_py())


def _plain(words: pa.Array, declared: Declared, form: str) -> pa.Array | None:
    """The numbers that distinct words are, missing where one means no value.

    None where they are few, one is no number, none has the `form`, or whole ones may have leading zeros.
    """
    words = pc.utf8_trim_whitespace(words)
    no_value = pc.is_in(words, value_set=pa.array(declared.no_value, pa.string()))
    words = pc.if_else(no_value, pa.scalar(None, pa.string()), words)
    formed, codes = (pc.any(pc.match_substring_regex(words, pattern)).as_py() for pattern in (form, CODE))
    if len(words) >= MANY and formed and not codes:
        with suppress(pa.ArrowInvalid):
            numbers = words.cast(pa.float64())
            return numbers if _moderate(numbers) else None
    return None


def _named(name: str) -> str:
    return " ".join(BLANK_BEFORE_QUOTE.sub(r"\1", name).split())


def _names(header: Iterable[str], path: object) -> list[str]:
    """Column names without blanks around them; raises FairAllError where two are equal, or there are few."""
    names = [_named(name) or f"column {k}" for k, name in enumerate(header, start=1)]
    name, times = Counter(names).most_common(1)[0] if names else ("", 0)
    if times > 1:
        raise FairAllError(f"{path}: {times} columns are named {name!r}: rename or remove all but one")
    if len(names) < 2:
        told = f"there is 1 column, {shown(name)!r}" if names else "there are 0 columns"
        raise FairAllError(f"{path}: {told}; a table needs several: give another separator=")
    return names


def _frame(table: pa.Table) -> pd.DataFrame:
    names, columns = table.column_names, table.columns
    del table  # and free each column when it is read
    arrays = {name: _of_arrow(columns.pop(0), name).array for name in names}
    return pd.DataFrame(arrays, copy=False)


def _some(frame: pd.DataFrame, rows: np.ndarray | slice) -> pd.DataFrame:
    """Some rows, with the words of text that are left."""
    columns = {
        name: column.cat.remove_unused_categories() if is_text(column) else column
        for name, column in frame[rows].items()
    }
    return pd.DataFrame(columns)


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
    if is_text(column) and types.infer_dtype(column.cat.categories) not in ("string", "empty"):
        column = column.astype(object)
    if types.is_datetime64_any_dtype(column) or (
        types.is_numeric_dtype(column) and not types.is_complex_dtype(column)
    ):
        return column
    kind = types.infer_dtype(column, skipna=True)
    with suppress(ValueError, TypeError, OverflowError):  # too large a number, times of several zones
        if kind in TIMES:
            return pd.to_datetime(column)
        if kind in TYPES:
            return column.astype(TYPES[kind])
    codes, values = distinct(column)
    texts = pd.Series([BLANK_BEFORE_QUOTE.sub(r"\1", str(value)).strip() for value in values], dtype=object)
    places, levels = pd.factorize(texts.where(texts != ""))
    text = pd.Categorical.from_codes(np.append(places, -1)[codes], levels)
    return pd.Series(text, name=column.name).cat.remove_unused_categories()
