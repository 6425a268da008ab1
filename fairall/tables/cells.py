"""Cells of a table as numbers and as words, and messages about them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import pandas as pd

from fairall.errors import FairAllError, count

EXACT = 2.0**53  # float64 represents every whole number up to here
TRUTH = {"true": 1.0, "false": 0.0}
FLOAT = re.compile(r"([+-]?\d+)(?=\D)\.?(\d*)(?:e\+(\d+))?", re.IGNORECASE)  # a point or an exponent


class RowsError(FairAllError):
    """An error of some rows of a table; the message is of the first.

    Attributes:
        why: what is wrong with them.
        reasons: a message for each, by its position from 0.
    """

    why: str
    reasons: dict[int, str]


def is_text(column: pd.Series) -> bool:
    """Whether a column holds texts, which are categorical."""
    return isinstance(column.dtype, pd.CategoricalDtype)


def distinct(column: pd.Series) -> tuple[np.ndarray, pd.Index | np.ndarray]:
    """Positions (N,) of cells among their distinct values, −1 where missing, and these values (K,).

    Raises:
        FairAllError: if a cell is neither a number nor a text.
    """
    if is_text(column):
        return column.cat.codes.to_numpy(), column.cat.categories
    with suppress(TypeError):
        codes, values = pd.factorize(column.to_numpy() if column.dtype.kind == "O" else column)
        if not any(isinstance(value, bytes | tuple | frozenset | complex) for value in values):
            return codes, values
    raise no_cells(column)


def no_cells(column: pd.Series) -> FairAllError:
    """An error of a column of lists, binary values and the like."""
    why = "lists and binary values are no cells: turn it into columns of these, or remove it"
    return FairAllError(f"column {column.name!r} must hold numbers or texts in every row; {why}")


def words_of(column: pd.Series) -> tuple[np.ndarray, np.ndarray]:
    """`distinct` with the values as texts (K,): 1, 1.0, True; dates without time if all are at midnight."""
    codes, values = distinct(column)
    times = pd.api.types.is_datetime64_any_dtype(column)
    return codes, np.array(list(values.astype(str) if times else map(str, values)), dtype=object)


def values_of(column: pd.Series) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """`words_of` with words (K,) of one `spelling` merged into the most frequent, and a note on each."""
    codes, words = words_of(column)
    times = np.bincount(codes[codes >= 0], minlength=len(words))
    order = sorted(range(len(words)), key=lambda k: (-times[k], words[k]))
    number, spelt = pd.factorize(np.array([spelling(words[k]) for k in order], dtype=object))
    same = [[repr(shown(word)) for word in words[order][number == k]] for k in range(len(spelt))]
    notes = [
        f"column {column.name!r}: {' and '.join(several)} are taken for one value"
        for several in same
        if len(several) > 1
    ]
    _, first = np.unique(number, return_index=True)
    return taken(number[np.argsort(order)], codes, -1), words[order][first], notes


def taken(values: Any, codes: np.ndarray, missing: Any) -> np.ndarray:
    """`values` (K,) at `codes` (N,), `missing` where a code is −1; shape (N,)."""
    return np.append(values, missing)[codes]


def numbers_of(column: pd.Series) -> np.ndarray:
    """The number in each cell, shape (N,), NaN where there is none; truth values and times are none."""
    if pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column):
        return column.to_numpy(dtype=float, na_value=np.nan)
    codes, values = distinct(column)
    return taken(parsed(values), codes, np.nan)


def number_of(text: str) -> float:
    """The float64 nearest to a text, NaN where it is none; digits of other scripts, and _, are none."""
    try:
        return float(text) if text.isascii() and "_" not in text else math.nan
    except ValueError:
        return math.nan


def parsed(values: Iterable[Any]) -> np.ndarray:
    """The `number_of` each value, a number or a text, shape (K,)."""
    return np.array([number_of(str(value)) for value in values], dtype=float)


def mean_no_value(cells: Iterable[Any], missing: Sequence[str], but: Sequence[str] = ()) -> np.ndarray:
    """Which numbers or words (N,) mean no value, shape (N,).

    These are the words in `missing`, but not those in `but`, and the numbers of these words; an array holds
    numbers.
    """
    numbers = parsed(missing)
    if isinstance(cells, np.ndarray):
        return np.isin(cells, numbers)
    none = {*missing, *numbers}  # NaN is like nothing else
    found = ((word in none or number_of(word) in none) and word not in but for word in cells)
    return np.fromiter(found, dtype=bool)


def spelling(value: Any) -> float | str:
    """Canonical form of a value: its number, else its text in lower case without extra blanks.

    True and "true" give 1, False and "false" 0.

    Examples:
        >>> spelling(" 1.0"), spelling(True), spelling(" New  York")
        (1.0, 1.0, 'new york')
    """
    text = " ".join(str(value).split()).casefold()
    if text in TRUTH:
        return TRUTH[text]
    number = number_of(text)
    return number + 0.0 if math.isfinite(number) else text  # −0 is 0


def identifiers(column: pd.Series) -> np.ndarray:
    """Identifiers as text, shape (N,), None where a cell is empty.

    A whole number with a point, which a merge, a gap in a column or a spreadsheet makes of one without, is
    the number without: 1001.0, also as text, is "1001". All other texts are as they are.

    Raises:
        RowsError: where a number is rounded, so that several identifiers are one.

    Examples:
        >>> identifiers(pd.Series([1001.0, None, 7.0])).tolist()
        ['1001', None, '7']
    """
    exact = EXACT
    if pd.api.types.is_float_dtype(column) and column.dtype.itemsize == 4:  # represents fewer, as 1e+06
        column, exact = column.astype("Float64"), 2.0**24
    codes, words = words_of(column)
    texts, rounded = [word.strip() or None for word in words], np.zeros(len(words), dtype=bool)
    for k, number in enumerate(map(FLOAT.fullmatch, map(str.strip, words))):
        if number:
            whole, decimals, exponent = number.groups(default="0")
            # 1.23457E+11, as spreadsheets write 123456789012, lacks digits.
            rounded[k] = abs(float(number[0])) >= exact or len(decimals) < int(exponent)
            if not int(exponent + decimals):
                texts[k] = whole
    why = "is a rounded number, where several identifiers are one (as beyond 2^53): write them as text"
    refuse(column, taken(rounded, codes, False), why)
    return taken(np.array(texts, dtype=object), codes, None)


def refuse(column: pd.Series, wrong: np.ndarray | pd.Series, why: str) -> None:
    """Raise RowsError with column, row and value of the first cell that is `wrong` (N,), if any.

    Rows are counted from 1 by an index of whole numbers, which is from before any filtering, else by place.
    """
    bad = np.flatnonzero(wrong).tolist()
    if not bad:
        return
    numbered = pd.api.types.is_integer_dtype(column.index)
    rows, reasons = column.index if numbered else range(len(column)), dict[int, str]()
    for k in bad:
        cell = column.iloc[k]
        told = repr(shown(cell)) if isinstance(cell, str) else "an empty cell" if pd.isna(cell) else cell
        reasons[k] = f"column {column.name!r}, row {rows[k] + 1}: {told} {why}"
    error = RowsError(reasons[bad[0]])
    error.reasons, error.why = reasons, why
    raise error


def shown(text: str, at_most: int = 40) -> str:
    """A text on one line, truncated to `at_most` characters."""
    line = " ".join(text.split())
    return line if len(line) <= at_most else f"{line[:at_most]}..."


def listed(values: list[str], thing: str) -> str:
    """Number of values, and the first five in alphabetical order."""
    some = ", ".join(shown(value, 20) for value in sorted(values)[:5]) + (", ..." if len(values) > 5 else "")
    return f"{count(len(values), thing)} ({some})"
