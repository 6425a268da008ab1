"""FairAll: decisions from a fair latent, learnt from accepted and rejected applicants (section 4)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from omegaconf import MISSING
from torch import Tensor

from fairall.config.checks import at_least
from fairall.data.people import Decided, take
from fairall.models.latent_learner import LatentConfig, LatentLearner
from fairall.models.objectives import MIXTURE_KL, gaussian_kl, masked_mean, samples
from fairall.models.packed_rows import Pack
from fairall.models.training import classification_risk
from fairall.nn.fused_decoder import Weighted


@dataclass
class FairAllConfig(LatentConfig):
    """FairAll (I+II), or, where `phase1` is null, FairAll (II)."""

    kl_samples: int = MISSING

    def validate(self) -> None:
        """See `ModelConfig.validate`."""
        super().validate()
        at_least("model.kl_samples", self.kl_samples, 1)


class FairAll(LatentLearner):
    """Model and classifier trained on J: labelled and unlabelled ELBO, and the classifier's IPS risk."""

    config: FairAllConfig
    config_type = FairAllConfig

    def loss(self, batch: Decided) -> Tensor:
        """J = α·R − mean_labelled L − mean_unlabelled U (eq. 1), shape (E,)."""
        config, model, protocol = self.config, self.model, self.setting.protocol
        labelled, unlabelled = Pack.of(batch.accepted), Pack.of(~batch.accepted)
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
        z = samples(loc, scale, noise)

        # Each log p(x, ũ | z, s) is linear in J: labelled people weigh 1/n, unlabelled ones q(ũ | x, s)/n.
        good = torch.sigmoid(unlabelled_logit)
        of_unlabelled = torch.stack([1.0 - good, good], dim=-1) * unlabelled.mean_weight.unsqueeze(-1)
        people = Weighted(
            x,
            torch.cat([labelled.mean_weight, of_unlabelled.flatten(1)], dim=1),
            utility,
            torch.cat([labelled.mean_weight, torch.zeros_like(branches)], dim=1),
        )
        log_likelihood = model.vae.log_likelihood(z, s, people)
        labelled_kl = gaussian_kl(loc[:, :n_labelled], scale[:, :n_labelled])
        unlabelled_kl = MIXTURE_KL[protocol.kl](
            unlabelled_logit,
            loc[:, n_labelled:].unflatten(1, (-1, 2)),
            scale[:, n_labelled:].unflatten(1, (-1, 2)),
            unlabelled_noise[..., : config.kl_samples],
        )
        kl = masked_mean(labelled_kl, labelled.valid) + masked_mean(unlabelled_kl, unlabelled.valid)
        return config.alpha * risk + config.beta * kl - log_likelihood
