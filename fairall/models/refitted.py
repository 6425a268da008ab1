"""Learners that are fitted anew to all people in memory when enough have come since the last fit."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor
from typing_extensions import override

from fairall.config.checks import positive
from fairall.config.schema import ModelConfig, NetInputs
from fairall.data.features import FeatureInputs
from fairall.data.people import Decided
from fairall.models.learner import DecisionRule, Learner, Setting
from fairall.models.memory import Memory
from fairall.runtime.randomness import SeedStreams

EXACT = 1e-6  # of the gradient of the mean loss of a fit


@dataclass
class RefittedConfig(ModelConfig):
    """By what share the number of people seen grows between fits."""

    growth: float = positive()


class Refitted(Learner):
    """A method of `refit`; accepts where its p(ỹ = 1 | x, s) is at least c.

    Attributes:
        memory: of people seen.
        inputs: of linear models.
        n_seen: number of people seen, shape ().
        n_fitted: number of people seen before the last fit, shape ().
    """

    two_groups = False
    net_inputs = NetInputs.one_hot
    config: RefittedConfig
    n_seen: Tensor
    n_fitted: Tensor

    def __init__(
        self, config: RefittedConfig, setting: Setting, remembered: Literal["accepted", "all"]
    ) -> None:
        super().__init__(config, setting)
        self.rule = DecisionRule(setting.cost, drawn=False)
        self.memory = Memory(remembered)
        self.inputs = FeatureInputs(setting.schema.seen_as(NetInputs.one_hot))
        self.register_buffer("n_seen", torch.zeros((), dtype=torch.long))
        self.register_buffer("n_fitted", torch.zeros((), dtype=torch.long))

    @abstractmethod
    def refit(self) -> None:
        """Fit to the people in `memory`."""

    @override
    def warm_up_epoch(self, decided: Decided, epoch: int) -> dict[str, float]:
        """Learn from the people of the warm-up in its first epoch."""
        if epoch == 0:
            self.learn(decided)
        return {}

    @override
    def update(self, decided: Decided) -> None:
        """Learn from the applicants of a time step."""
        self.learn(decided)

    def learn(self, decided: Decided) -> None:
        """Remember people, and fit anew if enough have come since the last fit."""
        self.memory.add(decided)
        self.n_seen += decided.s.shape[1]
        self.unchanged = bool(self.n_seen < self.n_fitted * (1.0 + self.config.growth))
        if not self.unchanged:
            self.n_fitted.copy_(self.n_seen)
            self.refit()

    def score(self, x: Tensor, s: Tensor, streams: SeedStreams) -> Tensor:
        """p(ỹ = 1 | x, s), shape (E, B); draws nothing."""
        return self.log_odds(x, s, streams).sigmoid().to(x.dtype)
