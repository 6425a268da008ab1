"""Data set in a CSV file, with declared or inferred meanings of its columns."""

from __future__ import annotations

import difflib
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from omegaconf import OmegaConf

from fairall.data.cells import listed, refuse, shown
from fairall.data.csv.config import CsvConfig
from fairall.data.csv.infer import LeftOut, infer_feature
from fairall.data.csv.leaks import leaks
from fairall.data.csv.propensity import estimated_propensity
from fairall.data.csv.reader import read_text
from fairall.data.csv.selective_labels import overlap_warnings, weighting
from fairall.data.dataset import Reading, TableDataset
from fairall.data.features import Feature, Schema, as_number
from fairall.data.splits import Splits, split_alike, split_by_column
from fairall.data.table import Logged, Sensitive, Table
from fairall.errors import FairAllError, count

LEAST_LABELLED = 40  # rows for a training, a validation and a test set
PARTS = ("train", "validation", "test")


class OwnCsv(TableDataset):
    """A CSV file; columns without another role are features.

    Rows without a label are unlabelled people: part of every split, and rejected in the warm-up.
    """

    config: CsvConfig
    config_type = CsvConfig

    @classmethod
    def location(cls, config: Any) -> str:
        """See `Dataset.location`."""
        return "given with dataset.path=FILE" if OmegaConf.is_missing(config, "path") else config.path

    @cached_property
    def raw(self) -> pd.DataFrame:
        """Cells of the file as text, None where missing; raises FairAllError if it cannot be read."""
        return read_text(
            Path(self.config.path),
            separator=self.config.separator,
            encoding=self.config.text_encoding,
            missing=self.config.no_value,
        )

    def read(self) -> Reading:
        """See `TableDataset.read`; levels and imputed values come from the training rows."""
        config, raw = self.config, self.raw
        roles = _roles(config, list(map(str, raw)))
        s = _sensitive(raw[config.sensitive], config.advantaged)
        label, labelled = _label(raw[config.label], config.positive)
        accepted: np.ndarray | None = None
        notes: list[str] = []
        if config.decision is not None:
            accepted = _decisions(raw[config.decision], config.accepted)
            labelled, notes = _revealed(labelled, accepted)
            label = label * labelled
        splits = _splits(raw, s, label, labelled, config)
        schema, left_out = _schema(raw.drop(columns=list(roles)), splits.train, config)
        missing = {name: int(raw[name].isna().sum()) for name in schema.names}
        sensitive = Sensitive.of(raw[config.sensitive], s)
        table = Table(schema, schema.encode(raw), s, label, labelled, missing=missing, sensitive=sensitive)
        if accepted is not None:
            table = replace(table, logged=_logged(raw, accepted, table, splits, config))
        notes += [
            f"no training row of the {group} group has a positive label"
            for group, rows in _groups(splits.train, s)
            if not label[rows].any()
        ]
        told = leaks(raw.drop(columns=list(roles)), labelled, config)
        how, doubts = weighting(table, splits)
        return Reading(table, splits, (*left_out, *notes, *told, *how), (*overlap_warnings(table), *doubts))

    def columns(self) -> list[tuple[str, pd.Series, Feature | str | FairAllError]]:
        """Name, text and interpretation of each column, to check a file before a run.

        The interpretation is a feature (inferred from all rows), the error that a run would raise, or the
        reason in words why the column is no feature.

        Raises:
            FairAllError: if the file cannot be read.
        """
        roles = {name: key for key, name in _named(self.config)}
        everybody = np.arange(len(self.raw))
        columns: list[tuple[str, pd.Series, Feature | str | FairAllError]] = []
        for name in map(str, self.raw):
            taken: Feature | str | FairAllError
            if name in roles:
                taken = roles[name].removeprefix("dataset.")
            else:
                try:
                    feature = infer_feature(self.raw[name], everybody, self.config)
                    taken = f"left out: {feature.reason}" if isinstance(feature, LeftOut) else feature
                except FairAllError as error:
                    taken = error
            columns.append((name, self.raw[name], taken))
        return columns


