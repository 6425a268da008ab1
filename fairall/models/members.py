"""Several classifiers per replicate, each trained on a bootstrap sample of the people remembered.

References:
    Oza, Russell: Online bagging and boosting, AISTATS 2001 (bootstrap of a stream by Poisson counts).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor
from typing_extensions import override

from fairall.config.checks import copies
from fairall.data.people import Decided
from fairall.models.classifier import Remembering, RememberingConfig
from fairall.models.learner import Setting
from fairall.models.memory import Memory
from fairall.models.objectives import masked_mean
from fairall.nn.adam import Adam
from fairall.nn.stacked import in_chunks
from fairall.runtime.randomness import SeedStreams

ROWS_AT_ONCE = 100  # people, whose hidden units of all members fit into the processor's cache
MOST_COPIES = 5  # of a person in a bootstrap sample; P(Poisson(1) > 5) = 6e-4


@dataclass
class MembersConfig(RememberingConfig):
    """Number of classifiers K."""

    members: int = copies(2)


@dataclass(frozen=True)
class Resampled(Decided):
    """Decided people, and how often each is in the bootstrap sample of each member, shape (E, B, K)."""

    copies: Tensor


class Members(Remembering):
    """K classifiers of p(ỹ = 1 | x, s) per seed.

    A person is in the sample of a member Poisson(1) times. Member k of seed e is replicate e·K + k of
    the net. A subclass decides by `pooled`.
    """

    two_groups = False
    config: MembersConfig
    config_type = MembersConfig

    def __init__(self, config: MembersConfig, setting: Setting) -> None:
        super().__init__(config, setting)
        members = SeedStreams([seed for seed in setting.seeds for _ in range(config.members)], "members")
        for k, generator in enumerate(members.generators):
            generator.manual_seed(generator.initial_seed() + k % config.members)
        self.memory = Memory("accepted", of=Resampled)
        self.classifier = self.net(config.clf_arch, members)
        self.optimiser = Adam(self.classifier.parameters(), config.learning_rate)

    @override
    def remember(self, decided: Decided) -> None:
        super().remember(self.resampled(decided))

    def resampled(self, decided: Decided) -> Resampled:
        """People with copies drawn from Poisson(1), at most `MOST_COPIES`."""
        uniform = self.streams.uniform(decided.s.shape[1], self.config.members)
        counts = torch.arange(MOST_COPIES, dtype=torch.float32)
        below = (torch.exp(-1.0 - torch.lgamma(counts + 1.0))).cumsum(0)  # P(Poisson(1) ≤ n)
        copies = torch.searchsorted(below, uniform, right=True).to(uniform.dtype)
        return Resampled(**vars(decided), copies=copies)

    def loss(self, batch: Decided) -> Tensor:
        """Cross-entropy of each member's sample of the accepted, summed over members, shape (E,)."""
        assert isinstance(batch, Resampled)
        label = batch.label.unsqueeze(1).expand(-1, self.config.members, -1)
        return self.sample_loss(batch, label, batch.accepted)

    def sample_loss(self, batch: Resampled, label: Tensor, known: Tensor) -> Tensor:
        """The same of labels (E, K, B), averaged over the people who are `known` (E, B)."""
        logit = self.member_logits(batch.x, batch.s)
        loss = F.binary_cross_entropy_with_logits(logit, label, reduction="none")
        loss = (loss * batch.copies.mT).mean(1)
        return self.config.members * masked_mean(batch.weighted(loss), known)

    def member_logits(self, x: Tensor, s: Tensor) -> Tensor:
        """Logits of all members, shape (E, K, B)."""
        columns = self.classifier.columns(x, s).repeat_interleave(self.config.members, dim=0)
        return self.classifier.forward_transposed(columns).squeeze(1).unflatten(0, (len(s), -1))

    def pooled(self, pool: Callable[[Tensor], Tensor], x: Tensor, s: Tensor) -> Tensor:
        """A function of the members' logits, from (E, K, B) to (E, B)."""
        return in_chunks(lambda x, s: pool(self.member_logits(x, s)), x, s, rows=ROWS_AT_ONCE)
