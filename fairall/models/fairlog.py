"""FairLog and UnfairLog: the IPS-weighted classifier with and without a fairness penalty (appendix D.5).

References:
    Kilbertus, Gomez Rodriguez, Schölkopf, Muandet, Valera: Fair decisions despite imperfect predictions,
    AISTATS 2020.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from fairall.config.checks import not_negative
from fairall.config.schema import FairLogMinibatches, FairLogPenalty
from fairall.data.people import Decided, group_index
from fairall.models.classifier import IPSClassifier, IPSClassifierConfig
from fairall.models.learner import LEAST, Setting
from fairall.models.objectives import masked_mean


class UnfairLog(IPSClassifier):
    """IPS-weighted cross-entropy without a fairness term."""


@dataclass
class FairLogConfig(IPSClassifierConfig):
    """λ, the weight of the penalty."""

    lambda_: float = not_negative()


class FairLog(IPSClassifier):
    """IPS-weighted cross-entropy with a penalty on demographic-parity unfairness (DPU)."""

    config: FairLogConfig
    config_type = FairLogConfig

    def __init__(self, config: FairLogConfig, setting: Setting) -> None:
        super().__init__(config, setting)
        if setting.protocol.fairlog_penalty is FairLogPenalty.fairtorch:
            setting.schema.require_two_groups("protocol.fairlog_penalty=fairtorch", "choose squared, or ")

    def penalty(self, logit: Tensor, batch: Decided) -> Tensor:
        """Penalty(λ, DPU) (eq. 19), shape (E,), of the DPU or `gap_of_groups` of the minibatch."""
        protocol, n_groups = self.setting.protocol, self.setting.schema.n_groups
        advantaged = batch.s > 0
        accepts = torch.sigmoid(logit)
        if n_groups > 2:
            gap = gap_of_groups(accepts, group_index(batch.s, n_groups))
        else:
            gap = (masked_mean(accepts, advantaged) - masked_mean(accepts, ~advantaged)).abs()
            # The difference is unknown in a minibatch without one of the groups.
            gap = gap * (advantaged.any(-1) & ~advantaged.all(-1))
        if protocol.fairlog_minibatches is FairLogMinibatches.labelled:
            gap = gap * batch.accepted.any(-1)
        if protocol.fairlog_penalty is FairLogPenalty.fairtorch:
            # 2·(λ·p(S = +1)·DPU)², as computed by `fairtorch` in the authors' code.
            share = advantaged.to(gap.dtype).mean(-1)
            return 2.0 * (self.config.lambda_ * share * gap).square()
        # ½·(λ·DPU)²: that of `fairtorch` for groups of equal size, and independent of their sizes.
        return 0.5 * (self.config.lambda_ * gap).square()


def gap_of_groups(accepts: Tensor, group: Tensor) -> Tensor:
    """Root mean square difference of acceptance rates over pairs of people of different groups.

    Of two groups it is their difference. The largest gap, which is reported, would be that of the one or two
    people whom a small group has in a minibatch; here a pair of groups counts by the product of their sizes.
    Of π (E, B) and numbers of groups (E, B), long; shape (E,), in [0, 1], about 0 where all are of one group.
    """
    member = torch.nn.functional.one_hot(group).to(accepts.dtype)
    share, mean = member.mean(-2), accepts.mean(-1, keepdim=True)
    rate = (member * accepts.unsqueeze(-1)).sum(-2) / member.sum(-2).clamp(min=1.0)
    squared = 2.0 * (share * (rate - mean).square()).sum(-1)  # summed over pairs
    # The root has no derivative at 0.
    return (squared / (1.0 - share.square().sum(-1)).clamp(min=LEAST)).clamp(min=LEAST).sqrt()
