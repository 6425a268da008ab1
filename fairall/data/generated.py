"""Base class of data sets whose people are drawn from a known distribution."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, TypeAlias

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from fairall.config.checks import at_least, numpy_seed
from fairall.config.schema import DatasetConfig, ScalerRows
from fairall.data.dataset import Dataset
from fairall.data.features import Schema
from fairall.data.people import Dynamics, DynamicsConfig, People, float32
from fairall.data.prepared import PreparedData, Scaler
from fairall.data.splits import shifted
from fairall.data.table import Table
from fairall.runtime.randomness import SeedStreams
from fairall.tables.groups import Sensitive


@dataclass
class SampleSizesConfig:
    """Number of people drawn for each role."""

    pool: int = at_least(10)
    validation: int = at_least(10)
    test: int = at_least(10)


@dataclass
class GeneratedConfig(DatasetConfig):
    """Keys of a data set whose people are drawn."""

    random_state: int = numpy_seed()
    rows: SampleSizesConfig = field(default_factory=SampleSizesConfig)
    dynamics: DynamicsConfig = field(default_factory=DynamicsConfig)


Individuals: TypeAlias = dict[str, np.ndarray]
"""People before scaling: by name `s` and `label` as in `People`, features, and what else is known of them.

All arrays have the same shape (...).
"""


class GeneratedDataset(Dataset):
    """Pool, validation and test people fixed by `random_state`; applicants drawn per seed.

    The pool also serves as training rows, which scale the applicants.

    Attributes:
        schema: the features, which `draw` returns by name.
        stream: name of the random numbers of the fixed people.
        sensitive: the raw column of s, if there is one.
        unseen: names of variables that tables have beside the features.
        state: names of what determines people who change when they are accepted, their score first, then s;
            none where it is not known how they change.
        greatest: of a score from 0; None: it has no bounds.
    """

    config: GeneratedConfig
    config_type: ClassVar[type[DatasetConfig]] = GeneratedConfig
    schema: Schema
    stream: ClassVar[str]
    sensitive: Sensitive | None = None
    unseen: Sequence[str] = ()
    state: Sequence[str] = ()
    greatest: float | None = None

    @classmethod
    def location(cls, config: Any) -> str:
        """People are drawn."""
        return "generated when needed"

    @abstractmethod
    def draw(self, streams: SeedStreams, n: int) -> Individuals:
        """N new people per seed, arrays of shape (E, n)."""

    def determined(self, state: Individuals, streams: SeedStreams) -> Individuals:
        """The people of a `state`, arrays of shape (E, n); random labels come from the streams."""
        raise NotImplementedError

    def dynamics(self, scaler: Scaler) -> Dynamics | None:
        """How people change when they are accepted, if that is known."""
        if not self.state:
            return None

        def draw(streams: SeedStreams, n: int) -> Tensor:
            drawn = self.draw(streams, n)
            return torch.from_numpy(np.stack([drawn[name] for name in self.state], axis=-1))

        def people(state: Tensor, streams: SeedStreams) -> People:
            named = dict(zip(self.state, np.moveaxis(state.numpy(), -1, 0), strict=True))
            return self.people(self.determined(named, streams), scaler)

        return Dynamics(self.config.dynamics, draw, people, self.greatest)

    def individuals(self, role: str, n: int) -> Individuals:
        """N people of a role, determined by `random_state`; arrays of shape (n,)."""
        drawn = self.draw(SeedStreams([self.config.random_state], f"{self.stream} {role}"), n)
        return {name: numbers[0] for name, numbers in drawn.items()}

    def features(self, individuals: Individuals) -> np.ndarray:
        """Features of people, shape (..., D)."""
        return np.stack([individuals[name] for name in self.schema.names], axis=-1)

    def people(self, individuals: Individuals, scaler: Scaler) -> People:
        """Scaled people."""
        x = scaler.transform(self.features(individuals))
        return People(x, float32(individuals["s"]), float32(individuals["label"]))

    def resplit(self, number: int) -> GeneratedDataset:
        """The data set with other people of all roles, scaled as these."""
        random_state = shifted(self.config.random_state, number)
        other = type(self)(replace(self.config, random_state=random_state))
        other.in_pool = self.in_pool
        return other

    @cached_property
    def in_pool(self) -> np.ndarray:
        """Features of the pool, shape (N, D)."""
        return self.features(self.individuals("pool", self.config.rows.pool))

    def load(self) -> Table:
        """The pool; columns hidden from learners follow the features."""
        pool = self.individuals("pool", self.config.rows.pool)
        x = pd.DataFrame({name: pool[name] for name in [*self.schema.names, *self.unseen]})
        s, label = pool["s"].astype(int), pool["label"].astype(int)
        return Table.fully_labelled(self.schema, x, s, label, self.sensitive)

    def prepare(self, *, scaler: ScalerRows = ScalerRows.training_rows) -> PreparedData:
        """Fixed people of each role, scaled, with the generator of applicants."""
        of_pool = Scaler(self.schema.measured(self.in_pool), scaler)

        def fixed(role: str) -> People:
            individuals = self.individuals(role, getattr(self.config.rows, role))
            return self.people(individuals, of_pool.of_file(self.features(individuals)))

        pool = fixed("pool")
        return PreparedData(
            scaler=of_pool,
            train=pool,
            validation=fixed("validation"),
            test=fixed("test"),
            pool=pool,
            pool_tables=(self.table(),),
            draw=lambda streams, n: self.people(self.draw(streams, n), of_pool),
            dynamics=self.dynamics(of_pool),
        )
