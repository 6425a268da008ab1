"""Interface of data sets, and base classes for data sets of finitely many rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, cast

import numpy as np
import torch

from fairall.config.schema import DatasetConfig, ScalerRows
from fairall.config.target import target_class
from fairall.data.people import People
from fairall.data.prepared import PreparedData, Scaler
from fairall.data.splits import SplitConfig, Splits, split
from fairall.data.table import Table
from fairall.errors import FairAllError


class Dataset(ABC):
    """A data set, chosen by `dataset._target_` and made from the `dataset` node of a configuration.

    Attributes:
        config_type: dataclass of the `dataset` node; every key of the node is one of its fields.
    """

    config_type: ClassVar[type[DatasetConfig]] = DatasetConfig

    def __init__(self, config: Any) -> None:
        self.config = config

    @abstractmethod
    def table(self) -> Table:
        """The people as a table, before it is cut.

        Raises:
            FairAllError: where the raw data is not there or not as it should be.
        """

    @abstractmethod
    def prepare(self, *, scaler: ScalerRows = ScalerRows.training_rows) -> PreparedData:
        """Everyone a run meets; raises as `table` does.

        Args:
            scaler: the rows that real features are standardised by.
        """

    @classmethod
    def location(cls, config: Any) -> str:
        """Where the data is, as `python -m fairall.data` prints it; by default the name of the class.

        Args:
            config: the typed `dataset` node, in which values may be missing.
        """
        return f"read by {cls.__module__}.{cls.__qualname__}"

    def fetch(self) -> Path:
        """The raw file, downloaded where it is not found.

        Raises:
            FairAllError: where the data set has no raw file, or it cannot be had.
        """
        raise FairAllError(f"{self.config.name} needs no raw file; there is nothing to fetch")


@dataclass
class TableConfig(DatasetConfig):
    """Keys of a data set of finitely many rows."""

    split: SplitConfig = field(default_factory=SplitConfig)

    def validate(self) -> None:
        """See `DatasetConfig.validate`."""
        super().validate()
        self.split.validate()


@dataclass(frozen=True)
class Reading:
    """A table with its splits.

    Attributes:
        table: all people.
        splits: which rows are used for what.
        notes: how the raw data was read, one sentence each.
        warnings: why measures on these people need care, one sentence each.
    """

    table: Table
    splits: Splits
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


class TableDataset(Dataset):
    """A data set of finitely many people, read once and cut once."""

    config: TableConfig
    config_type: ClassVar[type[DatasetConfig]] = TableConfig

    @abstractmethod
    def read(self) -> Reading:
        """The table from where it is kept; raises as `table` does."""

    @cached_property
    def reading(self) -> Reading:
        """What `read` gives, read once."""
        return self.read()

    def table(self) -> Table:
        """See `Dataset.table`."""
        return self.reading.table

    def prepare(self, *, scaler: ScalerRows = ScalerRows.training_rows) -> PreparedData:
        """Cuts the table and scales it; see `Dataset.prepare`."""
        table, splits = self.reading.table, self.reading.splits
        features, label_weight = table.features, table.label_weight
        of_training = Scaler.fit(table.schema, features[splits.train])

        def people(rows: np.ndarray) -> People:
            own = Scaler.fit(table.schema, features[rows]) if scaler is ScalerRows.each_file else of_training
            return People(
                x=own.transform(features[rows]),
                s=torch.tensor(table.s[rows], dtype=torch.float32),
                label=torch.tensor(table.label[rows], dtype=torch.float32),
                label_weight=None if label_weight is None else torch.tensor(label_weight[rows]).float(),
            )

        return PreparedData(
            schema=table.schema,
            scaler=of_training,
            train=people(splits.train),
            validation=people(splits.validation),
            test=people(splits.test),
            pool=people(splits.pool),
            pool_table=table.rows(splits.pool),
            notes=self.reading.notes,
            warnings=self.reading.warnings,
            warm_up_by_itself=scaler is ScalerRows.each_file,
        )


class FixedTableDataset(TableDataset):
    """A table cut at random as in the paper's experiments (appendix D.2)."""

    @abstractmethod
    def whole(self) -> Table:
        """All rows in their raw order; raises as `table` does."""

    def read(self) -> Reading:
        """See `TableDataset.read`."""
        table = self.whole()
        return Reading(table, split(len(table), self.config.split))


def dataset(config: DatasetConfig) -> Dataset:
    """The data set of a `dataset` node."""
    return cast(Dataset, target_class(config, "dataset")(config))
