"""Selection metrics for hyperparameters (appendix D.2): classification, reconstruction, independence of s."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import torch
from torch import Tensor

from fairall.data.people import People
from fairall.measuring.latent_quality import ENOUGH, readability_of_s, sound, stacked
from fairall.metrics import weighted_mean
from fairall.models.classifier import IPSClassifier
from fairall.models.elbo import reparameterize
from fairall.models.latent_learner import LatentLearner
from fairall.models.learner import Learner
from fairall.models.objectives import cost_sensitive_cross_entropy
from fairall.models.vae import ConditionalVAE
from fairall.nn.stacked import in_chunks
from fairall.runtime.randomness import SeedStreams

LATENT_SELECTION = ["reconstruction_loss", "latent_s_dependence"]
SELECTION = ["classification_loss", *LATENT_SELECTION]
LATENT_SAMPLES = 16  # z per held-out person
EPSILON = 1e-6  # least distance of a policy's propensity from 0 and 1, where the cross-entropy is infinite

Posterior = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]
"""Location and scale (E, B, Z) of the z of people x (E, B, D), s (E, B)."""


@torch.no_grad()
def selection_metrics(learner: Learner, train: People, held_out: People) -> dict[str, np.ndarray]:
    """Selection metrics of a method after its last update, by name one value per seed, shape (E,).

    `classification_loss`: cost-sensitive cross-entropy (eq. 5) of the classifier q(ũ = 1 | x, s); of the
    policy for methods without one. Held-out labels are weighted by `People.label_weight`.
    Methods with a latent have those of `latent_selection_metrics` too.

    Args:
        learner: at the end of its run.
        train: people to fit the regression of s on.
        held_out: people to measure on, N of them.
    """
    seeds = learner.setting.seeds
    x, s = stacked(held_out, len(seeds))
    logit = in_chunks(partial(classifier_logit, learner), x, s)
    stake, cost = learner.setting.stake_and_cost(x)
    of_labels = cost_sensitive_cross_entropy(logit, held_out.label.expand_as(logit), cost)
    loss = weighted_mean(stake * of_labels, held_out.label_weight)
    criteria = {"classification_loss": loss.double().numpy()}
    if isinstance(learner, LatentLearner):
        model, streams = learner.model, SeedStreams(seeds, "criteria utility")

        def posterior(x: Tensor, s: Tensor) -> tuple[Tensor, Tensor]:
            useful = streams.uniform(x.shape[1]) < torch.sigmoid(model.classify(x, s))
            return model.vae.encode(x, s, useful.to(x.dtype))

        criteria |= latent_selection_metrics(model.vae, posterior, train, held_out, seeds)
    return criteria


@torch.no_grad()
def latent_selection_metrics(
    vae: ConditionalVAE, posterior: Posterior, train: People, held_out: People, seeds: Sequence[int]
) -> dict[str, np.ndarray]:
    """Selection metrics of a latent, by name one value per seed, shape (E,).

    `reconstruction_loss`: E_q[−log p(x | z, s)] in nats a person, without the KL term, so that it can be
    compared between values of β.
    `latent_s_dependence`: |2·AUC − 1| in [0, 1] of a logistic regression of s on sampled z: 0 where z and s
    are independent, 1 where z separates the groups, of more than two the worst pair. NaN for a seed that has
    diverged.

    Args:
        vae: with or without ũ.
        posterior: to draw z from.
        train: people to fit the regression of s on.
        held_out: people to measure on.
        seeds: the E seeds.
    """
    streams = SeedStreams(seeds, "criteria latent")
    train = train.rows(torch.arange(min(ENOUGH, len(train))))
    z_train = _drawn(posterior, train, streams, 1).squeeze(-1).numpy()
    z = _drawn(posterior, held_out, streams, LATENT_SAMPLES)

    def loss_of(x: Tensor, s: Tensor, z: Tensor) -> Tensor:
        return -vae.likelihood.log_prob(vae.decode(z, s), x)

    x, s = stacked(held_out, len(seeds))
    reconstruction = in_chunks(loss_of, x, s, z).mean(-1)

    s_train, s_held_out = train.s.expand(len(seeds), -1).numpy(), np.repeat(s.numpy(), LATENT_SAMPLES, axis=1)
    z_held_out, auc = z.mT.flatten(1, 2).numpy(), np.full(len(seeds), np.nan)
    for e in sound(z_train, z_held_out):
        of_seed = z_train[e], z_held_out[e], s_train[e], s_held_out[e]
        auc[e] = readability_of_s(*of_seed, vae.inputs.n_groups)[1]
    return {
        "reconstruction_loss": reconstruction.double().numpy(),
        "latent_s_dependence": np.abs(2.0 * auc - 1.0),
    }


def classifier_logit(learner: Learner, x: Tensor, s: Tensor) -> Tensor:
    """Logit of q(ũ = 1 | x, s), shape (E, B), for x (E, B, D), s (E, B); of the policy without such a q."""
    if isinstance(learner, IPSClassifier):
        return learner.classifier.logit(x, s)
    if isinstance(learner, LatentLearner):
        return learner.model.classify(x, s)
    propensity = learner.propensity(x, s, SeedStreams(learner.setting.seeds, "criteria policy"))
    return torch.logit(propensity, eps=EPSILON)


def _drawn(posterior: Posterior, people: People, streams: SeedStreams, n_samples: int) -> Tensor:
    """L draws of the z of N people, shape (E, N, Z, L)."""

    def drawn(x: Tensor, s: Tensor) -> Tensor:
        loc, scale = posterior(x, s)
        return reparameterize(loc, scale, streams.normal(*loc.shape[1:], n_samples))

    return in_chunks(drawn, *stacked(people, len(streams)))