def _named(config: CsvConfig) -> list[tuple[str, str]]:
    """Keys and names of the columns that are no features."""
    named = [
        ("dataset.label", config.label),
        ("dataset.sensitive", config.sensitive),
        ("dataset.decision", config.decision),
        ("dataset.propensity", config.propensity),
        ("dataset.split.column", config.split.column),
        *(("dataset.drop", name) for name in config.drop),
    ]
    return [(key, name) for key, name in named if name is not None]


def _roles(config: CsvConfig, columns: list[str]) -> dict[str, str]:
    """Columns that are no features, with the key that names each.

    Raises:
        FairAllError: if a key names no column, or two keys the same one.
    """
    roles: dict[str, str] = {}
    for key, name in [*_named(config), *(("dataset.kinds", name) for name in config.kinds)]:
        if name not in columns:
            close = difflib.get_close_matches(name, columns, n=1)
            hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(columns[:20])}"
            raise FairAllError(f"{key}={name}: {config.path} has no such column; {hint}")
        if name in roles and roles[name] != key:
            raise FairAllError(f"column {name!r} cannot be both {roles[name]} and {key}")
        roles[name] = key
    if config.propensity is not None and config.decision is None:
        raise FairAllError("dataset.propensity needs the decisions too: give dataset.decision=COLUMN")
    return {name: key for name, key in roles.items() if key != "dataset.kinds"}


def _splits(
    raw: pd.DataFrame, s: np.ndarray, label: np.ndarray, labelled: np.ndarray, config: CsvConfig
) -> Splits:
    """Splits; each part must hold both groups and a label, the training rows both labels."""
    if config.split.column is not None:
        hint = "give more rows"
        splits = split_by_column(_parts(raw[config.split.column]), config.split)
    elif labelled.sum() >= LEAST_LABELLED:
        hint = "give more rows, or another dataset.split.random_state"
        splits = split_alike(s, label, labelled, config.split)
    else:
        raise FairAllError(
            f"column {config.label!r}: {labelled.sum()} rows have a label; "
            f"at least {LEAST_LABELLED} are needed"
        )
    for part in PARTS:
        rows = getattr(splits, part)
        for group, of_group in _groups(rows, s):
            if not len(of_group):
                raise FairAllError(
                    f"column {config.sensitive!r}: no {part} row is of the {group} group; {hint}"
                )
        if not labelled[rows].any():
            raise FairAllError(f"column {config.label!r}: no {part} row has a label that can be used; {hint}")
    if len(set(label[splits.train][labelled[splits.train]])) < 2:
        raise FairAllError(f"column {config.label!r}: the training rows all have the same label")
    return splits


def _groups(rows: np.ndarray, s: np.ndarray) -> list[tuple[str, np.ndarray]]:
    return [("advantaged", rows[s[rows] == 1]), ("disadvantaged", rows[s[rows] == -1])]


def _schema(raw: pd.DataFrame, train: np.ndarray, config: CsvConfig) -> tuple[Schema, list[str]]:
    """Features of the columns, and a note on each column left out."""
    features: list[Feature] = []
    notes = []
    for name in raw:
        feature = infer_feature(raw[name], train, config)
        if isinstance(feature, LeftOut):
            notes.append(f"column {name!r} is left out: {feature.reason}")
        else:
            features.append(feature)
    if not features:
        raise FairAllError(f"{config.path}: no column is left to be a feature")
    return Schema(features), notes


def _sensitive(column: pd.Series, advantaged: str) -> np.ndarray:
    """S in {−1, +1} of each row."""
    refuse(column, column.isna(), "is no sensitive attribute: complete or remove the row")
    groups = sorted(column.unique())
    if len(groups) != 2:
        raise FairAllError(
            f"column {column.name!r} has {listed(groups, 'group')}; the sensitive attribute must have two: "
            "merge or remove rows"
        )
    return np.where(_is(column, advantaged, "dataset.advantaged"), 1, -1)


