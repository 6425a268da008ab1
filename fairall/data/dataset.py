"""Interface of data sets, and base classes for finite ones."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, cast

import numpy as np
import torch

from fairall.config.schema import DatasetConfig, ScalerRows
from fairall.data.features import DISCRETE, Schema
from fairall.data.people import People
from fairall.data.prepared import PreparedData, Scaler, scaled_by_itself
from fairall.data.splits import SplitConfig, Splits, split
from fairall.data.table import Table
from fairall.errors import FairAllError


class Dataset(ABC):
    """A data set, chosen by `dataset._target_` and built from the `dataset` node of a configuration.

    Attributes:
        config_type: dataclass of the `dataset` node, with a field for each key.
    """

    config_type: ClassVar[type[DatasetConfig]] = DatasetConfig

    def __init__(self, config: Any) -> None:
        self.config = config

    @abstractmethod
    def table(self) -> Table:
        """The people as a table, before splitting.

        Raises:
            FairAllError: if the raw data is missing or invalid.
        """

    @abstractmethod
    def prepare(self, *, scaler: ScalerRows = ScalerRows.training_rows) -> PreparedData:
        """All people of a run, scaled; raises as `table` does.

        Args:
            scaler: rows that determine the standardisation of real features.
        """

    @classmethod
    def location(cls, config: Any) -> str:
        """Location of the data as `python -m fairall.data` prints it; by default the class name.

        Args:
            config: the typed `dataset` node, possibly with missing values.
        """
        return f"read by {cls.__module__}.{cls.__qualname__}"

    def fetch(self) -> Path:
        """The raw file, downloaded if not found.

        Raises:
            FairAllError: if the data set has no raw file, or the download fails.
        """
        raise FairAllError(f"{self.config.name} needs no raw file; there is nothing to fetch")


@dataclass
class TableConfig(DatasetConfig):
    """Keys of a finite data set."""

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
        splits: row numbers by role.
        notes: remarks on how the raw data was read, one sentence each.
        warnings: reasons why measures on these people need care, one sentence each.
    """

    table: Table
    splits: Splits
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


class TableDataset(Dataset):
    """A finite data set, read and split once."""

    config: TableConfig
    config_type: ClassVar[type[DatasetConfig]] = TableConfig

    @abstractmethod
    def read(self) -> Reading:
        """Read the table and split it; raises as `table` does."""

    @cached_property
    def reading(self) -> Reading:
        """Cached result of `read`."""
        return self.read()

    def table(self) -> Table:
        """See `Dataset.table`."""
        return self.reading.table

    def prepare(self, *, scaler: ScalerRows = ScalerRows.training_rows) -> PreparedData:
        """See `Dataset.prepare`."""
        table, splits = self.reading.table, self.reading.splits
        features, label_weight, strata = table.features, table.label_weight, splits.strata
        schema = table.schema.measured(features[splits.train])
        of_training = Scaler.of(schema)

        def people(rows: np.ndarray) -> People:
            each_file = scaler is ScalerRows.each_file
            return People(
                x=(
                    scaled_by_itself(schema, features[rows])
                    if each_file
                    else of_training.transform(features[rows])
                ),
                s=torch.tensor(table.s[rows], dtype=torch.float32),
                label=torch.tensor(table.label[rows], dtype=torch.float32),
                label_weight=None if label_weight is None else torch.tensor(label_weight[rows]).float(),
                stratum=None if strata is None else torch.tensor(strata[rows]),
            )

        return PreparedData(
            schema=schema,
            scaler=of_training,
            train=people(splits.train),
            validation=people(splits.validation),
            test=people(splits.test),
            pool=people(splits.pool),
            pool_table=table.rows(splits.pool),
            notes=self.reading.notes,
            warnings=(*self.reading.warnings, *_shifted(schema, features, splits, scaler)),
            warm_up_by_itself=scaler is ScalerRows.each_file,
        )


def _shifted(schema: Schema, features: np.ndarray, splits: Splits, scaler: ScalerRows) -> list[str]:
    """A warning where a split lacks the lowest code of a feature, whose codes `each_file` then lowers."""
    if scaler is not ScalerRows.each_file:
        return []
    roles = ("train", "validation", "test", "pool")
    lacking = [
        feature.name
        for i, feature in enumerate(schema)
        if feature.kind in DISCRETE
        and any(features[getattr(splits, role), i].min() > feature.codes[0] for role in roles)
    ]
    if not lacking:
        return []
    return [
        f"protocol.scaler=each_file takes other categories of {', '.join(lacking)} for the first one in some "
        "splits, which lack it: measures and saved policies are of shifted codes"
    ]


class FixedTableDataset(TableDataset):
    """A table split at random as in the paper's experiments (appendix D.2)."""

    @abstractmethod
    def whole(self) -> Table:
        """All rows in raw order; raises as `table` does."""

    def read(self) -> Reading:
        """See `TableDataset.read`."""
        table = self.whole()
        return Reading(table, split(len(table), self.config.split))


def dataset(config: DatasetConfig) -> Dataset:
    """Build the data set of a `dataset` node."""
    return cast(Dataset, config.build())
