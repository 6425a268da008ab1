"""Multiple imputation: classifiers trained on labels that each draws for the rejected from itself.

References:
    Rubin: Multiple imputation for nonresponse in surveys, Wiley 1987 (pooling, section 3.1; proper
    imputation, chapter 4).
    Tanner, Wong: The calculation of posterior distributions by data augmentation, Journal of the American
    Statistical Association 82, 1987.
    Fogarty: Multiple imputation as a missing data approach to reject inference on consumer credit scoring,
    InterStat, 2006.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor
from typing_extensions import override

from fairall.data.people import Decided
from fairall.models.learner import Setting
from fairall.models.members import Members, MembersConfig, Resampled
from fairall.models.memory import Memory
from fairall.randomness import SeedStreams


@dataclass(frozen=True)
class Imputed(Resampled):
    """Decided people with a label for each member, observed or drawn, shape (E, B, K)."""

    labels: Tensor


class MultipleImputation(Members):
    """K classifiers of everybody so far; decides by the mean of their p(ỹ = 1 | x, s).

    Each member is trained on its own bootstrap sample, with observed labels of the accepted, and labels of
    the rejected drawn from the member's p(ỹ = 1 | x, s) before every update (data augmentation, Tanner and
    Wong 1987).
    """

    config_type = MembersConfig

    def __init__(self, config: MembersConfig, setting: Setting) -> None:
        super().__init__(config, setting)
        self.memory = Memory("all", of=Resampled)

    @override
    def minibatches(self) -> list[Decided]:
        return [self.imputed(batch) for batch in super().minibatches()]

    @torch.no_grad()
    def imputed(self, batch: Decided) -> Imputed:
        """People with labels, those of rejected ones drawn for each member."""
        assert isinstance(batch, Resampled)
        uniform = self.streams.uniform(batch.s.shape[1], self.config.members)
        drawn = uniform < self.member_logits(batch.x, batch.s).sigmoid().mT
        labels = torch.where(batch.accepted.unsqueeze(-1), batch.label.unsqueeze(-1), drawn.float())
        return Imputed(**vars(batch), labels=labels)

    @override
    def loss(self, batch: Decided) -> Tensor:
        """Cross-entropy of each member's sample with its labels, summed over members, shape (E,)."""
        assert isinstance(batch, Imputed)
        return self.sample_loss(batch, batch.labels.mT, torch.ones_like(batch.accepted))

    @torch.no_grad()
    def score(self, x: Tensor, s: Tensor, streams: SeedStreams) -> Tensor:
        """The mean of the members' p(ỹ = 1 | x, s), shape (E, B)."""
        return self.pooled(lambda logit: logit.sigmoid().mean(1), x, s)

    @override
    @torch.no_grad()
    def log_odds(self, x: Tensor, s: Tensor, streams: SeedStreams) -> Tensor:
        """The log odds of that mean, which do not saturate as it does, shape (E, B)."""
        return self.pooled(log_odds_of_mean, x, s).double()


def log_odds_of_mean(logit: Tensor) -> Tensor:
    """Log odds of the mean of K probabilities, whose log odds are of shape (E, K, B); shape (E, B).

    >>> log_odds_of_mean(torch.tensor([[[0.0, 50.0], [0.0, 50.0]]]))
    tensor([[ 0., 50.]])
    """
    return F.logsigmoid(logit).logsumexp(1) - F.logsigmoid(-logit).logsumexp(1)