def _label(column: pd.Series, positive: str) -> tuple[np.ndarray, np.ndarray]:
    """ỹ in {0, 1} of each row, 0 where unknown, and whether it is known."""
    labelled = column.notna().to_numpy()
    if not labelled.any():
        raise FairAllError(f"column {column.name!r}: no row has a label")
    values = sorted(column[labelled].unique())
    if len(values) != 2:
        raise FairAllError(
            f"column {column.name!r} has {listed(values, 'value')}; a label must have two, "
            "with empty cells where it is unknown"
        )
    return (_is(column, positive, "dataset.positive") & labelled).astype(int), labelled


def _revealed(labelled: np.ndarray, accepted: np.ndarray) -> tuple[np.ndarray, list[str]]:
    """Whose label is used, shape (N,), bool, and notes on labels that are not.

    If some labels are unknown, only those of the accepted: the propensity of the decision gives the
    probability that such a label is known, but not that of a rejected person's label.
    """
    if labelled.all():
        return labelled, []
    notes = []
    if extra := int((labelled & ~accepted).sum()):
        notes.append(f"{count(extra, 'rejected row')} with a label: not used, since no decision revealed it")
    if lacking := int((accepted & ~labelled).sum()):
        notes.append(
            f"{count(lacking, 'accepted row')} without a label: taken to be a random part of the accepted"
        )
    return labelled & accepted, notes


def _logged(
    raw: pd.DataFrame, accepted: np.ndarray, table: Table, splits: Splits, config: CsvConfig
) -> Logged:
    reveals = not table.labelled.all()
    if config.propensity is not None:
        return Logged(accepted, _recorded_propensity(raw[config.propensity], accepted), reveals=reveals)
    if len(set(accepted[splits.train])) < 2:
        raise FairAllError(
            f"column {config.decision!r}: all decisions on training rows are the same, from which no "
            "propensity can be estimated; give more rows, or a column with dataset.propensity=COLUMN"
        )
    propensity = estimated_propensity(table.schema, table.features, table.s, accepted, splits.train)
    return Logged(accepted, propensity, estimated=True, reveals=reveals)


def _decisions(column: pd.Series, accepted: str) -> np.ndarray:
    refuse(column, column.isna(), "is no decision: complete or remove the row")
    values = sorted(column.unique())
    if len(values) != 2:
        raise FairAllError(f"column {column.name!r} has {listed(values, 'value')}; a decision must have two")
    return _is(column, accepted, "dataset.accepted")


def _recorded_propensity(column: pd.Series, accepted: np.ndarray) -> np.ndarray:
    propensity = pd.to_numeric(column, errors="coerce").to_numpy(dtype=float)
    # Rejected rows have no weight, so their propensity may be missing or 0.
    wrong = ~((propensity > 0) & (propensity <= 1)) & (accepted | column.notna().to_numpy())
    wrong &= ~((propensity == 0) & ~accepted)
    refuse(column, wrong, "is no propensity, a number above 0 and at most 1")
    return np.nan_to_num(propensity)


def _parts(column: pd.Series) -> np.ndarray:
    refuse(column, ~column.isin(PARTS), f"is none of {', '.join(PARTS)}")
    return column.to_numpy(dtype=str)


def _is(column: pd.Series, value: str, key: str) -> np.ndarray:
    """Which cells hold a value: as the same text, number, or text up to case."""
    found = (column == value).to_numpy()
    if not found.any():
        number = as_number(value)
        same = {
            text
            for text in column.dropna().unique()
            if (number is not None and as_number(text) == number) or text.casefold() == value.casefold()
        }
        found = column.isin(same).to_numpy()
    if not found.any():
        values = ", ".join(shown(text) for text in sorted(column.dropna().unique()))
        raise FairAllError(f"{key}={shown(value)}: column {column.name!r} has no such value; it has {values}")
    return found
