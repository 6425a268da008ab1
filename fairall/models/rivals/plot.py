"""PLOT and AdOpt: optimism by pseudo-labels, without and with an adversary on the representation.

References:
    Pacchiano, Singh, Chou, Berg, Foerster: Neural pseudo-label optimism for the bank loan problem,
    NeurIPS 2021.
    Gal, Singh, Pacchiano, Walker, Lyons, Foerster: Unbiased decisions reduce regret: adversarial domain
    adaptation for the bank loan problem, 2023 (arXiv 2308.08051).
    Ganin et al.: Domain-adversarial training of neural networks, JMLR 2016 (gradient reversal).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from omegaconf import MISSING
from torch import Tensor
from typing_extensions import override

from fairall.config.checks import at_least, hidden_sizes, not_negative, positive_share
from fairall.data.people import Decided
from fairall.models.classifier import Remembering, RememberingConfig, accepted_cross_entropy
from fairall.models.learner import Setting
from fairall.models.memory import Memory
from fairall.models.objectives import masked_mean
from fairall.nn.adam import Adam
from fairall.nn.stacked import StackedMLP
from fairall.randomness import SeedStreams


@dataclass
class PlotConfig(RememberingConfig):
    """Probability ε of a candidate, and training of the clone.

    `decay`: whether ε is divided by √t. `clone_updates`: minibatches that train the clone.
    """

    epsilon: float = positive_share()
    decay: bool = MISSING
    clone_updates: int = at_least(1)


class Plot(Remembering):
    """A classifier f of all accepted people so far, and an optimistic clone of it that explores.

    Accepts where f ≥ c. Of the others each is a candidate with probability ε. A clone of f is trained on the
    accepted people and on the candidates with label 1, and accepts the candidates of whom it still says
    f ≥ c: those whom the labels seen so far do not contradict. It is then dropped (algorithm 1 of the paper).

    Attributes:
        time_step: t, 1 plus the number of updates, shape ().
    """

    two_groups = False
    config: PlotConfig
    config_type = PlotConfig
    time_step: Tensor

    def __init__(self, config: PlotConfig, setting: Setting) -> None:
        super().__init__(config, setting)
        self.register_buffer("time_step", torch.ones(()))

    @property
    def epsilon(self) -> float:
        """Probability that a person whom f rejects is a candidate."""
        decay = self.time_step.item() ** 0.5 if self.config.decay else 1.0
        return self.config.epsilon / decay

    @override
    def update(self, decided: Decided) -> None:
        super().update(decided)
        self.time_step += 1

    @override
    def explore(self, x: Tensor, s: Tensor, propensity: Tensor, uniform: Tensor) -> Tensor:
        """1 where f ≥ c, ε elsewhere where the clone is ≥ c, 0 otherwise.

        Candidates are the rejected whose `uniform` is below ε, so that exactly those whom the clone accepts
        are accepted. What is recorded for an accepted candidate i is right given the numbers of all other
        applicants: let A_i in {0, 1} say whether the clone accepts i when i is a candidate beside the others
        who are. A_i does not depend on i's own number, and i is accepted where that is below ε and A_i = 1,
        so with probability ε·A_i. Of an accepted i, A_i = 1 and the clone is the one that was trained with
        i, so ε is recorded. Hence Σ d·ỹ/π has the expectation Σ ỹ over f ≥ c or A_i = 1. Of a rejected
        person who was no candidate the clone was trained without i, and 0 or ε is an approximation.
        """
        candidate = (propensity < 1.0) & (uniform < self.epsilon)
        certain = torch.ones_like(s)
        clone = self.clone()
        clone.memory = Memory("accepted")
        clone.memory.add(self.memory.rows())
        clone.memory.add(Decided(x, s, certain, candidate, certain))
        clone.train_classifier()
        return torch.where(propensity < 1.0, self.epsilon * clone.propensity(x, s, self.streams), propensity)

    def clone(self) -> Plot:
        """A learner with the same weights and streams, a fresh optimiser and no memory."""
        twin = type(self)(replace(self.config, updates=self.config.clone_updates), self.setting)
        twin.load_state_dict(self.state_dict())
        twin.streams = self.streams.copy()
        return twin


@dataclass
class AdOptConfig(PlotConfig):
    """Weight of the adversary's reversed gradient, and its hidden layers."""

    clf_arch: list[int] = hidden_sizes()  # at least one, which the adversary sees
    adversary_weight: float = not_negative()
    adversary_arch: list[int] = hidden_sizes()


