"""Bootstrap classifiers whose disagreement makes the policy optimistic.

References:
    Wei: Decision-making under selective labels: optimal finite-domain policies and beyond, ICML 2021.
    Oza, Russell: Online bagging and boosting, AISTATS 2001 (bootstrap of a stream by Poisson counts).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from typing_extensions import override

from fairall.config.checks import copies, open_unit
from fairall.data.people import Decided
from fairall.models.classifier import Remembering, RememberingConfig
from fairall.models.learner import Setting
from fairall.models.memory import Memory
from fairall.models.objectives import masked_mean
from fairall.nn.adam import Adam
from fairall.nn.chunks import in_chunks
from fairall.randomness import SeedStreams

ROWS_AT_ONCE = 100  # people, whose hidden units of all members fit into the processor's cache
MOST_COPIES = 5  # of a person in a bootstrap sample; P(Poisson(1) > 5) = 6e-4


@dataclass
class EnsembleConfig(RememberingConfig):
    """Number of classifiers K, and the quantile of their probabilities that decides."""

    members: int = copies(2)
    quantile: float = open_unit()


@dataclass(frozen=True)
class Resampled(Decided):
    """Decided people, and how often each is in the bootstrap sample of each member, shape (E, B, K)."""

    copies: Tensor


class Ensemble(Remembering):
    """K classifiers of bootstrap samples of the accepted; decides by a quantile of their p(ỹ = 1 | x, s).

    A person is in the sample of a member Poisson(1) times. Member k of seed e is replicate e·K + k of
    the net.
    """

    two_groups = False
    config: EnsembleConfig
    config_type = EnsembleConfig

    def __init__(self, config: EnsembleConfig, setting: Setting) -> None:
        super().__init__(config, setting)
        members = SeedStreams([seed for seed in setting.seeds for _ in range(config.members)], "members")
        for k, generator in enumerate(members.generators):
            generator.manual_seed(generator.initial_seed() + k % config.members)
        self.memory = Memory("accepted", of=Resampled)
        self.classifier = self.net(config.clf_arch, members)
        self.optimiser = Adam(self.classifier.parameters(), config.learning_rate)

    @override
    def remember(self, decided: Decided) -> None:
        super().remember(self._resampled(decided))

    def _resampled(self, decided: Decided) -> Resampled:
        """People with copies drawn from Poisson(1), at most `MOST_COPIES`."""
        uniform = self.streams.uniform(decided.s.shape[1], self.config.members)
        counts = torch.arange(MOST_COPIES, dtype=torch.float32)
        below = (torch.exp(-1.0 - torch.lgamma(counts + 1.0))).cumsum(0)  # P(Poisson(1) ≤ n)
        copies = torch.searchsorted(below, uniform, right=True).to(uniform.dtype)
        return Resampled(**vars(decided), copies=copies)

    def loss(self, batch: Decided) -> Tensor:
        """Cross-entropy of each member's sample, summed over members, shape (E,)."""
        assert isinstance(batch, Resampled)
        logit = self.member_logits(batch.x, batch.s)
        label = batch.label.unsqueeze(1).expand_as(logit)
        loss = torch.nn.functional.binary_cross_entropy_with_logits(logit, label, reduction="none")
        loss = (loss * batch.copies.mT).mean(1)
        return self.config.members * masked_mean(loss, batch.accepted)

    def member_logits(self, x: Tensor, s: Tensor) -> Tensor:
        """Logits of all members, shape (E, K, B)."""
        columns = self.classifier.columns(x, s).repeat_interleave(self.config.members, dim=0)
        return self.classifier.forward_transposed(columns).squeeze(1).unflatten(0, (len(s), -1))

    @torch.no_grad()
    def score(self, x: Tensor, s: Tensor, streams: SeedStreams) -> Tensor:
        """The quantile of the members' p(ỹ = 1 | x, s), shape (E, B)."""
        return in_chunks(
            lambda x, s: self._quantile(self.member_logits(x, s).sigmoid()), x, s, rows=ROWS_AT_ONCE
        )

    @override
    @torch.no_grad()
    def log_odds(self, x: Tensor, s: Tensor, streams: SeedStreams) -> Tensor:
        """The quantile of the members' logits, shape (E, B)."""
        logit = in_chunks(lambda x, s: self._quantile(self.member_logits(x, s)), x, s, rows=ROWS_AT_ONCE)
        return logit.double()

    def _quantile(self, of_members: Tensor) -> Tensor:
        return torch.quantile(of_members, self.config.quantile, dim=1)
