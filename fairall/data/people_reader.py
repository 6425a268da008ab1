"""Reader of raw people for a deployed policy."""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from fairall.data.cells import refuse, shown
from fairall.data.csv.infer import LARGEST_COUNT, OTHER_LEVEL
from fairall.data.features import DISCRETE, MISSING_LEVEL, Feature, Kind, Schema, by_spelling, spelling
from fairall.data.prepared import PreparedData, Scaler
from fairall.data.table import Sensitive
from fairall.errors import FairAllError

CODED = "s"  # the column that holds the sensitive attribute as −1 or +1
CODES = {"-1": -1.0, "1": 1.0}
Recognise = Callable[[Any], float | None]
"""Map a raw value to its number: NaN for a missing value, None for an unknown one."""


@dataclass(frozen=True)
class PeopleReader:
    """Converter from tables of raw people to the inputs of a policy.

    Attributes:
        schema: the D features.
        scaler: scaling of the features.
        lowest: smallest training value of real features and counts, NaN for the others, shape (D,).
        highest: largest training value, likewise, shape (D,).
        sensitive: the raw column of the sensitive attribute, if the data set has one.
    """

    schema: Schema
    scaler: Scaler
    lowest: np.ndarray
    highest: np.ndarray
    sensitive: Sensitive | None

    @classmethod
    def of(cls, data: PreparedData) -> PeopleReader:
        """The reader for people like those of `data`."""
        ranged = np.array([feature.kind in (Kind.REAL, Kind.COUNT) for feature in data.schema])

        def raw(scaled: Tensor) -> np.ndarray:
            values = scaled.double().numpy() * data.scaler.scale + data.scaler.mean
            return np.where(ranged, values, np.nan)

        x = data.train.x
        lowest, highest = raw(x.min(0).values), raw(x.max(0).values)
        return cls(data.schema, data.scaler, lowest, highest, data.pool_table.sensitive)

    @property
    def columns(self) -> list[str]:
        """Names of the columns that `read` uses: features and sensitive attribute."""
        raw = [] if self.sensitive is None else [self.sensitive.column]
        return list(dict.fromkeys([*self.schema.names, CODED, *raw]))

    def read(self, people: pd.DataFrame, *, strict: bool = False) -> tuple[Tensor, Tensor]:
        """Features and sensitive attribute of raw people.

        Spellings of a value are equivalent: 1, 1.0, True, "1" and "true"; upper and lower case; blanks. One
        warning per call lists accepted values that are unlike the training data.

        Args:
            people: see `Policy.propensity`.
            strict: see `Policy.propensity`.

        Returns:
            Scaled x, shape (N, D), and s in {−1, +1}, shape (N,), both float32.

        Raises:
            FairAllError: if a column is missing or holds an invalid value.
        """
        if not isinstance(people, pd.DataFrame):
            raise FairAllError(
                f"people must be a pandas DataFrame, a row per person, not {type(people).__name__}"
            )
        self._require_columns(people)
        s = self._sensitive(people)
        x, doubts = [], []
        for i, feature in enumerate(self.schema):
            values, doubtful = self._feature(i, people[feature.name], strict)
            x.append(values)
            doubts += doubtful
        if doubts:
            warnings.warn("; ".join(doubts), stacklevel=3)
        return self.scaler.transform(np.stack(x, axis=-1)), torch.tensor(s, dtype=torch.float32)

    def example(self) -> pd.DataFrame:
        """Two artificial people, one of each group, as raw values.

        Real features have their training mean, counts their smallest training value, others their first
        two levels.
        """
        rows: list[dict[str, Any]] = [{}, {}]
        for feature, mean, lowest in zip(self.schema, self.scaler.mean, self.lowest, strict=True):
            for row, position in zip(rows, (0, 1), strict=True):
                if feature.kind is Kind.REAL:
                    row[feature.name] = float(f"{mean:.4g}")
                elif feature.kind is Kind.COUNT:
                    row[feature.name] = int(lowest)
                else:
                    row[feature.name] = words_of(feature)[position]
        if self.sensitive is None:
            return pd.DataFrame(rows).assign(**{CODED: [1, -1]})
        groups = [self.sensitive.advantaged[0], self.sensitive.disadvantaged[0]]
        return pd.DataFrame(rows).assign(**{self.sensitive.column: groups})

    def to_plain(self) -> dict[str, Any]:
        """The reader as plain containers, for JSON."""
        ranges = zip(self.schema.to_plain(), self.lowest, self.highest, strict=True)
        features = [
            feature | {"lowest": None if np.isnan(low) else low, "highest": None if np.isnan(high) else high}
            for feature, low, high in ranges
        ]
        return {"features": features, "sensitive": None if self.sensitive is None else asdict(self.sensitive)}

    @classmethod
    def from_plain(cls, plain: dict[str, Any]) -> PeopleReader:
        """Inverse of `to_plain`, also after a round trip through JSON."""
        features, sensitive = plain["features"], plain["sensitive"]

        def numbers(name: str) -> np.ndarray:
            return np.array([feature[name] for feature in features], dtype=float)

        schema = Schema.from_plain(features)
        if sensitive is not None:
            groups = (tuple(sensitive[group]) for group in ("advantaged", "disadvantaged"))
            sensitive = Sensitive(sensitive["column"], *groups)
        return cls(schema, Scaler.of(schema), numbers("lowest"), numbers("highest"), sensitive)

    def _require_columns(self, people: pd.DataFrame) -> None:
        needed = set(self.schema.names)
        lacking = [name for name in self.schema.names if name not in people]
        if lacking:
            others = [str(name) for name in people if name not in needed]
            close = [match for name in lacking for match in difflib.get_close_matches(name, others, n=1)]
            hint = f"; did you mean {close[0]!r}?" if close else ""
            which, them = ("column", "it") if len(lacking) == 1 else ("columns", "them")
            names = ", ".join(map(repr, lacking))
            raise FairAllError(f"the table lacks the {which} {names} and needs {them}{hint}")
        for name in people.columns[people.columns.duplicated()]:
            if name in self.columns:
                raise FairAllError(f"the table has more than one column {name!r}")

    def _sensitive(self, people: pd.DataFrame) -> np.ndarray:
        """S in {−1, +1} of each row, from the column `s` or else the raw column."""
        name, meaning, allowed = CODED, CODES, "−1 or +1"
        raw = self.sensitive
        if raw is not None and (CODED not in people or raw.column == CODED):
            name, words = raw.column, raw.meaning
            meaning = CODES | words if name == CODED else words
            allowed = ", ".join(f"{word} (S = {'+1' if side > 0 else '−1'})" for word, side in words.items())
        if name not in people:
            own = f" or {name!r} of {allowed}" if name != CODED else ""
            raise FairAllError(
                f"the table lacks the sensitive attribute and needs it: a column {CODED!r} of −1 and +1{own}"
            )
        s, unknown = _recognised(people[name], _of_words(meaning))
        unknown |= np.isnan(s)
        if unknown.any():
            raise FairAllError(
                f"{_told(people[name], unknown)}; it is the sensitive attribute, which must be {allowed}"
            )
        return s

    def _feature(self, i: int, column: pd.Series, strict: bool) -> tuple[np.ndarray, list[str]]:
        """Numbers for the raw values of feature `i`, shape (N,), and warnings about them."""
        feature = self.schema[i]
        if feature.kind in DISCRETE:
            return _discrete(feature, column, strict)
        values, unknown = _recognised(column, _of_numbers(feature.missing))
        refuse(column, unknown, "is not possible; it must be a finite number")
        if feature.kind is Kind.COUNT:
            # Comparisons with NaN, a missing value, are false.
            wrong = (values < 0) | (values > LARGEST_COUNT) | (np.floor(values) < values)
            refuse(column, wrong, "is not possible; it must be a count, a whole number from 0")
        low, high = self.lowest[i], self.highest[i]
        margin = max(high - low, self.scaler.scale[i])  # constant features have scale 1
        far = (values < low - margin) | (values > high + margin)
        values, doubts = _completed(feature, column, values, strict)
        if far.any():
            doubts.append(f"{_told(column, far)}, far outside the training range {low:.6g} to {high:.6g}")
        return values, doubts


