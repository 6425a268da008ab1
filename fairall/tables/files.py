"""CSV and Parquet files and DataFrames as cells: irregularities are errors that name the line or row.

Cells are what the file says. Columns of text, all those of a CSV file, are categorical without surrounding
blanks; numbers, truth values and times of a Parquet file or a DataFrame have their own types.
"""

from __future__ import annotations

import codecs
import csv
import itertools
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from pandas.api.types import infer_dtype, union_categoricals

from fairall.errors import FairAllError, count
from fairall.runtime.reading import why_no_file
from fairall.tables.cells import distinct, is_text, parsed, shown
from fairall.tables.declared import Declared
from fairall.tables.unquoted import is_unquoted, read_unquoted

ROWS = 10_000  # of a part of a file; another number may change the last decimal of probabilities
UNDEFINED_IN_CP1252 = {0x81, 0x8D, 0x8F, 0x90, 0x9D}  # Windows' extension of latin-1, with the euro sign
UNUSABLE_SEPARATORS = '"\r\n'
PARQUET, PARQUET_ENDINGS = b"PAR1", (".parquet", ".pq")
SAVE = "save it as CSV or Parquet"
OTHER_FORMATS = {  # by first bytes: what it is, and what to do
    b"PK\x03\x04": ("an Excel workbook or a zip archive", SAVE),
    b"\xd0\xcf\x11\xe0": ("an Excel workbook", SAVE),
    b"\x1f\x8b": ("gzip-compressed", "unpack it first"),
    PARQUET: ("a Parquet file", "rename it to end in .parquet"),
}
OTHER_SEPARATORS = {";": """'";"'""", "\t": """$'"\\t"'""", "|": """'"|"'"""}  # as typed in a shell
UNNAMED_INDEX = "__index_level_"  # as pandas names the index of a filtered table: no column of the table
NULLABLE = {
    pa.type_for_alias(kind.lower()): pd.api.types.pandas_dtype(kind)
    for kind in ("Int8 Int16 Int32 Int64 UInt8 UInt16 UInt32 UInt64".split())
} | {pa.bool_(): pd.BooleanDtype()}
# By the kind that pandas finds among the cells of a column of objects.
OF_OBJECTS: dict[str, Callable[[pd.Series], pd.Series]] = {
    "integer": lambda column: column.astype("Int64"),
    "boolean": lambda column: column.astype("boolean"),
    **dict.fromkeys(("floating", "mixed-integer-float", "decimal"), lambda column: column.astype(float)),
    **dict.fromkeys(("date", "datetime", "datetime64"), pd.to_datetime),
}


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

    def empty(self, name: str, row: int) -> str:
        """What a missing cell is, in words: empty, or a word that means no value."""
        word = self.emptied[name].get(row)
        if word is None:
            return "an empty cell"
        return (
            f"{shown(word)!r}, which means no value (leave it out of missing_by_default= if it is a value),"
        )

    def rows(self, kept: np.ndarray) -> Cells:
        """Some rows, a mask (N,), with the words of text that are left."""
        columns = {
            name: column.cat.remove_unused_categories() if is_text(column) else column
            for name, column in self.frame[kept].items()
        }
        return Cells(pd.DataFrame(columns), self.emptied, self.declared)


def read_cells(source: Path | pd.DataFrame, declared: Declared) -> Cells:
    """All rows of a file or a DataFrame.

    Raises:
        FairAllError: if the file cannot be read, has no row, or has a malformed one; if a column holds lists
            or other nested values.
    """
    if isinstance(source, pd.DataFrame):
        names = _names([str(name) for name in source], declared.path)
        if not len(source):
            raise FairAllError(f"{declared.path} has no row")
        columns = {name: _of_series(source.iloc[:, k], name) for k, name in enumerate(names)}
        frame = pd.DataFrame({name: column.array for name, column in columns.items()}, copy=False)
    else:
        parts = [part.frame for part in File(source, declared).parts(large=True)]
        frame = parts[0]
        if len(parts) > 1:  # of text
            frame = pd.DataFrame({name: union_categoricals([part[name] for part in parts]) for name in frame})
    numbers = parsed(list(declared.no_value))
    numbers = numbers[~np.isnan(numbers)]
    columns = dict(frame.items())
    emptied: defaultdict[str, pd.Series] = defaultdict(lambda: pd.Series(dtype=object))
    for name, column in frame.items():
        if is_text(column):
            none = column.cat.categories.isin(declared.no_value)
            if len(numbers):
                none |= np.isin(parsed(list(column.cat.categories)), numbers)
            if len(words := column.cat.categories[none]):
                columns[name] = column.cat.remove_categories(words)
                emptied[str(name)] = column[column.isin(words)].astype(str)
        elif len(numbers) and pd.api.types.is_numeric_dtype(column) and column.isin(numbers).any():
            columns[name] = column.mask(column.isin(numbers))
    return Cells(pd.DataFrame(columns, copy=False), emptied, declared)


