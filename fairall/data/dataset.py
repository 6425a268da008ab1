"""What every data set is to a run, and how a finite table becomes one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, cast

import numpy as np
import torch

from fairall.config import DatasetConfig, TableConfig
from fairall.data.people import People
from fairall.data.prepare import PreparedData, Scaler
from fairall.data.splits import Splits, split
from fairall.data.table import Table
from fairall.target import target_class


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
    def prepare(self) -> PreparedData:
        """Everyone a run meets; raises as `table` does."""


class TableDataset(Dataset):
    """A data set of finitely many people, cut once and for all."""

    config: TableConfig

    def splits(self, table: Table) -> Splits:
        """Which rows are used for what."""
        return split(len(table), self.config.split)

    def notes(self) -> tuple[str, ...]:
        """What the user should know of how the raw data was read, a line each."""
        return ()

    def prepare(self) -> PreparedData:
        """Cuts the table and scales it with what the training rows say."""
        table = self.table()
        splits = self.splits(table)
        features = table.features
        scaler = Scaler.fit(table.schema, features[splits.train])

        def people(rows: np.ndarray) -> People:
            return People(
                x=scaler.transform(features[rows]),
                s=torch.tensor(table.s[rows], dtype=torch.float32),
                label=torch.tensor(table.label[rows], dtype=torch.float32),
            )

        return PreparedData(
            schema=table.schema,
            scaler=scaler,
            train=people(splits.train),
            validation=people(splits.validation),
            test=people(splits.test),
            pool=people(splits.pool),
            pool_table=table.rows(splits.pool),
            notes=self.notes(),
        )


def dataset(config: DatasetConfig) -> Dataset:
    """The data set that a `dataset` node describes."""
    return cast(Dataset, target_class(config, "dataset")(config))