def _discrete(feature: Feature, column: pd.Series, strict: bool) -> tuple[np.ndarray, list[str]]:
    """`PeopleReader._feature` for a binary or categorical feature."""
    words = words_of(feature)
    codes = dict(zip(words, feature.codes, strict=True))
    values, unknown = _recognised(column, _of_words(codes, feature.missing))
    doubts = []
    if unknown.any():
        rest = OTHER_LEVEL in words
        nobody_known = bool((unknown | np.isnan(values)).all())
        third = feature.kind is Kind.BINARY
        told = _told(column, unknown)
        if strict or feature.fill is None or ((third or nobody_known) and not rest):
            some = ", ".join(words[:20]) + (", ..." if len(words) > 20 else "")
            raise FairAllError(f"{told}, not known from training; it must be one of {some}")
        doubts.append(f"{told}, not known from training and taken as {_word(feature)!r}")
        values = np.where(unknown, feature.fill, values)
    if MISSING_LEVEL in words:
        values = np.where(np.isnan(values), codes[MISSING_LEVEL], values)
    values, of_missing = _completed(feature, column, values, strict)
    return values, doubts + of_missing


def _completed(
    feature: Feature, column: pd.Series, values: np.ndarray, strict: bool
) -> tuple[np.ndarray, list[str]]:
    """Values with missing ones imputed, and a warning if all are missing."""
    missing = np.isnan(values)
    if feature.fill is None:
        refuse(column, missing, "is not possible; no value may be missing")
        return values, []
    doubts = []
    if len(missing) and missing.all():
        doubts.append(f"column {feature.name!r} has no value in any row, taken as {_word(feature)!r}")
        if strict:
            raise FairAllError(f"column {feature.name!r} has no value in any row")
    return np.where(missing, feature.fill, values), doubts


