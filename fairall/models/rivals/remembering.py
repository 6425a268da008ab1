"""Learners with a classifier of (x, s) trained on people remembered since the warm-up."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import torch
import torch.nn.functional as F  # noqa: N812
from omegaconf import MISSING
from torch import Tensor

from fairall.config.checks import at_least, hidden_sizes, positive
from fairall.config.schema import ModelConfig, NetInputs
from fairall.data.encoding import FeatureInputs
from fairall.data.people import Decided
from fairall.models.learner import Learner, Setting, as_decided
from fairall.models.memory import Memory
from fairall.models.objectives import masked_mean
from fairall.nn.adam import Adam
from fairall.nn.stacked import StackedMLP
from fairall.randomness import SeedStreams


@dataclass
class RememberingConfig(ModelConfig):
    """Architecture of the classifier and its training in a time step."""

    learning_rate: float = MISSING
    clf_arch: list[int] = MISSING
    updates: int = MISSING
    batch_size: int = MISSING

    def validate(self) -> None:
        """See `ModelConfig.validate`."""
        positive("model.learning_rate", self.learning_rate)
        hidden_sizes("model.clf_arch", self.clf_arch, linear=True)
        at_least("model.updates", self.updates, 1)
        at_least("model.batch_size", self.batch_size, 1)


class Remembering(Learner):
    """A classifier of (x, s), trained by `updates` minibatches of remembered people at every time step.

    A subclass chooses memory and loss. The policy accepts where the classifier says that it pays.

    Attributes:
        memory: of accepted people; a subclass may replace it.
    """

    config: RememberingConfig
    config_type = RememberingConfig
    net_inputs = NetInputs.standardised

    def __init__(self, config: RememberingConfig, setting: Setting) -> None:
        super().__init__(config, setting)
        self.streams = SeedStreams(setting.seeds, "phase2")
        self.inputs = FeatureInputs(setting.schema)
        self.memory = Memory("accepted")
        self.classifier = self.net(1, self.streams)
        self.optimiser = Adam(self.classifier.parameters(), config.learning_rate)

    def net(self, n_out: int, streams: SeedStreams) -> StackedMLP:
        """A net of (x, s), a replicate per generator of `streams`."""
        n_in = self.inputs.size + 1
        return StackedMLP(n_in, self.config.clf_arch, n_out, streams, gain=self.setting.gain)

    def columns(self, x: Tensor, s: Tensor) -> Tensor:
        """Inputs of the nets, people in columns, shape (E, inputs, B)."""
        return torch.cat([self.inputs(x).mT, s.unsqueeze(1)], dim=1)

    def logit(self, x: Tensor, s: Tensor) -> Tensor:
        """Logit of the classifier, shape (E, B)."""
        return self.classifier.forward_transposed(self.columns(x, s)).squeeze(1)

    @abstractmethod
    def loss(self, batch: Decided) -> Tensor:
        """Loss of a minibatch of remembered people, shape (E,)."""

    def warm_up_epoch(self, decided: Decided, epoch: int) -> dict[str, float]:
        """Remember the people of the warm-up, then train as at a time step."""
        if epoch == 0:
            self.memory.add(decided)
        return {"loss": self.train_classifier()}

    def update(self, decided: Decided) -> None:
        """Remember the applicants, then train."""
        self.memory.add(decided)
        self.train_classifier()

    def minibatches(self) -> list[Decided]:
        """The minibatches of `train_classifier`."""
        return self.memory.minibatches(self.config.updates, self.config.batch_size, self.streams)

    def train_classifier(self) -> float:
        """Train on `updates` minibatches; return the loss of the last, averaged over replicates."""
        for batch in self.minibatches():
            self.optimiser.zero_grad()
            loss = self.loss(batch)
            loss.sum().backward()
            self.optimiser.step()
        return loss.detach().mean().item()

    def propensity(self, x: Tensor, s: Tensor, streams: SeedStreams) -> Tensor:
        """See `Learner.propensity`: 1 from `decision_threshold` on; draws nothing."""
        score = self.decision_score(x, s, streams)
        return as_decided(score, "deterministic", threshold=self.decision_threshold)

    @property
    def draws(self) -> bool:
        """See `Learner.draws`: by `explore` alone, where a method has its own."""
        return type(self).explore is not Learner.explore

    @torch.no_grad()
    def decision_score(self, x: Tensor, s: Tensor, streams: SeedStreams) -> Tensor:
        """p(ỹ = 1 | x, s) of the classifier, shape (E, B)."""
        return torch.sigmoid(self.logit(x, s))

    @property
    def decision_threshold(self) -> float:
        """The cost c."""
        return self.setting.cost


def accepted_cross_entropy(logit: Tensor, batch: Decided) -> Tensor:
    """Mean cross-entropy of accepted people, unweighted, shape (E,); 0 for a replicate without any."""
    return masked_mean(
        F.binary_cross_entropy_with_logits(logit, batch.label, reduction="none"), batch.accepted
    )
