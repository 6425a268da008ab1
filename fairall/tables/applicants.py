"""A table of applicants: what each column of a file or a DataFrame means, read once for all commands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from fairall.errors import Collected
from fairall.tables.declared import Declared
from fairall.tables.features import Feature, Kind
from fairall.tables.files import Cells
from fairall.tables.infer import Column, LeftOut
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
    columns: dict[str, Column] = field(default_factory=dict)
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

    def coded(self, train: np.ndarray | None = None) -> tuple[list[Feature], pd.DataFrame, list[str]]:
        """Features with levels and imputed values of the rows `train`, their values, and notes on columns.

        Values are numbers and codes, shape (N, D), NaN where a number is missing.

        Raises:
            FairAllError: with column and row of a value that no feature can hold.
        """
        rows = np.arange(len(self)) if train is None else train
        features, values, notes = list[Feature](), dict[str, np.ndarray](), list[str]()
        for name, kind in self.kinds.items():
            column = self.columns[name]
            try:
                features.append(column.feature(kind, rows))
            except LeftOut as reason:
                notes.append(f"column {name!r} is left out: {reason}")
                continue
            values[name] = column.values(features[-1])
            notes += column.remarks(features[-1])
        return features, pd.DataFrame(values, self.cells.index, copy=False), notes

    def missing(self, features: Sequence[Feature]) -> dict[str, np.ndarray]:
        """Masks (N,) of missing cells, by name of the features that have some."""
        rows = self.cells[[feature.name for feature in features]].isna()
        return {name: rows[name].to_numpy() for name in rows if rows[name].any()}

    def leaks(self, features: Sequence[Feature]) -> dict[tuple[str, ...], str]:
        """A warning by the names of features that tell the decision or the label; see `leaks.telling`."""
        accepted = np.ones(len(self), dtype=bool) if self.accepted is None else self.accepted
        outcomes = {} if self.accepted is None else {DECIDED: accepted.astype(float)}
        if self.label is not None:
            known = np.where(accepted, 1.0 - np.isnan(self.label), np.nan)
            outcomes |= {"who has a label": known, LABEL: self.label}
        return telling(features, self.columns, outcomes)
