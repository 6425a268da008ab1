"""FairLab: FairAll's model, but in Phase II from labelled applicants alone (appendix D.5)."""

from __future__ import annotations

import torch
from torch import Tensor

from fairall.config.schema import FairLabClassifier, FairLabWeight
from fairall.data.people import Decided, take
from fairall.models.elbo import elbo, elbo_terms
from fairall.models.latent_learner import LatentConfig, LatentLearner
from fairall.models.objectives import PackedRows, classification_risk, ips_weight
from fairall.nn.native import Objective


class FairLab(LatentLearner):
    """Labelled ELBO with IPS weights for the VAE, and the IPS risk for the classifier.

    The classifier is part of no ELBO, but of every decision: ũ is unknown at decision time, and the encoder
    needs it. The paper's loss (eq. 20) has no term of it, and the authors' code leaves it untrained, as
    `protocol.fairlab_classifier=untrained` does.
    """

    config_type = LatentConfig

    def loss(self, batch: Decided) -> Tensor:
        """−L of the labelled people weighted by 1/π (eq. 20), and α·R of a trained classifier, shape (E,)."""
        config = self.config
        risk = torch.zeros(())
        if self.trains_classifier:
            classified = self.model.classify(batch.x, batch.s, self.noise)
            risk = classification_risk(classified, batch, self.setting)
        labelled = PackedRows.of(batch.accepted)
        x, s, label = (take(values, labelled.rows) for values in (batch.x, batch.s, batch.label))
        weight = take(self.elbo_weight(batch), labelled.rows) * labelled.mean_weight
        noise = self.noise.samples(
            labelled.rows.shape[1], config.latent_size, config.elbo_samples, counts=labelled.counts
        )
        terms = elbo_terms(self.model.vae, x, s, noise, label)
        return config.alpha * risk - (weight * elbo(terms, beta=config.beta)).sum(-1)

    def objective(self) -> Objective:
        """The loss in numbers."""
        return self._objective(trains_classifier=self.trains_classifier)

    def elbo_weight(self, batch: Decided) -> Tensor:
        """Weight of labelled people in L, shape (E, B)."""
        protocol = self.setting.protocol
        if protocol.fairlab_weight is FairLabWeight.propensity:
            return batch.propensity
        return ips_weight(batch.propensity, batch.accepted, protocol.max_ips_weight)

    @property
    def trains_classifier(self) -> bool:
        """Whether R is part of the loss."""
        return self.setting.protocol.fairlab_classifier is FairLabClassifier.trained