@dataclass(frozen=True)
class Chunk:
    """Some rows of a file.

    Attributes:
        frame: cells, empty ones missing; the index is the number of the row in the file, from 0.
        typed: of a Parquet file, the same rows as they are.
    """

    frame: pd.DataFrame
    typed: pa.Table | None = None

    def rows(self, kept: np.ndarray) -> Chunk:
        """The rows of a mask (N,)."""
        return Chunk(self.frame[kept], None if self.typed is None else self.typed.filter(kept))


@dataclass(frozen=True)
class File:
    """A CSV or, by the ending of its name, Parquet file of people.

    The first row of a CSV file holds the column names. Empty rows and a byte-order mark are skipped; quoted
    cells may hold separators and line breaks. Line breaks in column names become blanks; unnamed columns are
    called `column 1` and so on.
    """

    path: Path
    declared: Declared

    def parts(self, *, large: bool = False) -> Iterator[Chunk]:
        """The rows in parts of `ROWS` at most, or larger ones, of which one is in memory at a time.

        Raises:
            FairAllError: if the file cannot be read, has no row, or has a malformed one.
        """
        path = self.path
        try:
            if wrong := why_no_file(path):
                raise FairAllError(f"{path}: {wrong}; give the path of a CSV or Parquet file")
            if self.is_parquet:
                yield from self._of_parquet(None if large else ROWS)
                return
            with self._open() as file:
                if large and (whole := self._unquoted()) is not None:
                    yield whole
                    return
                yield from self._of_csv(self._rows(file), 5 * ROWS if large else ROWS)
        except UnicodeError as error:
            raise FairAllError(self._undecodable()) from error
        except OSError as error:
            raise FairAllError(f"{path}: cannot be read ({error.strerror or error})") from error

    @property
    def is_parquet(self) -> bool:
        """Whether the name ends as that of a Parquet file."""
        return self.path.suffix.lower() in PARQUET_ENDINGS

    def row(self, number: int) -> pd.DataFrame:
        """One row, counted from 1; raises FairAllError where the file ends before, and as `parts`."""
        n = 0
        for part in self.parts():
            if number <= n + len(part.frame):
                return part.frame.iloc[[number - n - 1]]
            n += len(part.frame)
        raise FairAllError(f"{self.path}: there is no row {number}, only {n}")

    def _open(self) -> IO[str]:
        declared = self.declared
        if declared.separator in UNUSABLE_SEPARATORS:
            raise FairAllError(
                f"separator={declared.separator!r} is not possible: it ends lines or quotes cells"
            )
        beginning = self._beginning()
        for magic, (is_, remedy) in OTHER_FORMATS.items():
            if beginning.startswith(magic):
                raise FairAllError(f"{self.path} is {is_}, not a CSV file: {remedy}")
        try:
            "a..b".encode(declared.text_encoding).decode(declared.text_encoding)  # "idna" refuses empty parts
        except (LookupError, ValueError) as error:
            raise FairAllError(f"text_encoding={declared.text_encoding}: no such text encoding") from error
        return self.path.open(encoding=declared.text_encoding, newline="")

    def _beginning(self) -> bytes:
        with self.path.open("rb") as file:
            return file.read(4)

    def _rows(self, file: Iterable[str]) -> Iterator[list[str]]:
        """Non-empty rows, the header first."""
        separator = self.declared.separator
        blanks = separator != " "  # allowed before a quotation mark
        lines = self._lines(file)
        reader = csv.reader(lines, delimiter=separator, strict=True, skipinitialspace=blanks)
        line = 1
        try:
            for row in reader:
                line = reader.line_num + 1
                if any(map(str.strip, row)):
                    yield row
        except csv.Error as error:
            raise FairAllError(
                f"{self.path}: the row that begins at line {line} cannot be read ({error}): is a "
                "quotation mark not closed, or not doubled?"
            ) from error

    def _lines(self, file: Iterable[str]) -> Iterator[str]:
        for number, line in enumerate(file, start=1):
            if "\0" in line:
                raise FairAllError(
                    f"{self.path}: line {number} holds a NUL byte: is the file not a CSV, or in another "
                    f"encoding, for instance text_encoding=utf-16?"
                )
            yield line.removeprefix("\ufeff") if number == 1 else line

    def _unquoted(self) -> Chunk | None:
        """All rows of a CSV file, read fast; None where that is not possible."""
        declared, path = self.declared, self.path
        if not is_unquoted(path, declared.text_encoding, declared.separator):
            return None
        with path.open("rb") as file, suppress(FairAllError, pa.ArrowException):  # the slow way tells why
            lines = (line.decode() for line in iter(file.readline, b""))
            names = _names(next(self._rows(lines), []), path)
            columns = read_unquoted(file, names, declared.separator, declared.as_text, declared.no_value)
            frame, _ = _frame(columns, names)
            return Chunk(frame) if len(frame) else None
        return None

    def _of_csv(self, rows: Iterator[list[str]], size: int) -> Iterator[Chunk]:
        header = next(rows, None)
        if header is None:
            raise FairAllError(f"{self.path}: the file is empty")
        names = _names(header, self.path, self.declared)
        n_rows = 0
        while chunk := list(itertools.islice(rows, size)):
            for i, row in enumerate(chunk, start=n_rows + 1):
                if len(row) != len(names):
                    raise FairAllError(
                        f"{self.path}: row {i} has {count(len(row), 'cell')} where the header has "
                        f"{len(names)}: is the file truncated, or a separator unquoted?"
                    )
            columns = {
                name: _text(*pd.factorize(np.array(column, dtype=object)))
                for name, column in zip(names, zip(*chunk, strict=True), strict=True)
            }
            yield Chunk(pd.DataFrame(columns, index=pd.RangeIndex(n_rows, n_rows + len(chunk))))
            n_rows += len(chunk)
        if n_rows == 0:
            raise FairAllError(f"{self.path}: there is a header, but no rows")

    def _of_parquet(self, rows: int | None) -> Iterator[Chunk]:
        if self._beginning() != PARQUET:
            raise FairAllError(
                f"{self.path} is not a Parquet file: rename it to end in .csv, or save it as Parquet"
            )
        n_rows = 0
        for table in self._tables(rows):
            names = _names(table.column_names, self.path)
            frame, filled = _frame(table.columns, names, n_rows)
            n_rows += len(frame)
            if len(frame):
                kept = table if filled.all() else table.filter(pa.array(filled))
                yield Chunk(frame, kept.rename_columns(names))
        if n_rows == 0:
            raise FairAllError(f"{self.path}: there are columns, but no rows")

    def _tables(self, rows: int | None) -> Iterator[pa.Table]:
        """Parts of a Parquet file; one part if it has no row."""
        try:
            file = pq.ParquetFile(self.path)
            names = file.schema_arrow.names
            # By position, since names may be repeated.
            named = [i for i, name in enumerate(names) if not name.startswith(UNNAMED_INDEX)]
            if rows is None or not file.metadata.num_rows:
                yield file.read().select(named)
                return
            for batch in file.iter_batches(rows):
                yield pa.Table.from_batches([batch]).select(named)
        except pa.ArrowException as error:
            reason = str(error).strip().split("\n")[0]
            raise FairAllError(f"{self.path}: cannot be read as Parquet ({reason})") from error

    def _undecodable(self) -> str:
        content, line, encoding = self.path.read_bytes(), 1, self.declared.text_encoding
        try:
            content.decode(encoding)
        except UnicodeError as error:
            line += content.count(b"\n", 0, getattr(error, "start", 0))
        likely = "utf-16" if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "cp1252"
        if likely == "cp1252" and set(content) & UNDEFINED_IN_CP1252:
            likely = "latin-1"
        hint = f"text_encoding={likely}"
        return f"{self.path}: line {line} is not {encoding} text; give its encoding, for instance {hint}"


