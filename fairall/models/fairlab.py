"""FairLab: FairAll's model, but in Phase II from labelled applicants alone (appendix D.5)."""

from __future__ import annotations

from torch import Tensor

from fairall.config.schema import FairLabClassifier, FairLabWeight
from fairall.data.people import Decided
from fairall.models.latent_learner import LatentLearner
from fairall.models.objectives import ips_weight


class FairLab(LatentLearner):
    """α·R − L with the labelled people of L weighted by 1/π (eq. 20), or, in the authors' code, by π.

    The classifier is part of no ELBO, but of every decision: ũ is unknown at decision time, and the encoder
    needs it. The paper's loss (eq. 20) has no term of it, and the authors' code leaves it untrained, as
    `protocol.fairlab_classifier=untrained` does.
    """

    @property
    def trains_classifier(self) -> bool:
        """Whether R is part of the loss."""
        return self.setting.protocol.fairlab_classifier is FairLabClassifier.trained

    def elbo_weight(self, batch: Decided) -> Tensor:
        """Weight of labelled people in L, shape (E, B)."""
        protocol = self.setting.protocol
        if protocol.fairlab_weight is FairLabWeight.propensity:
            return batch.propensity
        return ips_weight(batch.propensity, batch.accepted, protocol.max_ips_weight)
