"""FairAll: decisions from a fair latent, learnt from accepted and rejected applicants (section 4).

References:
    Rateike, Majumdar, Mineeva, Gummadi, Valera: Don't throw it away! The utility of unlabeled data in fair
    decision making, FAccT 2022.
    Kingma, Mohamed, Rezende, Welling: Semi-supervised learning with deep generative models, NeurIPS 2014.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from fairall.config.checks import at_least
from fairall.data.people import Decided, take
from fairall.models.elbo import ElboTerms, elbo, elbo_terms, unlabelled_elbo
from fairall.models.latent_learner import LatentConfig, LatentLearner
from fairall.models.objectives import PackedRows, classification_risk
from fairall.nn.native import Objective


@dataclass
class FairAllConfig(LatentConfig):
    """FairAll (I+II), or, where `phase1` is null, FairAll (II)."""

    kl_samples: int = at_least(1)


class FairAll(LatentLearner):
    """Labelled and unlabelled ELBO for the VAE and the classifier, and the classifier's IPS risk."""

    config: FairAllConfig
    config_type = FairAllConfig

    def loss(self, batch: Decided) -> Tensor:
        """J = α·R − L − U (eq. 2), shape (E,): R and L averaged over labelled, U over unlabelled people."""
        config, protocol = self.config, self.setting.protocol
        labelled, unlabelled = PackedRows.of(batch.accepted), PackedRows.of(~batch.accepted)
        classified = self.model.classify(batch.x, batch.s, self.noise)
        logit = take(classified, unlabelled.rows).detach()
        known, imputed, kl_noise = self._terms(batch, labelled, unlabelled)
        return (
            config.alpha * classification_risk(classified, batch, self.setting)
            - labelled.mean(elbo(known, beta=config.beta))
            - unlabelled.mean(unlabelled_elbo(imputed, logit, kl_noise, beta=config.beta, kl=protocol.kl))
        )

    def objective(self) -> Objective:
        """J in numbers."""
        return self._objective(unlabelled=True, trains_classifier=True, n_kl=self.config.kl_samples)

    def _terms(
        self, batch: Decided, labelled: PackedRows, unlabelled: PackedRows
    ) -> tuple[ElboTerms, ElboTerms, Tensor]:
        """Terms of L and of U by one pass through the VAE, and the noise ε of the KL term of U.

        The rows are the labelled with their ũ, and the unlabelled with ũ = 0 and with ũ = 1. One set of
        samples serves both expectations of U; sharing it biases neither.
        """
        n_elbo, n_kl, size = self.config.elbo_samples, self.config.kl_samples, self.config.latent_size
        n_labelled, n_unlabelled = labelled.rows.shape[1], unlabelled.rows.shape[1]
        rows = torch.cat([labelled.rows, unlabelled.rows.repeat_interleave(2, dim=1)], dim=1)
        label = take(batch.label, labelled.rows)
        both = torch.tensor([0.0, 1.0]).repeat(n_unlabelled).expand(len(label), -1)
        utility = torch.cat([label, both], dim=1)
        decision = torch.cat([torch.ones_like(label), torch.zeros_like(both)], dim=1)

        most = max(n_elbo, n_kl)
        labelled_noise = self.noise.samples(n_labelled, size, most, counts=labelled.counts)
        noise = self.noise.samples(n_unlabelled, 2, size, most, counts=unlabelled.counts)
        terms = elbo_terms(
            self.model.vae,
            take(batch.x, rows),
            take(batch.s, rows),
            torch.cat([labelled_noise, noise.flatten(1, 2)], dim=1)[..., :n_elbo],
            utility,
            decision,
        )
        known, imputed = (
            ElboTerms(*(values[:, rows] for values in terms))
            for rows in (slice(n_labelled), slice(n_labelled, None))
        )
        return known, imputed, noise[..., :n_kl]
