"""What the columns of a table mean: names, kinds and values of the features."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

import numpy as np
import pandas as pd

from fairall.data.cells import refuse
from fairall.errors import FairAllError


class Kind(StrEnum):
    """The kind of a feature, which decides its likelihood p(x | z, s)."""

    REAL = "real"
    COUNT = "count"
    BINARY = "binary"
    CATEGORICAL = "categorical"


MISSING_LEVEL = "(missing)"  # the level of missing values, where the training rows have any
RESERVED = ("s", "label")
DISCRETE = (Kind.BINARY, Kind.CATEGORICAL)


def as_number(text: str) -> float | None:
    """The number a text spells, if it does."""
    try:
        return float(text)
    except ValueError:
        return None


@dataclass(frozen=True)
class Feature:
    """One column of x.

    Attributes:
        name: the column's name in the table.
        kind: real, count, binary or categorical.
        codes: the values a binary (two) or categorical column can take, ascending; empty otherwise.
        levels: the raw text each code stands for, in their order; empty where codes are the raw values.
        fill: the value or code that stands in for a missing value and for what is not among `levels`; None
            where neither is allowed. Missing values that have a level of their own keep it.
        missing: words that mean a missing value.
    """

    name: str
    kind: Kind
    codes: tuple[float, ...] = ()
    levels: tuple[str, ...] = ()
    fill: float | None = None
    missing: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Raises FairAllError where kind and codes do not go together."""
        n = len(self.codes)
        if self.kind is Kind.BINARY and n != 2:
            raise FairAllError(f"feature {self.name!r} is binary, which takes 2 codes, not {n}")
        if self.kind is Kind.CATEGORICAL and n < 2:
            raise FairAllError(f"feature {self.name!r} is categorical, which takes 2 codes or more, not {n}")

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
        """A feature whose levels are coded `first_code`, `first_code` + 1, ...; two of them are binary."""
        codes = tuple(float(code) for code in range(first_code, first_code + len(levels)))
        kind = Kind.BINARY if len(codes) == 2 else Kind.CATEGORICAL
        return cls(name, kind, codes, tuple(levels), fill, missing)

    def encode(self, column: pd.Series) -> np.ndarray:
        """Numbers for the raw values of a column, shape (N,).

        Raises:
            FairAllError: naming column and row (1 is the first) of a value the feature cannot take.
        """
        if not pd.api.types.is_numeric_dtype(column):
            column = column.astype(object).map(self._cleaned)
        if self.levels:
            words = column.astype(object).where(column.notna(), MISSING_LEVEL)
            values = words.map(self._codes_of(words.unique())).to_numpy(dtype=float)
        else:
            values = pd.to_numeric(column, errors="coerce").to_numpy(dtype=float, na_value=np.nan)
            allowed = np.isin(values, self.codes) if self.codes else np.isfinite(values)
            refuse(column, ~allowed & ~column.isna().to_numpy(), self._allowed)
        missing = np.isnan(values)
        if self.fill is None:
            refuse(column, missing, self._allowed)
            return values
        return np.where(missing, self.fill, values)

    def _codes_of(self, values: np.ndarray) -> dict[Any, float]:
        """Codes by raw value, NaN where it is no level.

        A text is its own level. What a reader has made a number or a truth of is the level that spells it.
        """
        known = dict(zip(self.levels, self.codes, strict=True))
        spelt = by_spelling(known)
        return {
            value: known.get(value, np.nan) if isinstance(value, str) else spelt.get(spelling(value), np.nan)
            for value in values
        }

    def _cleaned(self, cell: object) -> object:
        """A cell as training saw it: without the blanks around it, None where missing."""
        if not isinstance(cell, str):
            return cell
        text = cell.strip()
        return None if text in self.missing else text

    @property
    def _allowed(self) -> str:
        choices = self.levels or tuple(f"{code:g}" for code in self.codes)
        return (
            f"is not possible; it must be {'one of ' + ', '.join(choices) if choices else 'a finite number'}"
        )


def spelling(value: Any) -> float | str:
    """What is the same for all spellings of a value: its number, else its text without case and spare blanks.

    True and "true" are 1, False and "false" 0.
    """
    text = " ".join(str(value).split()).casefold()
    number = {"true": 1.0, "false": 0.0}.get(text, as_number(text))
    return text if number is None or not np.isfinite(number) else number


def by_spelling(meaning: Mapping[str, float]) -> dict[float | str, float]:
    """What texts mean, by `spelling`; without those that spell one thing and mean two."""
    found: dict[float | str, set[float]] = {}
    for text, means in meaning.items():
        found.setdefault(spelling(text), set()).add(means)
    return {spelt: means.pop() for spelt, means in found.items() if len(means) == 1}


class Schema(Sequence[Feature]):
    """The features of x in column order.

    Args:
        features: the D features.
        encoding: how nets see a category: as its code (`ordinal`) or as an indicator per code (`one_hot`).

    Raises:
        FairAllError: where a feature has a name that stands for something else.
    """

    def __init__(self, features: Sequence[Feature], encoding: str = "ordinal") -> None:
        self._features = tuple(features)
        self.encoding = encoding
        for name in RESERVED:
            if name in self.names:
                raise FairAllError(
                    f"column {name!r} cannot be a feature: tables that hold features beside the sensitive "
                    "attribute and the label need the name; rename the column or leave it out"
                )

    def __getitem__(self, index):  # type: ignore[no-untyped-def]
        return self._features[index]

    def __len__(self) -> int:
        return len(self._features)

    def __iter__(self) -> Iterator[Feature]:
        return iter(self._features)

    def __repr__(self) -> str:
        return f"Schema({list(self._features)!r}, {self.encoding!r})"

    @property
    def names(self) -> list[str]:
        """Column names in order."""
        return [feature.name for feature in self]

    def columns(self, kind: Kind) -> list[int]:
        """Positions of the features of one kind."""
        return [i for i, feature in enumerate(self) if feature.kind is kind]

    def encode(self, raw: pd.DataFrame) -> pd.DataFrame:
        """The features of raw rows as numbers, shape (N, D).

        Raises:
            FairAllError: where a column is missing or holds a value its feature cannot take.
        """
        for name in self.names:
            if name not in raw:
                raise FairAllError(f"the column {name!r} is needed, and the table lacks it")
        columns = {feature.name: feature.encode(raw[feature.name]) for feature in self}
        return pd.DataFrame(columns, columns=self.names)

    def to_plain(self) -> list[dict[str, Any]]:
        """The features as plain containers."""
        return [asdict(feature) | {"kind": feature.kind.value} for feature in self]

    @classmethod
    def from_plain(cls, plain: Sequence[dict[str, Any]], encoding: str) -> Schema:
        """The schema whose `to_plain` is given, from JSON too."""
        features = [
            Feature(
                item["name"],
                Kind(item["kind"]),
                tuple(item["codes"]),
                tuple(item["levels"]),
                item["fill"],
                tuple(item["missing"]),
            )
            for item in plain
        ]
        return cls(features, encoding)
