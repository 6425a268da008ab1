"""FairLog and UnfairLog: the IPS-weighted classifier with and without a fairness penalty (appendix D.5).

References:
    Kilbertus, Gomez Rodriguez, Schölkopf, Muandet, Valera: Fair decisions despite imperfect predictions,
    AISTATS 2020.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from fairall.config.checks import not_negative
from fairall.config.schema import FairLogMinibatches, FairLogPenalty
from fairall.data.people import Decided
from fairall.models.classifier import IPSClassifier, IPSClassifierConfig
from fairall.models.objectives import classification_risk, masked_mean


class UnfairLog(IPSClassifier):
    """IPS-weighted cross-entropy without a fairness term."""

    two_groups = False
    takes_amounts = True

    def loss(self, batch: Decided) -> Tensor:
        """R (eq. 5), shape (E,)."""
        return classification_risk(self.classifier.logit(batch.x, batch.s, self.streams), batch, self.setting)


@dataclass
class FairLogConfig(IPSClassifierConfig):
    """Configuration of `IPSClassifier`, and λ, the weight of the penalty."""

    lambda_: float = not_negative()


class FairLog(IPSClassifier):
    """IPS-weighted cross-entropy with a penalty on demographic-parity unfairness (DPU)."""

    takes_amounts = True
    config: FairLogConfig
    config_type = FairLogConfig

    def loss(self, batch: Decided) -> Tensor:
        """R + penalty(λ, DPU) (eq. 19), shape (E,), with the DPU of all applicants of the minibatch."""
        protocol = self.setting.protocol
        logit = self.classifier.logit(batch.x, batch.s, self.streams)
        advantaged = batch.s > 0
        accepts = torch.sigmoid(logit)
        gap = (masked_mean(accepts, advantaged) - masked_mean(accepts, ~advantaged)).abs()
        # The difference is unknown in a minibatch without one of the groups.
        gap = gap * (advantaged.any(-1) & ~advantaged.all(-1))
        if protocol.fairlog_minibatches is FairLogMinibatches.labelled:
            gap = gap * batch.accepted.any(-1)
        share = advantaged.to(gap.dtype).mean(-1)
        penalty = PENALTIES[protocol.fairlog_penalty]
        return classification_risk(logit, batch, self.setting) + penalty(gap, share, self.config.lambda_)


# Functions of DPU (E,), p(S = +1) in the minibatch (E,), and λ, by `protocol.fairlog_penalty`.
PENALTIES: dict[FairLogPenalty, Callable[[Tensor, Tensor, float], Tensor]] = {
    # ½·(λ·DPU)²: that of `fairtorch` for groups of equal size, and independent of their sizes.
    FairLogPenalty.squared: lambda gap, share, lambda_: 0.5 * (lambda_ * gap).square(),
    # λ·DPU (eq. 19).
    FairLogPenalty.absolute: lambda gap, share, lambda_: lambda_ * gap,
    # 2·(λ·p(S = +1)·DPU)², as computed by `fairtorch` in the authors' code.
    FairLogPenalty.fairtorch: lambda gap, share, lambda_: 2.0 * (lambda_ * share * gap).square(),
}
