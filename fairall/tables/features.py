"""Features of a table: names, kinds, possible values, and the number that a cell means."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
import pandas as pd

from fairall.errors import FairAllError
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
        n, discrete, texts = len(self.codes), self.kind in DISCRETE, {len(self.levels), len({*self.levels})}
        for fits, wrong in (
            (self.kind is not Kind.BINARY or n == 2, f"is binary, which takes 2 codes, not {n}"),
            (n > 1 or not discrete, f"is {self.kind}, which takes 2 codes or more, not {n}"),
            (discrete or n == 0, f"is {self.kind}, which takes no codes"),
            (all(low < high for low, high in itertools.pairwise(self.codes)), "has codes that do not ascend"),
            (texts <= {0, n}, "needs a text for each code, or none"),
            (not discrete or self.fill in (None, *self.codes), "has a fill that is none of its codes"),
        ):
            if not fits:
                raise FairAllError(f"feature {self.name!r} {wrong}")

    @classmethod
    def discrete(
        cls,
        name: str,
        levels: Sequence[str],
        *,
        first_code: int = 1,
        fill: float | None = None,
        missing: tuple[str, ...] = (),
    ) -> Feature:
        """A feature with levels coded `first_code`, `first_code` + 1, ...; binary if there are two."""
        codes = tuple(map(float, range(first_code, first_code + len(levels))))
        kind = Kind.BINARY if len(codes) == 2 else Kind.CATEGORICAL
        return cls(name, kind, codes, tuple(levels), fill, missing)

    @property
    def words(self) -> tuple[str, ...]:
        """The raw text of each code of a binary or categorical feature."""
        return self.levels or tuple(f"{code:g}" for code in self.codes)

    @property
    def of_missing(self) -> float | None:
        """The value of a missing cell: the code of the level of missing values, else `fill`."""
        missing = MISSING_LEVEL in self.levels
        return self.codes[self.levels.index(MISSING_LEVEL)] if missing else self.fill

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
            values = column.to_numpy(dtype=float, na_value=np.nan)
            values = np.where(np.isin(values, [x for x in absent if isinstance(x, float)]), np.nan, values)
            possible = np.isin(values, self.codes) if self.codes else np.isfinite(values)
            return np.where(possible, values, np.nan), ~possible & ~np.isnan(values)
        positions, values = distinct(column)
        cells = [cell.strip() if isinstance(cell, str) else cell for cell in values]
        meaning = dict(zip(self.words, self.codes, strict=True))
        if exact:
            missing = pd.Series(cells, dtype=object).isin(self.missing).to_numpy()
        else:
            missing = np.array([str(x) not in meaning and spelling(x) in absent for x in cells], dtype=bool)
        if meaning:
            numbers = _meanings(cells, meaning, exact=exact and bool(self.levels))
        else:
            numbers = parsed(cells)
            if not exact:
                for i in np.flatnonzero(np.isnan(numbers)):
                    spelt = spelling(cells[i])
                    numbers[i] = spelt if isinstance(spelt, float) else np.nan
            numbers[np.isinf(numbers)] = np.nan
        numbers[missing] = np.nan
        return taken(numbers, positions, np.nan), taken(np.isnan(numbers) & ~missing, positions, False)

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
            values[rows] = np.nan if value is None else value
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
    for word, means in meaning.items():
        unique = spelt.setdefault(spelling(word), means) == means
        spelt[spelling(word)] = means if unique else np.nan

    def number(cell: Any) -> float:
        known = meaning.get(str(cell).strip())
        if known is not None or (exact and isinstance(cell, str)):
            return np.nan if known is None else known
        return spelt.get(spelling(cell), np.nan)

    return np.array([number(cell) for cell in cells], dtype=float)
