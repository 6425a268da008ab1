"""Reference policies that accept everybody, nobody, or at random."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from fairall.config.checks import between
from fairall.config.schema import ModelConfig
from fairall.models.learner import DecisionRule, FixedPolicy, Setting
from fairall.runtime.randomness import SeedStreams


@dataclass
class ConstantPolicyConfig(ModelConfig):
    """Acceptance probability of a constant policy."""

    acceptance_probability: float = between(0, 1)


class ConstantPolicy(FixedPolicy):
    """Policy that accepts everybody with the same probability."""

    two_groups = False
    takes_amounts = True
    config: ConstantPolicyConfig
    config_type = ConstantPolicyConfig

    def __init__(self, config: ConstantPolicyConfig, setting: Setting) -> None:
        super().__init__(config, setting)
        self.rule = DecisionRule(drawn=config.acceptance_probability not in (0.0, 1.0))

    def score(self, x: Tensor, s: Tensor, streams: SeedStreams) -> Tensor:
        """The probability, shape (E, B); draws nothing."""
        return torch.full_like(s, self.config.acceptance_probability)
