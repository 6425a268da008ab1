"""The policies in force before anything is learnt (appendix D.1)."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from scipy.special import expit

from fairall.config.schema import LoggedPolicyConfig, LogisticPolicyConfig, RandomPolicyConfig
from fairall.data.table import Logged, Table
from fairall.errors import FairAllError


class InitialPolicy(ABC):
    """Decides on a whole table at once; the same for every seed, as in the paper."""

    @abstractmethod
    def propensity(self, table: Table) -> np.ndarray:
        """p(d=1) of each row, shape (N,)."""

    @abstractmethod
    def decide(self, table: Table) -> np.ndarray:
        """Decisions on all rows, shape (N,), bool; people without a label count as rejected."""


class DrawnPolicy(InitialPolicy):
    """Draws its decisions from the acceptance probabilities of a rule of its own."""

    def __init__(self, random_state: int) -> None:
        self.random_state = random_state

    @abstractmethod
    def acceptance(self, table: Table) -> np.ndarray:
        """Acceptance probability of each row by the rule alone, shape (N,)."""

    def propensity(self, table: Table) -> np.ndarray:
        """See `InitialPolicy.propensity`.

        Where decisions of somebody else revealed the labels, only people whom they accepted too can be
        accepted here, so the probability of both is meant.
        """
        return self.acceptance(table) * table.label_propensity

    def decide(self, table: Table) -> np.ndarray:
        """See `InitialPolicy.decide`."""
        p = self.acceptance(table)
        drawn = np.random.RandomState(self.random_state).binomial(1, p, len(p))
        return (drawn == 1) & table.labelled


class LogisticPolicy(DrawnPolicy):
    """p(d=1) = σ(intercept + advantaged·[S = +1] + slope·Σ_j score_j·x_j), on unscaled features."""

    def __init__(self, config: LogisticPolicyConfig) -> None:
        super().__init__(config.random_state)
        self.config = config

    def acceptance(self, table: Table) -> np.ndarray:
        """See `DrawnPolicy.acceptance`; FairAllError where a scored column is not in the table."""
        if not self.config.score:
            raise FairAllError(
                f"initial_policy={self.config.name} needs a score, which this data set does not bring: "
                "give 'dataset.initial_policies.score={COLUMN: WEIGHT}', or choose initial_policy=random"
            )
        for name in self.config.score:
            if name not in table.x:
                features = ", ".join(table.schema.names)
                raise FairAllError(f"initial_policy.score: {name!r} is no feature; they are {features}")
        score = sum(weight * table.x[name].to_numpy() for name, weight in self.config.score.items())
        advantaged = self.config.advantaged * (table.s == 1)
        return expit(self.config.intercept + advantaged + self.config.slope * score)


class RandomPolicy(DrawnPolicy):
    """Accepts everybody with the same probability."""

    def __init__(self, config: RandomPolicyConfig) -> None:
        super().__init__(config.random_state)
        self.acceptance_rate = config.acceptance_rate

    def acceptance(self, table: Table) -> np.ndarray:
        """See `DrawnPolicy.acceptance`."""
        return np.full(len(table), self.acceptance_rate)


class LoggedPolicy(InitialPolicy):
    """Whoever took the decisions that the data record."""

    def __init__(self, config: LoggedPolicyConfig) -> None:
        self.config = config

    def propensity(self, table: Table) -> np.ndarray:
        """See `InitialPolicy.propensity`; no smaller than `min_propensity` where accepted."""
        logged = _logged(table)
        raised = np.maximum(logged.propensity, self.config.min_propensity)
        return np.where(logged.accepted, raised, logged.propensity)

    def decide(self, table: Table) -> np.ndarray:
        """See `InitialPolicy.decide`."""
        return _logged(table).accepted & table.labelled


def _logged(table: Table) -> Logged:
    if table.logged is None:
        raise FairAllError(
            "initial_policy=logged: the data set records no decisions; "
            "with dataset=csv give their column, dataset.decision=COLUMN"
        )
    return table.logged
