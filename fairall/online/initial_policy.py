"""Initial policies, which decide on the people of the warm-up (appendix D.1)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from omegaconf import MISSING
from scipy.special import expit
from typing_extensions import override

from fairall.config.checks import numpy_seed, open_unit, positive_share
from fairall.config.schema import InitialPolicyConfig
from fairall.data.splits import shifted
from fairall.data.table import Logged, Table
from fairall.errors import FairAllError
from fairall.tables.groups import sides


class InitialPolicy(ABC):
    """Decisions on a whole table, the same for every seed as in the authors' data; chosen by `_target_`.

    Attributes:
        config_type: dataclass of the `initial_policy` node; every key of the node is one of its fields.
    """

    config_type: ClassVar[type[InitialPolicyConfig]] = InitialPolicyConfig

    def __init__(self, config: Any) -> None:
        self.config = config

    def of_split(self, number: int) -> InitialPolicy:
        """The policy for the pool of a split, 0 for the first."""
        return self

    @abstractmethod
    def propensity(self, table: Table) -> np.ndarray:
        """p(d=1) of each row, shape (N,)."""

    @abstractmethod
    def decide(self, table: Table) -> np.ndarray:
        """Decisions on all rows, shape (N,), bool; people without a label count as rejected."""


@dataclass
class DrawnPolicyConfig(InitialPolicyConfig):
    """Random state of the decisions."""

    random_state: int = numpy_seed()


class DrawnPolicy(InitialPolicy):
    """Decisions drawn from acceptance probabilities that a subclass computes."""

    config: DrawnPolicyConfig
    config_type = DrawnPolicyConfig

    @override
    def of_split(self, number: int) -> DrawnPolicy:
        """The same with decisions drawn anew."""
        random_state = shifted(self.config.random_state, number)
        return type(self)(replace(self.config, random_state=random_state))

    @abstractmethod
    def acceptance(self, table: Table) -> np.ndarray:
        """Acceptance probability of each row in [0, 1], shape (N,)."""

    @override
    def propensity(self, table: Table) -> np.ndarray:
        """Acceptance probability (N,), times that of the logged decisions where these revealed the labels.

        Only people accepted by both can then be accepted.
        """
        return self.acceptance(table) * table.label_propensity

    @override
    def decide(self, table: Table) -> np.ndarray:
        p = self.acceptance(table)
        drawn = np.random.RandomState(self.config.random_state).binomial(1, p, len(p))
        return (drawn == 1) & table.labelled


@dataclass
class LogisticPolicyConfig(DrawnPolicyConfig):
    """Coefficients of a logistic policy."""

    score: dict[str, float] = MISSING
    slope: float = MISSING
    intercept: float = MISSING
    advantaged: float = MISSING


class LogisticPolicy(DrawnPolicy):
    """p(d=1) = σ(intercept + advantaged·[S = +1] + slope·Σ_j score_j·x_j), on unscaled features.

    With more than two groups the first one takes the place of S = +1.
    """

    config: LogisticPolicyConfig
    config_type = LogisticPolicyConfig

    @override
    def acceptance(self, table: Table) -> np.ndarray:
        """Shape (N,); raises FairAllError without a score, or if a scored column is not in the table."""
        if not self.config.score:
            raise FairAllError(
                f"initial_policy={self.config.name} needs a score, which this data set does not have: "
                "give 'dataset.initial_policies.score={COLUMN: WEIGHT}', or choose initial_policy=random"
            )
        for name in self.config.score:
            if name not in table.x:
                features = ", ".join(table.schema.names)
                raise FairAllError(f"initial_policy.score: {name!r} is no feature; they are {features}")
        score = sum(weight * table.x[name].to_numpy() for name, weight in self.config.score.items())
        advantaged = self.config.advantaged * (table.s == sides(table.schema.n_groups)[0])
        return expit(self.config.intercept + advantaged + self.config.slope * score)


@dataclass
class RandomPolicyConfig(DrawnPolicyConfig):
    """Acceptance probability of everybody."""

    acceptance_rate: float = positive_share()


class RandomPolicy(DrawnPolicy):
    """Acceptance of everybody with the same probability."""

    config: RandomPolicyConfig
    config_type = RandomPolicyConfig

    @override
    def acceptance(self, table: Table) -> np.ndarray:
        return np.full(len(table), self.config.acceptance_rate)


@dataclass
class LoggedPolicyConfig(InitialPolicyConfig):
    """Least propensity of an accepted row, which bounds the weight of one person."""

    min_propensity: float = open_unit()


class LoggedPolicy(InitialPolicy):
    """Decisions that the data set records."""

    config: LoggedPolicyConfig
    config_type = LoggedPolicyConfig

    @override
    def propensity(self, table: Table) -> np.ndarray:
        """The logged acceptance probability, at least `min_propensity` where accepted, shape (N,)."""
        logged = _logged(table)
        raised = np.maximum(logged.propensity, self.config.min_propensity)
        return np.where(logged.accepted, raised, logged.propensity)

    @override
    def decide(self, table: Table) -> np.ndarray:
        return _logged(table).accepted & table.labelled


def _logged(table: Table) -> Logged:
    if table.logged is None:
        raise FairAllError(
            "initial_policy=logged: the data set records no decisions; "
            "with dataset=csv give their column, dataset.decision=COLUMN"
        )
    return table.logged
