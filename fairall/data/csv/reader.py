"""Strict reader of CSV and Parquet files as text: irregularities are errors that name the line or row."""

from __future__ import annotations

import codecs
import csv
import itertools
from collections import Counter
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import IO

import pandas as pd
import pyarrow as pa

from fairall.data.cells import shown
from fairall.data.csv.cells_as_text import of_arrow, parquet_parts
from fairall.errors import FairAllError, count
from fairall.storage.files import why_no_file

CHUNK_ROWS = 50_000
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


def read_text(path: Path, *, separator: str, encoding: str, missing: Collection[str]) -> pd.DataFrame:
    """Read all cells as text without surrounding blanks, None where missing, in the file's order.

    A file whose name ends in .parquet or .pq is a Parquet file, which gives what a CSV file of the same table
    would; any other is a CSV file whose first row holds the column names. Empty rows and a byte-order mark
    are skipped; quoted cells may hold separators and line breaks. Line breaks in column names become blanks;
    unnamed columns are called `column 1` and so on. The texts in `missing` mean a missing value.

    Raises:
        FairAllError: if the file cannot be read, has no rows, or has a malformed row.
    """
    parts = read_parts(path, separator=separator, encoding=encoding, missing=missing)
    return pd.concat([part for part, _ in parts])


def read_parts(
    path: Path, rows: int | None = None, *, separator: str, encoding: str, missing: Collection[str]
) -> Iterator[tuple[pd.DataFrame, pa.Table | None]]:
    """The table of `read_text` in parts of `rows` rows at most, of which one is in memory at a time.

    Yields:
        Cells as text, with the index of the whole table, and, of a Parquet file, the same rows as they are.
    """
    try:
        if wrong := why_no_file(path):
            raise FairAllError(f"dataset.path={path}: {wrong}; give the path of a CSV or Parquet file")
        if path.suffix.lower() in PARQUET_ENDINGS:
            yield from _of_parquet(path, missing, rows)
            return
        with _open(path, separator, encoding) as file:
            cells = _rows(file, path, separator)
            for part in _of_csv(cells, path, separator, frozenset(missing), rows or CHUNK_ROWS):
                yield part, None
    except UnicodeError as error:
        raise FairAllError(_undecodable(path, encoding)) from error
    except OSError as error:
        raise FairAllError(f"dataset.path={path}: cannot be read ({error.strerror or error})") from error


def _open(path: Path, separator: str, encoding: str) -> IO[str]:
    if separator in UNUSABLE_SEPARATORS:
        raise FairAllError(f"dataset.separator={separator!r} is not possible: it ends lines or quotes cells")
    beginning = _beginning(path)
    for magic, (is_, remedy) in OTHER_FORMATS.items():
        if beginning.startswith(magic):
            raise FairAllError(f"dataset.path={path} is {is_}, not a CSV file: {remedy}")
    try:
        "a..b".encode(encoding).decode(encoding)  # host names' encoding refuses empty parts
    except (LookupError, ValueError) as error:
        raise FairAllError(f"dataset.text_encoding={encoding}: no such text encoding") from error
    return path.open(encoding=encoding, newline="")


def _beginning(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(4)


def _of_parquet(
    path: Path, missing: Collection[str], rows: int | None
) -> Iterator[tuple[pd.DataFrame, pa.Table]]:
    if _beginning(path) != PARQUET:
        raise FairAllError(
            f"dataset.path={path} is not a Parquet file: rename it to end in .csv, or save it as Parquet"
        )
    n_rows = 0
    for table in parquet_parts(path, rows):
        names = _names(table.column_names, path)
        text = pd.DataFrame(dict(zip(names, of_arrow(table, missing), strict=True)), dtype=object)
        filled = text.notna().any(axis=1).to_numpy()  # empty rows are skipped as in a CSV file
        if not filled.all():
            text, table = text[filled], table.filter(pa.array(filled))
        if not len(text):
            continue
        text.index = pd.RangeIndex(n_rows, n_rows + len(text))
        n_rows += len(text)
        yield text, table.rename_columns(names)
    if n_rows == 0:
        raise FairAllError(f"{path}: there are columns, but no rows")


def _rows(file: IO[str], path: Path, separator: str) -> Iterator[list[str]]:
    """Non-empty rows, the header first."""
    blanks = separator != " "  # allowed before a quotation mark
    reader = csv.reader(_lines(file, path), delimiter=separator, strict=True, skipinitialspace=blanks)
    while True:
        line = reader.line_num + 1
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise FairAllError(
                f"{path}: the row that begins at line {line} cannot be read ({error}): is a quotation mark "
                "not closed, or not doubled?"
            ) from error
        if any(map(str.strip, row)):
            yield row


def _lines(file: IO[str], path: Path) -> Iterator[str]:
    for number, line in enumerate(file, start=1):
        if "\0" in line:
            raise FairAllError(
                f"{path}: line {number} holds a NUL byte: is the file not a CSV, or in another encoding, for "
                "instance dataset.text_encoding=utf-16?"
            )
        yield line.removeprefix("\ufeff") if number == 1 else line


def _of_csv(
    rows: Iterator[list[str]], path: Path, separator: str, missing: frozenset[str], size: int
) -> Iterator[pd.DataFrame]:
    header = next(rows, None)
    if header is None:
        raise FairAllError(f"{path}: the file is empty")
    names = _names(header, path, separator)
    n_rows = 0
    while chunk := list(itertools.islice(rows, size)):
        for i, row in enumerate(chunk, start=n_rows + 1):
            if len(row) != len(names):
                raise FairAllError(
                    f"{path}: row {i} has {count(len(row), 'cell')} where the header has {len(names)}: "
                    "is the file truncated, or a separator unquoted?"
                )
        columns: dict[str, list[str | None]] = {}
        for name, column in zip(names, zip(*chunk, strict=True), strict=True):
            cells: list[str | None] = list(map(str.strip, column))
            complete = missing.isdisjoint(cells)
            columns[name] = cells if complete else [None if cell in missing else cell for cell in cells]
        yield pd.DataFrame(columns, index=pd.RangeIndex(n_rows, n_rows + len(chunk)), dtype=object)
        n_rows += len(chunk)
    if n_rows == 0:
        raise FairAllError(f"{path}: there is a header, but no rows")


def _names(header: list[str], path: Path, separator: str | None = None) -> list[str]:
    """Column names; `separator` is that of a CSV file."""
    names = [" ".join(name.split()) or f"column {i}" for i, name in enumerate(header, start=1)]
    most, times = max(Counter(names).items(), key=lambda item: item[1], default=("", 0))
    if times > 1:
        raise FairAllError(f"{path}: {times} columns are named {most!r}: rename or remove all but one")
    if len(names) < 2:
        hint = "a table needs several"
        for other, typed in OTHER_SEPARATORS.items():
            if separator is not None and other in header[0] and other != separator:
                hint = f"is the separator another? Give dataset.separator={typed}"
        only = f"is a single column, {shown(names[0])!r}" if names else "are no columns"
        raise FairAllError(f"{path}: there {only}; {hint}")
    return names


def _undecodable(path: Path, encoding: str) -> str:
    content, line = path.read_bytes(), 1
    try:
        content.decode(encoding)
    except UnicodeError as error:
        line += content.count(b"\n", 0, getattr(error, "start", 0))
    sixteen = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    return (
        f"{path}: line {line} is not {encoding} text; give its encoding, for instance "
        f"dataset.text_encoding={'utf-16' if sixteen else 'latin-1'}"
    )
