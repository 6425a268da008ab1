"""FairLab: FairAll's model, but in Phase II from labelled applicants alone (appendix D.5)."""

from __future__ import annotations

from torch import Tensor

from fairall.config.schema import FairLabClassifier, FairLabWeight
from fairall.data.people import Decided, take
from fairall.models.latent_learner import LatentConfig, LatentLearner
from fairall.models.objectives import gaussian_kl, ips_weight, samples
from fairall.models.packed_rows import Pack
from fairall.models.training import classification_risk
from fairall.nn.fused_decoder import Weighted


class FairLab(LatentLearner):
    """Model trained on the labelled ELBO with IPS weights; the classifier on its own IPS risk.

    The classifier enters no ELBO, and yet every decision: at decision time nobody's ũ is known, and the
    encoder needs one. The authors' code leaves it untrained (`protocol.fairlab_classifier`).
    """

    config_type = LatentConfig

    def loss(self, batch: Decided) -> Tensor:
        """α·R − mean over labelled rows of weight·L, shape (E,)."""
        config, vae, protocol = self.config, self.model.vae, self.setting.protocol
        labelled = Pack.of(batch.accepted)
        x, s, label = (take(values, labelled.rows) for values in (batch.x, batch.s, batch.label))
        loc, scale = vae.encode(x, s, label)
        noise = self.streams.normal(
            labelled.rows.shape[1], config.latent_size, config.elbo_samples, counts=labelled.counts
        )
        z = samples(loc, scale, noise)
        weight = batch.propensity
        if protocol.fairlab_weight is FairLabWeight.inverse_propensity:
            weight = ips_weight(batch.propensity, batch.accepted, protocol.max_ips_weight)
        weight = take(weight, labelled.rows) * labelled.mean_weight
        log_likelihood = vae.log_likelihood(z, s, Weighted(x, weight, label, weight))
        loss = config.beta * (weight * gaussian_kl(loc, scale)).sum(-1) - log_likelihood
        if protocol.fairlab_classifier is FairLabClassifier.untrained:
            return loss
        classified = self.model.classify(batch.x, batch.s, self.streams)
        return loss + config.alpha * classification_risk(classified, batch, self.setting)
