"""Reads a CSV strictly, as text: what is odd about it is an error that names the place, never a guess."""

from __future__ import annotations

import csv
import itertools
from collections import Counter
from pathlib import Path
from typing import IO

import pandas as pd

from fairall.errors import FairAllError

CHUNK_ROWS = 50_000
OTHER_SEPARATORS = {";": "';'", "\t": "$'\\t'", "|": "'|'"}  # as a shell takes them


def read_text(path: Path, *, separator: str, encoding: str, missing: list[str]) -> pd.DataFrame:
    """All cells as text without surrounding blanks, None where missing; columns in the order of the file.

    Blank lines are skipped; a byte-order mark is; quoted cells may hold separators and line breaks. Columns
    without a name are called `column 1` and so on.

    Args:
        path: of the file, its first line the column names.
        separator: between cells.
        encoding: of the text, as Python names it.
        missing: what counts as no value.

    Raises:
        FairAllError: where there is no such file, no row in it, or a line that is not as it should be.
    """
    if path.is_dir():
        raise FairAllError(f"dataset.path={path} is a folder: give the CSV file")
    if not path.exists():
        raise FairAllError(f"dataset.path={path}: there is no such file")
    # Of UTF-8 with or without a byte-order mark.
    codec = "utf-8-sig" if encoding.lower().replace("_", "-") in ("utf-8", "utf8") else encoding
    try:
        with path.open(encoding=codec, newline="") as file:
            return _read(file, path, separator, frozenset(missing))
    except LookupError as error:
        raise FairAllError(f"dataset.text_encoding={encoding}: there is no such encoding") from error
    except UnicodeError as error:
        raise FairAllError(_undecodable(path, encoding, codec)) from error
    except OSError as error:
        raise FairAllError(f"dataset.path={path}: cannot be read ({error.strerror or error})") from error


def _read(file: IO[str], path: Path, separator: str, missing: frozenset[str]) -> pd.DataFrame:
    reader = csv.reader(file, delimiter=separator, strict=True, skipinitialspace=True)
    try:
        header = next(reader, None)
        if header is None:
            raise FairAllError(f"{path}: the file is empty")
        names = _names(header, path, separator)
        parts: list[list[list[str | None]]] = [[] for _ in names]
        n_rows = 0
        rows = (row for row in reader if row)
        while chunk := list(itertools.islice(rows, CHUNK_ROWS)):
            for i, row in enumerate(chunk):
                if len(row) != len(names):
                    raise FairAllError(
                        f"{path}: row {n_rows + i + 1} has {_count(len(row), 'cell')} where the header has "
                        f"{len(names)}: is the file truncated, or a separator unquoted?"
                    )
            n_rows += len(chunk)
            for part, column in zip(parts, zip(*chunk, strict=True), strict=True):
                stripped = (cell.strip() for cell in column)
                part.append([None if cell in missing else cell for cell in stripped])
    except csv.Error as error:
        raise FairAllError(f"{path}: line {reader.line_num} cannot be read: {error}") from error
    if n_rows == 0:
        raise FairAllError(f"{path}: there is a header, but no row")
    columns = {name: list(itertools.chain(*part)) for name, part in zip(names, parts, strict=True)}
    return pd.DataFrame(columns, dtype=object)


def _names(header: list[str], path: Path, separator: str) -> list[str]:
    names = [name.strip() or f"column {i}" for i, name in enumerate(header, start=1)]
    (most, times), *_ = Counter(names).most_common(1) or [("", 0)]
    if times > 1:
        raise FairAllError(f"{path}: {times} columns are named {most!r}: rename or remove all but one")
    if len(names) < 2:
        hint = "a table needs several"
        for other, typed in OTHER_SEPARATORS.items():
            if other in names[0] and other != separator:
                hint = f"is it separated otherwise? Say so with dataset.separator={typed}"
        raise FairAllError(f"{path}: there is a single column, {names[0][:40]!r}; {hint}")
    return names


def _undecodable(path: Path, encoding: str, codec: str) -> str:
    hint = "give its encoding, for instance dataset.text_encoding=latin-1"
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            try:
                line.decode(codec)
            except UnicodeError:
                return f"{path}: line {number} is not {encoding} text; {hint}"
    return f"{path}: the file is not {encoding} text; {hint}"


def _count(n: int, thing: str) -> str:
    return f"{n} {thing}" if n == 1 else f"{n} {thing}s"
