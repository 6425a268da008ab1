"""Synthetic people from a structural causal model, with counterfactuals (appendices B.1 and C.4)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from omegaconf import MISSING
from torch import Tensor

from fairall.config.checks import (
    check_values,
    limited,
    not_negative,
    one_of,
    open_unit,
    optional,
    positive,
    require,
)
from fairall.data.applicants import Dynamics, DynamicsConfig
from fairall.data.features import Feature, Kind, Schema
from fairall.data.generated import GeneratedConfig, GeneratedDataset, Individuals, float32
from fairall.data.people import People
from fairall.data.prepared import Scaler
from fairall.runtime.randomness import SeedStreams

SHARE = "between 0 and 1, both excluded, or such a share of each group, {-1: 0.3, 1: 0.7}"


def is_share(value: Any) -> bool:
    """Whether a value is a number between 0 and 1, both excluded."""
    return isinstance(value, float | int) and 0 < value < 1


@dataclass
class EquationConfig:
    """Coefficients of a variable, k·K + s·S + ks·K·S + noise of standard deviation `std`.

    With `ks` a variable orders people by talent otherwise in one group than in the other: the slope of K is
    k + ks in S = +1, k − ks in S = −1. None is 0, and is not stored with runs.
    """

    k: float = MISSING
    s: float = MISSING
    std: float = not_negative()
    ks: float | None = optional()


@dataclass
class StructuralModelConfig:
    """Coefficients of the structural causal model (appendix B.1).

    `ground_truth_share` is p(Y = 1), or p(Y = 1 | s) by group, {-1: 0.3, 1: 0.7}.
    """

    advantaged_share: float = open_unit()
    ground_truth_share: Any = limited(SHARE, is_share)
    k_shift: float = MISSING
    k_std: float = positive()
    variables: dict[str, EquationConfig] = MISSING
    label: str = MISSING
    threshold: float = MISSING

    def validate(self) -> None:
        """Check that shares by group are those of the two groups."""
        share = self.ground_truth_share
        both = not isinstance(share, dict) or sorted(map(str, share)) == ["-1", "1"]
        whole = both and all(map(is_share, self.shares))
        require(whole, "dataset.structural_model.ground_truth_share", share, SHARE)

    @property
    def shares(self) -> tuple[float, float]:
        """p(Y = 1 | s) of S = −1 and of S = +1; keys may be text, as in JSON."""
        share = self.ground_truth_share
        if not isinstance(share, dict):
            return share, share
        of = {int(s): own for s, own in share.items()}
        return of[-1], of[1]


@dataclass
class SyntheticConfig(GeneratedConfig):
    """Keys of the synthetic data set."""

    observed: list[str] = MISSING
    structural_model: StructuralModelConfig = field(default_factory=StructuralModelConfig)

    def validate(self) -> None:
        """Check the label and the observed features, which are variables of the structural model."""
        super().validate()
        variables, label = self.structural_model.variables, self.structural_model.label
        check_values(label, "dataset.structural_model.label", one_of(variables))
        require(len(self.observed) >= 1, "dataset.observed", self.observed, "at least one variable")
        for name in self.observed:
            check_values(name, "dataset.observed", one_of(["K", *(key for key in variables if key != label)]))


@dataclass(frozen=True)
class StructuralIndividuals(Individuals):
    """People of the structural model with their latent variables; `values` are K and the variables."""

    y: np.ndarray  # ground-truth label in {0, 1}
    uniform: np.ndarray  # exogenous number of Y in [0, 1): y = [uniform < p(Y = 1 | s)]
    noise: dict[str, np.ndarray]  # exogenous noise of each variable

    @property
    def k(self) -> np.ndarray:
        """Talent K, of the shape of s."""
        return self.values["K"]


class StructuralModel:
    """S and Y are Bernoulli, K ~ N(shift·(2Y − 1), std²), variables linear in K, S and K·S (appendix B.1).

    In the paper Y does not depend on S. Where `ground_truth_share` gives a share to each group, it does, and
    with it K and all variables.
    """

    def __init__(self, config: StructuralModelConfig) -> None:
        self.config = config

    def individuals(self, uniform: np.ndarray, normal: np.ndarray) -> StructuralIndividuals:
        """People from uniform numbers (..., 2) on [0, 1) and normal ones (..., 1 + number of variables)."""
        config = self.config
        s = np.where(uniform[..., 0] < config.advantaged_share, 1.0, -1.0)
        y = self.ground_truth(s, uniform[..., 1])
        k = config.k_shift * (2.0 * y - 1.0) + config.k_std * normal[..., 0]
        noise = {
            name: equation.std * normal[..., 1 + i]
            for i, (name, equation) in enumerate(config.variables.items())
        }
        return self.predict(s, y, uniform[..., 1], k, noise)

    def ground_truth(self, s: np.ndarray, uniform: np.ndarray) -> np.ndarray:
        """Y of people from their numbers on [0, 1), arrays of the same shape."""
        disadvantaged, advantaged = self.config.shares
        return (uniform < np.where(s > 0, advantaged, disadvantaged)).astype(float)

    def predict(
        self, s: np.ndarray, y: np.ndarray, uniform: np.ndarray, k: np.ndarray, noise: dict[str, np.ndarray]
    ) -> StructuralIndividuals:
        """People with variables and proxy label computed from S, K and noise, all arrays of one shape."""
        variables = {
            name: equation.k * k + equation.s * s + (equation.ks or 0.0) * k * s + noise[name]
            for name, equation in self.config.variables.items()
        }
        label = (variables[self.config.label] > self.config.threshold).astype(float)
        return StructuralIndividuals(s, label, {"K": k, **variables}, y, uniform, noise)

    def abduct(self, people: StructuralIndividuals) -> dict[str, np.ndarray]:
        """The exogenous noise implied by variables, K and S, by variable, of the shape of s."""
        return {
            name: people.values[name]
            - equation.k * people.k
            - equation.s * people.s
            - (equation.ks or 0.0) * people.k * people.s
            for name, equation in self.config.variables.items()
        }

    def counterfactual(self, people: StructuralIndividuals, *, hold_y: bool = False) -> StructuralIndividuals:
        """The same people had S been −S: abduction, action, prediction (appendix C.4).

        A person keeps the uniform number of Y and the noise of K. Where Y depends on S it may flip, and K
        moves with it by ±2·shift; with `hold_y` both stay, and S changes the variables alone.
        """
        y = people.y if hold_y else self.ground_truth(-people.s, people.uniform)
        k = people.k + 2.0 * self.config.k_shift * (y - people.y)
        return self.predict(-people.s, y, people.uniform, k, self.abduct(people))

    def draw(self, streams: SeedStreams, n: int) -> StructuralIndividuals:
        """N new people per seed, arrays of shape (E, n)."""
        # A normal number for K and one for each variable.
        uniform, normal = streams.uniform(n, 2), streams.normal(n, 1 + len(self.config.variables))
        return self.individuals(uniform.double().numpy(), normal.double().numpy())


@dataclass(frozen=True)
class TalentDynamics(Dynamics):
    """Talent K that rises after a good label and falls after a bad one; variables and label follow from it.

    The state of a person is s, the uniform number of Y, K and the noise of each variable. `as_people` scales
    individuals.
    """

    model: StructuralModel
    config: DynamicsConfig
    as_people: Callable[[StructuralIndividuals], People]

    def draw(self, streams: SeedStreams, n: int) -> Tensor:
        """States of n new people per seed, shape (E, n, 3 + number of variables)."""
        drawn = self.model.draw(streams, n)
        return torch.from_numpy(np.stack([drawn.s, drawn.uniform, drawn.k, *drawn.noise.values()], axis=-1))

    def people(self, state: Tensor, streams: SeedStreams, person: Tensor) -> People:
        """People as they apply, shapes (E, n, ...); labels are functions of the state."""
        s, uniform, k, *noise = (values.numpy() for values in state.unbind(-1))
        variables = dict(zip(self.model.config.variables, noise, strict=True))
        y = self.model.ground_truth(s, uniform)
        return replace(self.as_people(self.model.predict(s, y, uniform, k, variables)), person=person)

    def changed(self, state: Tensor, good: Tensor) -> Tensor:
        """States (E, n, ...) with K moved by `rise` or `fall`."""
        moved = state.clone()
        moved[..., 2] += torch.where(good, state.new_tensor(self.config.rise), -self.config.fall)
        return moved

    def score(self, state: Tensor) -> tuple[Tensor, Tensor]:
        """K and s, shapes (E, n)."""
        return state[..., 2], state[..., 0]


class Synthetic(GeneratedDataset[StructuralIndividuals]):
    """People of a structural model, with ground truth and counterfactuals."""

    config: SyntheticConfig
    config_type = SyntheticConfig
    stream = "synthetic"

    def __init__(self, config: SyntheticConfig) -> None:
        super().__init__(config)
        self.model = StructuralModel(config.structural_model)
        self.schema = Schema([Feature(name, Kind.REAL) for name in config.observed])

    @classmethod
    def location(cls, config: Any) -> str:
        """People are generated."""
        return "generated when needed"

    def draw(self, streams: SeedStreams, n: int) -> StructuralIndividuals:
        """Draw n people per seed from the structural model, arrays of shape (E, n)."""
        return self.model.draw(streams, n)

    def people(self, individuals: StructuralIndividuals, scaler: Scaler) -> People:
        """Scaled people with ground truth, and counterfactuals on the same scale.

        Those with Y held are None where Y does not depend on S, since the others hold it then too.
        """
        others, held = self.features(self.model.counterfactual(individuals)), None
        if len({*self.config.structural_model.shares}) > 1:
            held = scaler.transform(self.features(self.model.counterfactual(individuals, hold_y=True)))
        return replace(
            super().people(individuals, scaler),
            ground_truth=float32(individuals.y),
            counterfactual_x=scaler.transform(others),
            counterfactual_x_y_held=held,
        )

    def dynamics(self, scaler: Scaler) -> TalentDynamics:
        """Talent K rises after a good label and falls after a bad one."""
        return TalentDynamics(self.model, self.config.dynamics, lambda people: self.people(people, scaler))
