"""A table of applicants: what each column of a file or a DataFrame means, read once for all commands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd

from fairall.display.progress import doing
from fairall.errors import Collected, count
from fairall.tables import roles
from fairall.tables.declared import Declared
from fairall.tables.features import Feature, Kind
from fairall.tables.files import Cells, read_cells
from fairall.tables.infer import Column, LeftOut
from fairall.tables.leaks import DECIDED, LABEL, telling

RowValues = np.ndarray | None  # None where a table has no such column


@dataclass(frozen=True)
class Applicants:
    """N applicants; what a table does not have is None.

    Attributes:
        declared: meanings of columns.
        cells: all columns as the file has them, missing where a cell means no value; the index is the number
            of the row, from 0.
        roles: key by name of the columns that are no features.
        kinds: kind by name of the columns that may be features, in their order.
        left_out: by name of other columns without a role, why they are no features.
        faults: what must be corrected before the table can be used, a line each.
        group: number of the group, shape (N,).
        groups: values of each group, one of each column of groups, or with `to_learn` its words.
        probabilities: of other groups, where the one in `groups` is everybody, shape (N, K).
        accepted: the past decisions, shape (N,), bool.
        label: 1 or 0, NaN where unknown, shape (N,); where decisions are declared only those that they
            revealed, unless `to_learn` and all are known.
        propensity: recorded P(accepted), shape (N,), NaN where a rejected row has none.
        person: name of the person, shape (N,).
        time: numbers or datetime64, shape (N,).
        policy_version: name of the policy that decided, shape (N,).
        decision_maker: name of who decided, shape (N,).
        gain: of an accepted person with a positive label, shape (N,).
        loss: of an accepted person with a negative label, at least 0, shape (N,).
        notes: on how the table was read, one sentence each.
        warnings: on what is probably not as declared, likewise.
        columns: those without a role, by name.
    """

    declared: Declared
    cells: pd.DataFrame
    roles: Mapping[str, str] = field(default_factory=dict)
    kinds: Mapping[str, Kind] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)
    faults: tuple[str, ...] = ()
    group: RowValues = None
    groups: Sequence[tuple[str, ...]] = ()
    probabilities: RowValues = None
    accepted: RowValues = None
    label: RowValues = None
    propensity: RowValues = None
    person: RowValues = None
    time: RowValues = None
    policy_version: RowValues = None
    decision_maker: RowValues = None
    gain: RowValues = None
    loss: RowValues = None
    notes: Sequence[str] = ()
    warnings: Sequence[str] = ()
    columns: Mapping[str, Column] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return len(self.cells)

    def checked(self) -> Applicants:
        """The table itself; raises FairAllError with all of its faults."""
        Collected(self.faults).tell()
        return self

    def features(self, train: np.ndarray | None = None) -> tuple[list[Feature], list[str]]:
        """Features with levels and imputed values of the rows `train`, and notes on columns.

        Raises:
            FairAllError: with column and row of a value that no feature can hold.
        """
        rows = np.arange(len(self)) if train is None else train
        features, notes = list[Feature](), list[str]()
        for name, kind in self.kinds.items():
            column = self.columns[name]
            try:
                features.append(column.feature(kind, rows))
                notes += column.remarks(features[-1])
            except LeftOut as reason:
                notes.append(f"column {name!r} is left out: {reason}")
        return features, notes

    def values(self, features: Sequence[Feature]) -> dict[str, np.ndarray]:
        """Numbers and codes of features by name, NaN where a number is missing, shape (N,) each."""
        return {feature.name: self.columns[feature.name].values(feature) for feature in features}

    def missing(self, features: Sequence[Feature]) -> dict[str, np.ndarray]:
        """Masks (N,) of missing cells, by name of the features that have some."""
        rows = self.cells[[one.name for one in features]].isna()
        return {name: rows[name].to_numpy() for name in rows if rows[name].any()}

    def leaks(self, features: Sequence[Feature]) -> dict[tuple[str, ...], str]:
        """A warning by the names of features that tell the decision or the label; see `leaks.telling`."""
        outcomes = {} if self.accepted is None else {DECIDED: self.accepted.astype(float)}
        if self.label is not None:
            outcomes |= {"who has a label": 1.0 - np.isnan(self.label), LABEL: self.label}
        return telling(features, self.columns, outcomes)


def read(
    source: Path | pd.DataFrame | Cells,
    declared: Declared,
    *,
    needs: Mapping[str, str] = MappingProxyType({}),
    to_learn: bool = False,
) -> Applicants:
    """Read a table; what is wrong with it is collected in `Applicants.faults`.

    Args:
        source: a CSV or Parquet file, a DataFrame, or cells that were read already.
        declared: meanings of columns.
        needs: keys of `declared` that must be given, and the fault where one is not.
        to_learn: order groups as `roles.groups_to_learn`, and leave out rows of no group.

    Raises:
        FairAllError: if the file cannot be read.
    """
    cells = source if isinstance(source, Cells) else read_cells(source, declared)
    faults, kinds, left_out = Collected(), dict[str, Kind](), dict[str, str]()
    reading: dict[str, Any] = {"notes": [], "warnings": [], "columns": {}}
    keys = roles.roles(declared, list(map(str, cells.frame)), faults)
    faults.told += [fault for key, fault in needs.items() if not getattr(declared, key)]
    if declared.propensity and not declared.decision:
        faults.told.append("propensity= needs the decisions too: give decision=COLUMN")
    with faults.one():
        if {keys.get(name) for name in declared.grouping} in ({"sensitive"}, {"groups"}):
            reading["group"] = (roles.groups_to_learn if to_learn else roles.groups)(cells, reading)
            if (reading["group"] < 0).any():
                cells = cells.rows(reading["group"] >= 0)
                reading["group"] = reading["group"][reading["group"] >= 0]
    for key, reader in roles.READERS.items():
        name = getattr(declared, key)
        if keys.get(name) == key or (key in roles.AMOUNTS and name in cells.frame):
            with faults.one():
                if key not in (*roles.LIMITS, "label"):
                    roles.complete(cells, key, name)
                reading[key] = reader(cells, key, reading)
                if key == "label" and "decision" in reading:
                    roles.reveal(reading, declared, to_learn=to_learn)
    doing("kinds of columns")
    frame, of_roles = cells.frame, {name: key for name, key in keys.items() if key != "kinds"}
    for name in map(str, frame):
        if name in of_roles or name in declared.not_features:
            continue
        reading["columns"][name] = Column(frame[name], declared)
        try:
            with faults.one():
                kinds[name] = reading["columns"][name].kind()
        except LeftOut as reason:
            left_out[name] = str(reason)
    if declared.person is None and not faults.told:
        real = [reading["columns"][name].numbers for name, kind in kinds.items() if kind is Kind.REAL]
        reading["warnings"] += repeats(frame[[*kinds, *declared.grouping]], real)
    of_columns = [f"column {name!r} is left out: {reason}" for name, reason in left_out.items()]
    reading["notes"] = (*of_columns, *reading["notes"])
    reading["accepted"] = reading.pop("decision", None)
    return Applicants(declared, frame, of_roles, kinds, left_out, faults=tuple(faults.told), **reading)


def repeats(rows: pd.DataFrame, numbers: Sequence[np.ndarray]) -> list[str]:
    """A warning where rows (N, D) of features and groups are equal.

    Rows are compared that have a number, of shape (N,) each; whole numbers, which are often equal, are none.
    """
    real = [values for values in numbers if (values > np.floor(values)).any()]
    unknown = np.all([np.isnan(values) for values in real], axis=0)
    sums = pd.Series(sum(map(np.nan_to_num, real), start=np.where(unknown, np.nan, 0.0))).dropna()
    hashed = pd.util.hash_pandas_object(rows.iloc[sums.index[sums.duplicated(keep=False)]], index=False)
    again = hashed[hashed.duplicated()]
    if again.empty:
        return []
    first, second = hashed.index[hashed == again.iloc[0]][:2] + 1
    return [
        f"rows {first} and {second} are equal in all features and the group, and {count(len(again), 'row')} "
        "repeat an earlier one: if these are of the same person, give evaluate person=COLUMN; here each row "
        "is of another person"
    ]
