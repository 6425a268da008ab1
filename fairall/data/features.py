"""Features of a table: names, kinds, possible values, and the meaning of a cell's text."""

from __future__ import annotations

import itertools
import json
import math
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from fairall.config.schema import NetInputs
from fairall.data.cells import many_values, refuse, shown
from fairall.errors import FairAllError

T = TypeVar("T")


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
DISCRETE = (Kind.BINARY, Kind.CATEGORICAL)
TRUTH = {"true": 1.0, "false": 0.0}
FEW = 100  # values, of which most cells are repetitions


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
        codes = tuple(float(code) for code in range(first_code, first_code + len(levels)))
        kind = Kind.BINARY if len(codes) == 2 else Kind.CATEGORICAL
        return cls(name, kind, codes, tuple(levels), fill, missing)

    @property
    def words(self) -> tuple[str, ...]:
        """The raw text of each code of a binary or categorical feature."""
        return self.levels or tuple(f"{code:g}" for code in self.codes)

    @property
    def of_missing(self) -> float | None:
        """The value of a missing cell: the code of the level of missing values, else `fill`."""
        missing = self.levels.index(MISSING_LEVEL) if MISSING_LEVEL in self.levels else None
        return self.fill if missing is None else self.codes[missing]

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
        positions, distinct = _factorized(column)
        cells = [cell.strip() if isinstance(cell, str) else cell for cell in distinct]
        meaning = dict(zip(self.words, self.codes, strict=True))
        if exact:
            missing = pd.Series(cells, dtype=object).isin(self.missing).to_numpy()
        else:
            missing = np.array([str(x) not in meaning and spelling(x) in absent for x in cells], dtype=bool)
        if meaning:
            numbers = _meanings(cells, meaning, exact=exact and bool(self.levels))
        else:
            numbers = pd.to_numeric(pd.Series(cells, dtype=object), errors="coerce").to_numpy(dtype=float)
            if not exact:
                for i in np.flatnonzero(np.isnan(numbers)):
                    spelt = spelling(cells[i])
                    numbers[i] = spelt if isinstance(spelt, float) else np.nan
            numbers[np.isinf(numbers)] = np.nan
        numbers[missing] = np.nan
        unknown = np.isnan(numbers) & ~missing
        return np.append(numbers, np.nan)[positions], np.append(unknown, False)[positions]

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


def spelling(value: Any) -> float | str:
    """Canonical form of a value: its number, else its text in lower case without extra blanks.

    True and "true" give 1, False and "false" 0.

    Examples:
        >>> spelling(" 1.0"), spelling(True), spelling(" New  York")
        (1.0, 1.0, 'new york')
    """
    text = " ".join(str(value).split()).casefold()
    if text in TRUTH:
        return TRUTH[text]
    try:
        number = float(text)
    except ValueError:
        return text
    return number if math.isfinite(number) else text


def of_words(column: pd.Series, meaning: Mapping[str, float]) -> np.ndarray:
    """The number that each cell means, shape (N,), NaN where it is missing or spells no word of `meaning`."""
    positions, distinct = _factorized(column)
    return np.append(_meanings(distinct, meaning), np.nan)[positions]


def is_value(column: pd.Series, value: str, key: str) -> np.ndarray:
    """Which cells of text hold a value, shape (N,), bool: that text, or if none does, another spelling of it.

    Raises:
        FairAllError: naming the key that has the value, if no cell holds it.
    """
    found = (column == value).to_numpy()
    if not found.any():
        found = column.isin([text for text in column.dropna().unique() if spelling(text) == spelling(value)])
        found = found.to_numpy()
    if not found.any():
        values = ", ".join(shown(text) for text in sorted(column.dropna().unique()))
        raise FairAllError(f"{key}={shown(value)}: column {column.name!r} has no such value; it has {values}")
    return found


def numbers_of(column: pd.Series) -> np.ndarray:
    """The number in each cell of a table of numbers or texts, NaN where there is none, shape (N,)."""
    if pd.api.types.is_numeric_dtype(column):
        return column.to_numpy(dtype=float, na_value=np.nan)
    if many_values(column, FEW):
        return pd.to_numeric(column, errors="coerce").to_numpy(dtype=float, na_value=np.nan)
    # Equal texts are parsed once.
    positions, distinct = pd.factorize(column)  # −1 where missing
    numbers = pd.to_numeric(pd.Series(distinct), errors="coerce").to_numpy(dtype=float, na_value=np.nan)
    return np.append(numbers, np.nan)[positions]


def are_counts(values: np.ndarray, largest: float = LARGEST_COUNT) -> np.ndarray:
    """Which numbers (N,) are whole and from 0 to `largest`, shape (N,), bool."""
    return (values >= 0) & (values <= largest) & (np.floor(values) == values)


