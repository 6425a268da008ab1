"""FairLog and UnfairLog: the IPS-weighted classifier with and without a fairness penalty (appendix D.5).

References:
    Kilbertus, Gomez Rodriguez, Schölkopf, Muandet, Valera: Fair decisions despite imperfect predictions,
    AISTATS 2020.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from typing_extensions import override

from fairall.config.checks import below_one, not_negative, one_of
from fairall.config.schema import FairLogMinibatches, FairLogPenalty
from fairall.data.people import Decided, group_index
from fairall.models.classifier import Classifier, ClassifierConfig
from fairall.models.learner import DECISIONS, LEAST, DecisionRule, Setting
from fairall.models.memory import MEMORIES, Memory
from fairall.models.objectives import classification_risk, masked_mean, train_on
from fairall.runtime.randomness import SeedStreams


@dataclass
class UnfairLogConfig(ClassifierConfig):
    """How the classifier decides, whom it is trained on, and its dropout."""

    decision: str = one_of(DECISIONS)
    memory: str = one_of(MEMORIES)
    clf_dropout: float = below_one()


class UnfairLog(Classifier):
    """Acceptance probability as a net of (x, s), trained on a time step's applicants or on all so far.

    The loss weighs labelled people by 1/π and contains c, so that the score is ½ where p(ỹ = 1 | x, s) = c
    (Kilbertus et al. 2020, with a deep net). A subclass may override `penalty`.

    Attributes:
        past: everybody so far, with `memory=all`; None with `memory=step`.
        replays: draw from these.
    """

    weighs_labels = True
    two_groups = False
    takes_amounts = True
    config: UnfairLogConfig
    config_type = UnfairLogConfig

    def __init__(self, config: UnfairLogConfig, setting: Setting) -> None:
        super().__init__(config, setting, dropout=config.clf_dropout)
        self.rule = DecisionRule(drawn=config.decision == "sample")
        self.past = Memory("all") if config.memory == "all" else None
        self.replays = SeedStreams(setting.seeds, "replay")

    def warm_up_epoch(self, decided: Decided, epoch: int) -> dict[str, float]:
        """Train for one epoch."""
        if epoch == 0 and self.past is not None:
            self.past.add(decided)
        loss = self.train_epoch(decided)
        if epoch == self.setting.schedule.warm_up_epochs - 1:
            # As in `LatentLearner`: Phase II must not start with second moments close to zero.
            self.restart()
        return {"loss": loss}

    def update(self, decided: Decided) -> None:
        """Train for one epoch, with `memory=all` of people drawn from everybody so far (`LatentLearner`)."""
        if self.past is not None:
            decided = self.past.replay(decided, self.setting.schedule.batches_per_epoch, self.replays)
        self.train_epoch(decided)

    def train_epoch(self, decided: Decided) -> float:
        """Train on everybody once; return the loss of the last minibatch, averaged over replicates."""
        batches = decided.minibatches(self.setting.schedule.batches_per_epoch, self.streams)
        return train_on(batches, self.loss, self.optimiser)

    @override
    def loss(self, batch: Decided) -> Tensor:
        """R (eq. 5) and the penalty, shape (E,)."""
        logit = self.classifier.logit(batch.x, batch.s, self.streams)
        return classification_risk(logit, batch, self.setting) + self.penalty(logit, batch)

    def penalty(self, logit: Tensor, batch: Decided) -> Tensor | float:
        """What is added to the risk, shape (E,), for acceptance probabilities of log odds (E, B): nothing."""
        return 0.0


@dataclass
class FairLogConfig(UnfairLogConfig):
    """λ, the weight of the penalty."""

    lambda_: float = not_negative()


class FairLog(UnfairLog):
    """IPS-weighted cross-entropy with a penalty on demographic-parity unfairness (DPU)."""

    config: FairLogConfig
    config_type = FairLogConfig

    def __init__(self, config: FairLogConfig, setting: Setting) -> None:
        super().__init__(config, setting)
        if setting.protocol.fairlog_penalty is FairLogPenalty.fairtorch:
            setting.schema.require_two_groups("protocol.fairlog_penalty=fairtorch", "choose squared, or ")

    @override
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
