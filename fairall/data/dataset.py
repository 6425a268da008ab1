"""Interface of data sets, and the base class of finite ones."""

from __future__ import annotations

from abc import ABC, abstractmethod
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, cast

import torch
from typing_extensions import override

from fairall.config.schema import DatasetConfig, ScalerRows
from fairall.data.features import Schema
from fairall.data.people import People, float32
from fairall.data.prepared import PreparedData, Scaler
from fairall.data.splits import ROLES, SplitConfig, Splits, shifted, split
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
    def load(self) -> Table:
        """Read or generate the people as a table, before splitting and scaling.

        Raises:
            FairAllError: if the raw data is missing or invalid.
        """

    @abstractmethod
    def prepare(self, *, scaler: ScalerRows = ScalerRows.training_rows) -> PreparedData:
        """All people of a run, real features standardised by the rows `scaler`; raises as `load` does."""

    def resplit(self, number: int) -> Dataset:
        """The same data set with another random split, number 1 or more, scaled as this one.

        Raises:
            FairAllError: if the data set has one split only.
        """
        raise FairAllError(f"splits: dataset={self.config.name} has one split of its people; set splits=1")

    def replicates(self, seeds: int, splits: int, scaler: ScalerRows) -> PreparedData:
        """All people of a run of so many seeds, seed number e with the split of number e mod `splits`.

        Raises:
            FairAllError: as `load` and `resplit`.
        """
        first = self.prepare(scaler=scaler)
        if splits == 1:
            return first
        others = [self.resplit(number).prepare(scaler=scaler) for number in range(1, splits)]
        return PreparedData.of_splits([first, *others], seeds)

    def table(self) -> Table:
        """The table of `load`, which is called once."""
        return self._table

    @cached_property
    def _table(self) -> Table:
        return self.load()

    @classmethod
    def location(cls, config: Any) -> str:
        """Location of the data as `fairall list datasets` prints it; values of the node may be missing."""
        return f"read by {cls.__module__}.{cls.__qualname__}"

    def fetch(self) -> Path:
        """The raw file, downloaded if not found.

        Raises:
            FairAllError: if the data set has no raw file, or the download fails.
        """
        raise FairAllError(f"{self.config.name} needs no raw file")


@dataclass
class TableConfig(DatasetConfig):
    """Keys of a finite data set."""

    split: SplitConfig = field(default_factory=SplitConfig)


class TableDataset(Dataset):
    """A finite data set: the rows of `load`, split at random (appendix D.2) unless the table has splits."""

    config: TableConfig
    config_type: ClassVar[type[DatasetConfig]] = TableConfig

    @cached_property
    def splits(self) -> Splits:
        """Row numbers of `table` by role; raises as `load` does."""
        table = self.table()
        return table.splits or split(len(table), self.config.split)

    @cached_property
    def schema(self) -> Schema:
        """The features with mean and scale of the training rows; raises as `load` does."""
        table = self.table()
        return table.schema.measured(table.features, self.splits.train)

    @override
    def resplit(self, number: int) -> TableDataset:
        other, config = copy(self), self.config.split
        other.schema = self.schema
        other.splits = self.other_splits(replace(config, random_state=shifted(config.random_state, number)))
        return other

    def other_splits(self, config: SplitConfig) -> Splits:
        """Row numbers of another random split; raises as `resplit`."""
        return split(len(self.table()), config)

    def prepare(self, *, scaler: ScalerRows = ScalerRows.training_rows) -> PreparedData:
        """People of each role of the split, scaled; raises as `load` does."""
        table, splits, of_training = self.table(), self.splits, Scaler(self.schema, scaler)
        weight, strata = table.label_weight, splits.strata
        everybody = People(
            of_training.transform(table.features),
            float32(table.s),
            float32(table.label),
            label_weight=None if weight is None else float32(weight),
            stratum=None if strata is None else torch.tensor(strata),
        )
        roles: dict[str, Any] = {role: everybody.rows(torch.tensor(getattr(splits, role))) for role in ROLES}
        warnings = table.warnings
        if scaler is ScalerRows.each_file:
            features = table.features
            files = {role: of_training.transform_file(features[getattr(splits, role)]) for role in ROLES}
            moved = torch.stack([(files[role] != roles[role].x).any(0) for role in ROLES]).any(0)
            names = [feature.name for i, feature in enumerate(table.schema) if feature.codes and moved[i]]
            if names:
                warnings += (
                    f"protocol.scaler=each_file takes other categories of {', '.join(names)} for the first "
                    "one in some splits, which lack it: measures and saved policies are of shifted codes",
                )
            roles = {role: replace(people, x=files[role]) for role, people in roles.items()}
        return PreparedData(
            of_training,
            **roles,
            pool_tables=(table.rows(splits.pool),),
            notes=table.notes,
            warnings=warnings,
        )


def dataset(config: DatasetConfig) -> Dataset:
    """Build the data set of a `dataset` node."""
    return cast(Dataset, config.build())
