"""FairAll: decisions from a fair latent, learnt from accepted and rejected applicants (section 4)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from omegaconf import MISSING
from torch import Tensor

from fairall.checks import at_least
from fairall.data.people import Decided, take
from fairall.models.latent_learner import LatentConfig, LatentLearner
from fairall.models.objectives import MIXTURE_KL, gaussian_kl, masked_mean, samples
from fairall.models.training import classification_risk


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
        labelled, unlabelled = _Pack.of(batch.accepted), _Pack.of(~batch.accepted)
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
        outputs = model.vae.decode(samples(loc, scale, noise), s)
        log_x, log_u = model.vae.likelihood.log_prob_with_utility(outputs, x, utility)

        kl = gaussian_kl(loc[:, :n_labelled], scale[:, :n_labelled])
        labelled_elbo = log_x[:, :n_labelled] + log_u[:, :n_labelled] - config.beta * kl

        good = torch.sigmoid(unlabelled_logit)
        log_x_bad, log_x_good = log_x[:, n_labelled:].unflatten(1, (-1, 2)).unbind(-1)
        kl = MIXTURE_KL[protocol.kl](
            unlabelled_logit,
            loc[:, n_labelled:].unflatten(1, (-1, 2)),
            scale[:, n_labelled:].unflatten(1, (-1, 2)),
            unlabelled_noise[..., : config.kl_samples],
        )
        unlabelled_elbo = (1.0 - good) * log_x_bad + good * log_x_good - config.beta * kl

        return (
            config.alpha * risk
            - masked_mean(labelled_elbo, labelled.valid)
            - masked_mean(unlabelled_elbo, unlabelled.valid)
        )


@dataclass(frozen=True)
class _Pack:
    """The rows of a mask, moved to the front of each replicate so that nothing is computed for the others.

    Attributes:
        rows: shape (E, n), n the largest count of a replicate; padded with rows outside the mask.
        valid: which of `rows` are in the mask, shape (E, n), bool.
        counts: rows in the mask, per replicate.
    """

    rows: Tensor
    valid: Tensor
    counts: list[int]

    @classmethod
    def of(cls, mask: Tensor) -> _Pack:
        counts = mask.sum(-1)
        rows = torch.argsort(mask.to(torch.uint8), dim=-1, descending=True, stable=True)[
            :, : int(counts.max())
        ]
        return cls(rows, torch.arange(rows.shape[1]) < counts.unsqueeze(-1), counts.tolist())