def words_of(feature: Feature) -> tuple[str, ...]:
    """The raw text of each code of a binary or categorical feature."""
    return feature.levels or tuple(f"{code:g}" for code in feature.codes)


def _word(feature: Feature) -> str:
    """The raw text of the imputed value."""
    if feature.kind in DISCRETE:
        return words_of(feature)[feature.codes.index(feature.fill)]
    return f"{feature.fill:g}"


def _of_words(meaning: Mapping[str, float], missing: tuple[str, ...] = ()) -> Recognise:
    """Recognise words by identical text, then by other spellings."""
    spelt, spelt_missing = by_spelling(meaning), {spelling(word) for word in missing}

    def recognise(value: Any) -> float | None:
        text = str(value).strip()
        if text in meaning:
            return meaning[text]
        if text in missing:
            return np.nan
        known = spelling(value)
        return spelt.get(known, np.nan if known in spelt_missing else None)

    return recognise


def _of_numbers(missing: tuple[str, ...]) -> Recognise:
    """Recognise finite numbers of any type."""
    spelt_missing = {spelling(word) for word in missing}

    def recognise(value: Any) -> float | None:
        known = spelling(value)
        if known in spelt_missing:
            return np.nan
        return known if isinstance(known, float) else None

    return recognise


def _recognised(column: pd.Series, recognise: Recognise) -> tuple[np.ndarray, np.ndarray]:
    """The number of each row, NaN if missing or unknown, and a mask of unknown ones; both shape (N,)."""
    try:
        positions, distinct = pd.factorize(column.astype(object))  # −1 where missing
    except TypeError as error:
        raise FairAllError(f"column {column.name!r} must hold numbers or texts in every row") from error
    found = [recognise(value) for value in distinct]
    numbers = np.array([np.nan if number is None else number for number in found] + [np.nan])
    unknown = np.array([number is None for number in found] + [False])
    return numbers[positions], unknown[positions]


def _told(column: pd.Series, rows: np.ndarray) -> str:
    """Message with the number of rows of a column and some of their values."""
    values = sorted({"no value" if pd.isna(value) else str(value) for value in column[rows].unique()})
    told = ", ".join(repr(shown(value, 20)) for value in values[:5]) + (", ..." if len(values) > 5 else "")
    return f"column {column.name!r}: {rows.sum()} of {len(rows)} rows hold {told}"