def _names(header: Iterable[str], path: object, of_csv: Declared | None = None) -> list[str]:
    """Column names; `of_csv` is given for a CSV file."""
    header = list(header)
    names = [" ".join(name.split()) or f"column {i}" for i, name in enumerate(header, start=1)]
    for name, times in Counter(names).most_common(1):
        if times > 1:
            raise FairAllError(f"{path}: {times} columns are named {name!r}: rename or remove all but one")
    if len(names) < 2:
        hint = "a table needs several"
        for other, typed in OTHER_SEPARATORS.items():
            if of_csv is not None and other in header[0] and other != of_csv.separator:
                hint = f"is the separator another? Give separator={typed}"
        only = f"is a single column, {shown(names[0])!r}" if names else "are no columns"
        raise FairAllError(f"{path}: there {only}; {hint}")
    return names


def _frame(
    columns: Iterable[pa.ChunkedArray], names: Sequence[str], first: int = 0
) -> tuple[pd.DataFrame, np.ndarray]:
    """Cells of the rows that are not empty, numbered from `first`, and which rows (N,) these are."""
    cells = [_of_arrow(*pair) for pair in zip(columns, names, strict=True)]
    filled = np.zeros(len(cells[0]), dtype=bool)
    for column in cells:
        filled |= column.notna().to_numpy()
        if filled.all():
            break
    else:
        cells = [column[filled] for column in cells]
    index = pd.RangeIndex(first, first + int(filled.sum()))
    arrays = {name: column.array for name, column in zip(names, cells, strict=True)}
    return pd.DataFrame(arrays, index=index, copy=False), filled


