"""From a table to the tensors a run learns from."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch

from fairall.config import DatasetConfig
from fairall.data.features import Kind, Schema
from fairall.data.people import People
from fairall.data.splits import split
from fairall.data.table import Table


@dataclass(frozen=True)
class Scaler:
    """Standardises real features; the others stay as they are.

    Attributes:
        mean: shape (D,), 0 for features that are not real.
        scale: shape (D,), 1 for features that are not real or do not vary.
    """

    mean: np.ndarray
    scale: np.ndarray

    @classmethod
    def fit(cls, schema: Schema, x: pd.DataFrame) -> Scaler:
        """Zero mean and unit variance on the rows given."""
        mean, scale = np.zeros(len(schema)), np.ones(len(schema))
        real = schema.columns(Kind.REAL)
        mean[real] = x.iloc[:, real].mean()
        spread = x.iloc[:, real].std(ddof=0).to_numpy()
        scale[real] = np.where(spread > 0, spread, 1.0)
        return cls(mean, scale)

    def transform(self, x: pd.DataFrame) -> torch.Tensor:
        """Shape (N, D), float32."""
        return torch.tensor((x.to_numpy() - self.mean) / self.scale, dtype=torch.float32)


@dataclass(frozen=True)
class PreparedData:
    """Everyone a run meets, by role.

    Attributes:
        schema: the features of x.
        scaler: fitted on the training rows.
        train: applicants of Phase II.
        validation: people to select on.
        test: people to report on.
        pool: people of Phase I and, its first rows, of the warm-up.
        pool_table: the pool before scaling, on which initial policies decide.
    """

    schema: Schema
    scaler: Scaler
    train: People
    validation: People
    test: People
    pool: People
    pool_table: Table

    def fingerprint(self) -> str:
        """Hash of the content: every value of every role, and the scale that the raw ones had."""
        digest = hashlib.sha256(repr(list(self.schema)).encode())
        digest.update(self.scaler.mean.tobytes() + self.scaler.scale.tobytes())
        for people in (self.train, self.validation, self.test, self.pool):
            for values in vars(people).values():
                if values is not None:
                    digest.update(values.numpy().tobytes())
        return digest.hexdigest()


def prepare(config: DatasetConfig) -> PreparedData:
    """Loads a data set, cuts it and scales it with what the training rows say."""
    from hydra.utils import instantiate

    table: Table = instantiate(config.source)
    splits = split(len(table), config.split)
    scaler = Scaler.fit(table.schema, table.x.iloc[splits.train])

    def people(rows: np.ndarray) -> People:
        return People(
            x=scaler.transform(table.x.iloc[rows]),
            s=torch.tensor(table.s[rows], dtype=torch.float32),
            label=torch.tensor(table.label[rows], dtype=torch.float32),
        )

    pool = splits.pool
    return PreparedData(
        schema=table.schema,
        scaler=scaler,
        train=people(splits.train),
        validation=people(splits.validation),
        test=people(splits.test),
        pool=people(pool),
        pool_table=Table(table.schema, table.x.iloc[pool], table.s[pool], table.label[pool]),
    )
