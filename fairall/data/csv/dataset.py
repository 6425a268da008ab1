"""Data set in a CSV or Parquet file, with declared or inferred meanings of its columns."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from omegaconf import OmegaConf
from typing_extensions import override

from fairall.data.cells import refuse
from fairall.data.csv.config import CsvConfig
from fairall.data.csv.infer import LeftOut, infer_feature, infer_features
from fairall.data.csv.leaks import leaks, of_label
from fairall.data.csv.reader import read_text
from fairall.data.csv.roles import (
    decisions,
    estimated_propensity,
    groups,
    labels,
    recorded_propensity,
    revealed,
    roles,
)
from fairall.data.csv.selective_labels import overlap_warnings, weighting
from fairall.data.dataset import TableDataset
from fairall.data.features import Feature, Schema
from fairall.data.splits import ROLES, SplitConfig, Splits, split_alike, split_by_column
from fairall.data.table import Logged, Sensitive, Table
from fairall.errors import FairAllError, count

LEAST_LABELLED = 40  # rows for a training, a validation and a test set


class OwnCsv(TableDataset):
    """A CSV or Parquet file; columns without another role are features.

    Rows without a label are unlabelled people: part of every split, and rejected in the warm-up.
    """

    config: CsvConfig
    config_type = CsvConfig

    @classmethod
    def location(cls, config: Any) -> str:
        """Path of the file."""
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

    def load(self) -> Table:
        """Read and split the file; levels and imputed values come from the training rows."""
        config, raw = self.config, self.raw
        kinds = [("dataset.kinds", name) for name in config.kinds]
        named = roles([*_named(config), *kinds], list(map(str, raw)), config.path)
        if config.propensity is not None and config.decision is None:
            raise FairAllError("dataset.propensity needs the decisions too: give dataset.decision=COLUMN")
        without_role = raw.drop(columns=[name for name, key in named.items() if key != "dataset.kinds"])
        s, n_groups = groups(raw[config.sensitive], config.advantaged, config.groups)
        notes: list[str] = []
        if n_others := int(np.isnan(s).sum()):
            notes += [f"{count(n_others, 'row')} of other values of column {config.sensitive!r} left out"]
            raw, without_role, s = raw[~np.isnan(s)], without_role[~np.isnan(s)], s[~np.isnan(s)]
        s, sensitive = s.astype(int), Sensitive.of(raw[config.sensitive], s, n_groups)
        label, labelled = labels(raw[config.label], config.positive)
        accepted: np.ndarray | None = None
        if config.decision is not None:
            accepted = decisions(raw[config.decision], config.accepted)
            if not labelled.all():
                labelled, told = revealed(labelled, accepted, raw[config.decision], config.accepted)
                notes += told
            label = label * labelled
        splits = _splits(raw, s, sensitive, label, labelled, config)
        features, of_columns = infer_features(without_role, splits.train, config)
        if not features:
            raise FairAllError(f"{config.path}: no column is left as a feature")
        schema = Schema(features, n_groups=n_groups)
        missing = {name: int(raw[name].isna().sum()) for name in schema.names}
        table = Table(schema, schema.encode(raw), s, label, labelled, missing=missing, sensitive=sensitive)
        if accepted is not None:
            table = replace(table, logged=_logged(raw, accepted, table, splits, config))
        notes += [
            f"no training row of the {group} group has a positive label"
            for group, rows in _groups(splits.train, s, sensitive)
            if not label[rows].any()
        ]
        told = leaks(without_role, labelled, config)
        doubts = of_label(table, config)
        how, of_weights = weighting(table, splits)
        doubts += [*overlap_warnings(table), *of_weights]
        return replace(table, splits=splits, notes=(*of_columns, *notes, *told, *how), warnings=tuple(doubts))

    @override
    def other_splits(self, config: SplitConfig) -> Splits:
        """Row numbers of another random split, with the features of the first.

        Raises:
            FairAllError: if a column says who is in which part.
        """
        if self.config.split.column is not None:
            raise FairAllError("splits: dataset.split.column gives the only split; set splits=1")
        table = self.table()
        return split_alike(table.s, table.label, table.labelled, config)

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
                    taken = infer_feature(self.raw[name], everybody, self.config)
                except LeftOut as reason:
                    taken = f"left out: {reason}"
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


def _splits(
    raw: pd.DataFrame,
    s: np.ndarray,
    sensitive: Sensitive,
    label: np.ndarray,
    labelled: np.ndarray,
    config: CsvConfig,
) -> Splits:
    """Splits; each part must hold all groups and a label, the training rows both labels."""
    if config.split.column is not None:
        hint = "give more rows"
        column = raw[config.split.column]
        refuse(column, ~column.isin(ROLES[:3]), f"is none of {', '.join(ROLES[:3])}")
        splits = split_by_column(column.to_numpy(dtype=str), config.split)
    elif labelled.sum() >= LEAST_LABELLED:
        hint = "give more rows, or another dataset.split.random_state"
        splits = split_alike(s, label, labelled, config.split)
    else:
        raise FairAllError(
            f"column {config.label!r}: {labelled.sum()} rows have a label; "
            f"at least {LEAST_LABELLED} are needed"
        )
    for part in ROLES[:3]:
        rows = getattr(splits, part)
        for group, of_group in _groups(rows, s, sensitive):
            if not len(of_group):
                raise FairAllError(
                    f"column {config.sensitive!r}: no {part} row is of the {group} group; {hint}"
                )
        if not labelled[rows].any():
            raise FairAllError(f"column {config.label!r}: no {part} row has a label that can be used; {hint}")
    if len(set(label[splits.train][labelled[splits.train]])) < 2:
        raise FairAllError(f"column {config.label!r}: the training rows all have the same label")
    return splits


def _groups(rows: np.ndarray, s: np.ndarray, sensitive: Sensitive) -> list[tuple[str, np.ndarray]]:
    return [
        (name, rows[s[rows] == side]) for name, side in zip(sensitive.names, sensitive.groups, strict=True)
    ]


def _logged(
    raw: pd.DataFrame, accepted: np.ndarray, table: Table, splits: Splits, config: CsvConfig
) -> Logged:
    reveals = not table.labelled.all()
    if config.propensity is not None:
        propensity = np.nan_to_num(recorded_propensity(raw[config.propensity], accepted))
        return Logged(accepted, propensity, reveals=reveals)
    if len(set(accepted[splits.train])) < 2:
        raise FairAllError(
            f"column {config.decision!r}: all decisions on training rows are the same, from which no "
            "propensity can be estimated; give more rows, or a column with dataset.propensity=COLUMN"
        )
    propensity = estimated_propensity(table.schema, table.features, table.s, accepted, splits.train)
    return Logged(accepted, propensity, estimated=True, reveals=reveals)
