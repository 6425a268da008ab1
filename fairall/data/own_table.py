"""Data set in a CSV or Parquet file of the user, split for a run; a log of which nobody is held out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
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
from fairall.data.selective_labels import coverage_warnings, weighting
from fairall.data.splits import ROLES, SplitConfig, Splits, split_alike, split_by_column
from fairall.data.table import Logged, Table
from fairall.errors import FairAllError
from fairall.tables.applicants import Applicants
from fairall.tables.cells import refuse
from fairall.tables.declared import Declared, separator_key
from fairall.tables.features import Kind
from fairall.tables.files import Cells, read_cells
from fairall.tables.groups import Sensitive, sides
from fairall.tables.roles import read

LEAST_LABELLED = 40  # rows for a training, a validation and a test set
PREFIX = "keys of the table are given with dataset. before them, as dataset.label=NAME"

words = partial(limited, "a list of words", lambda words: all(isinstance(word, str) for word in words))


@contextmanager
def prefixed() -> Iterator[None]:
    """A block whose errors end in a line on the prefix that a run gives to keys of its table.

    Raises:
        FairAllError: with that line.
    """
    try:
        yield
    except FairAllError as error:
        raise FairAllError(*error.args, PREFIX) from error


@dataclass
class OwnSplitConfig(SplitConfig):
    """A random split, or a column with the part of each row."""

    column: str | None = MISSING


@dataclass
class OwnTableConfig(TableConfig):
    """Keys of a table of the user; docs/tables.md describes them."""

    path: str = MISSING
    separator: str = separator_key()
    text_encoding: str = MISSING
    label: str = MISSING
    positive: str = MISSING
    sensitive: str = MISSING
    advantaged: str | None = None
    drop: list[str] = words()
    kinds: dict[str, str] = one_of([*Kind])
    missing: list[str] = words()
    missing_by_default: list[str] = words()
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
            people = self.applicants.checked()
            table = self.coded(people)
            leaks = people.leaks(table.schema.features)
        notes, warnings = weighting(table)
        return replace(
            table,
            notes=(*table.notes, *notes),
            warnings=(*leaks.values(), *table.warnings, *warnings),
        )

    def coded(self, people: Applicants) -> Table:
        """People as a table of numbers and codes, without warnings of leaks; raises as `load`."""
        assert people.label is not None
        groups, label = people.groups, people.label
        sensitive = Sensitive.of(self.config.sensitive, groups) if groups else None
        n_groups = max(2, len(groups))
        s = np.array(sides(n_groups), int)[people.group if groups else np.zeros(len(people), int)]
        labelled = ~np.isnan(label)
        raw = Table(
            Schema([]), people.cells, s, np.nan_to_num(label).astype(int), labelled, sensitive=sensitive
        )
        splits = self.parts(raw)
        features, values, notes = people.coded(splits.train)
        if not features:
            raise FairAllError(f"{self.config.path}: no column is left as a feature")
        table = replace(
            raw,
            schema=Schema(features, n_groups=n_groups, crossed=sensitive.crossed if sensitive else ()),
            x=values.fillna({feature.name: feature.fill for feature in features}),
            missing={name: int(rows.sum()) for name, rows in people.missing(features).items()},
            splits=splits,
            notes=(*people.notes, *notes),
        )
        people_of = {f"of the {name} group": rows for name, rows in table.groups.items()}
        for who, rows in (people_of | {"with a label that can be used": labelled}).items():
            for part in ROLES[:3]:
                if not rows[getattr(splits, part)].any():
                    raise FairAllError(f"no {part} row is one {who}: give more rows, or another split")
        train = splits.train
        different(self.config.label, label[train][labelled[train]], "label")
        if people.accepted is not None:
            propensity, estimated = people.propensity, people.propensity is None
            if propensity is None:
                different(self.config.decision, people.accepted[train], "decision")
                propensity = estimated_propensity(table, people.accepted, train)
            past = Logged(people.accepted, np.nan_to_num(propensity), estimated, reveals=not labelled.all())
            table = replace(table, logged=past)
        return replace(table, warnings=(*people.warnings, *coverage_warnings(table)))

    def parts(self, raw: Table) -> Splits:
        """Row numbers by role, of rows whose x are the cells of the file.

        Raises:
            FairAllError: where too few rows have a label, or a column of parts has another word.
        """
        column, split, known = self.config.split.column, self.config.split, int(raw.labelled.sum())
        if column is not None:
            cells = raw.x[column]
            refuse(cells, ~cells.isin(ROLES[:3]), f"is none of {', '.join(ROLES[:3])}")
            return split_by_column(cells.to_numpy(dtype=str), split)
        if known < LEAST_LABELLED:
            least = f"at least {LEAST_LABELLED} are needed"
            raise FairAllError(f"column {self.config.label!r}: {known} rows have a label; {least}")
        return split_alike(raw.s, raw.label, raw.labelled, split)

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


class WholeLog(OwnTable):
    """Decided people, each of whom is in every part of the split: in Phase I, the warm-up, and validation.

    Without a column of decisions everybody was accepted. Without a sensitive attribute, `dataset.sensitive`
    the empty text, everybody is of the group S = +1.

    Args:
        config: node of `dataset=csv`; its path is not read.
        people: a row for each person.
        weighted: whether labels have weights, as those of a reduction, which depend on features: none of
            these then counts as one that gives the label away.
    """

    needs: ClassVar[Mapping[str, str]] = {}

    def __init__(self, config: Any, people: pd.DataFrame, *, weighted: bool = False) -> None:
        super().__init__(config)
        self.people, self.weighted = people, weighted

    @cached_property
    @override
    def cells(self) -> Cells:
        return read_cells(self.people, replace(self.config.declared, person=""))

    @override
    def load(self) -> Table:
        """As of `OwnTable`, without a word on how a run gives keys, or on people to measure utility on."""
        people = self.applicants.checked()
        table = self.coded(people)
        leaks = {} if self.weighted else people.leaks(table.schema.features)
        everybody = np.ones(len(table), dtype=bool)
        return replace(
            table,
            logged=table.logged or Logged(everybody, everybody.astype(float)),
            warnings=(*leaks.values(), *table.warnings),
        )

    @override
    def parts(self, raw: Table) -> Splits:
        """Everybody in each part; the pool is shuffled, since the last people of it may count most."""
        everybody = np.arange(len(raw))
        shuffled = np.random.RandomState(self.config.split.random_state).permutation(everybody)
        return Splits(everybody, everybody, everybody, shuffled)


def different(column: str | None, values: np.ndarray, what: str) -> None:
    """Raise FairAllError where a column has one value only on the training rows, of shape (M,)."""
    if len(np.unique(values)) < 2:
        raise FairAllError(f"column {column!r}: the training rows all have the same {what}")


def estimated_propensity(table: Table, accepted: np.ndarray, train: np.ndarray) -> np.ndarray:
    """Estimate π(d=1 | x, s) in (0, 1) by logistic regression on one-hot encoded x and s, shape (N,).

    It is fitted to the rows `train` (M,), among which there are both decisions `accepted` (N,).
    """
    inputs = FeatureInputs(table.schema.seen_as(NetInputs.one_hot))
    design = inputs.with_s(torch.tensor(table.features), torch.tensor(table.s).double()).numpy()
    design = (design - design[train].mean(0)) / np.maximum(design[train].std(0), 1e-9)
    fit = LogisticRegression(max_iter=1000).fit(design[train], accepted[train])
    return fit.predict_proba(design)[:, 1]
