"""Inference of features from columns: kind from all rows, levels and imputed value from training rows."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from fairall.errors import FairAllError
from fairall.tables.cells import (
    EXACT,
    is_text,
    listed,
    numbers_of,
    parsed,
    refuse,
    shown,
    taken,
    words_of,
)
from fairall.tables.declared import Declared
from fairall.tables.features import (
    DISCRETE,
    LARGEST_COUNT,
    MISSING_LEVEL,
    OTHER_LEVEL,
    Feature,
    Kind,
    are_counts,
)
from fairall.tables.formatted import is_formatted, point_groups_thousands

DATE = re.compile(r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}([T ].*)?|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}([T ].*)?")
LARGEST = 1e30  # larger magnitudes, and ranges below its inverse, cannot be standardised
FIRST = 1000  # rows looked at before all
POSTAL = re.compile(r".*(?:zip|postal|post_?code|plz).*", re.IGNORECASE)
INDEX = re.compile(r"column \d+|Unnamed: \d+|index|level_0", re.IGNORECASE)
# Last words of names of identifiers, and words of names of quantities.
IDENTIFIER = {
    *"id ids uid uuid guid key ref reference ssn phone account no nr num number".split(),
    *"userid clientid personid customerid".split(),
}
QUANTITY = {
    *"income salary wage wages earnings revenue turnover profit sales budget capital assets deposit".split(),
    *"amount loan credit debt mortgage rent premium balance price cost costs fee fees tax expenses".split(),
    *"charge spending payment value limit area size count population".split(),
}
RANDOM = 1e5  # random identifiers have six digits or more


class LeftOut(Exception):  # noqa: N818
    """A column is no feature; the message says why."""


@dataclass(frozen=True)
class Column:
    """A column that may be a feature.

    Attributes:
        cells: of the N rows.
        declared: meanings of columns.
    """

    cells: pd.Series
    declared: Declared

    @property
    def name(self) -> str:
        """Its name."""
        return str(self.cells.name)

    @cached_property
    def numbers(self) -> np.ndarray:
        """`cells.numbers_of` the column, shape (N,)."""
        return numbers_of(self.cells)

    @cached_property
    def words(self) -> tuple[np.ndarray, np.ndarray]:
        """`cells.words_of` the column: codes (N,) and words (K,)."""
        return words_of(self.cells)

    @cached_property
    def of_codes(self) -> bool:
        """Whether numbers are codes, by leading zeros or the name of the column."""
        return POSTAL.fullmatch(self.name) is not None or (
            is_text(self.cells)
            and all(map(str.isdecimal, self.words[1]))
            and any(re.match("0.", word) for word in self.words[1])
        )

    def as_kind(self, kind: str) -> str:
        """The key that declares a kind."""
        return f"kinds={{{self.name}: {kind}}}"

    def kind(self) -> Kind:
        """The declared kind, or that which all rows suggest.

        Raises:
            LeftOut: if the column has no information, or identifies people.
            FairAllError: with column and row of a value that no feature can hold.
        """
        kind = Kind(self.declared.kinds.get(self.name) or self._suggested())
        possible, what = np.abs(self.numbers) <= LARGEST, f"finite number up to {LARGEST:g}"
        if kind is Kind.COUNT:
            possible, what = are_counts(self.numbers), f"count, from 0 to {LARGEST_COUNT}"
        if kind not in DISCRETE:
            other = (
                f"list it in missing= if it means no value, or declare another kind, {self.as_kind('KIND')}"
            )
            refuse(self.cells, self.cells.notna() & ~possible, f"is not a {what}: correct it, {other}")
        return kind

    def feature(self, kind: Kind, train: np.ndarray) -> Feature:
        """The feature of a kind, with levels and imputed value of the training rows (indices `train`).

        Raises:
            LeftOut: if the column does not vary in them.
            FairAllError: if it is declared as binary and has another number of values.
        """
        if kind in DISCRETE:
            return self._discrete(train)
        known = pd.Series(self.numbers[train])
        if not known.max() - known.min() >= 1 / LARGEST:
            raise LeftOut("it does not vary in the training rows")
        fill = float(known.median())
        fill = fill // 1 if kind is Kind.COUNT else fill
        return Feature(self.name, kind, fill=fill, missing=self.declared.no_value)

    def values(self, feature: Feature) -> np.ndarray:
        """Numbers or codes of the N rows as its feature, NaN where a number is missing, shape (N,)."""
        if feature.kind not in DISCRETE:
            return self.numbers
        values, unknown = feature.read(self.cells)
        values[np.isnan(values)] = feature.of_missing
        values[unknown] = feature.fill
        return values

    def remarks(self, feature: Feature) -> list[str]:
        """Notes where the column is read as codes, and where its rarer levels are merged."""
        if feature.kind not in DISCRETE:
            return []
        words, notes = self.words[1], list[str]()
        if self.of_codes and len(words) > 2 and np.isfinite(self.numbers).any():
            notes.append(
                f"column {self.name!r} holds codes; {self.as_kind(Kind.REAL)} takes them for numbers"
            )
        merged = int(feature.read(pd.Series(words))[1].sum())
        if merged and OTHER_LEVEL in feature.levels:
            notes.append(
                f"column {self.name!r}: the {merged} rarest of its {len(words)} values are merged into "
                f"{OTHER_LEVEL}; max_categories={len(words) + 1} keeps all"
            )
        return notes

    def _suggested(self) -> Kind:
        n = int(self.cells.notna().sum())
        if n == 0:
            raise LeftOut("it is empty")
        if all(cells.nunique() <= 2 for cells in (self.cells.head(FIRST), self.cells)):
            first, *others = self.cells.dropna().unique()
            if not others and n == len(self.cells):
                raise LeftOut(f"it is always {shown(str(first))!r}")
            return Kind.CATEGORICAL  # two levels make it binary
        numbers = self.numbers[~np.isnan(self.numbers)]
        if 2 * len(numbers) > n:
            if is_text(self.cells) and point_groups_thousands(list(self.words[1])):
                raise FairAllError(
                    f"column {self.name!r}: if the point of numbers such as 1.250 groups thousands, remove "
                    f"it; if not, declare {self.as_kind(Kind.REAL)}"
                )
            if why := self._identifies(numbers):
                raise LeftOut(f"{why}; {self.as_kind(Kind.REAL)} keeps it")
            if not self.of_codes:
                return Kind.COUNT if are_counts(numbers, self.declared.max_count).all() else Kind.REAL
        self._refuse_text(n)
        return Kind.CATEGORICAL

    def _refuse_text(self, n: int) -> None:
        """Raise FairAllError for formatted numbers, dates and free text in `n` rows."""
        codes, words = self.words
        formatted = taken(np.array([*map(is_formatted, words)]), codes, False)
        if formatted.any() and 2 * (formatted | np.isfinite(self.numbers)).sum() > n:
            wrong, why = formatted, "is a formatted number: write all as digits with a decimal point"
        elif all(map(DATE.fullmatch, words)):
            wrong, why = codes >= 0, "is a date: turn it into a number, as of days"
        else:
            wrong = (codes >= 0) & (len(words) > max(self.declared.max_categories, 0.9 * n))
            why = f"and {len(words) - 1} more values in {n} rows: names, codes and free text are no features"
        why += f"; drop={self.name} leaves it out, {self.as_kind(Kind.CATEGORICAL)} takes it"
        refuse(self.cells, wrong, why)

    def _discrete(self, train: np.ndarray) -> Feature:
        codes, words = self.words
        names = [*words, MISSING_LEVEL]
        times = {names[code]: n for code, n in pd.Series(codes[train]).value_counts().items()}
        if len(times) == 1:
            raise LeftOut("it does not vary in the training rows")
        if self.declared.kinds.get(self.name) == Kind.BINARY and len(times) != 2:
            has = f"column {self.name!r} has {listed([*times], 'value')} and cannot be binary"
            raise FairAllError(f"{has}: {self.as_kind(Kind.CATEGORICAL)} takes them all")
        # Sort ties in frequency by name, so that the order of the rows does not matter.
        levels = sorted(times, key=lambda level: (-times[level], level))
        most_frequent = levels[0]
        if len(levels) > self.declared.max_categories:
            levels = [*{*levels[: self.declared.max_categories - 1], OTHER_LEVEL}]
        # By number or by name, the levels of missing and other values last.
        values = parsed(words)
        number = dict(zip(words, values, strict=True)) if np.isfinite(values).all() else {}
        levels.sort(
            key=lambda level: (level == OTHER_LEVEL, level == MISSING_LEVEL, number.get(level, 0), level)
        )
        fill = float(levels.index(OTHER_LEVEL if OTHER_LEVEL in levels else most_frequent))
        return Feature.discrete(self.name, levels, first_code=0, fill=fill, missing=self.declared.no_value)

    def _identifies(self, numbers: np.ndarray) -> str:
        """Why numbers (N,) tell who or when somebody is, in words; empty where they may be a feature."""
        if (np.floor(numbers) < numbers).any():
            return ""
        n, low, high, n_distinct = len(numbers), numbers.min(), numbers.max(), len(pd.unique(numbers))
        if low >= EXACT and high <= 2.0**64:
            return "it holds whole numbers beyond 2^53, as identifiers have"
        if n_distinct <= min(self.declared.max_categories, n - 1):
            return ""
        if any(1e9 * unit <= low and high < 2.2e9 * unit for unit in (1, 1e3, 1e6)):  # 2001 to 2039
            return "it holds Unix times"
        if self.of_codes:
            return "nearly every row has another code" if n_distinct > 0.9 * n else ""
        words = name_words(self.name)
        if n_distinct == n:
            # So many different numbers of so short a range are consecutive but for some that are absent.
            if high - low < (2 * n if n > self.declared.max_categories else n):
                return "it numbers the rows"
            unit = 10.0 ** np.floor(np.log10(max(high, 1)))
            middle = 4 <= np.median(numbers) // unit <= 6  # first digit
            random = unit >= RANDOM and low < 2 * unit and middle and high >= 9 * unit
            if INDEX.fullmatch(self.name) or (random and not QUANTITY.intersection(words)):
                return "it has another whole number in each row, as an index or an identifier has"
        named = INDEX.fullmatch(self.name) or IDENTIFIER.intersection(words[-1:])
        return "its name is that of an identifier" if named else ""


def name_words(name: str) -> list[str]:
    """Words of a name in lower case, split where letters end and at capitals within them.

    Examples:
        >>> name_words("loan_no"), name_words("LoanNo")
        (['loan', 'no'], ['loan', 'no'])
    """
    return [word.lower() for word in re.split(r"[\W_]+|(?<=[a-z])(?=[A-Z])", name) if word]
