"""The policies in force before anything is learnt (appendix D.1)."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from scipy.special import expit

from fairall.config import LogisticPolicyConfig, RandomPolicyConfig
from fairall.data.table import Table
from fairall.errors import FairAllError


class InitialPolicy(ABC):
    """Decides on a whole table at once; the same for every seed, as in the paper."""

    def __init__(self, random_state: int) -> None:
        self.random_state = random_state

    @abstractmethod
    def propensity(self, table: Table) -> np.ndarray:
        """p(d=1) of each row, shape (N,)."""

    def decide(self, table: Table) -> np.ndarray:
        """Decisions in {0, 1} of all rows in their order, shape (N,)."""
        p = self.propensity(table)
        return np.random.RandomState(self.random_state).binomial(1, p, len(p))


class LogisticPolicy(InitialPolicy):
    """p(d=1) = σ(intercept + advantaged·[S = +1] + slope·Σ_j score_j·x_j), on unscaled features."""

    def __init__(self, config: LogisticPolicyConfig) -> None:
        super().__init__(config.random_state)
        self.config = config

    def propensity(self, table: Table) -> np.ndarray:
        """See `InitialPolicy.propensity`; FairAllError where a scored column is not in the table."""
        for name in self.config.score:
            if name not in table.x:
                features = ", ".join(table.schema.names)
                raise FairAllError(f"initial_policy.score: {name!r} is no feature; they are {features}")
        score = sum(weight * table.x[name].to_numpy() for name, weight in self.config.score.items())
        advantaged = self.config.advantaged * (table.s == 1)
        return expit(self.config.intercept + advantaged + self.config.slope * score)


class RandomPolicy(InitialPolicy):
    """Accepts everybody with the same probability."""

    def __init__(self, config: RandomPolicyConfig) -> None:
        super().__init__(config.random_state)
        self.acceptance_rate = config.acceptance_rate

    def propensity(self, table: Table) -> np.ndarray:
        """See `InitialPolicy.propensity`."""
        return np.full(len(table), self.acceptance_rate)
