"""Learners with a classifier of (x, s): its net, and how it is trained on people who were decided on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from fairall.config.checks import at_least, below_one, hidden_sizes, one_of, positive
from fairall.config.schema import ModelConfig, NetInputs
from fairall.data.features import FeatureInputs
from fairall.data.people import Decided
from fairall.models.learner import DECISIONS, DecisionRule, Learner, Setting
from fairall.models.memory import MEMORIES, Memory
from fairall.models.objectives import classification_risk, cross_entropy, masked_mean, train_on
from fairall.nn.adam import Adam
from fairall.nn.stacked import StackedMLP
from fairall.runtime.randomness import SeedStreams


class ClassifierNet(StackedMLP):
    """A net of (x, s) with one output, the logit of a probability.

    Args:
        setting: has the features.
        hidden: sizes of the hidden layers.
        streams: draw the initial weights; the net has a replicate for each generator.
        dropout: as for `StackedMLP`.

    Attributes:
        sees_s: whether its output depends on s; False puts 0 in place of it.
    """

    sees_s = True

    def __init__(
        self, setting: Setting, hidden: Sequence[int], streams: SeedStreams, *, dropout: float = 0.0
    ) -> None:
        inputs = FeatureInputs(setting.schema)
        super().__init__(inputs.size_with_s, hidden, 1, streams, dropout=dropout)
        self.inputs = inputs

    def columns(self, x: Tensor, s: Tensor) -> Tensor:
        """Inputs of the net for x (E, B, D) and s (E, B), people in columns, shape (E, inputs, B)."""
        return self.inputs.columns_with_s(x, s if self.sees_s else torch.zeros_like(s))

    def logit(self, x: Tensor, s: Tensor, dropout_streams: SeedStreams | None = None) -> Tensor:
        """The logit, shape (E, B); dropout with `dropout_streams` only."""
        return self.forward_transposed(self.columns(x, s), dropout_streams).squeeze(1)


@dataclass
class ClassifierConfig(ModelConfig):
    """Architecture and learning rate of the classifier."""

    learning_rate: float = positive()
    clf_arch: list[int] = hidden_sizes(least=0)


class Classifier(Learner):
    """Decides by a net of (x, s), σ of whose logit is the score."""

    config: ClassifierConfig
    config_type = ClassifierConfig
    net_inputs = NetInputs.standardised

    def __init__(self, config: ClassifierConfig, setting: Setting, *, dropout: float = 0.0) -> None:
        super().__init__(config, setting)
        self.streams = SeedStreams(setting.seeds, "phase2")
        self.classifier = ClassifierNet(setting, config.clf_arch, self.streams, dropout=dropout)
        self.restart()

    def restart(self) -> None:
        """Set the moments of Adam to 0."""
        self.optimiser = Adam(self.classifier.parameters(), self.config.learning_rate)

    @torch.no_grad()
    def score(self, x: Tensor, s: Tensor, streams: SeedStreams) -> Tensor:
        """σ of the logit, shape (E, B); draws nothing."""
        return torch.sigmoid(self.classifier.logit(x, s))

    @torch.no_grad()
    def log_odds(self, x: Tensor, s: Tensor, streams: SeedStreams) -> Tensor:
        """From the logit, shape (E, B), which does not saturate as the score does; draws nothing."""
        return self._moved(self.classifier.logit(x, s), x)


@dataclass
class IPSClassifierConfig(ClassifierConfig):
    """How the classifier decides, whom it is trained on, and its dropout."""

    decision: str = one_of(DECISIONS)
    memory: str = one_of(MEMORIES)
    clf_dropout: float = below_one()


class IPSClassifier(Classifier):
    """Acceptance probability as a net of (x, s), trained on a time step's applicants or on all so far.

    The loss weighs labelled people by 1/π and contains c, so that the score is ½ where p(ỹ = 1 | x, s) = c
    (Kilbertus et al. 2020, with a deep net). A subclass may override `penalty`.

    Attributes:
        past: everybody so far, with `memory=all`; empty with `memory=step`.
        replays: draw from these.
    """

    weighs_labels = True
    two_groups = False
    takes_amounts = True
    config: IPSClassifierConfig
    config_type = IPSClassifierConfig

    def __init__(self, config: IPSClassifierConfig, setting: Setting) -> None:
        super().__init__(config, setting, dropout=config.clf_dropout)
        self.rule = DecisionRule(drawn=config.decision == "sample")
        self.past = Memory(config.memory)
        self.replays = SeedStreams(setting.seeds, "replay")

    def warm_up_epoch(self, decided: Decided, epoch: int) -> dict[str, float]:
        """Train for one epoch."""
        if epoch == 0:
            self.past.add(decided)
        loss = self.train_epoch(decided)
        if epoch == self.setting.schedule.warm_up_epochs - 1:
            # As in `LatentLearner`: Phase II must not start with second moments close to zero.
            self.restart()
        return {"loss": loss}

    def update(self, decided: Decided) -> None:
        """Train for one epoch, with `memory=all` of people drawn from everybody so far (`LatentLearner`)."""
        self.train_epoch(self.past.replay(decided, self.setting.schedule.batches_per_epoch, self.replays))

    def train_epoch(self, decided: Decided) -> float:
        """Train on everybody once; return the loss of the last minibatch, averaged over replicates."""
        batches = decided.minibatches(self.setting.schedule.batches_per_epoch, self.streams)
        return train_on(batches, self.loss, self.optimiser)

    def loss(self, batch: Decided) -> Tensor:
        """R (eq. 5) and the penalty, shape (E,)."""
        logit = self.classifier.logit(batch.x, batch.s, self.streams)
        return classification_risk(logit, batch, self.setting) + self.penalty(logit, batch)

    def penalty(self, logit: Tensor, batch: Decided) -> Tensor | float:
        """What is added to the risk, shape (E,), for acceptance probabilities of log odds (E, B): nothing."""
        return 0.0


@dataclass
class RememberingConfig(ClassifierConfig):
    """Training of the classifier in a time step."""

    updates: int = at_least(1)
    batch_size: int = at_least(1)


class Remembering(Classifier):
    """A classifier trained by `updates` minibatches of remembered people at every time step.

    Here it estimates p(ỹ = 1 | x, s) of all accepted people so far and accepts where that is at least c. A
    subclass may choose another memory, loss or rule.

    Attributes:
        remembered: whom the memory keeps.
        memory: of people who were decided on; a subclass may replace it.
        fresh_adam: whether Adam starts anew at every time step, its moments 0. The first update then has the
            size of the learning rate, so that the classifier moves more from one time step to the next.
    """

    remembered: ClassVar[Literal["accepted", "all"]] = "accepted"
    fresh_adam = False
    config: RememberingConfig
    config_type = RememberingConfig

    def __init__(self, config: RememberingConfig, setting: Setting) -> None:
        super().__init__(config, setting)
        self.memory = Memory(self.remembered)
        self.rule = DecisionRule(setting.cost, drawn=False, amounts=setting.amounts)

    def loss(self, batch: Decided) -> Tensor:
        """Cross-entropy of accepted people, unweighted, shape (E,)."""
        return accepted_cross_entropy(self.classifier.logit(batch.x, batch.s), batch)

    def remember(self, decided: Decided) -> None:
        """Remember people who were decided on."""
        self.memory.add(decided)

    def warm_up_epoch(self, decided: Decided, epoch: int) -> dict[str, float]:
        """Remember the people of the warm-up, then train as at a time step."""
        if epoch == 0:
            self.remember(decided)
        return {"loss": self.train_classifier()}

    def update(self, decided: Decided) -> None:
        """Remember the applicants, then train."""
        self.remember(decided)
        self.train_classifier()

    def minibatches(self) -> Iterable[Decided]:
        """The minibatches of `train_classifier`, each asked for after the update on the one before."""
        return self.memory.minibatches(self.config.updates, self.config.batch_size, self.streams)

    def train_classifier(self) -> float:
        """Train on `updates` minibatches; return the loss of the last, averaged over replicates."""
        if self.fresh_adam:
            self.restart()
        return train_on(self.minibatches(), self.loss, self.optimiser)


def accepted_cross_entropy(logit: Tensor, batch: Decided) -> Tensor:
    """Mean cross-entropy of accepted people, without 1/π, shape (E,); 0 for a replicate without any."""
    return masked_mean(batch.weighted(cross_entropy(logit, batch.label)), batch.accepted)
