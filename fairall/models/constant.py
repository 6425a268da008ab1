"""Reference policies that accept everybody, nobody, or at random."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from omegaconf import MISSING
from torch import Tensor

from fairall.config.checks import require
from fairall.config.schema import ModelConfig
from fairall.data.people import Decided
from fairall.models.learner import Learner
from fairall.randomness import SeedStreams


@dataclass
class ConstantPolicyConfig(ModelConfig):
    """Acceptance probability of a constant policy."""

    acceptance_probability: float = MISSING

    def validate(self) -> None:
        """See `ModelConfig.validate`."""
        p = self.acceptance_probability
        require(0 <= p <= 1, "model.acceptance_probability", p, "from 0 to 1")


class ConstantPolicy(Learner):
    """Policy that accepts everybody with the same probability and learns nothing."""

    config: ConstantPolicyConfig
    config_type = ConstantPolicyConfig
    learns = False

    def warm_up_epoch(self, decided: Decided, epoch: int) -> dict[str, float]:
        """Do nothing."""
        return {}

    def update(self, decided: Decided) -> None:
        """Do nothing."""

    def propensity(self, x: Tensor, s: Tensor, streams: SeedStreams) -> Tensor:
        """See `Learner.propensity`; draws nothing."""
        return torch.full_like(s, self.config.acceptance_probability)

    @property
    def deterministic(self) -> bool:
        """See `Learner.deterministic`."""
        return self.config.acceptance_probability in (0.0, 1.0)
