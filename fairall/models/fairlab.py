"""FairLab: FairAll's model, but in Phase II from labelled applicants alone (appendix D.5)."""

from __future__ import annotations

from torch import Tensor

from fairall.data.people import Decided
from fairall.models.latent_learner import LatentConfig, LatentLearner
from fairall.models.objectives import gaussian_kl, ips_weight, masked_mean, samples
from fairall.models.training import classification_risk


class FairLab(LatentLearner):
    """Model trained on the labelled ELBO with IPS weights; the classifier on its own IPS risk.

    The classifier enters no ELBO, and yet every decision: at decision time nobody's ũ is known, and the
    encoder needs one. The authors' code leaves it untrained (`protocol.fairlab_classifier`).
    """

    config_type = LatentConfig

    def loss(self, batch: Decided) -> Tensor:
        """α·R − mean over labelled rows of weight·L, shape (E,)."""
        config, vae, protocol = self.config, self.model.vae, self.setting.protocol
        loc, scale = vae.encode(batch.x, batch.s, batch.label)
        noise = self.streams.normal(batch.s.shape[1], config.latent_size, config.elbo_samples)
        outputs = vae.decode(samples(loc, scale, noise), batch.s)
        log_x, log_u = vae.likelihood.log_prob_with_utility(outputs, batch.x, batch.label)
        elbo = log_x + log_u - config.beta * gaussian_kl(loc, scale)
        weight = batch.propensity
        if protocol.fairlab_weight == "inverse_propensity":
            weight = ips_weight(batch.propensity, batch.accepted, protocol.max_ips_weight)
        loss = -masked_mean(elbo * weight, batch.accepted)
        if protocol.fairlab_classifier == "untrained":
            return loss
        classified = self.model.classify(batch.x, batch.s, self.streams)
        return loss + config.alpha * classification_risk(classified, batch, self.setting)
