"""Features of a table: names, kinds and possible values."""

from __future__ import annotations

import itertools
import json
import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

import numpy as np
import pandas as pd

from fairall.config.checks import require
from fairall.config.schema import NetInputs
from fairall.data.cells import refuse, shown
from fairall.errors import FairAllError


class Kind(StrEnum):
    """Kind of a feature, which determines its likelihood p(x | z, s)."""

    REAL = "real"
    COUNT = "count"
    BINARY = "binary"
    CATEGORICAL = "categorical"


MISSING_LEVEL = "(missing)"  # level of missing values, if the training rows have any
RESERVED = ("s", "label")
DISCRETE = (Kind.BINARY, Kind.CATEGORICAL)


def as_number(text: str) -> float | None:
    """Parse a number; None if the text is none."""
    try:
        return float(text)
    except ValueError:
        return None


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
        """Raise FairAllError if the number of codes does not fit the kind."""
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
        """A feature with levels coded `first_code`, `first_code` + 1, ...; binary if there are two."""
        codes = tuple(float(code) for code in range(first_code, first_code + len(levels)))
        kind = Kind.BINARY if len(codes) == 2 else Kind.CATEGORICAL
        return cls(name, kind, codes, tuple(levels), fill, missing)

    def encode(self, column: pd.Series) -> np.ndarray:
        """Numbers for the raw values of a column, shape (N,).

        Raises:
            FairAllError: with column and row (from 1) of a value that the feature cannot take.
        """
        if pd.api.types.is_numeric_dtype(column):
            values = self._values(column)
        else:
            positions, distinct = pd.factorize(column)  # −1 where missing, which takes the last
            cleaned = pd.Series([*map(self._cleaned, distinct), None], dtype=object)
            values = self._values(cleaned)[positions]
            column = pd.Series(cleaned.to_numpy()[positions], column.index, name=column.name)
        if not self.levels:
            allowed = np.isin(values, self.codes) if self.codes else np.isfinite(values)
            refuse(column, ~allowed & ~column.isna().to_numpy(), self._allowed)
        missing = np.isnan(values)
        if self.fill is None:
            refuse(column, missing, self._allowed)
            return values
        return np.where(missing, self.fill, values)

    def _values(self, cells: pd.Series) -> np.ndarray:
        """Codes or numbers of cells, NaN if missing or unknown, shape (N,)."""
        if not self.levels:
            return pd.to_numeric(cells, errors="coerce").to_numpy(dtype=float, na_value=np.nan)
        words = cells.astype(object).where(cells.notna(), MISSING_LEVEL)
        return words.map(self._codes_of(words.unique())).to_numpy(dtype=float)

    def _codes_of(self, values: np.ndarray) -> dict[Any, float]:
        """Codes by raw value, NaN if it is no level.

        Texts must equal a level; numbers and booleans match the level that spells them.
        """
        known = dict(zip(self.levels, self.codes, strict=True))
        spelt = by_spelling(known)
        return {
            value: known.get(value, np.nan) if isinstance(value, str) else spelt.get(spelling(value), np.nan)
            for value in values
        }

    def _cleaned(self, cell: object) -> object:
        """A cell without surrounding blanks, None if missing."""
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
    """Canonical form of a value: its number, else its text in lower case without extra blanks.

    True and "true" give 1, False and "false" 0.
    """
    text = " ".join(str(value).split()).casefold()
    number = {"true": 1.0, "false": 0.0}.get(text, as_number(text))
    return text if number is None or not np.isfinite(number) else number


def by_spelling(meaning: Mapping[str, float]) -> dict[float | str, float]:
    """Meanings of texts by `spelling`, without ambiguous ones."""
    found: dict[float | str, set[float]] = {}
    for text, means in meaning.items():
        found.setdefault(spelling(text), set()).add(means)
    return {spelt: means.pop() for spelt, means in found.items() if len(means) == 1}


