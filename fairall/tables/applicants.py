"""A table of applicants: what each column of a file or a DataFrame means, read once for all commands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pandas as pd

from fairall.display.progress import doing
from fairall.errors import Collected, count
from fairall.tables import roles
from fairall.tables.cells import numbers_of
from fairall.tables.declared import Declared
from fairall.tables.features import DISCRETE, Feature, Kind
from fairall.tables.files import Cells, read_cells
from fairall.tables.infer import Candidate, LeftOut
from fairall.tables.leaks import DECIDED, LABEL, telling

RowValues = np.ndarray | None  # None where a table has no such column


@dataclass
class Applicants:
    """N applicants; what a table does not have is None.

    Attributes:
        table: all columns as the file has them, and words that mean no value.
        to_learn: whether groups are those of a method that learns.
        roles: key by name of the columns that are no features.
        columns: the others that may be features, by name.
        kinds: kind by name of those that may be features, in their order.
        left_out: by name of the others, why they are no features.
        faults: what must be corrected before the table can be used.
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
    """

    table: Cells
    to_learn: bool = False
    roles: Mapping[str, str] = field(default_factory=dict)
    columns: dict[str, Candidate] = field(default_factory=dict)
    kinds: dict[str, Kind] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    faults: Collected = field(default_factory=Collected)
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
    notes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    @property
    def declared(self) -> Declared:
        """Meanings of columns."""
        return self.table.declared

    @property
    def cells(self) -> pd.DataFrame:
        """All columns, missing where a cell means no value; the index is the number of the row, from 0."""
        return self.table.frame

    def __len__(self) -> int:
        return len(self.cells)

    def checked(self) -> Applicants:
        """The table itself; raises FairAllError with all of its faults."""
        self.faults.tell()
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
        return {
            one.name: one.encode(self.cells[one.name])
            if one.kind in DISCRETE
            else self.columns[one.name].numbers
            for one in features
        }

    def missing(self, features: Sequence[Feature]) -> dict[str, np.ndarray]:
        """Masks (N,) of missing cells, by name of the features that have some."""
        present = {one.name: self.columns[one.name].present for one in features}
        return {name: ~rows for name, rows in present.items() if not rows.all()}

    def leaks(self, features: Sequence[Feature]) -> dict[tuple[str, ...], str]:
        """A warning by the names of features that tell the decision or the label; see `leaks.telling`."""
        outcomes = {} if self.accepted is None else {DECIDED: self.accepted.astype(float)}
        if self.label is not None:
            outcomes |= {"who has a label": 1.0 - np.isnan(self.label), LABEL: self.label}
        numbers = {name: column.numbers for name, column in self.columns.items()}
        return telling(features, self.cells, numbers, outcomes)


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
    table = source if isinstance(source, Cells) else read_cells(source, declared)
    people = Applicants(table, to_learn)
    faults, notes = people.faults, people.notes
    keys = roles.roles(declared, list(map(str, table.frame)), faults)
    people.roles = {name: key for name, key in keys.items() if key != "kinds"}
    faults.told += [fault for key, fault in needs.items() if not getattr(declared, key)]
    if declared.propensity and not declared.decision:
        faults.told.append("propensity= needs the decisions too: give decision=COLUMN")
    if not faults.told:
        read_roles(people)
    doing("kinds of columns")
    for name in map(str, people.cells):
        if name in people.roles or name in declared.not_features:
            continue
        cells = people.cells[name]
        people.columns[name] = Candidate(cells, declared, numbers_of(cells))
        try:
            with faults.one():
                people.kinds[name] = people.columns[name].kind()
        except LeftOut as reason:
            people.left_out[name] = str(reason)
    notes[:0] = [f"column {name!r} is left out: {reason}" for name, reason in people.left_out.items()]
    if declared.person is None and not faults.told:
        real = [people.columns[name].numbers for name, kind in people.kinds.items() if kind is Kind.REAL]
        people.warnings += repeats(people.cells[[*people.kinds, *declared.grouping]], real)
    return people


def read_roles(people: Applicants) -> None:
    """Read the columns with a role."""
    with people.faults.one():
        if people.declared.grouping:
            people.group = (roles.groups_to_learn if people.to_learn else roles.groups)(people)
    for key, reader in roles.READERS.items():
        if name := getattr(people.declared, key):
            with people.faults.one():
                values = reader(people, people.cells[name], key)
                setattr(people, "accepted" if key == "decision" else key, values)
    with people.faults.one():
        roles.reveal(people)


def repeats(rows: pd.DataFrame, numbers: Sequence[np.ndarray]) -> list[str]:
    """A warning where rows (N, D) of features and groups are equal.

    Rows are compared that have a number, of shape (N,) each; whole numbers, which are often equal, are none.
    """
    real = {k: values for k, values in enumerate(numbers) if (values > np.floor(values)).any()}
    sums = pd.DataFrame(real).sum(axis=1, min_count=1).dropna()
    rows = rows.iloc[sums.index[sums.duplicated(keep=False)]]
    again = rows.index[rows.duplicated()]
    if again.empty:
        return []
    return [
        f"{count(len(again), 'row')} repeat an earlier one in all features and the group, as row "
        f"{again[0] + 1}: if these are of the same person, give evaluate person=COLUMN; here each row is of "
        "another person"
    ]
