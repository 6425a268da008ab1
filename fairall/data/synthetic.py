"""Synthetic people from a structural causal model, with counterfactuals (appendices B.1 and C.4)."""

from __future__ import annotations

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
from fairall.data.applicants import Dynamics
from fairall.data.features import Feature, Kind, Schema
from fairall.data.generated import GeneratedConfig, GeneratedDataset, Individuals
from fairall.data.people import People, float32
from fairall.data.prepared import Scaler
from fairall.runtime.randomness import SeedStreams

SHARE = "between 0 and 1, both excluded, or such a share of each group, {-1: 0.3, 1: 0.7}"


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
    ground_truth_share: Any = limited(SHARE, lambda share: isinstance(share, float | int) and 0 < share < 1)
    k_shift: float = MISSING
    k_std: float = positive()
    variables: dict[str, EquationConfig] = MISSING
    label: str = MISSING
    threshold: float = MISSING

    def __post_init__(self) -> None:
        """Have texts as the keys of shares by group, as JSON has them."""
        if isinstance(self.ground_truth_share, dict):
            self.ground_truth_share = {str(s): share for s, share in self.ground_truth_share.items()}

    @property
    def shares(self) -> dict[str, Any]:
        """p(Y = 1 | s) by s, "-1" and "1"."""
        share = self.ground_truth_share
        return share if isinstance(share, dict) else dict.fromkeys(["-1", "1"], share)

    def validate(self) -> None:
        """Check that there is a share for each of the two groups."""
        both = {*self.shares} == {"-1", "1"} and None not in self.shares.values()
        require(both, "dataset.structural_model.ground_truth_share", self.ground_truth_share, SHARE)


@dataclass
class SyntheticConfig(GeneratedConfig):
    """Keys of the synthetic data set."""

    observed: list[str] = limited("at least one variable", len)
    structural_model: StructuralModelConfig = field(default_factory=StructuralModelConfig)

    def validate(self) -> None:
        """Check the label and the observed features, which are variables of the structural model."""
        super().validate()
        variables, label = self.structural_model.variables, self.structural_model.label
        check_values(label, "dataset.structural_model.label", one_of(variables))
        for name in self.observed:
            check_values(name, "dataset.observed", one_of(["K", *(key for key in variables if key != label)]))


class Synthetic(GeneratedDataset):
    """People of a structural model, with ground truth and counterfactuals.

    S and Y are Bernoulli, K ~ N(shift·(2Y − 1), std²), and V variables are linear in K, S and K·S (appendix
    B.1). In the paper Y does not depend on S. Where `ground_truth_share` gives a share to each group, it
    does, and with it K and all variables. `Individuals.hidden` has `y`, the `uniform` number of it in
    [0, 1), y = [uniform < p(Y = 1 | s)], and the `noise` of the variables, shape (..., V).
    """

    config: SyntheticConfig
    config_type = SyntheticConfig
    stream = "synthetic"

    def __init__(self, config: SyntheticConfig) -> None:
        super().__init__(config)
        self.model = config.structural_model
        self.schema = Schema([Feature(name, Kind.REAL) for name in config.observed])

    def draw(self, streams: SeedStreams, n: int) -> Individuals:
        """Draw n people per seed from the structural model, arrays of shape (E, n)."""
        model, equations = self.model, self.model.variables.values()
        group, of_y = streams.uniform(n, 2).double().numpy().transpose(2, 0, 1)
        normal = streams.normal(n, 1 + len(equations)).double().numpy()
        s = np.where(group < model.advantaged_share, 1.0, -1.0)
        y = self.ground_truth(s, of_y)
        k = model.k_shift * (2.0 * y - 1.0) + model.k_std * normal[..., 0]
        return self.predict(s, y, of_y, k, normal[..., 1:] * [equation.std for equation in equations])

    def ground_truth(self, s: np.ndarray, uniform: np.ndarray) -> np.ndarray:
        """Y of people from their numbers on [0, 1), arrays of the same shape."""
        shares = self.model.shares
        return (uniform < np.where(s > 0, shares["1"], shares["-1"])).astype(float)

    def means(self, s: np.ndarray, k: np.ndarray) -> np.ndarray:
        """The variables without noise, shape (..., V), of S and K (...)."""
        equations = self.model.variables.values()
        return np.stack([e.k * k + e.s * s + (e.ks or 0.0) * k * s for e in equations], axis=-1)

    def predict(
        self, s: np.ndarray, y: np.ndarray, uniform: np.ndarray, k: np.ndarray, noise: np.ndarray
    ) -> Individuals:
        """People with variables and proxy label computed from S, K (...) and noise (..., V)."""
        variables = np.moveaxis(self.means(s, k) + noise, -1, 0)
        values = {"K": k, **dict(zip(self.model.variables, variables, strict=True))}
        label = (values[self.model.label] > self.model.threshold).astype(float)
        return Individuals(s, label, values, {"y": y, "uniform": uniform, "noise": noise})

    def counterfactual(self, people: Individuals, *, hold_y: bool = False) -> Individuals:
        """The same people had S been −S: abduction, action, prediction (appendix C.4).

        A person keeps the uniform number of Y and the noise of K. Where Y depends on S it may flip, and K
        moves with it by ±2·shift; with `hold_y` both stay, and S changes the variables alone.
        """
        before, uniform, k = people.hidden["y"], people.hidden["uniform"], people.values["K"]
        variables = np.stack([people.values[name] for name in self.model.variables], axis=-1)
        y = before if hold_y else self.ground_truth(-people.s, uniform)
        moved = k + 2.0 * self.model.k_shift * (y - before)
        return self.predict(-people.s, y, uniform, moved, variables - self.means(people.s, k))

    def people(self, individuals: Individuals, scaler: Scaler) -> People:
        """Scaled people with ground truth, and counterfactuals on the same scale.

        Those with Y held are None where Y does not depend on S, since the others hold it then too.
        """
        others, held = self.features(self.counterfactual(individuals)), None
        if len({*self.model.shares.values()}) > 1:
            held = scaler.transform(self.features(self.counterfactual(individuals, hold_y=True)))
        return replace(
            super().people(individuals, scaler),
            ground_truth=float32(individuals.hidden["y"]),
            counterfactual_x=scaler.transform(others),
            counterfactual_x_y_held=held,
        )

    def dynamics(self, scaler: Scaler) -> Dynamics:
        """Talent K changes; variables and label follow from it."""

        def draw(streams: SeedStreams, n: int) -> Tensor:
            drawn = self.draw(streams, n)
            fixed = np.stack([drawn.values["K"], drawn.s, drawn.hidden["uniform"]], axis=-1)
            return torch.from_numpy(np.concatenate([fixed, drawn.hidden["noise"]], axis=-1))

        def people(state: Tensor, streams: SeedStreams) -> People:
            values = state.numpy()
            k, s, uniform = np.moveaxis(values[..., :3], -1, 0)
            y = self.ground_truth(s, uniform)
            return self.people(self.predict(s, y, uniform, k, values[..., 3:]), scaler)

        return Dynamics(self.config.dynamics, draw, people)
