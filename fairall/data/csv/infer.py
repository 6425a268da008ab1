"""Inference of a feature from a column of text: kind, levels and imputed value."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import pandas as pd

from fairall.config.words import typed, typed_entry
from fairall.data.cells import FIRST, listed, many_values, refuse, shown
from fairall.data.csv.config import CsvConfig
from fairall.data.csv.formatted import is_formatted, point_groups_thousands
from fairall.data.features import DISCRETE, MISSING_LEVEL, Feature, Kind, numbers_of
from fairall.errors import FairAllError

OTHER_LEVEL = "(other)"
DATE = re.compile(r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}([T ].*)?|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}([T ].*)?")
LARGEST = 1e30  # larger magnitudes, and ranges below its inverse, cannot be standardised
LARGEST_COUNT = 2**24  # float32 represents every whole number up to here
MOSTLY = 0.5
WRITE_PLAINLY = "is a formatted number: write it, and all others, as digits with a point before decimals"
MOST_WORDS = 5  # proposed for dataset.missing in a message


@dataclass(frozen=True)
class LeftOut:
    """A column without information, and the reason."""

    reason: str


def infer_feature(
    column: pd.Series, train: np.ndarray, config: CsvConfig, numbers: np.ndarray | None = None
) -> Feature | LeftOut:
    """Infer the feature that a column of text holds.

    The kind depends on all rows, levels and imputed value on the training rows.

    Args:
        column: text, None where missing; its name becomes the feature's.
        train: indices of the training rows, shape (M,).
        config: declared kinds, and the limits of inferred ones.
        numbers: `numbers_of` the column, if known.

    Raises:
        FairAllError: with column and row of a value that no feature can hold.
    """
    declared = Kind(config.kinds[column.name]) if column.name in config.kinds else None
    numbers = numbers_of(column) if numbers is None else numbers
    present = column.notna().to_numpy()
    kind = declared or _infer_kind(column, numbers, present, config)
    if isinstance(kind, LeftOut):
        return kind
    if kind in (Kind.REAL, Kind.COUNT):
        return _numeric(column, numbers, present, train, kind, config)
    return _discrete(column.iloc[train], numbers, present, declared, config)


def infer_features(
    raw: pd.DataFrame,
    train: np.ndarray,
    config: CsvConfig,
    numbers: Mapping[str, np.ndarray] = MappingProxyType({}),
) -> tuple[list[Feature], list[str]]:
    """Features of the columns, and notes on columns that are left out, codes or reduced to some levels.

    Arguments as for `infer_feature`; `numbers` are by column.
    """
    features: list[Feature] = []
    notes = []
    for name in raw:
        feature = infer_feature(raw[name], train, config, numbers.get(name))
        if isinstance(feature, LeftOut):
            notes.append(f"column {name!r} is left out: {feature.reason}")
        else:
            features.append(feature)
            notes += _told(raw[name], feature, config)
    return features, notes


def _infer_kind(
    column: pd.Series, numbers: np.ndarray, present: np.ndarray, config: CsvConfig
) -> Kind | LeftOut:
    values = column[present]
    if not present.any():
        return LeftOut("it is empty")
    if not many_values(values, 1) and present.all():
        return LeftOut(f"it is always {shown(values.iloc[0])!r}")
    if not many_values(values, 2):
        return Kind.CATEGORICAL  # two levels make it binary
    numeric = np.isfinite(numbers) | np.isinf(numbers)
    if numeric[present].mean() <= MOSTLY:
        return _infer_text(column, numeric, present, config)
    # The first rows often tell that it does not.
    if point_groups_thousands(text for part in (values.head(FIRST), values) for text in part.unique()):
        raise FairAllError(
            f"column {column.name!r} has whole numbers without a point and others with three digits after "
            f"it, such as {values[values.str.contains('.', regex=False)].iloc[0]}: if the point groups "
            f"thousands, remove it; if not, {typed_entry('dataset.kinds', str(column.name), Kind.REAL)}"
        )
    found = numbers[present & numeric]
    if _counts_rows(numbers):
        return LeftOut("it numbers the rows")
    if _are_codes(values):
        return _infer_text(column, numeric, present, config)
    whole = bool(np.isfinite(found).all() and (found == np.floor(found)).all())
    return Kind.COUNT if whole and found.min() >= 0 and found.max() <= config.max_count else Kind.REAL


def _are_codes(values: pd.Series) -> bool:
    """Whether whole numbers are written with leading zeros, as zip codes are."""
    distinct = pd.Series(values.unique())
    return bool(distinct.str.fullmatch(r"0[0-9]+").any() and distinct.str.fullmatch("[0-9]+").all())


def _told(column: pd.Series, feature: Feature, config: CsvConfig) -> list[str]:
    """Notes on a column whose numbers are taken for codes, and on one whose rarer levels are merged."""
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


def _infer_text(column: pd.Series, numeric: np.ndarray, present: np.ndarray, config: CsvConfig) -> Kind:
    name, values = str(column.name), column[present]
    distinct = values.nunique()
    first = f"column {name!r}, row {int(present.argmax()) + 1}: {shown(values.iloc[0])!r}"

    def otherwise() -> str:
        category = typed_entry("dataset.kinds", name, Kind.CATEGORICAL)
        return f"leave the column out with {drop_typed(name, config)}, or take it as it is: {category}"

    not_plain = column.isin([*filter(is_formatted, values.unique())]).to_numpy()
    if (numeric | not_plain)[present].mean() > MOSTLY:
        refuse(column, not_plain, f"{WRITE_PLAINLY}, or {otherwise()}")
    if all(DATE.fullmatch(value) for value in values.unique()):
        raise FairAllError(f"{first} is a date: turn it into a number, as of days, or {otherwise()}")
    if distinct > config.max_categories and distinct > 0.9 * len(values):
        raise FairAllError(
            f"{first} and {distinct - 1} more values in {len(values)} rows: names, codes and free text are "
            f"not features: {otherwise()}"
        )
    return Kind.CATEGORICAL


def _numeric(
    column: pd.Series,
    numbers: np.ndarray,
    present: np.ndarray,
    train: np.ndarray,
    kind: Kind,
    config: CsvConfig,
) -> Feature | LeftOut:
    name = str(column.name)
    no_number, infinite = present & np.isnan(numbers), np.isinf(numbers)
    if no_number.any():
        words = column[no_number]
        remedy = f"is no number: correct it, {_missing_typed(words, config)}"
        category = typed_entry("dataset.kinds", name, Kind.CATEGORICAL)
        why = (
            f"{WRITE_PLAINLY if is_formatted(words.iloc[0]) else remedy}, or declare another kind, {category}"
        )
        refuse(column, no_number, why)
    if infinite.any():
        refuse(column, infinite, f"is not finite: correct it, {_missing_typed(column[infinite], config)}")
    refuse(column, np.abs(numbers) > LARGEST, f"is beyond {LARGEST:g}: use another unit")
    if kind is Kind.COUNT:
        wrong = present & ~((numbers >= 0) & (numbers <= LARGEST_COUNT) & (numbers == np.floor(numbers)))
        if wrong.any():
            real = typed_entry("dataset.kinds", name, Kind.REAL)
            must = f"a whole number from 0 to {LARGEST_COUNT}"
            refuse(column, wrong, f"is no count, {must}: correct it, or declare {real}")
    known = numbers[train][present[train]]
    if len(known) == 0:
        return LeftOut("no training row has a value")
    if np.ptp(known) < 1 / LARGEST:
        return LeftOut("it does not vary in the training rows")
    fill = float(np.median(known))
    if kind is Kind.COUNT:
        fill = float(np.floor(fill))
    return Feature(name, kind, fill=fill, missing=config.no_value)


def _discrete(
    trained: pd.Series,
    numbers: np.ndarray,
    present: np.ndarray,
    declared: Kind | None,
    config: CsvConfig,
) -> Feature | LeftOut:
    name = str(trained.name)
    frequencies = trained.where(trained.notna(), MISSING_LEVEL).value_counts()
    if len(frequencies) == 1:
        return LeftOut("it does not vary in the training rows")
    if declared is Kind.BINARY and len(frequencies) != 2:
        raise FairAllError(
            f"column {name!r} has {listed(list(frequencies.index), 'value')} and cannot be binary; "
            f"{typed_entry('dataset.kinds', name, Kind.CATEGORICAL)} takes them all"
        )
    # Sort ties in frequency by name, so that the order of the rows does not matter.
    ranked = sorted(frequencies.index, key=lambda level: (-frequencies[level], level))
    kept = set(ranked)
    if len(ranked) > config.max_categories:
        kept = {*ranked[: config.max_categories - 1], OTHER_LEVEL}
    levels = _in_order(kept, all_numbers=bool(np.isfinite(numbers[present]).all()))
    stand_in = OTHER_LEVEL if OTHER_LEVEL in levels else ranked[0]
    return Feature.discrete(
        name, levels, first_code=0, fill=float(levels.index(stand_in)), missing=config.no_value
    )


def _in_order(levels: set[str], *, all_numbers: bool) -> list[str]:
    """Sort by number or by name, with the levels of missing and other values last."""

    def rank(level: str) -> tuple[bool, float, str]:
        special = level in (MISSING_LEVEL, OTHER_LEVEL)
        return special, 0.0 if special or not all_numbers else float(level), level

    return sorted(levels, key=rank)


def _counts_rows(numbers: np.ndarray) -> bool:
    """Whether a column is 0, 1, 2, ... or 1, 2, 3, ..."""
    return numbers[0] in (0, 1) and bool((numbers == numbers[0] + np.arange(len(numbers))).all())


def drop_typed(name: str, config: CsvConfig) -> str:
    """`dataset.drop=...` as typed in a shell, with `name` added to the columns already dropped."""
    return typed("dataset.drop", [*config.drop, name])


def _missing_typed(words: pd.Series, config: CsvConfig) -> str:
    """`dataset.missing=...` as typed in a shell, with `words` added to those already declared."""
    new = list(words.unique())
    new = [word for word in (new if len(new) <= MOST_WORDS else new[:1]) if shown(word) == word]
    word = typed("dataset.missing", [*config.missing, *new]) if new else "list it in dataset.missing"
    return f"or, where it means no value, {word}"
