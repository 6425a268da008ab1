"""Data set in a CSV or Parquet file of the user, split for a run."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from omegaconf import MISSING, OmegaConf
from sklearn.linear_model import LogisticRegression
from typing_extensions import override

from fairall.config.checks import at_least, groups, limited, one_of
from fairall.config.schema import NetInputs
from fairall.data.dataset import TableConfig, TableDataset
from fairall.data.features import FeatureInputs, Schema
from fairall.data.selective_labels import overlap_warnings, weighting
from fairall.data.splits import ROLES, SplitConfig, Splits, split_alike, split_by_column
from fairall.data.table import Logged, Table
from fairall.errors import FairAllError
from fairall.tables.applicants import Applicants, read
from fairall.tables.cells import refuse
from fairall.tables.declared import Declared
from fairall.tables.features import Kind
from fairall.tables.files import Cells, read_cells
from fairall.tables.groups import Sensitive, sides

LEAST_LABELLED = 40  # rows for a training, a validation and a test set


def _words() -> Any:
    return limited("a list of words", lambda words: all(isinstance(word, str) for word in words))


@dataclass
class OwnSplitConfig(SplitConfig):
    """A random split, or a column with the part of each row."""

    column: str | None = MISSING


@dataclass
class OwnTableConfig(TableConfig):
    """Keys of a table of the user; docs/tables.md describes them."""

    path: str = MISSING
    separator: str = limited("one character", lambda separator: len(separator) == 1)
    text_encoding: str = MISSING
    label: str = MISSING
    positive: str = MISSING
    sensitive: str = MISSING
    advantaged: str | None = None
    drop: list[str] = _words()
    kinds: dict[str, str] = one_of([*Kind])
    missing: list[str] = _words()
    missing_by_default: list[str] = _words()
    max_categories: int = at_least(2)
    max_count: int = MISSING
    decision: str | None = MISSING
    accepted: str = MISSING
    propensity: str | None = MISSING
    groups: list[str] | None = groups()
    split: OwnSplitConfig = field(default_factory=OwnSplitConfig)

    @property
    def declared(self) -> Declared:
        """The meanings of columns."""
        columns = Declared.__dataclass_fields__.keys() - {"gain", "loss"}  # there columns, here of features
        same = {name: value for name, value in vars(self).items() if name in columns}
        return Declared(**same | {"part": self.split.column})


class OwnTable(TableDataset):
    """A CSV or Parquet file; columns without another role are features.

    Rows without a label are unlabelled people: part of every split, and rejected in the warm-up.
    """

    config: OwnTableConfig
    config_type = OwnTableConfig
    leaks = staticmethod(Applicants.leaks)

    @property
    def source(self) -> Path | pd.DataFrame:
        """What the rows are read from."""
        return Path(self.config.path)

    @property
    def declared(self) -> Declared:
        """The meanings of columns."""
        return self.config.declared

    @classmethod
    def location(cls, config: Any) -> str:
        """Path of the file."""
        return "given with dataset.path=FILE" if OmegaConf.is_missing(config, "path") else config.path

    @cached_property
    def _cells(self) -> Cells:
        return read_cells(self.source, self.declared)

    @cached_property
    def raw(self) -> pd.DataFrame:
        """Rows of the file as of `Cells.frame`; raises FairAllError if it cannot be read."""
        return self._cells.frame

    @cached_property
    def applicants(self) -> Applicants:
        """The table with its faults; raises as `raw`."""
        cells = self._cells
        if self.raw is not cells.frame:  # some rows, where words may be gone
            cells = replace(cells, frame=self.raw).rows(np.ones(len(self.raw), dtype=bool))
        return read(cells, self.declared, to_learn=True)

    def load(self) -> Table:
        """Read and split the file; levels and imputed values come from the training rows.

        Raises:
            FairAllError: where the table has faults, or no column is left as a feature.
        """
        config, people = self.config, self.applicants.checked()
        assert people.label is not None
        label, labelled = np.nan_to_num(people.label).astype(int), ~np.isnan(people.label)
        s, sensitive = self.groups(people)
        n_groups = 2 if sensitive is None else len(sensitive.groups)
        splits = self.parts(people, s, sensitive, label, labelled)
        features, of_columns = people.features(splits.train)
        if not features:
            raise FairAllError(f"{config.path}: no column is left as a feature")
        schema = Schema(features, n_groups=n_groups, crossed=() if sensitive is None else sensitive.crossed)
        x = schema.encode(people.cells)
        missing = {name: int(people.cells[name].isna().sum()) for name in schema.names}
        table = Table(schema, x, s, label, labelled, missing=missing, sensitive=sensitive, splits=splits)
        if people.accepted is not None:
            table = replace(table, logged=_logged(people, table, splits, config))
        leaks = self.leaks(people, features)
        none_positive = [
            f"no training row of the {group} group has a positive label"
            for group, rows in _groups(splits.train, s, sensitive)
            if not label[rows].any()
        ]
        how, of_weights = self.weighting(table, splits)
        warnings = (*people.warnings, *leaks.values(), *overlap_warnings(table), *of_weights)
        return replace(table, notes=(*people.notes, *of_columns, *none_positive, *how), warnings=warnings)

    def groups(self, people: Applicants) -> tuple[np.ndarray, Sensitive | None]:
        """The sensitive attribute s of each row, shape (N,), and its column."""
        assert people.group is not None
        first, second, *further = people.groups
        s = np.array(sides(len(people.groups)), int)[people.group]
        return s, Sensitive(self.config.sensitive, first, second, tuple(further))

    def parts(
        self,
        people: Applicants,
        s: np.ndarray,
        sensitive: Sensitive | None,
        label: np.ndarray,
        labelled: np.ndarray,
    ) -> Splits:
        """Row numbers by role, given s, label and whether it is known of each row, shape (N,).

        Raises:
            FairAllError: where a part lacks a group or a label, or the training rows have one label only.
        """
        config = self.config
        if config.split.column is not None:
            hint = "give more rows"
            column = people.cells[config.split.column]
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
                raise FairAllError(
                    f"column {config.label!r}: no {part} row has a label that can be used; {hint}"
                )
        if len(set(label[splits.train][labelled[splits.train]])) < 2:
            raise FairAllError(f"column {config.label!r}: the training rows all have the same label")
        return splits

    def weighting(self, table: Table, splits: Splits) -> tuple[list[str], list[str]]:
        """Notes and warnings on the weights of known labels."""
        return weighting(table, splits)

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


def _groups(rows: np.ndarray, s: np.ndarray, sensitive: Sensitive | None) -> list[tuple[str, np.ndarray]]:
    if sensitive is None:
        return []
    return [
        (name, rows[s[rows] == side]) for name, side in zip(sensitive.names, sensitive.groups, strict=True)
    ]


def _logged(people: Applicants, table: Table, splits: Splits, config: OwnTableConfig) -> Logged:
    accepted, reveals = people.accepted, not table.labelled.all()
    assert accepted is not None
    if people.propensity is not None:
        return Logged(accepted, np.nan_to_num(people.propensity), reveals=reveals)
    if len(set(accepted[splits.train])) < 2:
        raise FairAllError(
            f"column {config.decision!r}: all decisions on training rows are the same, from which no "
            "propensity can be estimated; give more rows, or a column with dataset.propensity=COLUMN"
        )
    propensity = estimated_propensity(table.schema, table.features, table.s, accepted, splits.train)
    return Logged(accepted, propensity, estimated=True, reveals=reveals)


def estimated_propensity(
    schema: Schema, features: np.ndarray, s: np.ndarray, accepted: np.ndarray, train: np.ndarray
) -> np.ndarray:
    """Estimate π(d=1 | x, s) in (0, 1) by logistic regression on one-hot encoded x and s, shape (N,).

    It is fitted to the rows `train` (M,) of `features` (N, D), among which there are both decisions.
    """
    inputs = FeatureInputs(schema.seen_as(NetInputs.one_hot))
    design = inputs.with_s(torch.tensor(features), torch.tensor(s, dtype=torch.float64)).numpy()
    design = (design - design[train].mean(0)) / np.maximum(design[train].std(0), 1e-9)
    fit = LogisticRegression(max_iter=1000).fit(design[train], accepted[train])
    return fit.predict_proba(design)[:, 1]
