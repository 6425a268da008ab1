"""Inference of a feature from a column of text: kind, levels and imputed value."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType

import numpy as np
import pandas as pd

from fairall.config.words import typed, typed_entry
from fairall.data.cells import FIRST, listed, many_values, refuse, row_number, shown
from fairall.data.csv.config import CsvConfig
from fairall.data.csv.formatted import is_formatted, point_groups_thousands
from fairall.data.features import (
    DISCRETE,
    LARGEST_COUNT,
    MISSING_LEVEL,
    OTHER_LEVEL,
    Feature,
    Kind,
    are_counts,
    numbers_of,
)
from fairall.errors import FairAllError

DATE = re.compile(r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}([T ].*)?|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}([T ].*)?")
LARGEST = 1e30  # larger magnitudes, and ranges below its inverse, cannot be standardised
MOSTLY = 0.5
WRITE_PLAINLY = "is a formatted number: write it, and all others, as digits with a point before decimals"
MOST_WORDS = 5  # proposed for dataset.missing in a message


class LeftOut(Exception):  # noqa: N818
    """A column has no information; the message says why."""


def infer_feature(
    text: pd.Series, train: np.ndarray, config: CsvConfig, numbers: np.ndarray | None = None
) -> Feature:
    """Infer the feature that a column of text holds, None where missing; `numbers` are its `numbers_of`.

    The kind depends on all rows, levels and imputed value on the training rows, whose indices are `train`.

    Raises:
        LeftOut: if the column has no information.
        FairAllError: with column and row of a value that no feature can hold.
    """
    column = _Column(text, train, config, numbers_of(text) if numbers is None else numbers)
    kind = column.declared or column.kind()
    return column.discrete() if kind in DISCRETE else column.numeric(kind)


def infer_features(
    raw: pd.DataFrame,
    train: np.ndarray,
    config: CsvConfig,
    numbers: Mapping[str, np.ndarray] = MappingProxyType({}),
) -> tuple[list[Feature], list[str]]:
    """Features of the columns, and notes on columns that are left out, codes or reduced to some levels."""
    features: list[Feature] = []
    notes = []
    for name in raw:
        try:
            feature = infer_feature(raw[name], train, config, numbers.get(name))
            features.append(feature)
            notes += _told(raw[name], feature, config)
        except LeftOut as reason:
            notes.append(f"column {name!r} is left out: {reason}")
    return features, notes


@dataclass(frozen=True)
class _Column:
    """A column with its numbers, NaN for cells that are not numbers; see `infer_feature`."""

    text: pd.Series
    train: np.ndarray
    config: CsvConfig
    numbers: np.ndarray

    @property
    def name(self) -> str:
        return str(self.text.name)

    @property
    def declared(self) -> Kind | None:
        return Kind(self.config.kinds[self.name]) if self.name in self.config.kinds else None

    @cached_property
    def present(self) -> np.ndarray:
        return self.text.notna().to_numpy()

    def as_kind(self, kind: Kind) -> str:
        """`dataset.kinds=...` as typed in a shell."""
        return typed_entry("dataset.kinds", self.name, kind)

    def kind(self) -> Kind:
        """The kind that all rows suggest; raises as `infer_feature`."""
        values = self.text[self.present]
        if values.empty:
            raise LeftOut("it is empty")
        if not many_values(values, 1) and self.present.all():
            raise LeftOut(f"it is always {shown(values.iloc[0])!r}")
        if not many_values(values, 2):
            return Kind.CATEGORICAL  # two levels make it binary
        found = self.numbers[self.present]
        if (~np.isnan(found)).mean() <= MOSTLY:
            return self.categorical()
        # The first rows often tell that it does not.
        if point_groups_thousands(text for part in (values.head(FIRST), values) for text in part.unique()):
            raise FairAllError(
                f"column {self.name!r} has whole numbers without a point and others with three digits after "
                f"it, such as {values[values.str.contains('.', regex=False)].iloc[0]}: if the point groups "
                f"thousands, remove it; if not, {self.as_kind(Kind.REAL)}"
            )
        first, counted = self.numbers[0], self.numbers[0] + np.arange(len(self.numbers))
        if first in (0, 1) and (self.numbers == counted).all():
            raise LeftOut("it numbers the rows")
        if _are_codes(values):
            return self.categorical()
        few = found[~np.isnan(found)]
        return Kind.COUNT if are_counts(few, self.config.max_count).all() else Kind.REAL

    def categorical(self) -> Kind:
        """The kind of text; raises FairAllError for formatted numbers, dates and free text."""
        values = self.text[self.present]
        distinct = values.nunique()
        row = row_number(self.text, int(self.present.argmax()))
        first = f"column {self.name!r}, row {row}: {shown(values.iloc[0])!r}"
        otherwise = (
            f"leave the column out with {drop_typed(self.name, self.config)}, or take it as it is: "
            f"{self.as_kind(Kind.CATEGORICAL)}"
        )
        not_plain = self.text.isin([*filter(is_formatted, values.unique())]).to_numpy()
        if (not_plain | ~np.isnan(self.numbers))[self.present].mean() > MOSTLY:
            refuse(self.text, not_plain, f"{WRITE_PLAINLY}, or {otherwise}")
        if all(DATE.fullmatch(value) for value in values.unique()):
            raise FairAllError(f"{first} is a date: turn it into a number, as of days, or {otherwise}")
        if distinct > self.config.max_categories and distinct > 0.9 * len(values):
            raise FairAllError(
                f"{first} and {distinct - 1} more values in {len(values)} rows: names, codes and free text "
                f"are not features: {otherwise}"
            )
        return Kind.CATEGORICAL

    def numeric(self, kind: Kind) -> Feature:
        """A real feature or a count; raises as `infer_feature`."""
        numbers = self.numbers
        wrong = self.present & ~np.isfinite(numbers)
        if wrong.any():
            words = list(self.text[wrong].unique())
            remedy = f"is not a finite number: correct it, or, if it means no value, {self.as_missing(words)}"
            why = WRITE_PLAINLY if is_formatted(words[0]) else remedy
            refuse(self.text, wrong, f"{why}, or declare another kind, {self.as_kind(Kind.CATEGORICAL)}")
        refuse(self.text, np.abs(numbers) > LARGEST, f"is beyond {LARGEST:g}: use another unit")
        if kind is Kind.COUNT:
            must = f"is not a count, a whole number from 0 to {LARGEST_COUNT}"
            declare = f"correct it, or declare {self.as_kind(Kind.REAL)}"
            refuse(self.text, self.present & ~are_counts(numbers), f"{must}: {declare}")
        known = numbers[self.train][self.present[self.train]]
        if len(known) == 0:
            raise LeftOut("no training row has a value")
        if np.ptp(known) < 1 / LARGEST:
            raise LeftOut("it does not vary in the training rows")
        fill = float(np.median(known))
        fill = float(np.floor(fill)) if kind is Kind.COUNT else fill
        return Feature(self.name, kind, fill=fill, missing=self.config.no_value)

    def discrete(self) -> Feature:
        """A binary or categorical feature with the levels of the training rows; raises as `infer_feature`."""
        trained, most = self.text.iloc[self.train], self.config.max_categories
        frequencies = trained.where(trained.notna(), MISSING_LEVEL).value_counts()
        if len(frequencies) == 1:
            raise LeftOut("it does not vary in the training rows")
        if self.declared is Kind.BINARY and len(frequencies) != 2:
            raise FairAllError(
                f"column {self.name!r} has {listed(list(frequencies.index), 'value')} and cannot be binary; "
                f"{self.as_kind(Kind.CATEGORICAL)} takes them all"
            )
        # Sort ties in frequency by name, so that the order of the rows does not matter.
        ranked = sorted(frequencies.index, key=lambda level: (-frequencies[level], level))
        kept = {*ranked} if len(ranked) <= most else {*ranked[: most - 1], OTHER_LEVEL}
        all_numbers = bool(np.isfinite(self.numbers[self.present]).all())

        def place(level: str) -> tuple[bool, float, str]:
            """By number or by name, the levels of missing and other values last."""
            special = level in (MISSING_LEVEL, OTHER_LEVEL)
            return special, float(level) if all_numbers and not special else 0.0, level

        levels = sorted(kept, key=place)
        stand_in = OTHER_LEVEL if OTHER_LEVEL in levels else ranked[0]
        fill = float(levels.index(stand_in))
        return Feature.discrete(self.name, levels, first_code=0, fill=fill, missing=self.config.no_value)

    def as_missing(self, words: list[str]) -> str:
        """`dataset.missing=...` as typed in a shell, with `words` added to those already declared."""
        new = [word for word in words[: None if len(words) <= MOST_WORDS else 1] if shown(word) == word]
        return typed("dataset.missing", [*self.config.missing, *new]) if new else "list it in dataset.missing"


def _are_codes(values: pd.Series) -> bool:
    """Whether whole numbers are written with leading zeros, as zip codes are."""
    distinct = pd.Series(values.unique())
    return bool(distinct.str.fullmatch(r"0[0-9]+").any() and distinct.str.fullmatch("[0-9]+").all())


def _told(column: pd.Series, feature: Feature, config: CsvConfig) -> list[str]:
    """Notes on a column read as codes, and on one whose rarer levels are merged."""
    if feature.kind not in DISCRETE:
        return []
    name, values, notes = feature.name, column.dropna(), []
    if name not in config.kinds and values.nunique() > 2 and _are_codes(values):
        code = values[values.str.fullmatch(r"0[0-9]+")].iloc[0]
        notes.append(
            f"column {name!r} has leading zeros, such as {code}, and is taken for codes, not for numbers; if "
            f"they are numbers, {typed_entry('dataset.kinds', name, Kind.REAL)}"
        )
    merged = ~values.isin(feature.levels)
    if OTHER_LEVEL in feature.levels and len(feature.levels) == config.max_categories and merged.any():
        distinct = values.nunique()
        notes.append(
            f"column {name!r}: the {values[merged].nunique()} rarest of its {distinct} values, in "
            f"{int(merged.sum())} of {len(column)} rows, are merged into {OTHER_LEVEL}; "
            f"dataset.max_categories={distinct + 1} keeps all that training rows have"
        )
    return notes


def drop_typed(name: str, config: CsvConfig) -> str:
    """`dataset.drop=...` as typed in a shell, with `name` added to the columns already dropped."""
    return typed("dataset.drop", [*config.drop, name])
