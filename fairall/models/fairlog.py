"""FairLog: the IPS-weighted classifier, made to treat groups alike by a penalty (appendix D.5)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from omegaconf import MISSING
from torch import Tensor

from fairall.config.checks import not_negative
from fairall.config.schema import FairLogPenalty
from fairall.data.people import Decided
from fairall.models.ips_classifier import IPSClassifier, IPSClassifierConfig
from fairall.models.objectives import masked_mean
from fairall.models.training import classification_risk


@dataclass
class FairLogConfig(IPSClassifierConfig):
    """The same and λ, the Lagrangian multiplier."""

    lambda_: float = MISSING

    def validate(self) -> None:
        """See `ModelConfig.validate`."""
        super().validate()
        not_negative("model.lambda_", self.lambda_)


class FairLog(IPSClassifier):
    """The paper's baseline: cross-entropy with a penalty on demographic-parity unfairness."""

    config: FairLogConfig
    config_type = FairLogConfig

    def loss(self, batch: Decided) -> Tensor:
        """R + penalty(λ, DPU), shape (E,); DPU of all applicants of the minibatch, rejected ones too."""
        logit = self.classify(batch.x, batch.s, self.streams)
        advantaged = batch.s > 0
        accepts = torch.sigmoid(logit)
        gap = (masked_mean(accepts, advantaged) - masked_mean(accepts, ~advantaged)).abs()
        # A minibatch without one of the groups says nothing of their difference.
        gap = gap * (advantaged.any(-1) & ~advantaged.all(-1))
        share = advantaged.to(gap.dtype).mean(-1)
        penalty = PENALTIES[self.setting.protocol.fairlog_penalty]
        return classification_risk(logit, batch, self.setting) + penalty(gap, share, self.config.lambda_)


def _squared(gap: Tensor, share: Tensor, lambda_: float) -> Tensor:
    """½·(λ·DPU)²: as `fairtorch` where groups are of one size, and the same whatever their sizes."""
    return 0.5 * (lambda_ * gap).square()


def _absolute(gap: Tensor, share: Tensor, lambda_: float) -> Tensor:
    """λ·DPU (appendix D.5)."""
    return lambda_ * gap


def _fairtorch(gap: Tensor, share: Tensor, lambda_: float) -> Tensor:
    """2·(λ·p(S = +1)·DPU)², which is what the authors' code computes."""
    return 2.0 * (lambda_ * share * gap).square()


PENALTIES = {
    FairLogPenalty.squared: _squared,
    FairLogPenalty.absolute: _absolute,
    FairLogPenalty.fairtorch: _fairtorch,
}
"""What unfairness costs by `protocol.fairlog_penalty`, given DPU (E,), p(S = +1) in the minibatch (E,), λ."""
