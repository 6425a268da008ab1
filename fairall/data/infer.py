"""From a column of text to a feature: its kind, its levels, and what stands in for a missing value."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import pandas as pd

from fairall.data.cells import listed, refuse, shown
from fairall.data.features import MISSING_LEVEL, Feature, Kind
from fairall.errors import FairAllError

OTHER_LEVEL = "(other)"
DATE = re.compile(r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}([T ].*)?|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}([T ].*)?")
LARGEST = 1e30  # what is beyond it, or differs by less than one over it, cannot be standardised
LARGEST_COUNT = 2**24  # beyond it float32 cannot tell a whole number from the next
MOSTLY = 0.5


@dataclass(frozen=True)
class LeftOut:
    """A column that says nothing about anybody, and why."""

    reason: str


@dataclass(frozen=True)
class Limits:
    """Where one kind ends and another begins, and what is no value.

    Attributes:
        missing: words that mean a missing value.
        max_categories: levels of a categorical feature, the one of all rarer ones included.
        max_count: columns of whole numbers from 0 up to this are counts.
    """

    missing: tuple[str, ...]
    max_categories: int
    max_count: int


def infer_feature(
    column: pd.Series, train: np.ndarray, *, declared: Kind | None, limits: Limits
) -> Feature | LeftOut:
    """The feature that a column of text holds.

    Its kind comes from all rows; its levels and what stands in for a missing value from the training rows.

    Args:
        column: text, None where missing; its name is the feature's.
        train: rows of training.
        declared: the kind, where the user says it.
        limits: for what is inferred.

    Raises:
        FairAllError: naming column and row of what no feature can hold.
    """
    numbers = pd.to_numeric(column, errors="coerce").to_numpy(dtype=float)
    present = column.notna().to_numpy()
    kind = declared or _infer_kind(column, numbers, present, limits)
    if isinstance(kind, LeftOut):
        return kind
    if kind in (Kind.REAL, Kind.COUNT):
        return _numeric(column, numbers, present, train, kind, limits)
    return _discrete(column.iloc[train], numbers, present, declared, limits)


def _infer_kind(
    column: pd.Series, numbers: np.ndarray, present: np.ndarray, limits: Limits
) -> Kind | LeftOut:
    values = column[present]
    distinct = values.nunique()
    if distinct == 0:
        return LeftOut("it is empty")
    if distinct == 1 and present.all():
        return LeftOut(f"it is always {shown(values.iloc[0])!r}")
    if distinct <= 2:
        return Kind.CATEGORICAL  # two levels make it binary
    numeric = np.isfinite(numbers) | np.isinf(numbers)
    if numeric[present].mean() <= MOSTLY:
        return _infer_text(column, present, distinct, limits)
    found = numbers[present & numeric]
    if _counts_rows(numbers):
        return LeftOut("it numbers the rows")
    whole = bool(np.isfinite(found).all() and (found == np.floor(found)).all())
    return Kind.COUNT if whole and found.min() >= 0 and found.max() <= limits.max_count else Kind.REAL


def _infer_text(column: pd.Series, present: np.ndarray, distinct: int, limits: Limits) -> Kind:
    name, values = str(column.name), column[present]
    first = f"column {name!r}, row {int(present.argmax()) + 1}: {shown(values.iloc[0])!r}"
    mend = (
        f"leave it out with 'dataset.drop=[{_typed(name)}]', or take it as it is: "
        f"{_declared(name, Kind.CATEGORICAL)}"
    )
    if values.map(lambda value: DATE.fullmatch(value) is not None).all():
        raise FairAllError(f"{first} is a date: turn it into a number, as of days; {mend}")
    if distinct > limits.max_categories and distinct > 0.9 * len(values):
        raise FairAllError(
            f"{first} and {distinct - 1} more values in {len(values)} rows: a name or a free text says "
            f"nothing of others; {mend}"
        )
    return Kind.CATEGORICAL


def _numeric(
    column: pd.Series,
    numbers: np.ndarray,
    present: np.ndarray,
    train: np.ndarray,
    kind: Kind,
    limits: Limits,
) -> Feature | LeftOut:
    name = str(column.name)
    category, real = _declared(name, Kind.CATEGORICAL), _declared(name, Kind.REAL)
    no_number = f"is no number: mend it, list it in dataset.missing, or declare another kind, {category}"
    refuse(column, present & np.isnan(numbers), no_number)
    refuse(column, np.isinf(numbers), "is not finite: mend it or list it in dataset.missing")
    refuse(column, np.abs(numbers) > LARGEST, f"is beyond {LARGEST:g}: use another unit")
    if kind is Kind.COUNT:
        wrong = present & ~((numbers >= 0) & (numbers <= LARGEST_COUNT) & (numbers == np.floor(numbers)))
        refuse(
            column,
            wrong,
            f"is no count, a whole number from 0 to {LARGEST_COUNT}: mend it, or declare {real}",
        )
    known = numbers[train][present[train]]
    if len(known) == 0:
        return LeftOut("no training row has a value")
    if np.ptp(known) < 1 / LARGEST:
        return LeftOut("it does not vary in the training rows")
    fill = float(np.median(known))
    if kind is Kind.COUNT:
        fill = float(np.floor(fill))
    return Feature(name, kind, fill=fill, missing=limits.missing)


def _discrete(
    trained: pd.Series,
    numbers: np.ndarray,
    present: np.ndarray,
    declared: Kind | None,
    limits: Limits,
) -> Feature | LeftOut:
    name = str(trained.name)
    frequencies = trained.where(trained.notna(), MISSING_LEVEL).value_counts()
    if len(frequencies) == 1:
        return LeftOut("it does not vary in the training rows")
    if declared is Kind.BINARY and len(frequencies) != 2:
        raise FairAllError(
            f"column {name!r} has {listed(list(frequencies.index), 'value')} and cannot be binary; "
            f"{_declared(name, Kind.CATEGORICAL)} takes them all"
        )
    # Ties in frequency are settled by name, so that the order of the rows does not matter.
    ranked = sorted(frequencies.index, key=lambda level: (-frequencies[level], level))
    kept = set(ranked)
    if len(ranked) > limits.max_categories:
        kept = {*ranked[: limits.max_categories - 1], OTHER_LEVEL}
    levels = _in_order(kept, all_numbers=bool(np.isfinite(numbers[present]).all()))
    stand_in = OTHER_LEVEL if OTHER_LEVEL in levels else ranked[0]
    return Feature.discrete(
        name, levels, first_code=0, fill=float(levels.index(stand_in)), missing=limits.missing
    )


def _in_order(levels: set[str], *, all_numbers: bool) -> list[str]:
    """By number or by name; the levels for missing and other values last."""

    def rank(level: str) -> tuple[bool, float, str]:
        special = level in (MISSING_LEVEL, OTHER_LEVEL)
        return special, 0.0 if special or not all_numbers else float(level), level

    return sorted(levels, key=rank)


def _counts_rows(numbers: np.ndarray) -> bool:
    """Whether a column is 0, 1, 2, ... or 1, 2, 3, ..."""
    return numbers[0] in (0, 1) and bool((numbers == numbers[0] + np.arange(len(numbers))).all())


def _declared(name: str, kind: Kind) -> str:
    return f"'dataset.kinds={{{_typed(name)}: {kind}}}'"


def _typed(name: str) -> str:
    """The name of a column as it is typed within a list or a mapping of the command line."""
    return re.sub(r"([\\()\[\]{}:=,])", r"\\\1", name)
