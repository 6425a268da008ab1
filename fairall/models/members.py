"""Several classifiers per replicate, each trained on a bootstrap sample of the people remembered.

References:
    Oza, Russell: Online bagging and boosting, AISTATS 2001 (bootstrap of a stream by Poisson counts).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F  # noqa: N812
from scipy.special import pdtr
from torch import Tensor

from fairall.config.checks import copies
from fairall.data.people import Decided
from fairall.models.classifier import ClassifierNet, Remembering, RememberingConfig
from fairall.models.learner import Setting
from fairall.models.objectives import cross_entropy, masked_mean
from fairall.nn.stacked import in_chunks
from fairall.runtime.randomness import SeedStreams

ROWS_AT_ONCE = 100  # people, whose hidden units of all members fit into the processor's cache
MOST_COPIES = 5  # of a person in a bootstrap sample; P(Poisson(1) > 5) = 6e-4
AT_MOST = torch.tensor(pdtr(range(MOST_COPIES), 1.0)).float()  # P(Poisson(1) ≤ n)


@dataclass
class MembersConfig(RememberingConfig):
    """Number of classifiers K."""

    members: int = copies(2)


class Members(Remembering):
    """K classifiers of p(ỹ = 1 | x, s) per seed.

    A person is in the sample of a member Poisson(1) times. Member k of seed e is replicate e·K + k of
    the net. The mean of the members' probabilities decides; a subclass may pool them otherwise.
    """

    two_groups = False
    config: MembersConfig
    config_type = MembersConfig

    def __init__(self, config: MembersConfig, setting: Setting) -> None:
        super().__init__(config, setting)
        members = SeedStreams([seed for seed in setting.seeds for _ in range(config.members)], "members")
        for k, generator in enumerate(members.generators):
            generator.manual_seed(generator.initial_seed() + k % config.members)
        self.classifier = ClassifierNet(setting, config.clf_arch, members)
        self.restart()

    def remember(self, decided: Decided) -> None:
        """Remember people with as many copies for each member as Poisson(1) says, at most `MOST_COPIES`.

        The numbers of copies, times the weight of the label, are the `weight` that is remembered, shape
        (E, B, K).
        """
        uniform = self.streams.uniform(decided.s.shape[1], self.config.members)
        copies = torch.searchsorted(AT_MOST, uniform, right=True).to(uniform.dtype)
        weight = copies if decided.weight is None else copies * decided.weight.unsqueeze(-1)
        super().remember(replace(decided, weight=weight))

    def loss(self, batch: Decided) -> Tensor:
        """Cross-entropy of each member's sample of the accepted, summed over members, shape (E,).

        Labels are those of all members, shape (E, B), or of each, shape (E, B, K).
        """
        logit = self.member_logits(batch.x, batch.s)
        label = batch.label.reshape(*batch.s.shape, -1).expand_as(logit)
        loss = batch.weighted(cross_entropy(logit, label)).mean(-1)
        return self.config.members * masked_mean(loss, batch.accepted)

    def member_logits(self, x: Tensor, s: Tensor) -> Tensor:
        """Logits of all members, shape (E, B, K)."""
        columns = self.classifier.columns(x, s).repeat_interleave(self.config.members, dim=0)
        return self.classifier.forward_transposed(columns).squeeze(1).unflatten(0, (len(s), -1)).mT

    @torch.no_grad()
    def score(self, x: Tensor, s: Tensor, streams: SeedStreams) -> Tensor:
        """`pooled_probability`, shape (E, B); draws nothing."""
        return self._of_members(self.pooled_probability, x, s)

    @torch.no_grad()
    def log_odds(self, x: Tensor, s: Tensor, streams: SeedStreams) -> Tensor:
        """`pooled_log_odds`, which do not saturate as the score does, shape (E, B), float64."""
        return self._of_members(self.pooled_log_odds, x, s).double()

    def _of_members(self, pooled: Callable[[Tensor], Tensor], x: Tensor, s: Tensor) -> Tensor:
        return in_chunks(lambda x, s: pooled(self.member_logits(x, s)), x, s, rows=ROWS_AT_ONCE)

    def pooled_probability(self, logit: Tensor) -> Tensor:
        """The mean of the members' p(ỹ = 1 | x, s), whose logits have the shape (E, B, K); shape (E, B)."""
        return logit.sigmoid().mean(-1)

    def pooled_log_odds(self, logit: Tensor) -> Tensor:
        """Log odds of `pooled_probability`, of the same shapes."""
        return F.logsigmoid(logit).logsumexp(-1) - F.logsigmoid(-logit).logsumexp(-1)