@dataclass(frozen=True)
class Compared(Decided):
    """Accepted people beside people drawn from everybody seen, `seen_x` (E, B, D) and `seen_s` (E, B)."""

    seen_x: Tensor
    seen_s: Tensor


class AdOpt(Plot):
    """PLOT with a representation from which an adversary cannot tell accepted people from all seen people.

    The representation is the last hidden layer of f. The adversary is trained to tell minibatches of the
    accepted from minibatches of everybody seen, rejected people included; f gets its gradient reversed,
    times `adversary_weight`. Candidates count as accepted in the training of the clone.

    Attributes:
        seen: everybody decided on so far.
    """

    config: AdOptConfig
    config_type = AdOptConfig

    def __init__(self, config: AdOptConfig, setting: Setting) -> None:
        super().__init__(config, setting)
        self.seen = Memory("all")
        self.adversary_streams = SeedStreams(setting.seeds, "adversary")
        self.adversary = StackedMLP(
            config.clf_arch[-1], config.adversary_arch, 1, self.adversary_streams, gain=setting.gain
        )
        both = [*self.classifier.parameters(), *self.adversary.parameters()]
        self.optimiser = Adam(both, config.learning_rate)

    @override
    def remember(self, decided: Decided) -> None:
        self.seen.add(decided)
        super().remember(decided)

    def minibatches(self) -> list[Decided]:
        """Minibatches of the accepted, each beside one of everybody seen."""
        accepted = super().minibatches()
        seen = self.seen.minibatches(self.config.updates, self.config.batch_size, self.adversary_streams)
        return [
            Compared(**vars(own), seen_x=other.x, seen_s=other.s)
            for own, other in zip(accepted, seen, strict=True)
        ]

    def loss(self, batch: Decided) -> Tensor:
        """Cross-entropy of f and of the adversary, whose gradient reaches f reversed; shape (E,)."""
        assert isinstance(batch, Compared)
        columns = self.classifier.columns(
            torch.cat([batch.x, batch.seen_x], dim=1), torch.cat([batch.s, batch.seen_s], dim=1)
        )
        hidden = self.classifier.hidden(columns)
        logit = self.classifier.last.forward_transposed(hidden)
        reversed_hidden: Tensor = Reversed.apply(hidden, self.config.adversary_weight)
        guess = self.adversary.forward_transposed(reversed_hidden).squeeze(1)
        of_batch = batch.s.shape[1]
        return accepted_cross_entropy(logit.squeeze(1)[:, :of_batch], batch) + adversary_loss(
            guess[:, :of_batch], guess[:, of_batch:], batch.accepted
        )

    @override
    def clone(self) -> Plot:
        """A copy that shares `seen`, which it only reads."""
        twin = super().clone()
        assert isinstance(twin, AdOpt)
        twin.seen = self.seen
        twin.adversary_streams = self.adversary_streams.copy()
        return twin


def adversary_loss(of_accepted: Tensor, of_seen: Tensor, accepted: Tensor) -> Tensor:
    """Mean cross-entropy of an adversary that gives the logit of being drawn from the accepted.

    >>> logit = torch.zeros(1, 3)
    >>> adversary_loss(logit, logit, torch.ones(1, 3).bool())  # log 2
    tensor([0.6931])

    The logits are of minibatches of accepted people (E, B) and of all people (E, B'). All of the first are
    `accepted`, or none in a replicate that has accepted nobody, whose loss is 0.
    """
    known = accepted.any(-1)
    return 0.5 * (masked_mean(F.softplus(-of_accepted), accepted) + known * F.softplus(of_seen).mean(-1))


class Reversed(torch.autograd.Function):
    """Identity whose gradient is multiplied by −weight (Ganin et al. 2016, section 4.2)."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, weight: float) -> Tensor:
        """The values."""
        ctx.weight = weight
        return values.view_as(values)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        """The gradient times −weight."""
        return -ctx.weight * gradient, None
