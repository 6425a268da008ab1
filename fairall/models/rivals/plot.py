"""PLOT and AdOpt: optimism by pseudo-labels for candidates, drawn or proposed by an adapted classifier.

References:
    Pacchiano, Singh, Chou, Berg, Foerster: Neural pseudo-label optimism for the bank loan problem,
    NeurIPS 2021.
    Gal, Singh, Pacchiano, Walker, Lyons, Foerster: Unbiased decisions reduce regret: adversarial domain
    adaptation for the bank loan problem, 2023 (arXiv 2308.08051).
    Ganin et al.: Domain-adversarial training of neural networks, JMLR 2016.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Self

import torch
import torch.nn.functional as F  # noqa: N812
from omegaconf import MISSING
from torch import Tensor, nn
from typing_extensions import override

from fairall.config.checks import at_least, hidden_sizes, positive, positive_share
from fairall.data.features import FeatureInputs
from fairall.data.people import Decided
from fairall.models.classifier import Remembering, RememberingConfig, accepted_cross_entropy
from fairall.models.learner import Setting
from fairall.models.memory import Memory
from fairall.models.objectives import masked_mean
from fairall.nn.adam import Adam
from fairall.nn.stacked import StackedMLP
from fairall.runtime.randomness import SeedStreams

BETAS = 0.0, 0.99  # of Adam in the adaptation, as in AdOpt's public code


@dataclass
class PseudoLabelConfig(RememberingConfig):
    """Minibatches that train the clone."""

    clone_updates: int = at_least(1)


class PseudoLabelled(Remembering):
    """A classifier f of all accepted people so far, and an optimistic clone of it that explores.

    Accepts where f ≥ c. A clone of f is trained on the accepted people and on candidates, of those whom f
    rejects, with label 1; it accepts the candidates of whom it still says f ≥ c: those whom the labels seen
    so far do not contradict. It is then dropped. A subclass overrides `explore`, and says who is a candidate.
    """

    two_groups = False
    fresh_adam = True  # as in PLOT's public code
    config: PseudoLabelConfig
    config_type = PseudoLabelConfig

    def optimist(self, x: Tensor, s: Tensor, candidate: Tensor) -> Self:
        """A clone trained on the accepted and on the candidates with label 1; the learner is unchanged.

        Args:
            x: features of applicants, shape (E, N, D).
            s: their sensitive attribute, shape (E, N).
            candidate: which of them are candidates, shape (E, N), bool.
        """
        clone = type(self)(replace(self.config, updates=self.config.clone_updates), self.setting)
        clone.load_state_dict(self.state_dict())
        clone.streams = self.streams.copy()
        certain = torch.ones_like(s)
        for known in (self.memory.rows(), Decided(x, s, certain, candidate, certain)):
            clone.memory.add(known)
        clone.train_classifier()
        return clone


@dataclass
class PlotConfig(PseudoLabelConfig):
    """Probability ε of a candidate; `decay`: whether it is divided by √t."""

    epsilon: float = positive_share()
    decay: bool = MISSING


class Plot(PseudoLabelled):
    """Each person whom f rejects is a candidate with probability ε (algorithm 1 of Pacchiano et al.).

    Attributes:
        time_step: t, 1 plus the number of updates, shape ().
    """

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
        """1 where f ≥ c, ε elsewhere where the clone is ≥ c, 0 otherwise, shape (E, N).

        Candidates are the rejected whose `uniform` is below ε, so that exactly those whom the clone accepts
        are accepted. What is recorded for an accepted candidate i is right given the numbers of all other
        applicants: let A_i in {0, 1} say whether the clone accepts i when i is a candidate beside the others
        who are. A_i does not depend on i's own number, and i is accepted where that is below ε and A_i = 1,
        so with probability ε·A_i. Of an accepted i, A_i = 1 and the clone is the one that was trained with
        i, so ε is recorded. Hence Σ d·ỹ/π has the expectation Σ ỹ over f ≥ c or A_i = 1. Of a rejected
        person who was no candidate the clone was trained without i, and 0 or ε is an approximation.
        """
        candidate = (propensity < 1.0) & (uniform < self.epsilon)
        clone = self.optimist(x, s, candidate)
        return torch.where(propensity < 1.0, self.epsilon * clone.propensity(x, s, self.streams), propensity)


@dataclass
class AdOptConfig(PseudoLabelConfig):
    """Nets and training of the classifier that proposes candidates.

    `generator_arch`, `head_arch`, `discriminator_arch`: see `AdaptedNet`. `adaptation_updates`: minibatches,
    each of `adaptation_batch` accepted people and as many applicants. `adaptation_rate`: learning rate of
    generator and classifier.
    """

    generator_arch: list[int] = hidden_sizes()
    head_arch: list[int] = hidden_sizes(least=0)
    discriminator_arch: list[int] = hidden_sizes(least=0)
    adaptation_updates: int = at_least(1)
    adaptation_batch: int = at_least(1)
    adaptation_rate: float = positive()
    discriminator_rate: float = positive()


class AdaptedNet(nn.Module):
    """E generators of a representation of (x, s), each with a classifier of ỹ and a discriminator.

    The discriminator tells people with labels, the source, from people without, the target. Its gradient
    reaches the generator reversed (Ganin et al. 2016, section 4.2, λ = 1), so that the classifier sees what
    both have in common.

    Args:
        config: sizes of the generator's layers, all with ReLU, the last of which is the representation;
            hidden layers of classifier and discriminator; learning rates.
    """

    def __init__(self, config: AdOptConfig, setting: Setting, streams: SeedStreams) -> None:
        super().__init__()
        self.inputs = FeatureInputs(setting.schema)
        *hidden, size = config.generator_arch
        make = partial(StackedMLP, streams=streams, gain=setting.gain)
        self.generator = make(self.inputs.size_with_s, hidden, size)
        self.classifier = make(size, config.head_arch, 1)
        self.discriminator = make(size, config.discriminator_arch, 1)
        slow = [*self.generator.parameters(), *self.classifier.parameters()]
        self.slow = Adam(slow, config.adaptation_rate, BETAS)
        self.fast = Adam(self.discriminator.parameters(), config.discriminator_rate, BETAS)

    def representation(self, x: Tensor, s: Tensor) -> Tensor:
        """The generator's output, shape (E, size, B), for x (E, B, D) and s (E, B)."""
        return self.generator.forward_transposed(self.inputs.columns_with_s(x, s)).relu()

    def logit(self, x: Tensor, s: Tensor) -> Tensor:
        """Logit of the classifier's p(ỹ = 1), shape (E, B), for x (E, B, D) and s (E, B)."""
        return self.classifier.forward_transposed(self.representation(x, s)).squeeze(1)

    def descend(self, source: Decided, target: Decided) -> None:
        """Make a step of gradient descent; arguments as for `loss`."""
        self.fast.zero_grad()
        self.slow.minimise(self.loss(source, target))
        self.fast.step()

    def loss(self, source: Decided, target: Decided) -> Tensor:
        """Cross-entropy of the labels of the source and of telling source from target, shape (E,).

        Args:
            source: accepted people, fields (E, B, ...); all rejected in a replicate that has accepted nobody.
            target: any people, fields (E, B', ...); their decisions and labels are not used.
        """
        shared = self.representation(
            torch.cat([source.x, target.x], dim=1), torch.cat([source.s, target.s], dim=1)
        )
        n = source.s.shape[1]
        logit = self.classifier.forward_transposed(shared[..., :n]).squeeze(1)
        turned = 2.0 * shared.detach() - shared  # equal numbers, of which the gradient is reversed
        guess = self.discriminator.forward_transposed(turned).squeeze(1)
        return accepted_cross_entropy(logit, source) + discriminator_loss(
            guess[:, :n], guess[:, n:], source.accepted
        )


