"""Synthetic people from a structural causal model, with counterfactuals (appendices B.1 and C.4)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
import torch
from omegaconf import MISSING
from torch import Tensor

from fairall.config.checks import at_least, not_negative, one_of, open_unit, positive, random_state, require
from fairall.config.schema import DatasetConfig, ScalerRows
from fairall.data.dataset import Dataset
from fairall.data.dynamics import Dynamics, DynamicsConfig
from fairall.data.features import Feature, Kind, Schema
from fairall.data.people import People
from fairall.data.prepared import PreparedData, Scaler
from fairall.data.table import Table
from fairall.randomness import SeedStreams


@dataclass
class EquationConfig:
    """Coefficients of a variable, k·K + s·S + noise of standard deviation `std`."""

    k: float = MISSING
    s: float = MISSING
    std: float = MISSING


@dataclass
class StructuralModelConfig:
    """Coefficients of the structural causal model (appendix B.1)."""

    advantaged_share: float = MISSING
    ground_truth_share: float = MISSING
    k_shift: float = MISSING
    k_std: float = MISSING
    variables: dict[str, EquationConfig] = MISSING
    label: str = MISSING
    threshold: float = MISSING

    def validate(self) -> None:
        """See `DatasetConfig.validate`."""
        for name in ("advantaged_share", "ground_truth_share"):
            open_unit(f"dataset.structural_model.{name}", getattr(self, name))
        positive("dataset.structural_model.k_std", self.k_std)
        for name, equation in self.variables.items():
            not_negative(f"dataset.structural_model.variables.{name}.std", equation.std)
        one_of("dataset.structural_model.label", self.label, tuple(self.variables))


@dataclass
class SampleSizesConfig:
    """Number of people drawn for each role."""

    pool: int = MISSING
    validation: int = MISSING
    test: int = MISSING


@dataclass
class SyntheticConfig(DatasetConfig):
    """Keys of the synthetic data set."""

    random_state: int = MISSING
    rows: SampleSizesConfig = field(default_factory=SampleSizesConfig)
    observed: list[str] = MISSING
    structural_model: StructuralModelConfig = field(default_factory=StructuralModelConfig)
    dynamics: DynamicsConfig = field(default_factory=DynamicsConfig)

    def validate(self) -> None:
        """See `DatasetConfig.validate`."""
        super().validate()
        self.dynamics.validate()
        random_state("dataset.random_state", self.random_state)
        for name, rows in vars(self.rows).items():
            at_least(f"dataset.rows.{name}", rows, 10)
        self.structural_model.validate()
        variables, label = self.structural_model.variables, self.structural_model.label
        require(len(self.observed) >= 1, "dataset.observed", self.observed, "at least one variable")
        for name in self.observed:
            one_of("dataset.observed", name, ("K", *(key for key in variables if key != label)))


@dataclass(frozen=True)
class Individuals:
    """People of the structural model with their latent variables; all arrays have the same shape.

    Attributes:
        s: sensitive attribute in {−1, +1}.
        y: ground-truth label in {0, 1}.
        k: talent K.
        noise: exogenous noise of each variable, by name.
        values: the variables, by name.
        label: proxy label ỹ in {0, 1}.
    """

    s: np.ndarray
    y: np.ndarray
    k: np.ndarray
    noise: dict[str, np.ndarray]
    values: dict[str, np.ndarray]
    label: np.ndarray

    def variable(self, name: str) -> np.ndarray:
        """One of the variables, or K."""
        return self.k if name == "K" else self.values[name]


class StructuralModel:
    """S and Y are Bernoulli, K ~ N(shift·(2Y − 1), std²), variables linear in K and S (appendix B.1).

    Args:
        config: the coefficients.
    """

    def __init__(self, config: StructuralModelConfig) -> None:
        self.config = config

    @property
    def n_normal(self) -> int:
        """Number of normal draws per person: one for K and one for each variable."""
        return 1 + len(self.config.variables)

    def individuals(self, uniform: np.ndarray, normal: np.ndarray) -> Individuals:
        """People from random numbers.

        Args:
            uniform: on [0, 1), shape (..., 2).
            normal: standard normal, shape (..., n_normal).
        """
        config = self.config
        s = np.where(uniform[..., 0] < config.advantaged_share, 1.0, -1.0)
        y = (uniform[..., 1] < config.ground_truth_share).astype(float)
        k = config.k_shift * (2.0 * y - 1.0) + config.k_std * normal[..., 0]
        noise = {
            name: equation.std * normal[..., 1 + i]
            for i, (name, equation) in enumerate(config.variables.items())
        }
        return self.predict(s, y, k, noise)

    def predict(
        self, s: np.ndarray, y: np.ndarray, k: np.ndarray, noise: dict[str, np.ndarray]
    ) -> Individuals:
        """People with variables and proxy label computed from the exogenous values."""
        values = {
            name: equation.k * k + equation.s * s + noise[name]
            for name, equation in self.config.variables.items()
        }
        label = (values[self.config.label] > self.config.threshold).astype(float)
        return Individuals(s, y, k, noise, values, label)

    def abduct(self, people: Individuals) -> dict[str, np.ndarray]:
        """The exogenous noise implied by variables, K and S."""
        return {
            name: people.values[name] - equation.k * people.k - equation.s * people.s
            for name, equation in self.config.variables.items()
        }

    def counterfactual(self, people: Individuals) -> Individuals:
        """The same people had S been −S: abduction, action, prediction (appendix C.4)."""
        return self.predict(-people.s, people.y, people.k, self.abduct(people))

    def draw(self, streams: SeedStreams, n: int) -> Individuals:
        """N new people per seed, arrays of shape (E, n)."""
        uniform, normal = streams.uniform(n, 2), streams.normal(n, self.n_normal)
        return self.individuals(uniform.double().numpy(), normal.double().numpy())


class TalentDynamics(Dynamics):
    """Talent K that rises with a good label and falls with a bad one; variables and label follow.

    The state of a person is s, y, K and the noise of each variable.

    Args:
        model: of the people.
        config: by how much.
        as_people: scaled people of individuals.
    """

    def __init__(
        self, model: StructuralModel, config: DynamicsConfig, as_people: Callable[[Individuals], People]
    ) -> None:
        self.model, self.config, self.as_people = model, config, as_people

    def draw(self, streams: SeedStreams, n: int) -> Tensor:
        """See `Dynamics.draw`."""
        drawn = self.model.draw(streams, n)
        return torch.from_numpy(np.stack([drawn.s, drawn.y, drawn.k, *drawn.noise.values()], axis=-1))

    def people(self, state: Tensor, streams: SeedStreams, person: Tensor) -> People:
        """See `Dynamics.people`; labels are functions of the state."""
        s, y, k, *noise = (values.numpy() for values in state.unbind(-1))
        variables = dict(zip(self.model.config.variables, noise, strict=True))
        return replace(self.as_people(self.model.predict(s, y, k, variables)), person=person)

    def changed(self, state: Tensor, good: Tensor) -> Tensor:
        """See `Dynamics.changed`."""
        moved = state.clone()
        moved[..., 2] += torch.where(good, state.new_tensor(self.config.rise), -self.config.fall)
        return moved

    def score(self, state: Tensor) -> tuple[Tensor, Tensor]:
        """See `Dynamics.score`."""
        return state[..., 2], state[..., 0]


class Synthetic(Dataset):
    """Pool, validation and test people fixed by `random_state`; applicants drawn per seed."""

    config: SyntheticConfig
    config_type = SyntheticConfig

    def __init__(self, config: SyntheticConfig) -> None:
        super().__init__(config)
        self.model = StructuralModel(config.structural_model)
        self.schema = Schema([Feature(name, Kind.REAL) for name in config.observed])

    @classmethod
    def location(cls, config: Any) -> str:
        """See `Dataset.location`."""
        return "generated when needed"

    def individuals(self, role: str, n: int) -> Individuals:
        """N people of a role, determined by `random_state`; arrays of shape (n,)."""
        drawn = self.model.draw(SeedStreams([self.config.random_state], f"synthetic {role}"), n)
        return self.model.predict(
            drawn.s[0], drawn.y[0], drawn.k[0], {name: noise[0] for name, noise in drawn.noise.items()}
        )

    def table(self) -> Table:
        """The pool; further columns are the other variables and K."""
        return self._table(self.individuals("pool", self.config.rows.pool))

    def prepare(self, *, scaler: ScalerRows = ScalerRows.training_rows) -> PreparedData:
        """See `Dataset.prepare`; the pool also serves as training rows, which scale the applicants."""
        rows = self.config.rows
        drawn = self.individuals("pool", rows.pool)
        schema = self.schema.measured(self._features(drawn))
        of_pool = Scaler.of(schema)

        def people(individuals: Individuals, own: Scaler = of_pool) -> People:
            return People(
                x=own.transform(self._features(individuals)),
                s=_tensor(individuals.s),
                label=_tensor(individuals.label),
                ground_truth=_tensor(individuals.y),
                counterfactual_x=own.transform(self._features(self.model.counterfactual(individuals))),
            )

        def held_out(role: str, n: int) -> People:
            them = self.individuals(role, n)
            own = Scaler.fit(self.schema, self._features(them)) if scaler is ScalerRows.each_file else of_pool
            return people(them, own)

        pool = people(drawn)
        return PreparedData(
            schema=schema,
            scaler=of_pool,
            train=pool,
            validation=held_out("validation", rows.validation),
            test=held_out("test", rows.test),
            pool=pool,
            pool_table=self._table(drawn),
            draw=lambda streams, n: people(self.model.draw(streams, n)),
            dynamics=TalentDynamics(self.model, self.config.dynamics, people),
            warm_up_by_itself=scaler is ScalerRows.each_file,
        )

    def _features(self, people: Individuals) -> np.ndarray:
        return np.stack([people.variable(name) for name in self.config.observed], axis=-1)

    def _table(self, people: Individuals) -> Table:
        others = [name for name in ["K", *self.model.config.variables] if name not in self.config.observed]
        x = pd.DataFrame({name: people.variable(name) for name in [*self.config.observed, *others]})
        return Table.fully_labelled(self.schema, x, people.s.astype(int), people.label.astype(int))


def _tensor(values: np.ndarray) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float32)
