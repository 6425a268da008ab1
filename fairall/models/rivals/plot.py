"""PLOT and AdOpt: optimism by pseudo-labels for candidates, drawn or proposed by an adapted classifier.

References:
    Pacchiano, Singh, Chou, Berg, Foerster: Neural pseudo-label optimism for the bank loan problem,
    NeurIPS 2021.
    Gal, Singh, Pacchiano, Walker, Lyons, Foerster: Unbiased decisions reduce regret: adversarial domain
    adaptation for the bank loan problem, 2023 (arXiv 2308.08051).
    Ganin et al.: Domain-adversarial training of neural networks, JMLR 2016.
"""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import torch
import torch.nn.functional as F  # noqa: N812
from omegaconf import MISSING
from torch import Tensor
from typing_extensions import override

from fairall.config.checks import at_least, hidden_sizes, positive, positive_share
from fairall.data.people import Decided
from fairall.models.classifier import Remembering, RememberingConfig, accepted_cross_entropy
from fairall.models.learner import Setting
from fairall.models.memory import Memory
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
    so far do not contradict. It is then dropped. A subclass says with which chance a person is a candidate.
    """

    two_groups = False
    fresh_adam = True  # as in PLOT's public code
    config: PseudoLabelConfig
    config_type = PseudoLabelConfig

    @abstractmethod
    def chance(self, x: Tensor, s: Tensor) -> Tensor:
        """Probability of each applicant to be a candidate if f rejects them, shape (E, N)."""

    @override
    def explore(self, x: Tensor, s: Tensor, propensity: Tensor, uniform: Tensor) -> Tensor:
        """1 where f ≥ c, the chance elsewhere where the clone is ≥ c, 0 otherwise, shape (E, N).

        Candidates are the rejected whose `uniform` is below their chance ε, so that exactly those whom the
        clone accepts are accepted. What is recorded for an accepted candidate i is right given the numbers of
        all other applicants: let A_i in {0, 1} say whether the clone accepts i when i is a candidate beside
        the others who are. A_i does not depend on i's own number, and i is accepted where that is below ε and
        A_i = 1, so with probability ε·A_i. Of an accepted i, A_i = 1 and the clone is the one that was
        trained with i, so ε is recorded. Hence Σ d·ỹ/π has the expectation Σ ỹ over f ≥ c or A_i = 1. Of a
        rejected person who was no candidate the clone was trained without i, and 0 or ε is an approximation.
        """
        rejected = propensity < 1.0
        chance = self.chance(x, s)
        clone = self.optimist(x, s, rejected & (uniform < chance))
        return torch.where(rejected, chance * clone.propensity(x, s, self.streams), propensity)

    def optimist(self, x: Tensor, s: Tensor, candidate: Tensor) -> Self:
        """A clone trained on the accepted and on the candidates with label 1; the learner is unchanged.

        Args:
            x: features of applicants, shape (E, N, D).
            s: their sensitive attribute, shape (E, N).
            candidate: which of them are candidates, shape (E, N), bool.
        """
        clone = copy.deepcopy(self)
        certain = torch.ones_like(s)
        clone.config = replace(self.config, updates=self.config.clone_updates)
        clone.memory.add(Decided(x, s, certain, candidate, certain))
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

    @override
    def update(self, decided: Decided) -> None:
        super().update(decided)
        self.time_step += 1

    def chance(self, x: Tensor, s: Tensor) -> Tensor:
        """ε, or ε/√t."""
        decay = self.time_step.item() ** 0.5 if self.config.decay else 1.0
        return torch.full_like(s, self.config.epsilon / decay)


@dataclass
class AdOptConfig(PseudoLabelConfig):
    """Nets and training of the classifier that proposes candidates.

    `generator_arch`, `head_arch`, `discriminator_arch`: of `AdOpt.nets`. `adaptation_updates`: minibatches,
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


class AdOpt(PseudoLabelled):
    """Candidates are the people whom f rejects and an adapted classifier accepts (Gal et al. 2023).

    That classifier is trained anew for every batch of applicants, on the accepted people so far, the source,
    and on the applicants without their labels, the target. It sees a representation by which the two cannot
    be told apart. Given the past and all applicants nobody is drawn.
    """

    config: AdOptConfig
    config_type = AdOptConfig

    def chance(self, x: Tensor, s: Tensor) -> Tensor:
        """1 where the adapted classifier accepts, 0 elsewhere."""
        return self.rule.propensity(self.adapted(x, s), x)

    def adapted(self, x: Tensor, s: Tensor) -> Tensor:
        """p(ỹ = 1) of applicants by a classifier adapted to them, shape (E, N); the learner is unchanged."""
        config = self.config
        everybody = torch.ones_like(s)
        applicants = Memory("all")
        applicants.add(Decided(x, s, everybody, everybody > 0, everybody))
        streams = self.streams.copy()  # which training f advances, so that every time step has other weights
        generator, classifier, discriminator = nets = self.nets(streams)
        slow = Adam([*generator.parameters(), *classifier.parameters()], config.adaptation_rate, BETAS)
        fast = Adam(discriminator.parameters(), config.discriminator_rate, BETAS)
        of_both = (
            of.minibatches(config.adaptation_updates, config.adaptation_batch, streams)
            for of in (self.memory, applicants)
        )
        for batches in zip(*of_both, strict=True):
            fast.zero_grad()
            slow.minimise(self.adaptation_loss(nets, *batches))
            fast.step()
        with torch.no_grad():
            shared = generator.forward_transposed(self.classifier.columns(x, s)).relu()
            return classifier.forward_transposed(shared).squeeze(1).sigmoid()

    def nets(self, streams: SeedStreams) -> list[StackedMLP]:
        """E generators of a representation of (x, s), classifiers of ỹ and discriminators.

        All layers of the generator have ReLU; the last is the representation, from which the others predict.
        """
        *hidden, size = self.config.generator_arch
        layers = (
            (self.classifier.inputs.size_with_s, hidden, size),
            (size, self.config.head_arch, 1),
            (size, self.config.discriminator_arch, 1),
        )
        return [StackedMLP(*of, streams) for of in layers]

    def adaptation_loss(self, nets: Sequence[StackedMLP], source: Decided, target: Decided) -> Tensor:
        """Cross-entropy of the labels of the source and of telling source from target, shape (E,).

        The gradient of the second reaches the generator reversed (Ganin et al. 2016, section 4.2, λ = 1), so
        that the classifier sees what both have in common. Source and target have the same weight.

        Args:
            nets: as of `nets`.
            source: accepted people, fields (E, B, ...); all rejected in a replicate that has accepted nobody,
                whose loss is 0.
            target: any people, fields (E, B', ...); their decisions and labels are not used.
        """
        generator, classifier, discriminator = nets
        columns = [self.classifier.columns(people.x, people.s) for people in (source, target)]
        shared = generator.forward_transposed(torch.cat(columns, dim=-1)).relu()
        n = source.s.shape[1]
        logit = classifier.forward_transposed(shared[..., :n]).squeeze(1)
        turned = 2.0 * shared.detach() - shared  # equal numbers, of which the gradient is reversed
        guess = discriminator.forward_transposed(turned).squeeze(1)  # logit of being of the target
        apart = F.softplus(guess[:, :n]).mean(-1) + F.softplus(-guess[:, n:]).mean(-1)
        return accepted_cross_entropy(logit, source) + source.accepted.any(-1) * apart
