"""Features of a table: names, kinds, possible values, and the number that a cell means."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
import pandas as pd

from fairall.errors import FairAllError, count
from fairall.tables.cells import distinct, parsed, refuse, spelling, taken


class Kind(StrEnum):
    """Kind of a feature, which determines its likelihood p(x | z, s)."""

    REAL = "real"
    COUNT = "count"
    BINARY = "binary"
    CATEGORICAL = "categorical"


MISSING_LEVEL = "(missing)"  # level of missing values, if the training rows have any
OTHER_LEVEL = "(other)"  # level of all values that are no level
LARGEST_COUNT = 2**24  # float32 represents every whole number up to here
RESERVED = ("s", "label")
WHY_RESERVED = """cannot be a feature: tables that hold features beside the sensitive attribute and the \
label need the name"""
DISCRETE = (Kind.BINARY, Kind.CATEGORICAL)


@dataclass(frozen=True)
class Feature:
    """One column of x.

    Attributes:
        name: column name in the table.
        kind: real, count, binary or categorical.
        codes: possible values of a binary (two) or categorical column, ascending; empty otherwise.
        levels: raw text of each code; empty if codes are the raw values.
        fill: value or code imputed for missing values and those not in `levels`; None if neither is
            allowed. Not used for missing values if these are a level.
        missing: texts that mean a missing value.
    """

    name: str
    kind: Kind
    codes: tuple[float, ...] = ()
    levels: tuple[str, ...] = ()
    fill: float | None = None
    missing: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Raise FairAllError if codes, levels and imputed value do not fit the kind and each other."""
        n, texts = len(self.codes), {len(self.levels), len({*self.levels})}
        fits = {Kind.BINARY: n == 2, Kind.CATEGORICAL: n > 1}.get(self.kind, n == 0)
        for right, wrong in (
            (fits, f"is {self.kind}, and cannot have {count(n, 'code')}"),
            ([*self.codes] == sorted({*self.codes}), "has codes that do not ascend"),
            (texts <= {0, n}, "needs a text for each code, or none"),
            (n == 0 or self.fill in (None, *self.codes), "has a fill that is none of its codes"),
        ):
            if not right:
                raise FairAllError(f"feature {self.name!r} {wrong}")

    @classmethod
    def discrete(cls, name: str, levels: Sequence[str], *, first_code: int = 1, **further: Any) -> Feature:
        """A feature with levels coded `first_code`, `first_code` + 1, ...; binary if there are two.

        `further`: `fill` and `missing`.
        """
        codes = tuple(map(float, range(first_code, first_code + len(levels))))
        kind = Kind.BINARY if len(codes) == 2 else Kind.CATEGORICAL
        return cls(name, kind, codes, tuple(levels), **further)

    @property
    def words(self) -> tuple[str, ...]:
        """The raw text of each code of a binary or categorical feature."""
        return self.levels or tuple(f"{code:g}" for code in self.codes)

    @property
    def of_missing(self) -> float | None:
        """The value of a missing cell: the code of the level of missing values, else `fill`."""
        return dict(zip(self.levels, self.codes, strict=False)).get(MISSING_LEVEL, self.fill)

    def read(self, column: pd.Series, *, exact: bool = True) -> tuple[np.ndarray, np.ndarray]:
        """Numbers and codes of raw cells, texts or numbers, and which cells are unknown, shapes (N,).

        Numbers are NaN where the cell is missing or unknown. Numbers and truth values match the level that
        spells them (`spelling`); with `exact` a text must equal a level or a word in `missing`, as in a
        training file.

        Raises:
            FairAllError: if a cell is neither a number nor a text.
        """
        absent = {spelling(word) for word in self.missing}
        if pd.api.types.is_numeric_dtype(column) and not self.levels:
            numbers = column.to_numpy(dtype=float, na_value=np.nan)
            missing = np.isnan(numbers) | np.isin(numbers, [x for x in absent if isinstance(x, float)])
        else:
            positions, cells = distinct(column)
            meaning = dict(zip(self.words, self.codes, strict=True))
            texts = [str(cell).strip() for cell in cells]
            none = [
                text not in meaning and (text in self.missing if exact else spelling(text) in absent)
                for text in texts
            ]
            if meaning:
                values = _meanings(cells, meaning, exact=exact and bool(self.levels))
            else:
                values = parsed(cells)
                if not exact:
                    others = np.flatnonzero(np.isnan(values))  # such as True
                    values[others] = parsed([spelling(texts[k]) for k in others])
            numbers, missing = taken(values, positions, np.nan), taken(np.array(none, bool), positions, True)
        possible = np.isin(numbers, self.codes) if self.codes else np.isfinite(numbers)
        return np.where(possible & ~missing, numbers, np.nan), ~possible & ~missing

    def encode(self, column: pd.Series) -> np.ndarray:
        """Numbers for the raw values of a column, shape (N,).

        Raises:
            FairAllError: with column and row (from 1) of a value that the feature cannot take.
        """
        values, unknown = self.read(column)
        allowed = f"one of {', '.join(self.words)}" if self.codes else "a finite number"
        missing = np.isnan(values) & ~unknown
        # A text that is no level is one of the merged ones; a number must be possible.
        for rows, value in ((unknown, self.fill if self.levels else None), (missing, self.of_missing)):
            if value is None:
                refuse(column, rows, f"is not possible; it must be {allowed}")
            else:
                values[rows] = value
        return values


def of_words(column: pd.Series, meaning: Mapping[str, float]) -> np.ndarray:
    """The number that each cell means, shape (N,), NaN where it is missing or spells no word of `meaning`."""
    positions, values = distinct(column)
    return taken(_meanings(values, meaning), positions, np.nan)


def are_counts(values: np.ndarray, largest: float = LARGEST_COUNT) -> np.ndarray:
    """Which numbers (N,) are whole and from 0 to `largest`, shape (N,), bool."""
    return (values >= 0) & (values <= largest) & (np.floor(values) == values)


def _meanings(cells: Iterable[Any], meaning: Mapping[str, float], *, exact: bool = False) -> np.ndarray:
    """Numbers of cells by identical text, then by other spellings of a word; `exact` texts have none.

    Spellings of words with different meanings have none.
    """
    spelt: dict[float | str, float] = {}
    for word, code in meaning.items():
        first = spelt.setdefault(spelling(word), code)
        spelt[spelling(word)] = code if first == code else np.nan

    def number(cell: Any) -> float:
        text = str(cell).strip()
        other = np.nan if exact and isinstance(cell, str) else spelt.get(spelling(cell), np.nan)
        return meaning.get(text, other)

    return np.array([number(cell) for cell in cells], dtype=float)
