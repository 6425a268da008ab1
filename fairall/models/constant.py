"""Reference policies that accept everybody, nobody, or at random."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from omegaconf import MISSING
from torch import Tensor

from fairall.config.checks import require
from fairall.config.schema import ModelConfig
from fairall.models.learner import DecisionRule, FixedPolicy, Setting
from fairall.randomness import SeedStreams


@dataclass
class ConstantPolicyConfig(ModelConfig):
    """Acceptance probability of a constant policy."""

    acceptance_probability: float = MISSING

    def validate(self) -> None:
        """See `ModelConfig.validate`."""
        p = self.acceptance_probability
        require(0 <= p <= 1, "model.acceptance_probability", p, "from 0 to 1")


class ConstantPolicy(FixedPolicy):
    """Policy that accepts everybody with the same probability."""

    config: ConstantPolicyConfig
    config_type = ConstantPolicyConfig

    def __init__(self, config: ConstantPolicyConfig, setting: Setting) -> None:
        super().__init__(config, setting)
        self.rule = DecisionRule(drawn=config.acceptance_probability not in (0.0, 1.0))

    def score(self, x: Tensor, s: Tensor, streams: SeedStreams) -> Tensor:
        """The probability, shape (E, B); draws nothing."""
        return torch.full_like(s, self.config.acceptance_probability)
