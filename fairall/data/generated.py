"""Base class of data sets whose people are drawn from a known distribution."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from fairall.config.checks import at_least, numpy_seed
from fairall.config.schema import DatasetConfig, ScalerRows
from fairall.data.applicants import Dynamics, DynamicsConfig
from fairall.data.dataset import Dataset
from fairall.data.features import Schema
from fairall.data.people import People, float32
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


@dataclass(frozen=True)
class Individuals:
    """People before scaling; all arrays have the same shape (...).

    Attributes:
        s: sensitive attribute, see `People`.
        label: proxy label ỹ in {0, 1}.
        values: features and variables that learners do not see, by name.
        hidden: what tables do not hold, by name, shapes (...) or (..., number of variables).
    """

    s: np.ndarray
    label: np.ndarray
    values: dict[str, np.ndarray]
    hidden: dict[str, np.ndarray] = field(default_factory=dict)


class GeneratedDataset(Dataset):
    """Pool, validation and test people fixed by `random_state`; applicants drawn per seed.

    The pool also serves as training rows, which scale the applicants.

    Attributes:
        schema: the features, which are among `Individuals.values`.
        stream: name of the random numbers of the fixed people.
        sensitive: the raw column of s, if there is one.
    """

    config: GeneratedConfig
    config_type: ClassVar[type[DatasetConfig]] = GeneratedConfig
    schema: Schema
    stream: ClassVar[str]
    sensitive: Sensitive | None = None

    @classmethod
    def location(cls, config: Any) -> str:
        """People are drawn."""
        return "generated when needed"

    @abstractmethod
    def draw(self, streams: SeedStreams, n: int) -> Individuals:
        """N new people per seed, arrays of shape (E, n)."""

    @abstractmethod
    def dynamics(self, scaler: Scaler) -> Dynamics | None:
        """How people change when they are accepted, if that is known."""

    def individuals(self, role: str, n: int) -> Individuals:
        """N people of a role, determined by `random_state`; arrays of shape (n,)."""
        drawn = self.draw(SeedStreams([self.config.random_state], f"{self.stream} {role}"), n)
        values = {name: numbers[0] for name, numbers in drawn.values.items()}
        hidden = {name: numbers[0] for name, numbers in drawn.hidden.items()}
        return Individuals(drawn.s[0], drawn.label[0], values, hidden)

    def features(self, individuals: Individuals) -> np.ndarray:
        """Features of people, shape (..., D)."""
        return np.stack([individuals.values[name] for name in self.schema.names], axis=-1)

    def people(self, individuals: Individuals, scaler: Scaler) -> People:
        """Scaled people."""
        x = scaler.transform(self.features(individuals))
        return People(x, float32(individuals.s), float32(individuals.label))

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
        x = pd.DataFrame({name: pool.values[name] for name in [*self.schema.names, *pool.values]})
        s, label = pool.s.astype(int), pool.label.astype(int)
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
