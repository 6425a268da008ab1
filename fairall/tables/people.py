"""New people, read by the features and groups of earlier ones."""

from __future__ import annotations

import difflib
import itertools
import warnings
from collections import Counter, defaultdict
from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from fairall.errors import FairAllError
from fairall.tables.cells import refuse, row_number, shown
from fairall.tables.features import (
    DISCRETE,
    MISSING_LEVEL,
    OTHER_LEVEL,
    Feature,
    Kind,
    are_counts,
    of_words,
)
from fairall.tables.groups import Sensitive, group_name, sides

CODED = "s"  # the column that holds the sensitive attribute as −1 or +1
MOST_SHOWN = 5  # values in a message


@dataclass
class Mentioned:
    """Cells of a column that a warning or an error mentions."""

    n: int = 0
    values: list[str] = field(default_factory=list)  # the first `MOST_SHOWN` + 1 distinct ones, sorted
    first: int = 0  # row of the first, counted from 1

    def add(self, column: pd.Series, rows: np.ndarray) -> None:
        """Add the cells of a further part of the column that are marked in `rows` (N,)."""
        if not rows.any():
            return
        self.first = self.first or row_number(column, int(rows.argmax()))
        self.n += int(rows.sum())
        values = {"no value" if pd.isna(value) else str(value) for value in column[rows].unique()}
        self.values = sorted(values.union(self.values))[: MOST_SHOWN + 1]

    def told(self, name: str, n_rows: int) -> str:
        """Message with the number of rows of the column `name` and some of their values."""
        told = ", ".join(repr(shown(value, 20)) for value in self.values[:MOST_SHOWN])
        more = ", ..." if len(self.values) > MOST_SHOWN else ""
        return f"column {name!r}: {self.n} of {n_rows} rows hold {told}{more}"


