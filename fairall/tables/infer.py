"""Inference of features from columns: kind from all rows, levels and imputed value from training rows."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
from scipy.stats import kstest

from fairall.errors import FairAllError
from fairall.tables.cells import (
    EXACT,
    is_text,
    listed,
    many_values,
    parsed,
    refuse,
    row_number,
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
    RESERVED,
    WHY_RESERVED,
    Feature,
    Kind,
    are_counts,
)
from fairall.tables.formatted import is_formatted, point_groups_thousands

DATE = re.compile(r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}([T ].*)?|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}([T ].*)?")
LARGEST = 1e30  # larger magnitudes, and ranges below its inverse, cannot be standardised
MOSTLY = 0.5
WRITE_PLAINLY = "is a formatted number: write it, and all others, as digits with a point before decimals"
MOST_WORDS = 5  # proposed for dataset.missing in a message
# Names of identifiers, of postal codes, of a table's index, and of quantities, which are no identifiers.
IDENTIFIER = re.compile(
    r"(?i:(?:.*[\W_])?(?:id|ids|uid|uuid|guid|key|ref|reference|ssn|phone|account|(?:account|loan|case|client|"
    r"customer|person|application|payment|policy)[\W_]?(?:no|nr|num|number))|index|(?:user|client|person|"
    r"customer)id)|.*[a-z](?:Id|ID|No|Nr)"
)
POSTAL = re.compile(r".*(?:zip|postal|post_?code|plz).*", re.IGNORECASE)
INDEX = re.compile(r"column \d+|Unnamed: \d+|index|level_0", re.IGNORECASE)
QUANTITY = re.compile(
    r"(?:.*[\W_])?(?:income|salary|salarie|wage|earning|revenue|turnover|profit|sale|budget|capital|asset|"
    r"deposit|amount|loan|credit|debt|mortgage|rent|premium|balance|price|cost|fee|tax|taxe|expense|charge|"
    r"spend|spending|payment|value|limit|area|size|count|population)s?(?:[\W_].*)?",
    re.IGNORECASE,
)
LEADING_ZERO = re.compile("0[0-9]+")
IMPROBABLE = 14.0  # −ln of the probability that no two of so many random whole numbers are equal
FEWEST_DIGITS = 6  # of random identifiers, which are spread evenly over all numbers of so many digits
UNIX_TIMES = (1e9, 2.2e9)  # seconds, 2001 to 2039; also in units of 1/1000
ALPHA = 1e-3  # level of the test that numbers are spread evenly over a range of digits


class LeftOut(Exception):  # noqa: N818
    """A column is no feature; the message says why."""


@dataclass(frozen=True)
class Candidate:
    """A column that may be a feature.

    Attributes:
        cells: of the N rows.
        declared: meanings of columns.
        numbers: `cells.numbers_of` the column, shape (N,).
    """

    cells: pd.Series
    declared: Declared
    numbers: np.ndarray

    @property
    def name(self) -> str:
        """Its name."""
        return str(self.cells.name)

    @cached_property
    def present(self) -> np.ndarray:
        """Which cells are not missing, shape (N,), bool."""
        return self.cells.notna().to_numpy()

    @cached_property
    def words(self) -> tuple[np.ndarray, np.ndarray]:
        """`cells.words_of` the column: codes (N,) and words (K,)."""
        return words_of(self.cells)

    def as_kind(self, kind: Kind) -> str:
        """The word that declares a kind."""
        return f"kinds={{{self.name}: {kind}}}"

    def kind(self) -> Kind:
        """The declared kind, or that which all rows suggest.

        Raises:
            LeftOut: if the column has no information, or identifies people.
            FairAllError: with column and row of a value that no feature can hold.
        """
        declared = self.declared.kinds.get(self.name)
        kind = Kind(declared) if declared else self._suggested()
        if kind not in DISCRETE:
            self._require_numbers(kind)
        if self.name in RESERVED:
            raise FairAllError(f"column {self.name!r} {WHY_RESERVED}; rename it, or drop={self.name}")
        return kind

    def feature(self, kind: Kind, train: np.ndarray) -> Feature:
        """The feature of a kind, with levels and imputed value of the training rows (indices `train`).

        Raises:
            LeftOut: if the column does not vary in them.
            FairAllError: if it is declared as binary and has another number of values.
        """
        return self._discrete(train) if kind in DISCRETE else self._numeric(kind, train)

    def remarks(self, feature: Feature) -> list[str]:
        """Notes where the column is read as codes, and where its rarer levels are merged."""
        if feature.kind not in DISCRETE:
            return []
        name, declared, notes, why = self.name, self.declared, list[str](), ""
        codes, words = self.words
        if len(words) > 2 and is_text(self.cells) and _are_codes(words):
            code = next(word for word in words if LEADING_ZERO.fullmatch(word))
            why = f"has leading zeros, such as {code}, and is taken for codes"
        elif POSTAL.fullmatch(name) and np.isfinite(parsed(list(words))).all():
            why = "is taken for postal codes"
        if why and name not in declared.kinds:
            notes.append(
                f"column {name!r} {why}, not for numbers; if they are numbers, {self.as_kind(Kind.REAL)}"
            )
        merged = ~np.isin(words, feature.levels)
        n = int(taken(merged, codes, False).sum())
        if OTHER_LEVEL in feature.levels and len(feature.levels) == declared.max_categories and n:
            more = f"max_categories={len(words) + 1}"
            notes.append(
                f"column {name!r}: the {int(merged.sum())} rarest of its {len(words)} values, in {n} of "
                f"{len(codes)} rows, are merged into {OTHER_LEVEL}; {more} keeps all that training rows have"
            )
        return notes

    def _suggested(self) -> Kind:
        if not self.present.any():
            raise LeftOut("it is empty")
        values = self.cells.dropna()
        if not many_values(values, 1) and self.present.all():
            raise LeftOut(f"it is always {shown(str(values.iloc[0]))!r}")
        if not many_values(values, 2):
            return Kind.CATEGORICAL  # two levels make it binary
        numbers = self.numbers[~np.isnan(self.numbers)]
        if len(numbers) <= MOSTLY * self.present.sum():
            return self._categorical()
        if is_text(self.cells):
            # The first rows often tell that it does not.
            _, words = self.words
            if point_groups_thousands(words):
                pointed = next(word for word in words if "." in word)
                raise FairAllError(
                    f"column {self.name!r} has whole numbers without a point and others with three digits "
                    f"after it, such as {pointed}: if the point groups thousands, remove it; if not, "
                    f"{self.as_kind(Kind.REAL)}"
                )
        codes = is_text(self.cells) and _are_codes(self.words[1])
        if why := _identifies(self.name, numbers, self.declared.max_categories, codes=codes):
            raise LeftOut(f"{why}; {self.as_kind(Kind.REAL)} keeps it")
        if codes or POSTAL.fullmatch(self.name):
            return self._categorical()
        return Kind.COUNT if are_counts(numbers, self.declared.max_count).all() else Kind.REAL

    def _categorical(self) -> Kind:
        """The kind of text; raises FairAllError for formatted numbers, dates and free text."""
        n, first = int(self.present.sum()), int(self.present.argmax())
        drop, as_it_is = f"drop={self.name}", self.as_kind(Kind.CATEGORICAL)
        otherwise = f"leave the column out with {drop}, or take it as it is: {as_it_is}"
        codes, words = self.words
        cell = shown(words[codes[first]])
        told = f"column {self.name!r}, row {row_number(self.cells, first)}: {cell!r}"
        formatted = np.array([is_formatted(word) for word in words], dtype=bool)
        not_plain = taken(formatted, codes, False)
        if not_plain.any() and (not_plain | ~np.isnan(self.numbers))[self.present].mean() > MOSTLY:
            refuse(self.cells, not_plain, f"{WRITE_PLAINLY}, or {otherwise}")
        if all(DATE.fullmatch(word) for word in words):
            raise FairAllError(f"{told} is a date: turn it into a number, as of days, or {otherwise}")
        if len(words) > self.declared.max_categories and len(words) > 0.9 * n:
            raise FairAllError(
                f"{told} and {len(words) - 1} more values in {n} rows: names, codes and free text "
                f"are not features: {otherwise}"
            )
        return Kind.CATEGORICAL

    def _require_numbers(self, kind: Kind) -> None:
        """Raise FairAllError with column and row of a cell that is no number of the kind."""
        numbers, cells = self.numbers, self.cells
        wrong = self.present & ~np.isfinite(numbers)
        if wrong.any():
            words, missing = [str(word) for word in cells[wrong].unique()], "list it in missing="
            why = f"is not a finite number: correct it, or, if it means no value, {missing}"
            why = WRITE_PLAINLY if is_formatted(words[0]) else why
            refuse(cells, wrong, f"{why}, or declare another kind, {self.as_kind(Kind.CATEGORICAL)}")
        refuse(cells, np.abs(numbers) > LARGEST, f"is beyond {LARGEST:g}: use another unit")
        no_count = self.present & ~are_counts(numbers)
        if kind is Kind.COUNT and no_count.any():
            must = f"is not a count, a whole number from 0 to {LARGEST_COUNT}"
            refuse(cells, no_count, f"{must}: correct it, or declare {self.as_kind(Kind.REAL)}")

    def _numeric(self, kind: Kind, train: np.ndarray) -> Feature:
        known = self.numbers[train][self.present[train]]
        if len(known) == 0:
            raise LeftOut("no training row has a value")
        if np.ptp(known) < 1 / LARGEST:
            raise LeftOut("it does not vary in the training rows")
        fill = float(np.median(known))
        fill = float(np.floor(fill)) if kind is Kind.COUNT else fill
        return Feature(self.name, kind, fill=fill, missing=self.declared.no_value)

    def _discrete(self, train: np.ndarray) -> Feature:
        codes, words = self.words
        most = self.declared.max_categories
        times = np.bincount(np.where(codes < 0, len(words), codes)[train], minlength=len(words) + 1)
        frequencies = {word: n for word, n in zip([*words, MISSING_LEVEL], times.tolist(), strict=True) if n}
        if len(frequencies) == 1:
            raise LeftOut("it does not vary in the training rows")
        if self.declared.kinds.get(self.name) == Kind.BINARY and len(frequencies) != 2:
            raise FairAllError(
                f"column {self.name!r} has {listed(list(frequencies), 'value')} and cannot be binary; "
                f"{self.as_kind(Kind.CATEGORICAL)} takes them all"
            )
        # Sort ties in frequency by name, so that the order of the rows does not matter.
        ranked = sorted(frequencies, key=lambda level: (-frequencies[level], level))
        kept = {*ranked} if len(ranked) <= most else {*ranked[: most - 1], OTHER_LEVEL}
        all_numbers = bool(np.isfinite(self.numbers[self.present]).all())

        # By number or by name, the levels of missing and other values last.
        last = [level for level in (MISSING_LEVEL, OTHER_LEVEL) if level in kept]
        by_name = sorted(kept.difference(last))
        levels = [*(sorted(by_name, key=float) if all_numbers else by_name), *last]
        stand_in = OTHER_LEVEL if OTHER_LEVEL in levels else ranked[0]
        fill = float(levels.index(stand_in))
        return Feature.discrete(self.name, levels, first_code=0, fill=fill, missing=self.declared.no_value)


def _identifies(name: str, numbers: np.ndarray, max_categories: int, *, codes: bool) -> str | None:
    """Why numbers tell who or when somebody is, in words; None where they may be a feature.

    Whole numbers that are all different identify rows if they are consecutive; if random numbers from their
    range, or any less even ones, would hardly be all different; or if they are spread evenly over all numbers
    of so many digits. The name decides where they repeat.

    Args:
        name: of the column.
        numbers: in its cells, shape (N,).
        max_categories: most levels of a categorical feature.
        codes: whether some have leading zeros.
    """
    n = len(numbers)
    if not (np.floor(numbers) == numbers).all():
        return None
    low, high, size = numbers.min(), numbers.max(), np.abs(numbers)
    if size.min() >= EXACT and size.max() <= 2.0**64:
        return "it holds whole numbers beyond 2^53, as identifiers have"
    if not many_values(pd.Series(numbers), min(max_categories, n - 1)):
        return None
    if any(unit * UNIX_TIMES[0] <= low and high < unit * UNIX_TIMES[1] for unit in (1, 1e3, 1e6)):
        return "it holds Unix times"
    n_distinct, span, digits = len(np.unique(numbers)), high - low + 1, len(f"{high:.0f}")
    if (codes or POSTAL.fullmatch(name)) and n_distinct > 0.9 * n:
        return "nearly every row has another code"
    identifier = not codes and IDENTIFIER.fullmatch(name) is not None
    if n_distinct == n and not codes:
        if span == n:
            return "it numbers the rows"
        if INDEX.fullmatch(name) or identifier or not QUANTITY.fullmatch(name):
            ranges = [(10.0 ** (digits - 1), 10.0**digits), (0.0, 10.0**digits)]
            even = any(
                low >= start and kstest(numbers, "uniform", (start, end - start)).pvalue > ALPHA
                for start, end in ranges
                if digits >= FEWEST_DIGITS
            )
            if even or n * (n - 1) / (2 * span) > IMPROBABLE or INDEX.fullmatch(name):
                return "it has another whole number in each row, as an index or an identifier has"
    return "its name is that of an identifier" if identifier else None


def _are_codes(words: np.ndarray) -> bool:
    """Whether whole numbers are written with leading zeros, as zip codes are."""
    # Most columns of texts begin with a word that is no whole number, after which nothing else is looked at.
    return all(word.isascii() and word.isdecimal() for word in words) and any(
        LEADING_ZERO.fullmatch(word) for word in words
    )
