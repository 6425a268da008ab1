"""Features of a table: names, kinds, possible values, and the number that a cell means."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Self

import numpy as np
import pandas as pd

from fairall.errors import FairAllError, count
from fairall.tables.cells import mean_no_value, parsed, refuse, shown, spelling, taken, words_of


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
NUMBERS = {Kind.REAL: "a finite number", Kind.COUNT: "a count, a whole number from 0"}
LONGEST = 100  # characters of the levels in a message


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
    def discrete(cls, name: str, levels: Sequence[str], *, first_code: int = 1, **further: Any) -> Self:
        """A feature with levels coded `first_code`, `first_code` + 1, ...; binary if there are two.

        `further`: other attributes.
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

    def read(self, column: pd.Series) -> tuple[np.ndarray, np.ndarray]:
        """Numbers and codes of raw cells, texts or numbers, and which cells are unknown, shapes (N,).

        Numbers are NaN where the cell is missing or unknown. Spellings of a level are equivalent
        (`spelling`), those of words that mean no value are not.

        Raises:
            FairAllError: if a cell is neither a number nor a text.
        """
        if pd.api.types.is_numeric_dtype(column) and not self.codes:  # without a text for each number
            numbers = column.to_numpy(dtype=float, na_value=np.nan)
            missing = np.isnan(numbers) | mean_no_value(numbers, self.missing)
        else:
            positions, words = words_of(column)
            none = mean_no_value(map(str.strip, words), self.missing, self.levels)
            meaning = dict(zip(self.words, self.codes, strict=True))
            values = meanings(words, meaning) if meaning else parsed(map(spelling, words))
            numbers, missing = taken(values, positions, np.nan), taken(none, positions, True)
        possible = are_counts(numbers) if self.kind is Kind.COUNT else np.isfinite(numbers)
        known = possible & ~missing
        return np.where(known, numbers, np.nan), ~known & ~missing

    def encode(
        self, column: pd.Series, *, refuse_unknown: bool = False
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Numbers and codes of raw cells, and which cells are unknown and which missing, shapes (N,) each.

        A word that is no level is taken as `fill`, unless `refuse_unknown`, or the column is probably another
        one: of a binary feature, and where no cell is known.

        Raises:
            RowsError: of the cells that the feature cannot take.
        """
        values, unknown = self.read(column)
        missing = np.isnan(values) & ~unknown
        another = self.kind is Kind.BINARY or np.isnan(values).all()
        refuse_unknown = refuse_unknown or not self.levels or (another and OTHER_LEVEL not in self.levels)
        allowed = NUMBERS.get(self.kind) or f"one of {shown(', '.join(self.words), LONGEST)}"
        for rows, value, what in (
            (unknown, None if refuse_unknown else self.fill, "known" if self.codes else "possible"),
            (missing, self.of_missing, "possible"),
        ):
            if value is None:
                refuse(column, rows, f"is not {what}; it must be {allowed}")
            else:
                values[rows] = value
        return values, unknown, missing


def meanings(words: Iterable[str], meaning: Mapping[str, float]) -> np.ndarray:
    """The numbers that words (K,) mean, shape (K,), NaN where a word is none of `meaning`.

    An identical word comes first, then another spelling (`spelling`) that has one meaning only.
    """
    spelt: dict[float | str, float] = {}
    for word, number in meaning.items():
        spelt[spelling(word)] = number if spelt.get(spelling(word), number) == number else np.nan
    numbers = (meaning.get(word.strip(), spelt.get(spelling(word), np.nan)) for word in words)
    return np.fromiter(numbers, dtype=float)


def are_counts(values: np.ndarray, largest: float = LARGEST_COUNT) -> np.ndarray:
    """Which numbers (N,) are whole and from 0 to `largest`, shape (N,), bool."""
    return (values >= 0) & (values <= largest) & (np.floor(values) == values)
