"""What every data set is to a run, and how a finite table becomes one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np
import torch

from fairall.config.schema import DatasetConfig, TableConfig
from fairall.config.target import target_class
from fairall.data.people import People
from fairall.data.prepared import PreparedData, Scaler
from fairall.data.splits import Splits, split
from fairall.data.table import Table


class Dataset(ABC):
    """Chosen by `dataset._target_` and made from the `dataset` node of a configuration."""

    def __init__(self, config: Any) -> None:
        self.config = config

    @abstractmethod
    def table(self) -> Table:
        """The people as a table, before it is cut.

        Raises:
            FairAllError: where the raw data is not there or not as it should be.
        """

    @abstractmethod
    def prepare(self, *, scaler: str = "training_rows") -> PreparedData:
        """Everyone a run meets; raises as `table` does.

        Args:
            scaler: what real features are standardised by: `training_rows`, or `each_file`, as in the
                authors' code: the people of every role, and those of the warm-up, by themselves.
        """


@dataclass(frozen=True)
class Reading:
    """A table as read, and as it is to be used.

    Attributes:
        table: all people.
        splits: which rows are used for what.
        notes: what the user should know of how the raw data was read, a line each.
        warnings: why measures on these people need care, a line each.
    """

    table: Table
    splits: Splits
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


class TableDataset(Dataset):
    """A data set of finitely many people, read once and cut once."""

    config: TableConfig

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

    def prepare(self, *, scaler: str = "training_rows") -> PreparedData:
        """Cuts the table and scales it; see `Dataset.prepare`."""
        table, splits = self.reading.table, self.reading.splits
        features, label_weight = table.features, table.label_weight
        of_training = Scaler.fit(table.schema, features[splits.train])

        def people(rows: np.ndarray) -> People:
            own = Scaler.fit(table.schema, features[rows]) if scaler == "each_file" else of_training
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
            warm_up_by_itself=scaler == "each_file",
        )


class FixedTableDataset(TableDataset):
    """A table that is always the same, cut as the paper's experiments cut it."""

    @abstractmethod
    def whole(self) -> Table:
        """All rows in their raw order; raises as `table` does."""

    def read(self) -> Reading:
        """See `TableDataset.read`."""
        table = self.whole()
        return Reading(table, split(len(table), self.config.split))


def dataset(config: DatasetConfig) -> Dataset:
    """The data set that a `dataset` node describes."""
    return cast(Dataset, target_class(config, "dataset")(config))
