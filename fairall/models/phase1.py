"""Phase I: the conditional VAE trained offline on people without labels (section 4.3)."""

from __future__ import annotations

import functools
import hashlib
from dataclasses import dataclass
from typing import Any

import torch
from omegaconf import MISSING
from torch import Tensor

from fairall.config.checks import at_least, not_negative, positive
from fairall.data.people import People
from fairall.errors import FairAllError
from fairall.models.best_weights import BestWeights
from fairall.models.learner import PretrainCurves, ProgressCallback
from fairall.models.objectives import gaussian_kl, reparameterize
from fairall.models.phase1_gradients import phase1_gradients
from fairall.models.vae import ConditionalVAE
from fairall.nn.adam import PaddedAdam
from fairall.nn.fused_decoder import WeightedTargets
from fairall.randomness import SeedStreams
from fairall.runtime import signals
from fairall.storage.checkpoint import Checkpoint
from fairall.storage.identity import code_and_versions


@dataclass
class Phase1Config:
    """Training of the Phase I VAE."""

    batch_size: int = MISSING
    learning_rate: float = MISSING
    beta: float = MISSING
    elbo_samples: int = MISSING
    validate_every: int = MISSING
    validation_samples: int = MISSING
    patience: int | None = MISSING
    margin: float = MISSING

    def validate(self) -> None:
        """Raises FairAllError, naming the key, where a value is not possible."""
        for name in ("batch_size", "elbo_samples", "validate_every", "validation_samples"):
            at_least(f"model.phase1.{name}", getattr(self, name), 1)
        positive("model.phase1.learning_rate", self.learning_rate)
        not_negative("model.phase1.beta", self.beta)
        if self.patience is not None:
            at_least("model.phase1.patience", self.patience, 1)
        not_negative("model.phase1.margin", self.margin)


def train_phase1(
    vae: ConditionalVAE,
    pool: People,
    validation: People,
    config: Phase1Config,
    *,
    epochs: int,
    streams: SeedStreams,
    advance: ProgressCallback,
    checkpoint: Checkpoint,
) -> PretrainCurves:
    """Maximises K(θ', φ'; x, s) and leaves in `vae` the weights of each seed's best validation epoch.

    A seed that overfits is done before the last epoch: where its validation loss has not improved for
    `config.patience` epochs and is above its best by more than `config.margin`. All train until all are done,
    but none that is done changes any more. A seed whose loss was never finite has diverged: it ends with NaN
    for weights. On one thread a seed ends with the same weights, to the last bit, whatever other seeds are
    stacked with it (to rounding where all features are counts, or all are binary: docs/reliability.md).

    Args:
        vae: a VAE without ũ, E replicates; trained in place.
        pool: the unlabelled people to learn from.
        validation: people to select the epoch on.
        config: batch size, learning rate, β, how validation is done and when to stop.
        epochs: passes over the pool, at most.
        streams: draws minibatches and noise.
        advance: called once per epoch with the mean validation loss so far.
        checkpoint: gone on from if there is one, and offered a new one after every epoch.

    Raises:
        FairAllError: where all seeds have diverged.
        Stopped: where the process is asked to stop; the checkpoint has what was done.
    """
    optimiser = PaddedAdam(vae.parameters(), config.learning_rate)
    parameters = list(vae.parameters())
    best = BestWeights(parameters)
    n_seeds = len(best.loss)
    # The same noise at every validation: epochs are compared with common random numbers.
    validation_noise = streams.normal(len(validation), vae.latent_size, config.validation_samples)
    held_out_people = (validation.x.expand(n_seeds, -1, -1), validation.s.expand(n_seeds, -1))
    loss_of = functools.partial(phase1_loss, vae, beta=config.beta)
    gradients_of = functools.partial(phase1_gradients, vae, beta=config.beta)
    curves: dict[str, list[Any]] = {"epochs": [], "train": [], "validation": []}
    parts: dict[str, Any] = {"vae": vae, "optimiser": optimiser, "streams": streams, "best": best}

    epoch = 0
    begun = checkpoint.load()
    if begun is not None:
        epoch, curves = begun["epoch"], begun["curves"]
        for name, part in parts.items():
            part.load_state_dict(begun[name])
        advance(resumed=epoch)

    def state() -> dict[str, Any]:
        return {"epoch": epoch, "curves": curves} | {name: part.state_dict() for name, part in parts.items()}

    with signals.deferred():
        while epoch < epochs and not best.done.all():
            epoch += 1
            order = streams.permutations(len(pool))
            noise = streams.normal(len(pool), vae.latent_size, config.elbo_samples)
            epoch_loss = torch.zeros(n_seeds)
            for rows, eps in zip(
                order.split(config.batch_size, dim=1), noise.split(config.batch_size, dim=1), strict=True
            ):
                loss, gradients = gradients_of(pool.x[rows], pool.s[rows], eps)
                for parameter, gradient in zip(parameters, gradients, strict=True):
                    parameter.grad = gradient
                optimiser.step()
                epoch_loss += loss * rows.shape[1]
            if epoch % config.validate_every == 0 or epoch == epochs:
                with torch.no_grad():
                    held_out = loss_of(*held_out_people, validation_noise)
                best.look(epoch, held_out, patience=config.patience, margin=config.margin)
                curves["epochs"].append(epoch)
                curves["train"].append(epoch_loss / len(pool))
                curves["validation"].append(held_out)
            advance(validation_loss=best.loss.mean().item())
            checkpoint.maybe_save(state)

    if (best.epoch == 0).all():
        raise FairAllError(
            "Phase I diverged: the validation loss was never finite; lower model.phase1.learning_rate, "
            f"which is {config.learning_rate:g}"
        )
    best.restore()
    return PretrainCurves(
        torch.tensor(curves["epochs"]),
        torch.stack(curves["train"]),
        torch.stack(curves["validation"]),
        best.epoch,
    )


def phase1_key(pool: People, validation: People, *settings: object) -> str:
    """Hash of x and s of the people (Phase I sees no label), settings, threads, code and versions."""
    digest = hashlib.sha256(repr((settings, torch.get_num_threads(), code_and_versions())).encode())
    for people in (pool, validation):
        digest.update(people.x.numpy().tobytes())
        digest.update(people.s.numpy().tobytes())
    return digest.hexdigest()[:16]


def phase1_loss(vae: ConditionalVAE, x: Tensor, s: Tensor, noise: Tensor, *, beta: float) -> Tensor:
    """−K: β·KL(q(z | x, s) ‖ N(0, I)) − E_q[log p(x | z, s)], averaged over people (eq. 6).

    Args:
        vae: a VAE without ũ.
        x: features, shape (E, B, D).
        s: sensitive attribute, shape (E, B).
        noise: standard normal, L samples a person, shape (E, B, Z, L).
        beta: weight of the KL term.

    Returns:
        Shape (E,), in nats per person.
    """
    loc, scale = vae.encode(x, s)
    z = reparameterize(loc, scale, noise)
    weight = torch.full_like(s, 1.0 / s.shape[1])
    log_likelihood = vae.log_likelihood(z, s, WeightedTargets(x, weight)).sum(-1)
    return beta * gaussian_kl(loc, scale).mean(-1) - log_likelihood
