"""Synthetic people from a structural causal model, with counterfactuals (appendices B.1 and C.4)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from omegaconf import MISSING

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
    does, and with it K and all variables. `Individuals` have the `ground truth` y, the `uniform` number in
    [0, 1) that decides it, y = [uniform < p(Y = 1 | s)], and the `noise of` each variable. Accepted people
    change in K.
    """

    config: SyntheticConfig
    config_type = SyntheticConfig
    stream = "synthetic"

    def __init__(self, config: SyntheticConfig) -> None:
        super().__init__(config)
        self.model = config.structural_model
        self.schema = Schema([Feature(name, Kind.REAL) for name in config.observed])
        self.unseen = ["K", *self.model.variables]
        self.noises = [f"noise of {name}" for name in self.model.variables]
        self.state = ["K", "s", "uniform", *self.noises]

    def draw(self, streams: SeedStreams, n: int) -> Individuals:
        """Draw n people per seed from the structural model, arrays of shape (E, n)."""
        model, equations = self.model, self.model.variables.values()
        group, uniform = streams.uniform(n, 2).double().numpy().transpose(2, 0, 1)
        normal = streams.normal(n, 1 + len(equations)).double().numpy()
        s = np.where(group < model.advantaged_share, 1.0, -1.0)
        y = self.ground_truth(s, uniform)
        k = model.k_shift * (2.0 * y - 1.0) + model.k_std * normal[..., 0]
        noise = np.moveaxis(normal[..., 1:] * [equation.std for equation in equations], -1, 0)
        causes = {"s": s, "ground truth": y, "uniform": uniform, "K": k}
        return self.predict(causes | dict(zip(self.noises, noise, strict=True)))

    def ground_truth(self, s: np.ndarray, uniform: np.ndarray) -> np.ndarray:
        """Y of people, arrays of the same shape."""
        shares = self.model.shares
        return (uniform < np.where(s > 0, shares["1"], shares["-1"])).astype(float)

    def means(self, people: Individuals) -> dict[str, np.ndarray]:
        """The variables without noise, of S and K; all of the same shape."""
        s, k = people["s"], people["K"]
        equations = self.model.variables.items()
        return {name: e.k * k + e.s * s + (e.ks or 0.0) * k * s for name, e in equations}

    def predict(self, causes: Individuals) -> Individuals:
        """The same people with variables and proxy label computed from S, K and noise."""
        means = self.means(causes).items()
        variables = {name: mean + causes[f"noise of {name}"] for name, mean in means}
        label = (variables[self.model.label] > self.model.threshold).astype(float)
        return causes | variables | {"label": label}

    def counterfactual(self, people: Individuals, *, hold_y: bool = False) -> Individuals:
        """The same people had S been −S: abduction, action, prediction (appendix C.4).

        A person keeps the uniform number of Y and the noise of K. Where Y depends on S it may flip, and K
        moves with it by ±2·shift; with `hold_y` both stay, and S changes the variables alone.
        """
        before, s = people["ground truth"], -people["s"]
        y = before if hold_y else self.ground_truth(s, people["uniform"])
        k = people["K"] + 2.0 * self.model.k_shift * (y - before)
        noise = {f"noise of {name}": people[name] - mean for name, mean in self.means(people).items()}
        return self.predict(people | noise | {"s": s, "ground truth": y, "K": k})

    def determined(self, state: Individuals, streams: SeedStreams) -> Individuals:
        """People of a changed K, from which variables and label follow, arrays of shape (E, n)."""
        return self.predict(state | {"ground truth": self.ground_truth(state["s"], state["uniform"])})

    def people(self, individuals: Individuals, scaler: Scaler) -> People:
        """Scaled people with ground truth, and counterfactuals on the same scale.

        Those with Y held are None where Y does not depend on S, since the others hold it then too.
        """
        others, held = self.features(self.counterfactual(individuals)), None
        if len({*self.model.shares.values()}) > 1:
            held = scaler.transform(self.features(self.counterfactual(individuals, hold_y=True)))
        return replace(
            super().people(individuals, scaler),
            ground_truth=float32(individuals["ground truth"]),
            counterfactual_x=scaler.transform(others),
            counterfactual_x_y_held=held,
        )
