"""New people, read by the features and groups of earlier ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, astuple, dataclass
from typing import Any

import numpy as np
import pandas as pd

from fairall.errors import FairAllError
from fairall.storage.stored import of_plain
from fairall.tables.cells import refuse, shown, taken, words_of
from fairall.tables.features import (
    DISCRETE,
    MISSING_LEVEL,
    OTHER_LEVEL,
    Feature,
    Kind,
    are_counts,
    meanings,
)
from fairall.tables.groups import Sensitive, group_name, sides

CODED = "s"  # the column that holds the sensitive attribute as its code
LONGEST = 100  # characters of the values in a message
NUMBERS = ("mean", "scale", "lowest", "highest")  # of training values, by the attributes of `PeopleReader`


@dataclass(frozen=True)
class PeopleReader:
    """Converter from tables of raw people to numbers and codes.

    Attributes:
        features: the D features.
        mean: of each in the training rows, shape (D,).
        scale: standard deviation, likewise, positive.
        lowest: training values, shape (D,), NaN for discrete features.
        highest: likewise.
        sensitive: the raw column of the sensitive attribute; None if people have only s.
    """

    features: tuple[Feature, ...]
    mean: np.ndarray
    scale: np.ndarray
    lowest: np.ndarray
    highest: np.ndarray
    sensitive: Sensitive | None

    @property
    def names(self) -> list[str]:
        """Names of the features."""
        return [feature.name for feature in self.features]

    @property
    def n_groups(self) -> int:
        """Number of groups."""
        return 2 if self.sensitive is None else len(self.sensitive.groups)

    @property
    def meanings(self) -> dict[str, dict[str, float]]:
        """S by word, by name of a column of the sensitive attribute; of two in a table the first counts."""
        columns = {CODED: {f"{s:g}": s for s in sides(self.n_groups)}}
        if (raw := self.sensitive) is not None:
            columns[raw.column] = columns.get(raw.column, {}) | raw.meaning
        return columns

    @property
    def columns(self) -> list[str]:
        """Names of the columns that `read` uses: features and sensitive attribute."""
        return list(dict.fromkeys([*self.names, *self.meanings]))

    def read(
        self, people: pd.DataFrame, *, refuse_unknown: bool = False, refuse_empty: bool = False
    ) -> tuple[np.ndarray, np.ndarray, list[str]]:
        """Numbers and codes of N raw people.

        Spellings of a value are equivalent: 1, 1.0, True, "1" and "true"; upper and lower case; blanks.

        Args:
            people: a row for each, with the features and the sensitive attribute, as column `s` or as the raw
                one.
            refuse_unknown: whether levels unknown in training are errors, where they could be replaced.
            refuse_empty: whether features without a value in any row are.

        Returns:
            x (N, D), s (N,), and a warning about each column with values unlike those of training.

        Raises:
            FairAllError: if a column is missing or holds an invalid value; RowsError of the rows that do.
        """
        if not isinstance(people, pd.DataFrame):
            raise FairAllError(
                f"people must be a pandas DataFrame, a row per person, not {type(people).__name__}"
            )
        lacking = [name for name in self.names if name not in people]
        of_groups = [name for name in self.meanings if name in people]
        if not of_groups:
            lacking.append(" or ".join(self.meanings))
        if lacking:
            raise FairAllError(f"the table lacks columns that the policy reads: {', '.join(lacking)}")
        for name in people.columns[people.columns.duplicated()].intersection(self.columns):
            raise FairAllError(f"the table has more than one column {name!r}")
        meaning, column = self.meanings[of_groups[0]], people[of_groups[0]]
        codes, texts = words_of(column)
        s = taken(meanings(texts, meaning), codes, np.nan)
        why = f"is no group: it is the sensitive attribute, which must be one of {', '.join(meaning)}"
        refuse(column, np.isnan(s), why)
        x, warnings = list[np.ndarray](), list[str]()
        training = zip(self.features, self.scale, self.lowest, self.highest, strict=True)
        for feature, scale, low, high in training:
            column = people[feature.name]
            values, unknown = feature.read(column)
            missing = np.isnan(values) & ~unknown
            if feature.kind in DISCRETE:
                # Where nobody has a known level, the column is probably another one.
                other = feature.kind is Kind.BINARY or np.isnan(values).all()
                if refuse_unknown or feature.fill is None or (other and OTHER_LEVEL not in feature.words):
                    some = shown(", ".join(feature.words), LONGEST)
                    refuse(column, unknown, f"is not known from training; it must be one of {some}")
                words = dict[Any, str](zip(feature.codes, feature.words, strict=True))
                odd, why = unknown, f"not known from training and taken as {words.get(feature.fill)!r}"
            else:
                what = "a finite number"
                if feature.kind is Kind.COUNT:
                    unknown, what = ~are_counts(values) & ~missing, "a count, a whole number from 0"
                refuse(column, unknown, f"is not possible; it must be {what}")
                width = max(high - low, scale)  # the scale of a constant
                odd = (values < low - width) | (values > high + width)
                why = f"far outside the training range {low:.6g} to {high:.6g}"
            if odd.any():
                held = shown(str(sorted(map(str, column[odd].unique())))[1:-1], LONGEST)
                warnings.append(f"column {feature.name!r}: {odd.sum()} of {len(odd)} rows hold {held}, {why}")
            if feature.of_missing is None:
                refuse(column, missing, "is not possible; no value may be missing")
            elif len(missing) and missing.all() and MISSING_LEVEL not in feature.levels:
                warnings.append(f"column {feature.name!r} has no value in any row")
                if refuse_empty:
                    raise FairAllError(warnings[-1])
            values[missing], values[unknown] = feature.of_missing, feature.fill
            x.append(values)
        return np.column_stack(x), s, warnings

    def group_name(self, s: float) -> str:
        """The group S = s, with its words in the raw data if they are known."""
        return group_name(s, () if self.sensitive is None else self.sensitive.groups[s], self.n_groups)

    def example(self) -> pd.DataFrame:
        """Artificial people, one of each group, as raw values.

        Real features have their training mean, counts their smallest training value, others one of their
        levels, the first person the first one.
        """
        columns = dict[str, list[Any]]()
        for feature, mean, lowest in zip(self.features, self.mean, self.lowest, strict=True):
            number = int(lowest) if feature.kind is Kind.COUNT else float(f"{mean:.4g}")
            columns[feature.name] = np.resize(feature.words or [number], self.n_groups).tolist()
        *_, (name, meaning) = self.meanings.items()
        columns[name] = [*{s: word for word, s in meaning.items()}.values()]
        return pd.DataFrame(columns)


@dataclass(frozen=True, kw_only=True)
class _Numbers:
    """Numbers of the training values of a feature."""

    mean: float
    scale: float
    lowest: float | None
    highest: float | None


def to_plain(reader: PeopleReader) -> dict[str, Any]:
    """A reader as plain containers, as a saved policy has it in JSON."""
    numbers = pd.DataFrame({name: getattr(reader, name) for name in NUMBERS}, dtype=object)
    rows = numbers.where(numbers.notna(), None).to_dict("records")
    features = [asdict(feature) | row for feature, row in zip(reader.features, rows, strict=True)]
    return {"features": features, "sensitive": reader.sensitive and asdict(reader.sensitive)}


def from_plain(plain: Mapping[str, Any]) -> PeopleReader:
    """Inverse of `to_plain` after a round trip through JSON; `plain` may be a stranger's.

    Raises:
        ValueError: naming what is not possible, where `plain` is nothing that `to_plain` returns.
        FairAllError: likewise, where codes, levels and imputed value of a feature do not fit each other.
    """
    features = of_plain(tuple[Feature, ...], plain.get("features"), "features")
    sensitive = of_plain(Sensitive | None, plain.get("sensitive"), "sensitive")
    if not features:
        raise ValueError("features must be a list with at least one feature")
    numbers = of_plain(tuple[_Numbers, ...], plain["features"], "features")
    mean, scale, lowest, highest = np.array(list(map(astuple, numbers)), dtype=float).T  # NaN for None
    discrete = [feature.kind in DISCRETE for feature in features]
    fits = (scale > 0) & (discrete | (lowest <= highest))
    if not fits.all():
        name = features[fits.argmin()].name
        raise ValueError(f"feature {name!r}: its scale, lowest or highest value is not possible")
    if sensitive is not None:
        groups = sensitive.groups.values()
        if not all(groups) or len(sensitive.meaning) < sum(map(len, groups)):
            raise ValueError("sensitive: all groups need values, and no value can be of several")
    return PeopleReader(features, mean, scale, lowest, highest, sensitive)