def _factorized(column: pd.Series) -> tuple[np.ndarray, np.ndarray]:
    """Positions (N,) of cells among their distinct values, −1 where missing, and these values."""
    try:
        positions, distinct = pd.factorize(column.astype(object))
    except TypeError as error:
        raise FairAllError(f"column {column.name!r} must hold numbers or texts in every row") from error
    return positions, np.asarray(distinct)


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


class Schema(Sequence[Feature]):
    """The features of x in column order.

    Args:
        features: the D features.
        inputs: how nets see counts and categories, see `encoding.FeatureInputs`.
        mean: of each feature in the training rows, raw values and codes; by default 0.
        scale: standard deviation, likewise, positive; by default 1.
        n_groups: G, of the sensitive attribute that nets see beside the features.

    Raises:
        FairAllError: if a feature has a reserved name, or that of another.
    """

    def __init__(
        self,
        features: Sequence[Feature],
        inputs: NetInputs = NetInputs.codes,
        mean: Sequence[float] | None = None,
        scale: Sequence[float] | None = None,
        n_groups: int = 2,
    ) -> None:
        self._features = tuple(features)
        self.n_groups = n_groups
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
        more = f", {self.n_groups}" if self.n_groups > 2 else ""
        return f"Schema({list(self._features)!r}, {self.inputs.name}, {self.mean!r}, {self.scale!r}{more})"

    def measured(self, x: np.ndarray) -> Schema:
        """The same features with `mean` and `scale` of training rows x (N, D); 1 if constant."""
        std = x.std(0)
        scale = np.where(std > 0, std, 1.0)
        return Schema(self._features, self.inputs, x.mean(0).tolist(), scale.tolist(), self.n_groups)

    def seen_as(self, inputs: NetInputs) -> Schema:
        """The same features, which nets see as `inputs`."""
        return Schema(self._features, inputs, self.mean, self.scale, self.n_groups)

    def require_two_groups(self, name: str, instead: str = "") -> None:
        """Raise FairAllError where people have more than two groups, for which `name` is not made."""
        if self.n_groups > 2:
            raise FairAllError(
                f"{name} is for two groups, and the data have {self.n_groups}: {instead}choose two groups "
                "with dataset.groups=[A,B]"
            )

    @property
    def names(self) -> list[str]:
        """Column names in order."""
        return [feature.name for feature in self]

    def columns(self, kind: Kind) -> list[int]:
        """Positions of the features of a kind."""
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
        """The features as plain containers; `inputs` and `n_groups` are not part of them."""
        return [
            asdict(feature) | {"kind": feature.kind.value, "mean": mean, "scale": scale}
            for feature, mean, scale in zip(self, self.mean, self.scale, strict=True)
        ]

    @classmethod
    def from_plain(cls, plain: Any, n_groups: int = 2) -> Schema:
        """Inverse of `to_plain`, also after a round trip through JSON.

        Raises:
            FairAllError: naming the feature, where `plain` is nothing that `to_plain` returns.
        """
        if not isinstance(plain, list) or not plain:
            raise FairAllError("features must be a list with at least one feature")
        read = [of_plain(f"features.{i}", _feature_of, item) for i, item in enumerate(plain)]
        features, mean, scale = zip(*read, strict=True)
        return cls(features, mean=mean, scale=scale, n_groups=n_groups)


def _feature_of(item: Any) -> tuple[Feature, float, float]:
    """A feature of `Schema.to_plain` with its mean and scale; raises as `of_plain` expects."""
    levels, missing = (tuple(map(plain_text, item[name])) for name in ("levels", "missing"))
    fill, scale = item["fill"], plain_number(item["scale"])
    if scale <= 0:
        raise ValueError("its scale must be positive")
    feature = Feature(
        plain_text(item["name"]),
        Kind(item["kind"]),
        tuple(map(plain_number, item["codes"])),
        levels,
        None if fill is None else plain_number(fill),
        missing,
    )
    return feature, plain_number(item["mean"]), scale


def of_plain(key: str, build: Callable[[Any], T], plain: Any) -> T:
    """`build(plain)` of a value out of a JSON file that others may have written.

    Raises:
        FairAllError: naming the key, where `build` raises a KeyError, TypeError, ValueError or FairAllError.
    """
    try:
        return build(plain)
    except KeyError as error:
        reason = f"it lacks {error}"
    except (FairAllError, TypeError, ValueError) as error:
        reason = str(error)
    raise FairAllError(f"{key} is not possible: {shown(reason, 100)}")


def plain_text(value: Any) -> str:
    """A value out of JSON that must be a text; raises TypeError."""
    if not isinstance(value, str):
        raise TypeError(f"{shown(json.dumps(value))} is no text")
    return value


def plain_number(value: Any) -> float:
    """A value out of JSON that must be a finite number; raises TypeError."""
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max:
        return float(value)
    raise TypeError(f"{shown(json.dumps(value))} is not a finite number")
