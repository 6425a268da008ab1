"""FairLab: FairAll's model, but in Phase II from labelled applicants alone (appendix D.5)."""

from __future__ import annotations

from torch import Tensor

from fairall.data.people import Decided
from fairall.models.latent_learner import LatentConfig, LatentLearner
from fairall.models.objectives import (
    cost_sensitive_cross_entropy,
    gaussian_kl,
    ips_risk,
    ips_weight,
    masked_mean,
)


class FairLab(LatentLearner):
    """Model trained on the labelled ELBO with IPS weights; the classifier on its own IPS risk.

    The classifier enters no ELBO, and yet every decision: at decision time nobody's ũ is known, and the
    encoder needs one. The authors' code leaves it untrained (`protocol.fairlab_classifier`).
    """

    config_type = LatentConfig

    def loss(self, batch: Decided) -> Tensor:
        """α·R − mean over labelled rows of weight·L, shape (E,)."""
        config, vae, protocol = self.config, self.model.vae, self.setting.protocol
        weight = ips_weight(batch.propensity, batch.accepted, protocol.max_ips_weight)
        loc, scale = vae.encode(batch.x, batch.s, batch.label)
        noise = self.streams.normal(batch.s.shape[1], config.elbo_samples, config.latent_size)
        outputs = vae.decode(loc.unsqueeze(2) + scale.unsqueeze(2) * noise, batch.s)
        log_x = vae.log_prob(outputs, batch.x.unsqueeze(2)).mean(-1)
        log_u = vae.utility_log_prob(outputs, batch.label.unsqueeze(-1)).mean(-1)
        elbo = log_x + log_u - config.beta * gaussian_kl(loc, scale)
        weight_of_elbo = weight if protocol.fairlab_weight == "inverse_propensity" else batch.propensity
        loss = -masked_mean(elbo * weight_of_elbo, batch.accepted)
        if protocol.fairlab_classifier == "untrained":
            return loss
        classified = self.model.classify(batch.x, batch.s, self.streams)
        entropy = cost_sensitive_cross_entropy(classified, batch.label, self.setting.cost)
        return loss + config.alpha * ips_risk(entropy, weight, batch.accepted)