@dataclass
class Findings:
    """Findings in the parts of a table read so far, in the sensitive attribute and by feature."""

    n_rows: int = 0
    columns: frozenset[str] = frozenset()
    no_group: Mentioned = field(default_factory=Mentioned)
    # Levels not known from training, and numbers outside the training range by more than its width.
    odd: defaultdict[str, Mentioned] = field(default_factory=lambda: defaultdict(Mentioned))
    missing: Counter[str] = field(default_factory=Counter)


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
    def columns(self) -> list[str]:
        """Names of the columns that `read` uses: features and sensitive attribute."""
        raw = [] if self.sensitive is None else [self.sensitive.column]
        return list(dict.fromkeys([*self.names, CODED, *raw]))

    def read(
        self, people: pd.DataFrame, *, strict: bool = False, judged: bool = False
    ) -> tuple[np.ndarray, np.ndarray]:
        """Numbers and codes x (N, D) and s (N,) of raw people; arguments as of `Policy.encoded`.

        Spellings of a value are equivalent: 1, 1.0, True, "1" and "true"; upper and lower case; blanks. One
        warning per call lists accepted values that are unlike the training data.

        Raises:
            FairAllError: if a column is missing or holds an invalid value.
        """
        findings = Findings()
        x, s = self.read_part(people, findings)
        if not judged and (doubts := self.doubts(findings, strict=strict)):
            warnings.warn("; ".join(doubts), stacklevel=4)
        return x, s

    def read_part(self, people: pd.DataFrame, findings: Findings) -> tuple[np.ndarray, np.ndarray]:
        """Read a part of a table as `read`, and add to `findings`, which `doubts` judges when all are read.

        Whole numbers in the index of the part are positions in the table. Where a value is unknown, s is NaN,
        and x the value that stands for it.

        Raises:
            FairAllError: where `people` is no DataFrame, or a column or a group is missing.
        """
        if not isinstance(people, pd.DataFrame):
            raise FairAllError(
                f"people must be a pandas DataFrame, a row per person, not {type(people).__name__}"
            )
        self._require_columns(people)
        findings.n_rows += len(people)
        findings.columns = frozenset(map(str, people.columns))
        s = self.groups(people)
        findings.no_group.add(people[self.sensitive_column(people)[0]], np.isnan(s))
        x = [self._feature(i, people[feature.name], findings) for i, feature in enumerate(self.features)]
        return np.stack(x, axis=-1), s

    def doubts(self, findings: Findings, *, strict: bool) -> list[str]:
        """Warnings about a table as sentences, given the findings of all its parts.

        Raises:
            FairAllError: if the table cannot be used for values unknown from training.
        """
        n_rows, wrong = findings.n_rows, findings.no_group
        if wrong.n:
            column, _, allowed = self.sensitive_column(findings.columns)
            raise FairAllError(
                f"{wrong.told(column, n_rows)}; it is the sensitive attribute, which must be {allowed} "
                f"(first in row {wrong.first})"
            )
        said = []
        for feature, low, high in zip(self.features, self.lowest, self.highest, strict=True):
            name, odd = feature.name, findings.odd[feature.name]
            if odd.n and feature.kind in DISCRETE:
                said.append(_of_unknown(feature, findings, strict))
            if n_rows and findings.missing[name] == n_rows and MISSING_LEVEL not in feature.levels:
                if strict:
                    raise FairAllError(f"column {name!r} has no value in any row")
                said.append(f"column {name!r} has no value in any row, taken as {_word(feature)!r}")
            if odd.n and feature.kind not in DISCRETE:
                told = odd.told(name, n_rows)
                said.append(f"{told}, far outside the training range {low:.6g} to {high:.6g}")
        return said

    def groups(self, people: pd.DataFrame) -> np.ndarray:
        """The sensitive attribute s of each row, shape (N,); NaN where it is no group."""
        column, meaning, _ = self.sensitive_column(people)
        return of_words(people[column], meaning)

    def group_name(self, s: float) -> str:
        """The group S = s, with its words in the raw data if they are known."""
        return group_name(s, () if self.sensitive is None else self.sensitive.values(s), self.n_groups)

    def example(self) -> pd.DataFrame:
        """Artificial people, one of each group, as raw values.

        Real features have their training mean, counts their smallest training value, others one of their
        levels, the first person the first one.
        """
        columns: dict[str, list[Any]] = {}
        groups = sides(self.n_groups)
        for feature, mean, lowest in zip(self.features, self.mean, self.lowest, strict=True):
            if feature.kind in DISCRETE:
                columns[feature.name] = list(itertools.islice(itertools.cycle(feature.words), len(groups)))
            else:
                number = float(f"{mean:.4g}") if feature.kind is Kind.REAL else int(lowest)
                columns[feature.name] = [number] * len(groups)
        raw = self.sensitive
        coded = [int(s) for s in groups]
        columns |= {CODED: coded} if raw is None else {raw.column: [raw.values(s)[0] for s in groups]}
        return pd.DataFrame(columns)

    def _require_columns(self, people: pd.DataFrame) -> None:
        needed = set(self.names)
        lacking = [name for name in self.names if name not in people]
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

    def sensitive_column(self, columns: Container[str]) -> tuple[str, Mapping[str, float], str]:
        """Name of the column with the sensitive attribute, S by word, and the words as text.

        Raises:
            FairAllError: if it is not among `columns`.
        """
        n_groups, raw = self.n_groups, self.sensitive
        codes = {f"{s:g}": s for s in sides(n_groups)}
        coded = "−1 and +1" if n_groups == 2 else f"0 to {n_groups - 1}"
        name, meaning, allowed = CODED, codes, coded.replace("and", "or")
        if raw is not None and (CODED not in columns or raw.column == CODED):
            name, words = raw.column, raw.meaning
            meaning = codes | words if name == CODED else words
            signs = {1.0: " (S = +1)", -1.0: " (S = −1)"} if n_groups == 2 else {}
            allowed = ", ".join(f"{word}{signs.get(side, '')}" for word, side in words.items())
        if name not in columns:
            own = f" or {name!r} of {allowed}" if name != CODED else ""
            raise FairAllError(
                f"the table lacks the sensitive attribute and needs it: a column {CODED!r} of {coded}{own}"
            )
        return name, meaning, allowed

    def _feature(self, i: int, column: pd.Series, findings: Findings) -> np.ndarray:
        """Numbers for the raw values of feature `i`, shape (N,)."""
        feature = self.features[i]
        values, unknown = feature.read(column, exact=False)
        odd, missing = unknown, np.isnan(values) & ~unknown
        if feature.kind not in DISCRETE:
            refuse(column, unknown, "is not possible; it must be a finite number")
            low, high = self.lowest[i], self.highest[i]
            margin = max(high - low, self.scale[i] if feature.kind is Kind.REAL else 1.0)  # 1 of a constant
            odd = (values < low - margin) | (values > high + margin)  # not where a value is missing, NaN
        if feature.kind is Kind.COUNT:
            no_count = ~are_counts(values) & ~missing
            refuse(column, no_count, "is not possible; it must be a count, a whole number from 0")
        findings.odd[feature.name].add(column, odd)
        if feature.of_missing is None:
            refuse(column, missing, "is not possible; no value may be missing")
        else:
            findings.missing[feature.name] += int(missing.sum())
            values[missing] = feature.of_missing
        if feature.fill is not None:
            values[unknown] = feature.fill
        return values


def _of_unknown(feature: Feature, findings: Findings, strict: bool) -> str:
    """Message about the unknown levels of a feature; raises FairAllError if they cannot be replaced."""
    words, unknown = feature.words, findings.odd[feature.name]
    rest = OTHER_LEVEL in words
    nobody_known = unknown.n + findings.missing[feature.name] == findings.n_rows
    told = f"{unknown.told(feature.name, findings.n_rows)}, not known from training"
    if strict or feature.fill is None or ((feature.kind is Kind.BINARY or nobody_known) and not rest):
        some = ", ".join(words[:20]) + (", ..." if len(words) > 20 else "")
        raise FairAllError(f"{told}; it must be one of {some} (first in row {unknown.first})")
    return f"{told} and taken as {_word(feature)!r}"


def _word(feature: Feature) -> str:
    """The raw text of the imputed value."""
    if feature.kind in DISCRETE:
        return feature.words[feature.codes.index(feature.fill)]
    return f"{feature.fill:g}"
