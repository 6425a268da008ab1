"""New people, read by the features and groups of earlier ones."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from fairall.errors import FairAllError
from fairall.tables.cells import refuse, shown, taken, words_of
from fairall.tables.features import LONGEST, MISSING_LEVEL, Feature, Kind, meanings
from fairall.tables.groups import Sensitive, group_name, sides

UNKNOWN = np.inf  # s of people of whom it is not known; unlike NaN it equals itself
CODED = "s"  # the column that holds the sensitive attribute as its code


@dataclass(frozen=True, kw_only=True)
class LearntFeature(Feature):
    """A feature, and numbers of its training values.

    Attributes:
        mean: of them.
        scale: standard deviation, positive.
        lowest: value, None for discrete features.
        highest: likewise.
    """

    mean: float
    scale: float
    lowest: float | None = None
    highest: float | None = None

    def __post_init__(self) -> None:
        """Raise FairAllError also if the numbers do not fit the kind and each other."""
        super().__post_init__()
        has_range = self.lowest is not None and self.highest is not None and self.lowest <= self.highest
        if self.scale <= 0 or not (has_range or self.codes):
            raise FairAllError(f"feature {self.name!r}: its scale, lowest or highest value is not possible")

    def unlike_training(self, values: np.ndarray) -> np.ndarray:
        """Which values (N,) of a number are far outside of the training range, shape (N,)."""
        low, high = self.lowest or 0.0, self.highest or 0.0
        width = max(high - low, self.scale)  # the scale of a constant
        return (values < low - width) | (values > high + width)


@dataclass(frozen=True)
class PeopleReader:
    """Converter from tables of raw people to numbers and codes.

    Attributes:
        features: the D features.
        sensitive: the raw column of the sensitive attribute; None if people have only s.
    """

    features: tuple[LearntFeature, ...]
    sensitive: Sensitive | None

    def __post_init__(self) -> None:
        """Raise ValueError where there is no feature, or a group has no values, or those of another."""
        if not self.features:
            raise ValueError("features must be a list with at least one feature")
        if self.sensitive is not None:
            groups = self.sensitive.groups.values()
            if not all(groups) or len(self.sensitive.meaning) < sum(map(len, groups)):
                raise ValueError("sensitive: all groups need values, and no value can be of several")

    @cached_property
    def names(self) -> list[str]:
        """Names of the features."""
        return [feature.name for feature in self.features]

    @cached_property
    def n_groups(self) -> int:
        """Number of groups."""
        return 2 if self.sensitive is None else len(self.sensitive.groups)

    @cached_property
    def meanings(self) -> dict[str, dict[str, float]]:
        """S by word, by name of a column of the sensitive attribute; of two in a table the first counts."""
        columns = {CODED: {f"{s:g}": s for s in sides(self.n_groups)}}
        if (raw := self.sensitive) is not None:
            columns[raw.column] = columns.get(raw.column, {}) | raw.meaning
        return columns

    @cached_property
    def columns(self) -> list[str]:
        """Names of the columns that `read` uses: features and sensitive attribute."""
        return list(dict.fromkeys([*self.names, *self.meanings]))

    def read(
        self,
        people: pd.DataFrame,
        *,
        refuse_unknown: bool = False,
        refuse_empty: bool = False,
        needs_group: bool = True,
    ) -> tuple[np.ndarray, np.ndarray, list[str]]:
        """Numbers and codes of N raw people.

        Spellings of a value are equivalent: 1, 1.0, True, "1" and "true"; upper and lower case; blanks.

        Args:
            people: a row for each, with the features and the sensitive attribute, as column `s` or as the raw
                one.
            refuse_unknown: whether levels unknown in training are errors, where they could be replaced.
            refuse_empty: whether features without a value in any row are.
            needs_group: whether a table without the sensitive attribute is; else all s are then `UNKNOWN`.

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
        if not of_groups and needs_group:
            lacking.append(" or ".join(self.meanings))
        if lacking:
            raise FairAllError(f"the table lacks columns that the policy reads: {', '.join(lacking)}")
        for name in people.columns[people.columns.duplicated()]:
            if name in self.columns:
                raise FairAllError(f"the table has more than one column {name!r}")
        s = np.full(len(people), UNKNOWN)
        for name in of_groups[:1]:
            meaning, column = self.meanings[name], people[name]
            codes, texts = words_of(column)
            s = taken(meanings(texts, meaning), codes, np.nan)
            why = f"is no group: it is the sensitive attribute, which must be one of {', '.join(meaning)}"
            refuse(column, np.isnan(s), why)
        x, warnings = list[np.ndarray](), list[str]()
        for feature in self.features:
            column = people[feature.name]
            values, unknown, missing = feature.encode(column, refuse_unknown=refuse_unknown)
            if feature.codes:
                word = dict(zip(feature.codes, feature.words, strict=True)).get(feature.fill or 0.0)
                odd, why = unknown, f"not known from training and taken as {word!r}"
            else:
                odd = feature.unlike_training(values)
                why = f"far outside the training range {feature.lowest:.6g} to {feature.highest:.6g}"
            if odd.any():
                held = shown(str(sorted(map(str, column[odd].unique())))[1:-1], LONGEST)
                warnings.append(f"column {feature.name!r}: {odd.sum()} of {len(odd)} rows hold {held}, {why}")
            if len(missing) and missing.all() and MISSING_LEVEL not in feature.levels:
                warnings.append(f"column {feature.name!r} has no value in any row")
                if refuse_empty:
                    raise FairAllError(warnings[-1])
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
        for feature in self.features:
            number = int(feature.lowest or 0) if feature.kind is Kind.COUNT else float(f"{feature.mean:.4g}")
            columns[feature.name] = np.resize(feature.words or [number], self.n_groups).tolist()
        *_, (name, meaning) = self.meanings.items()
        columns[name] = [*{s: word for word, s in meaning.items()}.values()]
        return pd.DataFrame(columns)
