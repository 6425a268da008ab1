"""FairAll: decisions from a fair latent, learnt from accepted and rejected applicants (section 4).

References:
    Rateike, Majumdar, Mineeva, Gummadi, Valera: Don't throw it away! The utility of unlabeled data in fair
    decision making, FAccT 2022.
    Kingma, Mohamed, Rezende, Welling: Semi-supervised learning with deep generative models, NeurIPS 2014.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from omegaconf import MISSING
from torch import Tensor

from fairall.config.checks import at_least
from fairall.data.people import Decided, take
from fairall.models.latent_learner import LatentConfig, LatentLearner
from fairall.models.objectives import (
    MIXTURE_KL,
    PackedRows,
    classification_risk,
    gaussian_kl,
    masked_mean,
    reparameterize,
)
from fairall.nn.fused_decoder import WeightedTargets


@dataclass
class FairAllConfig(LatentConfig):
    """FairAll (I+II), or, where `phase1` is null, FairAll (II)."""

    kl_samples: int = MISSING

    def validate(self) -> None:
        """See `ModelConfig.validate`."""
        super().validate()
        at_least("model.kl_samples", self.kl_samples, 1)


class FairAll(LatentLearner):
    """Labelled and unlabelled ELBO for the VAE and the classifier, and the classifier's IPS risk."""

    config: FairAllConfig
    config_type = FairAllConfig

    def loss(self, batch: Decided) -> Tensor:
        """J = α·R − L − U (eq. 1), shape (E,).

        L is the mean over labelled people of E_q(z|x,s,ũ)[log p(x, ũ | z, s)] − β·KL(q(z | x, s, ũ) ‖ p(z)),
        U the mean over unlabelled people of the same with ũ ~ q(ũ | x, s), its KL that of the mixture over ũ.
        """
        config, model, protocol = self.config, self.model, self.setting.protocol
        labelled, unlabelled = PackedRows.of(batch.accepted), PackedRows.of(~batch.accepted)
        classified = model.classify(batch.x, batch.s, self.streams)
        risk = classification_risk(classified, batch, self.setting)
        unlabelled_logit = take(classified, unlabelled.rows)
        if not protocol.classifier_in_unlabelled_elbo:
            unlabelled_logit = unlabelled_logit.detach()

        # Rows of one pass through the VAE: the labelled with their ũ, the unlabelled with ũ = 0 and ũ = 1.
        n_labelled, n_unlabelled = labelled.rows.shape[1], unlabelled.rows.shape[1]
        rows = torch.cat([labelled.rows, unlabelled.rows.repeat_interleave(2, dim=1)], dim=1)
        x, s = take(batch.x, rows), take(batch.s, rows)
        label = take(batch.label, labelled.rows)
        branches = torch.tensor([0.0, 1.0]).repeat(n_unlabelled).expand(len(label), -1)
        utility = torch.cat([label, branches], dim=1)
        loc, scale = model.vae.encode(x, s, utility)

        n_elbo = config.elbo_samples
        labelled_noise = self.streams.normal(n_labelled, config.latent_size, n_elbo, counts=labelled.counts)
        # One set of samples serves both expectations of U; sharing it biases neither.
        unlabelled_noise = self.streams.normal(
            n_unlabelled, 2, config.latent_size, max(n_elbo, config.kl_samples), counts=unlabelled.counts
        )
        noise = torch.cat([labelled_noise, unlabelled_noise.flatten(1, 2)[..., :n_elbo]], dim=1)
        z = reparameterize(loc, scale, noise)

        # Labelled people weigh 1/n, unlabelled ones q(ũ | x, s)/n; only labelled people have a term log p(ũ).
        p_utility = torch.sigmoid(unlabelled_logit)
        q = torch.stack([1.0 - p_utility, p_utility], dim=-1)
        unlabelled_weight = (q * unlabelled.mean_weight.unsqueeze(-1)).flatten(1)
        targets = WeightedTargets(
            x,
            torch.cat([labelled.mean_weight, unlabelled_weight], dim=1),
            utility,
            torch.cat([labelled.mean_weight, torch.zeros_like(branches)], dim=1),
        )
        log_likelihood = model.vae.log_likelihood(z, s, targets)
        labelled_kl = gaussian_kl(loc[:, :n_labelled], scale[:, :n_labelled])
        unlabelled_kl = MIXTURE_KL[protocol.kl](
            unlabelled_logit,
            loc[:, n_labelled:].unflatten(1, (-1, 2)),
            scale[:, n_labelled:].unflatten(1, (-1, 2)),
            unlabelled_noise[..., : config.kl_samples],
        )

        mean_kl = masked_mean(labelled_kl, labelled.valid), masked_mean(unlabelled_kl, unlabelled.valid)
        labelled_elbo = log_likelihood[:, :n_labelled].sum(-1) - config.beta * mean_kl[0]
        unlabelled_elbo = log_likelihood[:, n_labelled:].sum(-1) - config.beta * mean_kl[1]
        return config.alpha * risk - labelled_elbo - unlabelled_elbo
