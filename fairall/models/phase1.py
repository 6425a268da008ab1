"""Phase I: the conditional VAE trained offline on people without labels (section 4.3)."""

from __future__ import annotations

import functools
import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import torch
from omegaconf import MISSING
from torch import Tensor

from fairall.config.checks import at_least, not_negative, positive
from fairall.data.features import Schema
from fairall.data.people import People
from fairall.errors import FairAllError
from fairall.models.best_weights import BestWeights
from fairall.models.learner import PretrainCurves, ProgressCallback
from fairall.models.objectives import gaussian_kl, reparameterize
from fairall.models.phase1_epochs import TorchEpochs
from fairall.models.vae import MIN_SCALE, ConditionalVAE
from fairall.nn.fused_decoder import WeightedTargets
from fairall.nn.native.calls import processor, takes
from fairall.nn.native.phase1 import NativeEpochs
from fairall.randomness import SeedStreams
from fairall.runtime import signals
from fairall.storage.checkpoint import Checkpoint
from fairall.storage.identity import code_and_versions


@dataclass
class Phase1Config:
    """Training of the Phase I VAE."""

    updates: int | None = MISSING
    batch_size: int = MISSING
    learning_rate: float = MISSING
    beta: float = MISSING
    elbo_samples: int = MISSING
    validate_every: int = MISSING
    validation_samples: int = MISSING
    patience: int | None = MISSING
    margin: float = MISSING

    def validate(self) -> None:
        """Check that the values are possible.

        Raises:
            FairAllError: naming the key of a value that is not.
        """
        for name in ("batch_size", "elbo_samples", "validate_every", "validation_samples"):
            at_least(f"model.phase1.{name}", getattr(self, name), 1)
        positive("model.phase1.learning_rate", self.learning_rate)
        not_negative("model.phase1.beta", self.beta)
        for name in ("updates", "patience"):
            if getattr(self, name) is not None:
                at_least(f"model.phase1.{name}", getattr(self, name), 1)
        not_negative("model.phase1.margin", self.margin)

    def epochs_within(self, epochs: int, n_people: int) -> int:
        """Number of `epochs` over a pool of `n_people` that `updates` allows, at least 1."""
        if self.updates is None:
            return epochs
        return min(epochs, max(1, self.updates // math.ceil(n_people / self.batch_size)))

    def shortened(self, epochs: int, planned: int) -> Phase1Config:
        """The training in `epochs` instead of `planned` epochs, without a limit of updates.

        Patience and the epochs between two validations shrink in proportion, so that early stopping has as
        many validations to decide on. So do the samples per validation person, or validating would take most
        of the time: epochs are limited for large tables, with more people to average over.
        """

        def share(value: int) -> int:
            return math.ceil(value * epochs / planned)

        return replace(
            self,
            updates=None,
            validate_every=share(self.validate_every),
            validation_samples=share(self.validation_samples),
            patience=None if self.patience is None else share(self.patience),
        )


@dataclass(frozen=True)
class Unlabelled:
    """N people without labels.

    Attributes:
        x: features, shape (N, D).
        s: sensitive attribute in {−1, +1}, shape (N,).
    """

    x: Tensor
    s: Tensor

    @classmethod
    def of(cls, people: People) -> Unlabelled:
        """The features and sensitive attributes of `people`."""
        return cls(people.x, people.s)

    def __len__(self) -> int:
        return len(self.x)


@dataclass(frozen=True)
class Phase1Task:
    """Everything that a Phase I is computed from; `train_phase1` takes it, and `key` hashes all of it.

    Attributes:
        pool: people to learn from.
        validation: people to select the epoch on.
        schema: the features of x.
        seeds: the E seeds.
        latent_size: Z.
        vae_arch: hidden layers of encoder and of decoder.
        group_blind: see `ConditionalVAE`.
        gain: see `StackedMLP`.
        config: batch size, learning rate, β, validation and early stopping.
        epochs: passes over the pool, at most.
    """

    pool: Unlabelled
    validation: Unlabelled
    schema: Schema
    seeds: Sequence[int]
    latent_size: int
    vae_arch: Sequence[int]
    group_blind: bool
    gain: float
    config: Phase1Config
    epochs: int

    def key(self) -> str:
        """Hash of the task, the code, the versions and the processor, 16 hexadecimal digits."""
        digest = hashlib.sha256(repr((code_and_versions(), processor())).encode())
        for field in fields(self):
            value = getattr(self, field.name)
            parts = (value.x, value.s) if isinstance(value, Unlabelled) else (repr(value),)
            for part in parts:
                content = part.encode() if isinstance(part, str) else part.numpy().tobytes()
                digest.update(hashlib.sha256(content).digest())
        return digest.hexdigest()[:16]

    def streams(self) -> SeedStreams:
        """Fresh streams of Phase I: first for `untrained_vae`, then for training."""
        return SeedStreams(self.seeds, "phase1")

    def untrained_vae(self, streams: SeedStreams) -> ConditionalVAE:
        """A VAE without ũ, its weights drawn from `streams`."""
        return ConditionalVAE(
            self.schema,
            self.latent_size,
            self.vae_arch,
            streams,
            utility=False,
            group_blind=self.group_blind,
            gain=self.gain,
        )


def train_phase1(
    task: Phase1Task, *, progress: ProgressCallback, checkpoint: Checkpoint
) -> tuple[ConditionalVAE, PretrainCurves]:
    """Maximise K(θ', φ'; x, s) (eq. 6) and select the weights of each seed's best validation epoch.

    Training of a seed ends early where its validation loss has not improved for `config.patience` epochs and
    is above its best by more than `config.margin`: its selected weights no longer change. All seeds are
    updated until the last has ended. A seed whose loss was never finite has diverged; its weights are NaN.
    The weights of a seed are the same to the last bit, whatever other seeds are stacked with it (without
    numba, to rounding where all features are counts, or all are binary: docs/reliability.md).

    Args:
        task: people, sizes and training.
        progress: called once per epoch with the mean of the best validation losses so far.
        checkpoint: to resume from, if there is one; offered the state after every epoch.

    Returns:
        The VAE, E replicates, and its curves.

    Raises:
        FairAllError: if all seeds have diverged.
        Stopped: if a stop was requested; the checkpoint has the state.
    """
    streams, config, pool, validation = task.streams(), task.config, task.pool, task.validation
    vae = task.untrained_vae(streams)
    training = epochs_of(vae, pool, config)
    best = BestWeights(vae.parameters())
    n_seeds = len(best.loss)
    # The same noise at every validation: epochs are compared with common random numbers.
    validation_noise = streams.normal(len(validation), vae.latent_size, config.validation_samples)
    held_out_people = (validation.x.expand(n_seeds, -1, -1), validation.s.expand(n_seeds, -1))
    loss_of = functools.partial(phase1_loss, vae, beta=config.beta)
    curves: dict[str, list[Any]] = {"epochs": [], "train": [], "validation": []}
    parts: dict[str, Any] = {"vae": vae, "optimiser": training, "streams": streams, "best": best}

    epoch = 0
    begun = checkpoint.load()
    if begun is not None:
        epoch, curves = begun["epoch"], begun["curves"]
        for name, part in parts.items():
            part.load_state_dict(begun[name])
        progress(resumed=epoch)

    def state() -> dict[str, Any]:
        return {"epoch": epoch, "curves": curves} | {name: part.state_dict() for name, part in parts.items()}

    with signals.deferred():
        while epoch < task.epochs and not best.done.all():
            epoch += 1
            order = streams.permutations(len(pool))
            noise = streams.normal(len(pool), vae.latent_size, config.elbo_samples)
            loss = training.epoch(order, noise)
            if epoch % config.validate_every == 0 or epoch == task.epochs:
                with torch.no_grad():
                    held_out = loss_of(*held_out_people, validation_noise)
                best.update(epoch, held_out, patience=config.patience, margin=config.margin)
                curves["epochs"].append(epoch)
                curves["train"].append(loss)
                curves["validation"].append(held_out)
            progress(validation_loss=best.loss.mean().item())
            checkpoint.maybe_save(state)

    if (best.epoch == 0).all():
        raise FairAllError(
            "Phase I diverged: the validation loss was never finite; lower model.phase1.learning_rate, "
            f"which is {config.learning_rate:g}"
        )
    best.restore()
    measured = torch.stack(curves["train"]), torch.stack(curves["validation"])
    return vae, PretrainCurves(torch.tensor(curves["epochs"]), *measured, best.epoch)


def epochs_of(vae: ConditionalVAE, pool: Unlabelled, config: Phase1Config) -> TorchEpochs | NativeEpochs:
    """Training of `vae` on `pool`, compiled where it can be."""
    if not takes(pool.x):
        return TorchEpochs(
            vae,
            pool.x,
            pool.s,
            batch_size=config.batch_size,
            learning_rate=config.learning_rate,
            beta=config.beta,
        )
    return NativeEpochs(
        vae.encoder,
        vae.decoder,
        vae.likelihood,
        vae.encoder_input(pool.x.unsqueeze(0), pool.s.unsqueeze(0)),
        pool.x,
        batch_size=config.batch_size,
        n_samples=config.elbo_samples,
        learning_rate=config.learning_rate,
        beta=config.beta,
        min_scale=MIN_SCALE,
    )


def phase1_loss(vae: ConditionalVAE, x: Tensor, s: Tensor, noise: Tensor, *, beta: float) -> Tensor:
    """−K = β·KL(q(z | x, s) ‖ N(0, I)) − E_q[log p(x | z, s)], averaged over people (eq. 6).

    Args:
        vae: a VAE without ũ.
        x: features, shape (E, B, D).
        s: sensitive attribute, shape (E, B).
        noise: standard normal ε, L samples per person, shape (E, B, Z, L).
        beta: weight of the KL term.

    Returns:
        Shape (E,), in nats per person.
    """
    loc, scale = vae.encode(x, s)
    z = reparameterize(loc, scale, noise)
    weight = torch.full_like(s, 1.0 / s.shape[1])
    log_likelihood = vae.log_likelihood(z, s, WeightedTargets(x, weight)).sum(-1)
    return beta * gaussian_kl(loc, scale).mean(-1) - log_likelihood
