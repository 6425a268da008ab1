"""FairAll: decisions from a fair latent, learnt from accepted and rejected applicants (section 4).

References:
    Rateike, Majumdar, Mineeva, Gummadi, Valera: Don't throw it away! The utility of unlabeled data in fair
    decision making, FAccT 2022.
    Kingma, Mohamed, Rezende, Welling: Semi-supervised learning with deep generative models, NeurIPS 2014.
"""

from __future__ import annotations

from dataclasses import dataclass

from fairall.config.checks import at_least
from fairall.models.latent_learner import LatentConfig, LatentLearner


@dataclass
class FairAllConfig(LatentConfig):
    """FairAll (I+II), or, where `phase1` is null, FairAll (II)."""

    kl_samples: int = at_least(1)


class FairAll(LatentLearner):
    """J = α·R − L − U (eq. 2): labelled and unlabelled ELBO, and the classifier's IPS risk."""

    config_type = FairAllConfig
