"""A table of applicants: what each column of a file or a DataFrame means, read once for all commands."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd

from fairall.display.progress import doing
from fairall.errors import Collected
from fairall.tables import roles as meaning
from fairall.tables.cells import numbers_of
from fairall.tables.declared import Declared
from fairall.tables.features import DISCRETE, Feature, Kind
from fairall.tables.files import Cells, read_cells
from fairall.tables.infer import Candidate, LeftOut
from fairall.tables.leaks import DECIDED, LABEL, telling

AT_RANDOM = "taken to be a random part of the accepted"


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
        numbers: `cells.numbers_of` each column without a role, by name.
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
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    numbers: Mapping[str, np.ndarray] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return len(self.cells)

    def checked(self) -> Applicants:
        """The table itself; raises FairAllError with all of its faults."""
        Collected(self.faults).tell()
        return self

    def column(self, name: str) -> Candidate:
        """One of the columns of `kinds` or `left_out`."""
        return Candidate(self.cells[name], self.declared, self.numbers[name])

    def features(self, train: np.ndarray | None = None) -> tuple[list[Feature], list[str]]:
        """Features with levels and imputed values of the rows `train`, and notes on columns.

        Raises:
            FairAllError: with column and row of a value that no feature can hold.
        """
        rows = np.arange(len(self)) if train is None else train
        features, notes = list[Feature](), list[str]()
        for name, kind in self.kinds.items():
            column = self.column(name)
            try:
                features.append(column.feature(kind, rows))
                notes += column.remarks(features[-1])
            except LeftOut as reason:
                notes.append(f"column {name!r} is left out: {reason}")
        return features, notes

    def values(self, features: Sequence[Feature]) -> dict[str, np.ndarray]:
        """Numbers and codes of features by name, NaN where a number is missing, shape (N,) each."""
        return {
            one.name: one.encode(self.cells[one.name]) if one.kind in DISCRETE else self.numbers[one.name]
            for one in features
        }

    def missing(self, features: Sequence[Feature]) -> dict[str, np.ndarray]:
        """Masks (N,) of missing cells, by name of the features that have some."""
        found = {one.name: self.cells[one.name].isna().to_numpy() for one in features}
        return {name: rows for name, rows in found.items() if rows.any()}

    def leaks(self, features: Sequence[Feature]) -> dict[tuple[str, ...], str]:
        """A warning by the names of features that tell the decision or the label; see `leaks.telling`."""
        outcomes = {} if self.accepted is None else {DECIDED: self.accepted.astype(float)}
        if self.label is not None:
            outcomes |= {"who has a label": 1.0 - np.isnan(self.label), LABEL: self.label}
        return telling(features, self.cells, self.numbers, outcomes)


def read(
    source: Path | pd.DataFrame | Cells,
    declared: Declared,
    *,
    needs: Mapping[str, str] = MappingProxyType({}),
    to_learn: bool = False,
    unlabelled: str = AT_RANDOM,
) -> Applicants:
    """Read a table; what is wrong with it is collected in `Applicants.faults`.

    Args:
        source: a CSV or Parquet file, a DataFrame, or cells that were read already.
        declared: meanings of columns.
        needs: keys of `declared` that must be given, and the fault where one is not.
        to_learn: order groups as `roles.groups_to_learn`, and leave out rows of no group.
        unlabelled: what is assumed of accepted rows without a label, in words.

    Raises:
        FairAllError: if the file cannot be read.
    """
    cells = source if isinstance(source, Cells) else read_cells(source, declared)
    faults, notes, warnings = Collected(), list[str](), list[str]()
    found: dict[str, Any] = {}
    roles = meaning.roles(declared, list(map(str, cells.frame)), faults)
    faults.told += [fault for key, fault in needs.items() if not getattr(declared, key)]
    if declared.propensity is not None and declared.decision is None:
        key, given = declared.spelling.key("propensity"), declared.spelling.given("decision", "COLUMN")
        faults.told.append(f"{key} needs the decisions too: give {given}")

    def take(key: str, of: Callable[..., tuple[Any, list[str]]], *more: Any) -> None:
        if roles.get(getattr(declared, key) or "") == key:
            with faults.one():
                found[key], told = of(cells, declared, *more)
                notes.extend(told)

    with faults.one():
        by_key = {roles.get(name) for name in declared.grouping}
        if by_key and by_key <= {"sensitive", "intersections"}:
            form = meaning.groups_to_learn if to_learn else meaning.groups
            of_groups = None if to_learn else meaning.probabilities(cells, declared)
            if of_groups is None or np.isin(of_groups, (0, 1)).all():
                group, found["groups"], told = form(cells, declared)
                notes += told
            else:
                found["probabilities"], found["groups"] = of_groups, [("everybody",)]
                group = np.zeros(len(of_groups), dtype=int)
            if (group < 0).any():
                cells = cells.rows(group >= 0)
            found["group"] = group[group >= 0]
    take("decision", meaning.decisions)
    take("label", meaning.labels)
    accepted, label = found.pop("decision", None), found.get("label")
    with faults.one():
        if label is not None and accepted is not None:
            warnings += meaning.failed_by_rejection(label, accepted, declared)
            if np.isnan(label).any() or not to_learn:
                found["label"], told = meaning.revealed(label, accepted, cells, declared, unlabelled)
                notes += told
    if accepted is not None:
        take("propensity", meaning.recorded_propensity, accepted)
    for key in ("person", "decision_maker"):
        take(key, meaning.names, key)
    take("policy_version", meaning.versions)
    take("time", meaning.times)
    with faults.one():
        if declared.gain is not None or declared.loss is not None:
            found["gain"], found["loss"] = meaning.amounts(cells, declared)
    doing("kinds of columns")
    roles = {name: key for name, key in roles.items() if key != "kinds"}
    frame = cells.frame
    kinds, left_out, numbers = dict[str, Kind](), dict[str, str](), dict[str, np.ndarray]()
    for name in map(str, frame):
        if name in roles or name in declared.not_features:
            continue
        numbers[name] = numbers_of(frame[name])
        try:
            with faults.one():
                kinds[name] = Candidate(frame[name], declared, numbers[name]).kind()
        except LeftOut as reason:
            left_out[name] = str(reason)
    notes[:0] = [f"column {name!r} is left out: {reason}" for name, reason in left_out.items()]
    return Applicants(
        declared,
        frame,
        roles,
        kinds,
        left_out,
        tuple(faults.told),
        accepted=accepted,
        notes=tuple(notes),
        warnings=tuple(warnings),
        numbers=numbers,
        **found,
    )
