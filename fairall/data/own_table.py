"""Data set in a CSV or Parquet file of the user, split for a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

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
from fairall.errors import FairAllError, SeveralErrors
from fairall.tables.applicants import Applicants
from fairall.tables.cells import refuse
from fairall.tables.declared import Declared
from fairall.tables.features import Kind
from fairall.tables.files import Cells, read_cells
from fairall.tables.groups import Sensitive, sides
from fairall.tables.roles import read

LEAST_LABELLED = 40  # rows for a training, a validation and a test set
PREFIX = "keys of the table are given with dataset. before them, as dataset.label=NAME"


@contextmanager
def prefixed() -> Iterator[None]:
    """A block whose errors end in a line on the prefix that a run gives to keys of its table.

    Raises:
        FairAllError: with that line.
    """
    try:
        yield
    except FairAllError as error:
        raise SeveralErrors([*str(error).splitlines(), PREFIX]) from error


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
        same = {key: vars(self)[key] for key in columns & vars(self).keys()}
        return Declared.of(**same, part=self.split.column)


class OwnTable(TableDataset):
    """A CSV or Parquet file; columns without another role are features.

    Rows without a label are unlabelled people: part of every split, and rejected in the warm-up.
    """

    config: OwnTableConfig
    config_type = OwnTableConfig
    needs: ClassVar[Mapping[str, str]] = {
        "label": "no column of the label is declared: give label=COLUMN and positive=VALUE",
        "grouping": "no column of the sensitive attribute is declared: give sensitive=COLUMN and, of two "
        "groups, advantaged=VALUE",
    }
    leaks = staticmethod(Applicants.leaks)
    weighting = staticmethod(weighting)

    @classmethod
    def location(cls, config: Any) -> str:
        """Path of the file."""
        return "given with dataset.path=FILE" if OmegaConf.is_missing(config, "path") else config.path

    @cached_property
    def cells(self) -> Cells:
        """The rows of the file; raises FairAllError if it cannot be read."""
        return read_cells(Path(self.config.path), self.config.declared)

    @cached_property
    def applicants(self) -> Applicants:
        """The table with its faults; raises as `cells`."""
        return read(self.cells, self.cells.declared, needs=self.needs, to_learn=True)

    def load(self) -> Table:
        """Read and split the file; levels and imputed values come from the training rows.

        Raises:
            FairAllError: where the table has faults, no column is left as a feature, a part of the split
                lacks a group or labels, or the training rows have one label only.
        """
        with prefixed():
            return self.coded(self.applicants.checked())

    def coded(self, people: Applicants) -> Table:
        """People as a table of numbers and codes; raises as `load`."""
        assert people.label is not None
        groups = people.groups
        sensitive = (
            Sensitive(self.config.sensitive, groups[0], groups[1], tuple(groups[2:])) if groups else None
        )
        n_groups = max(2, len(groups))
        s = np.array(sides(n_groups), int)[people.group if groups else np.zeros(len(people), int)]
        splits = self.parts(people, s)
        features, notes = people.features(splits.train)
        if not features:
            raise FairAllError(f"{self.config.path}: no column is left as a feature")
        values = people.values(features)
        x = np.stack([*values.values()])
        missing = np.isnan(x)
        x[missing] = np.array([feature.fill for feature in features])[missing.nonzero()[0]]
        table = Table(
            Schema(features, n_groups=n_groups, crossed=sensitive.crossed if sensitive else ()),
            pd.DataFrame(x.T, people.cells.index, [*values], copy=False),
            s,
            np.nan_to_num(people.label).astype(int),
            ~np.isnan(people.label),
            missing={name: int(rows.sum()) for name, rows in people.missing(features).items()},
            sensitive=sensitive,
            splits=splits,
        )
        people_of = {f"of the {name} group": rows for name, rows in table.groups.items()}
        for who, rows in (people_of | {"with a label that can be used": table.labelled}).items():
            for part in ROLES[:3]:
                if not rows[getattr(splits, part)].any():
                    raise FairAllError(f"no {part} row is one {who}: give more rows, or another split")
        if len(np.unique(people.label[splits.train][table.labelled[splits.train]])) < 2:
            raise FairAllError(f"column {self.config.label!r}: the training rows all have the same label")
        if people.accepted is not None:
            table = replace(table, logged=logged(people, table, splits.train))
        leaks = self.leaks(people, features)
        of_weights, warnings = self.weighting(table)
        return replace(
            table,
            notes=(*people.notes, *notes, *of_weights),
            warnings=(*people.warnings, *leaks.values(), *overlap_warnings(table), *warnings),
        )

    def parts(self, people: Applicants, s: np.ndarray) -> Splits:
        """Row numbers by role, given s of each row, shape (N,).

        Raises:
            FairAllError: where too few rows have a label, or a column of parts has another word.
        """
        assert people.label is not None
        config, column, labelled = self.config, self.config.split.column, ~np.isnan(people.label)
        if column is not None:
            cells = people.cells[column]
            refuse(cells, ~cells.isin(ROLES[:3]), f"is none of {', '.join(ROLES[:3])}")
            return split_by_column(cells.to_numpy(dtype=str), config.split)
        if labelled.sum() < LEAST_LABELLED:
            least = f"at least {LEAST_LABELLED} are needed"
            raise FairAllError(f"column {config.label!r}: {labelled.sum()} rows have a label; {least}")
        return split_alike(s, np.nan_to_num(people.label).astype(int), labelled, config.split)

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


def logged(people: Applicants, table: Table, train: np.ndarray) -> Logged:
    """The past decisions, with propensities estimated from the rows `train` where none are recorded.

    Raises:
        FairAllError: where all decisions on these rows are the same, so that nothing can be estimated.
    """
    accepted, propensity = np.asarray(people.accepted), people.propensity
    estimated = propensity is None
    if estimated and len(np.unique(accepted[train])) < 2:
        raise FairAllError(
            f"column {people.declared.decision!r}: all decisions on training rows are the same, from which "
            "no propensity can be estimated; give more rows, or a column with propensity=COLUMN"
        )
    known = estimated_propensity(table, accepted, train) if propensity is None else np.nan_to_num(propensity)
    return Logged(accepted, known, estimated, reveals=not table.labelled.all())


def estimated_propensity(table: Table, accepted: np.ndarray, train: np.ndarray) -> np.ndarray:
    """Estimate π(d=1 | x, s) in (0, 1) by logistic regression on one-hot encoded x and s, shape (N,).

    It is fitted to the rows `train` (M,), among which there are both decisions `accepted` (N,).
    """
    inputs = FeatureInputs(table.schema.seen_as(NetInputs.one_hot))
    s = torch.tensor(table.s, dtype=torch.float64)
    design = inputs.with_s(torch.tensor(table.features), s).numpy()
    design = (design - design[train].mean(0)) / np.maximum(design[train].std(0), 1e-9)
    fit = LogisticRegression(max_iter=1000).fit(design[train], accepted[train])
    return fit.predict_proba(design)[:, 1]
