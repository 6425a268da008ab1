"""The fast way to read a CSV file: by Arrow, where no cell is quoted.

Columns of plain numbers are read as numbers, which a table of texts would hold several times, as text and as
objects. What is irregular is left to the slow way, which says what is wrong.
"""

from __future__ import annotations

import codecs
import mmap
import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from csv import field_size_limit
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from fairall.tables.infer import LARGEST, POSTAL

FIRST = 10_000  # rows that must have `MANY` numbers in a column of numbers
MANY = 1000  # fewer take less memory as texts, and may be names of levels
CODE = "^0[0-9]"  # a whole number with leading zeros, as codes have
SHORT = "^[-+]?[0-9]{1,3}$"
POINTED = r"^[-+]?(?:[0-9]{1,3}|[1-9][0-9]{0,2}\.[0-9]{3})$"  # with `SHORT` ones, may group thousands
BLOCK = 1 << 23  # bytes that are parsed at once


def is_unquoted(path: Path, encoding: str, separator: str) -> bool:
    """Whether Arrow reads a file as `csv.reader` does: UTF-8 without quotation marks or lone returns."""
    if codecs.lookup(encoding).name != "utf-8" or not separator.isascii() or not path.stat().st_size:
        return False
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        if content.find(b'"') >= 0 or content.find(b"\0") >= 0:
            return False
        return re.search(rb"\r(?!\n)", content) is None


def read_unquoted(
    file: BinaryIO, names: Sequence[str], separator: str, as_text: Collection[str], no_value: Sequence[str]
) -> Iterator[pa.ChunkedArray]:
    """The columns of the rows from here on, numbers as float64, others as text, empty cells missing.

    Args:
        file: unquoted, behind the header.
        names: of the columns.
        separator: of cells.
        as_text: names of columns that must be text.
        no_value: words that are missing numbers.

    Raises:
        pa.ArrowException: where a row is malformed, a cell is longer than `csv.reader` reads, or no UTF-8.
    """
    places, none = list(map(str, range(len(names)))), pa.array(no_value, pa.string())
    columns = csv.read_csv(
        file,
        csv.ReadOptions(column_names=places, block_size=BLOCK),
        csv.ParseOptions(delimiter=separator, quote_char=False, double_quote=False),
        csv.ConvertOptions(
            column_types=dict.fromkeys(places, pa.string()), strings_can_be_null=True, null_values=[""]
        ),
    ).columns
    for name in names:
        column = columns.pop(0)  # and free its texts
        if (pc.max(pc.utf8_length(column)).as_py() or 0) > field_size_limit():
            raise pa.ArrowInvalid("a cell is longer than csv.reader reads")
        yield column if name in as_text or POSTAL.fullmatch(name) else _number(column, none)


def _number(texts: pa.ChunkedArray, no_value: pa.Array) -> pa.ChunkedArray:
    """The numbers that texts are, where they all are and nothing of their form matters; else the texts."""
    numbers = _cast(texts[:FIRST], no_value)
    if numbers is None or pc.count_distinct(numbers).as_py() < MANY:
        return texts
    numbers = _cast(texts, no_value)
    if numbers is None or not pc.all(pc.less_equal(pc.abs(numbers), LARGEST)).as_py():  # NaN is not
        return texts
    codes = pc.all(pc.equal(numbers, pc.floor(numbers))).as_py() and _any(texts, CODE)
    pointed = pc.all(pc.match_substring_regex(texts[:FIRST], POINTED)).as_py()
    return texts if codes or (pointed and _any(texts, SHORT)) else numbers


def _any(texts: pa.ChunkedArray, form: str) -> bool:
    return bool(pc.any(pc.match_substring_regex(texts, form)).as_py())


def _cast(texts: pa.ChunkedArray, no_value: pa.Array) -> pa.ChunkedArray | None:
    """The numbers of texts, missing where one is a word of no value; None where one is no number."""
    with suppress(pa.ArrowInvalid):
        return texts.cast(pa.float64())
    trimmed = pc.utf8_trim_whitespace(texts)
    kept = pc.if_else(pc.is_in(trimmed, value_set=no_value), pa.scalar(None, pa.string()), trimmed)
    with suppress(pa.ArrowInvalid):
        return kept.cast(pa.float64())
    return None
