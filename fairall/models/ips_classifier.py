"""Learners that decide with a classifier of (x, s), trained on labelled applicants with IPS weights.

References:
    Kilbertus, Gomez Rodriguez, Schölkopf, Muandet, Valera: Fair decisions despite imperfect predictions,
    AISTATS 2020.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import torch
from omegaconf import MISSING
from torch import Tensor

from fairall.config.checks import dropout, hidden_sizes, one_of, positive
from fairall.config.schema import ModelConfig, NetInputs
from fairall.data.encoding import FeatureInputs
from fairall.data.people import Decided
from fairall.models.learner import DECISIONS, Learner, Setting, as_decided
from fairall.models.objectives import one_epoch
from fairall.nn.adam import Adam
from fairall.nn.stacked import StackedMLP
from fairall.randomness import SeedStreams


@dataclass
class IPSClassifierConfig(ModelConfig):
    """Architecture and training of the classifier."""

    decision: str = MISSING
    learning_rate: float = MISSING
    clf_arch: list[int] = MISSING
    clf_dropout: float = MISSING

    def validate(self) -> None:
        """See `ModelConfig.validate`."""
        one_of("model.decision", self.decision, DECISIONS)
        positive("model.learning_rate", self.learning_rate)
        hidden_sizes("model.clf_arch", self.clf_arch)
        dropout("model.clf_dropout", self.clf_dropout)


class IPSClassifier(Learner):
    """Acceptance probability as a net of (x, s) (Kilbertus et al. 2020, with a deep net)."""

    config: IPSClassifierConfig
    config_type = IPSClassifierConfig
    net_inputs = NetInputs.standardised

    def __init__(self, config: IPSClassifierConfig, setting: Setting) -> None:
        super().__init__(config, setting)
        self.streams = SeedStreams(setting.seeds, "phase2")
        self.inputs = FeatureInputs(setting.schema)
        self.classifier = StackedMLP(
            self.inputs.size + 1,
            config.clf_arch,
            1,
            self.streams,
            dropout=config.clf_dropout,
            gain=setting.gain,
        )
        self.optimiser = self._fresh_optimiser()

    @abstractmethod
    def loss(self, batch: Decided) -> Tensor:
        """Loss of a minibatch, shape (E,)."""

    def classify(self, x: Tensor, s: Tensor, dropout_streams: SeedStreams | None = None) -> Tensor:
        """Logit of the acceptance probability, shape (E, B); dropout with `dropout_streams` only."""
        given = torch.cat([self.inputs(x).mT, s.unsqueeze(1)], dim=1)
        return self.classifier.forward_transposed(given, dropout_streams).squeeze(1)

    def warm_up_epoch(self, decided: Decided, epoch: int) -> dict[str, float]:
        """Train for one epoch."""
        loss = self._epoch(decided)
        if epoch == self.warm_up_epochs() - 1:
            # As in `LatentLearner`: Phase II must not start with second moments close to zero.
            self.optimiser = self._fresh_optimiser()
        return {"loss": loss}

    def update(self, decided: Decided) -> None:
        """Train for one epoch."""
        self._epoch(decided)

    def propensity(self, x: Tensor, s: Tensor, streams: SeedStreams) -> Tensor:
        """See `Learner.propensity`; draws nothing."""
        return as_decided(
            self.decision_score(x, s, streams), self.config.decision, threshold=self.decision_threshold
        )

    @torch.no_grad()
    def decision_score(self, x: Tensor, s: Tensor, streams: SeedStreams) -> Tensor:
        """See `Learner.decision_score`; ½ where p(ỹ = 1 | x, s) = c, since the loss contains c."""
        return torch.sigmoid(self.classify(x, s))

    def _fresh_optimiser(self) -> Adam:
        return Adam(self.parameters(), self.config.learning_rate)

    def _epoch(self, decided: Decided) -> float:
        n_batches = self.setting.schedule.batches_per_epoch
        return one_epoch(self.loss, self.optimiser, decided, n_batches, self.streams)