def discriminator_loss(of_source: Tensor, of_target: Tensor, accepted: Tensor) -> Tensor:
    """Cross-entropy of the logits of being of the target, source and target with the same weight.

    >>> logit = torch.zeros(1, 3)
    >>> discriminator_loss(logit, logit[:, :2], torch.ones(1, 3).bool())  # 2·log 2
    tensor([1.3863])

    The logits have shapes (E, B) and (E, B'). All of the source are `accepted`, or none in a replicate that
    has accepted nobody, whose loss is 0.
    """
    known = accepted.any(-1)
    return masked_mean(F.softplus(of_source), accepted) + known * F.softplus(-of_target).mean(-1)


class AdOpt(PseudoLabelled):
    """Candidates are the people whom f rejects and an adapted classifier accepts (Gal et al. 2023).

    That classifier is trained anew for every batch of applicants, on the accepted people so far and on
    the applicants without their labels (`AdaptedNet`).
    """

    config: AdOptConfig
    config_type = AdOptConfig

    @override
    def explore(self, x: Tensor, s: Tensor, propensity: Tensor, uniform: Tensor) -> Tensor:
        """1 where f ≥ c, or where both the adapted classifier and the clone are; 0 otherwise.

        Given the past and all applicants nobody is drawn, so that `uniform` is not used.
        """
        candidate = (propensity < 1.0) & (self.adapted(x, s) >= self.setting.cost)
        accepted = self.optimist(x, s, candidate).propensity(x, s, self.streams)
        return torch.maximum(propensity, candidate * accepted)

    def adapted(self, x: Tensor, s: Tensor) -> Tensor:
        """p(ỹ = 1) of applicants by a classifier adapted to them, shape (E, N); the learner is unchanged."""
        streams = self.streams.copy()  # which training f advances, so that every time step has other weights
        net = AdaptedNet(self.config, self.setting, streams)
        everybody = torch.ones_like(s)
        applicants = Memory("all")
        applicants.add(Decided(x, s, everybody, everybody > 0, everybody))
        size = self.config.adaptation_updates, self.config.adaptation_batch
        for batches in zip(
            *(of.minibatches(*size, streams) for of in (self.memory, applicants)), strict=True
        ):
            net.descend(*batches)
        with torch.no_grad():
            return net.logit(x, s).sigmoid()