def _text(codes: np.ndarray, words: Iterable[Any]) -> pd.Categorical:
    """Texts without surrounding blanks by their codes (N,), −1 where missing; empty texts are missing.

    Words are distinct; their texts need not be.
    """
    words = list(words)
    stripped = [str(word).strip() for word in words]
    if stripped == words and "" not in words:  # distinct too, which spares a second search for levels
        return pd.Categorical.from_codes(codes, pd.Index(stripped, dtype=object))
    texts = pd.Series(stripped, dtype=object)
    places, levels = pd.factorize(texts.where(texts != ""))
    return pd.Categorical.from_codes(np.append(places, -1)[codes], levels)


def _of_series(column: pd.Series, name: str) -> pd.Series:
    """A column of a DataFrame with the type of its cells."""
    is_one = pd.api.types
    if isinstance(column.dtype, pd.ArrowDtype):
        return _of_arrow(pa.chunked_array([pa.array(column)]), name)
    if isinstance(column.dtype, pd.CategoricalDtype):
        if is_one.is_object_dtype(column.cat.categories):
            return pd.Series(_text(column.cat.codes, column.cat.categories)).cat.remove_unused_categories()
        column = column.astype(object)
    if is_one.is_datetime64_any_dtype(column) or (
        is_one.is_numeric_dtype(column) and not is_one.is_complex_dtype(column)
    ):
        return column
    kind = infer_dtype(column, skipna=True)
    if kind in OF_OBJECTS:
        with suppress(ValueError, TypeError, OverflowError):  # too large a number, times of several zones
            return OF_OBJECTS[kind](column)
    try:
        codes, values = distinct(column)
    except FairAllError as error:
        raise _nested(name) from error
    if any(isinstance(value, bytes | tuple | frozenset | complex) for value in values):
        raise _nested(name)
    return pd.Series(_text(codes, values))


def _of_arrow(column: pa.ChunkedArray, name: str) -> pd.Series:
    """A column of a Parquet file with the type of its cells."""
    is_one, kind = pa.types, column.type
    if is_one.is_dictionary(kind):
        column, kind = column.cast(kind.value_type), kind.value_type
    if is_one.is_decimal(kind):
        try:
            column = column.cast(pa.float64() if kind.scale else pa.int64())
        except pa.ArrowInvalid:  # too many digits
            column = column.cast(pa.string())
    kind = column.type
    if is_one.is_string(kind) or is_one.is_large_string(kind):
        encoded = column.to_pandas(strings_to_categorical=True)
        return pd.Series(_text(encoded.cat.codes, encoded.cat.categories))
    if is_one.is_null(kind) or is_one.is_time(kind) or is_one.is_duration(kind):
        return pd.Series(_text(*distinct(column.to_pandas())))
    if not (is_one.is_primitive(kind) or is_one.is_boolean(kind)):
        raise _nested(name)
    return column.to_pandas(types_mapper=NULLABLE.get if column.null_count else None, date_as_object=False)


def _nested(name: str) -> FairAllError:
    return FairAllError(
        f"column {name!r} holds nested or binary values: a cell must be a number, a text, a truth value or a "
        "time; turn it into columns of these, or remove it"
    )