class Schema(Sequence[Feature]):
    """The features of x in column order.

    Args:
        features: the D features.
        inputs: how nets see counts and categories, see `encoding.FeatureInputs`.
        mean: of each feature in the training rows, raw values and codes; by default 0.
        scale: standard deviation, likewise, positive; by default 1.

    Raises:
        FairAllError: if a feature has a reserved name, or that of another.
    """

    def __init__(
        self,
        features: Sequence[Feature],
        inputs: NetInputs = NetInputs.codes,
        mean: Sequence[float] | None = None,
        scale: Sequence[float] | None = None,
    ) -> None:
        self._features = tuple(features)
        self.inputs = inputs
        self.mean = (0.0,) * len(self) if mean is None else tuple(mean)
        self.scale = (1.0,) * len(self) if scale is None else tuple(scale)
        repeated = [name for name, times in Counter(self.names).items() if times > 1]
        if repeated:
            raise FairAllError(f"{len(self)} features, of which more than one is named {repeated[0]!r}")
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
        return f"Schema({list(self._features)!r}, {self.inputs.name}, {self.mean!r}, {self.scale!r})"

    def measured(self, x: np.ndarray) -> Schema:
        """The same features with `mean` and `scale` of training rows x (N, D); 1 if constant."""
        std = x.std(0)
        scale = np.where(std > 0, std, 1.0)
        return Schema(self._features, self.inputs, x.mean(0).tolist(), scale.tolist())

    def seen_as(self, inputs: NetInputs) -> Schema:
        """The same features, which nets see as `inputs`."""
        return Schema(self._features, inputs, self.mean, self.scale)

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
            FairAllError: if a column is missing or holds a value that its feature cannot take.
        """
        for name in self.names:
            if name not in raw:
                raise FairAllError(f"the column {name!r} is needed, and the table lacks it")
        columns = {feature.name: feature.encode(raw[feature.name]) for feature in self}
        return pd.DataFrame(columns, columns=self.names)

    def to_plain(self) -> list[dict[str, Any]]:
        """The features as plain containers; `inputs` is not part of them."""
        return [
            asdict(feature) | {"kind": feature.kind.value, "mean": mean, "scale": scale}
            for feature, mean, scale in zip(self, self.mean, self.scale, strict=True)
        ]

    @classmethod
    def from_plain(cls, plain: Any) -> Schema:
        """Inverse of `to_plain`, also after a round trip through JSON.

        Raises:
            FairAllError: naming the feature and the key, where `plain` is nothing that `to_plain` returns.
        """
        require(isinstance(plain, list) and len(plain) > 0, "features", _kind_of(plain), "a list of features")
        features = [_feature_of(item, f"features.{i}") for i, item in enumerate(plain)]
        mean, scale = ([float(item[name]) for item in plain] for name in ("mean", "scale"))
        return cls(features, mean=mean, scale=scale)


def _feature_of(item: Any, key: str) -> Feature:
    """A feature of `Schema.to_plain`; raises as `Schema.from_plain`."""
    require_keys(key, item, (*Feature.__dataclass_fields__, "mean", "scale"))
    name, codes, levels, fill, missing = (item[of] for of in ("name", "codes", "levels", "fill", "missing"))
    require(isinstance(name, str) and name != "", f"{key}.name", _kind_of(name), "a text")
    kinds = [kind.value for kind in Kind]
    require(item["kind"] in kinds, f"{key}.kind", _kind_of(item["kind"]), " or ".join(kinds))
    kind = Kind(item["kind"])
    require_texts(f"{key}.levels", levels)
    require_texts(f"{key}.missing", missing)
    require(
        isinstance(codes, list) and all(map(is_finite, codes)), f"{key}.codes", "...", "a list of numbers"
    )
    rising = all(low < high for low, high in itertools.pairwise(codes))
    require(rising, f"{key}.codes", "...", "in ascending order")
    for of in ("mean", "scale"):
        require(is_finite(item[of]), f"{key}.{of}", _kind_of(item[of]), "a finite number")
    require(item["scale"] > 0, f"{key}.scale", item["scale"], "positive")
    if fill is not None:
        require(is_finite(fill), f"{key}.fill", _kind_of(fill), "a finite number or null")
        require(kind not in DISCRETE or fill in codes, f"{key}.fill", fill, "one of the codes")
    if kind not in DISCRETE:
        require(not codes and not levels, f"{key}.codes", "...", f"empty, since the feature is {kind.value}")
    fitting = len(levels) in (0, len(codes)) and len(set(levels)) == len(levels)
    require(fitting, f"{key}.levels", "...", "another text for each code, or none")
    return Feature(name, kind, tuple(map(float, codes)), tuple(levels), fill, tuple(missing))


def require_keys(key: str, item: Any, names: Collection[str]) -> None:
    """Raise FairAllError unless `item` is a dict with the keys `names`."""
    require(isinstance(item, dict), key, _kind_of(item), f"an object with {', '.join(names)}")
    for name in names:
        if name not in item:
            raise FairAllError(f"{key} lacks {name}")


def require_texts(key: str, texts: Any) -> None:
    """Raise FairAllError unless `texts` is a list of texts."""
    holds = isinstance(texts, list) and all(isinstance(text, str) for text in texts)
    require(holds, key, "...", "a list of texts")


def is_finite(number: Any) -> bool:
    """Whether a value out of JSON is a number that a float can hold."""
    if isinstance(number, bool) or not isinstance(number, int | float):
        return False
    try:
        return math.isfinite(number)
    except OverflowError:
        return False


def _kind_of(value: Any) -> str:
    """A value out of JSON for a message: short ones as they are."""
    return shown(json.dumps(value)) if not isinstance(value, dict | list) else type(value).__name__
