"""Phase I: the conditional VAE trained offline on people without labels (section 4.3).

References:
    Loshchilov, Hutter: SGDR: stochastic gradient descent with warm restarts, ICLR 2017.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import torch
from torch import Tensor, nn

from fairall.config.checks import MISSING, at_least, not_negative, positive, positive_share
from fairall.data.features import Schema
from fairall.data.people import People, take
from fairall.display.progress import ProgressCallback
from fairall.errors import FairAllError
from fairall.models.elbo import phase1_elbo
from fairall.models.learner import PretrainCurves
from fairall.models.vae import ConditionalVAE
from fairall.nn.adam import Adam
from fairall.nn.native import fastest, processor
from fairall.runtime import signals
from fairall.runtime.randomness import SeedStreams
from fairall.storage.checkpoint import Checkpoint, Stateful
from fairall.storage.identity import computation_key


@dataclass
class Phase1Config:
    """Training of the Phase I VAE; conf/model/fairall_I_II.yaml says what each value means."""

    updates: int | None = at_least(1)
    share: float = positive_share()
    batch_size: int = at_least(1)
    learning_rate: float = positive()
    annealed: bool = MISSING
    beta: float = not_negative()
    elbo_samples: int = at_least(1)
    validate_every: int = at_least(1)
    validation_samples: int = at_least(1)
    patience: int | None = at_least(1)
    margin: float = not_negative()

    def epochs_within(self, epochs: int, n_people: int) -> int:
        """The `share` of as many `epochs` over a pool of `n_people` as `updates` allows, at least 1."""
        if self.updates is not None:
            epochs = min(epochs, self.updates // math.ceil(n_people / self.batch_size))
        return max(1, round(self.share * epochs))

    def rate(self, epoch: int, epochs: int) -> float:
        """Learning rate of an epoch, from 1 on, of `epochs`.

        Where `annealed`, it falls from `learning_rate` to 0 as half a cosine (Loshchilov and Hutter 2017).
        """
        if not self.annealed:
            return self.learning_rate
        return 0.5 * (1.0 + math.cos(math.pi * (epoch - 1) / epochs)) * self.learning_rate

    def shortened(self, epochs: int, planned: int) -> Phase1Config:
        """The training for `epochs` instead of `planned` epochs, without a limit of updates.

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
    """N people without labels: x (N, D) and s (N,), or of each replicate x (E, N, D) and s (E, N)."""

    x: Tensor
    s: Tensor

    @classmethod
    def of(cls, people: People) -> Unlabelled:
        """The features and sensitive attributes of `people`."""
        return cls(people.x, people.s)

    def __len__(self) -> int:
        return self.s.shape[-1]

    def rows(self, index: Tensor) -> tuple[Tensor, Tensor]:
        """X (E, n, D) and s (E, n) of the people at `index` (E, n)."""
        if self.s.dim() == 1:
            return self.x[index], self.s[index]
        return take(self.x, index), take(self.s, index)


@dataclass(frozen=True)
class Phase1Task:
    """Everything that a Phase I is computed from; `train_phase1` takes it, and `key` hashes all of it.

    The VAE learns from the people in `pool`, at most `epochs` times, and its epoch is selected on those in
    `validation`. `vae_arch` are the hidden layers of encoder and of decoder, see `ConditionalVAE`.
    """

    pool: Unlabelled
    validation: Unlabelled
    schema: Schema
    seeds: Sequence[int]
    latent_size: int
    vae_arch: Sequence[int]
    group_blind: bool
    config: Phase1Config
    epochs: int

    def key(self) -> str:
        """Hash of the task, the code, the versions and the processor, 16 hexadecimal digits."""
        parts = [processor().encode()]
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, Unlabelled):
                parts += [value.x.numpy().tobytes(), value.s.numpy().tobytes()]
            else:
                parts.append(repr(value).encode())
        return computation_key(*parts)

    def streams(self) -> SeedStreams:
        """Fresh streams of Phase I: first for `untrained_vae`, then for training."""
        return SeedStreams(self.seeds, "phase1")

    def untrained_vae(self, streams: SeedStreams) -> ConditionalVAE:
        """A VAE without ũ, its weights drawn from `streams`, with the pool's small groups seen as others."""
        vae = ConditionalVAE(
            self.schema,
            self.latent_size,
            self.vae_arch,
            streams,
            utility=False,
            group_blind=self.group_blind,
        )
        vae.see_small_groups_as_others(self.pool.x, self.pool.s)
        return vae


def train_phase1(
    task: Phase1Task, *, progress: ProgressCallback, checkpoint: Checkpoint
) -> tuple[ConditionalVAE, PretrainCurves]:
    """Maximise K(θ', φ'; x, s) (eq. 6) and select the weights of each seed's best validation epoch.

    Training of a seed ends early where its validation loss has not improved for `config.patience` epochs and
    is above its best by more than `config.margin`: its selected weights no longer change. A seed whose loss
    was never finite has diverged; its weights are NaN. The weights of a seed are the same to the last bit,
    whatever other seeds are stacked with it (without numba, to rounding: docs/reliability.md).

    Args:
        task: people, sizes and training.
        progress: called once per epoch with the mean of the best validation losses so far.
        checkpoint: to resume from, if there is one; offered the state after every epoch.

    Raises:
        FairAllError: if all seeds have diverged.
        Stopped: if a stop was requested; the checkpoint has the state.
    """
    streams, config, pool, validation = task.streams(), task.config, task.pool, task.validation
    vae = task.untrained_vae(streams)
    training: Phase1Epochs = fastest(Phase1Epochs, vae, pool, config)
    best = BestWeights(vae.parameters())
    # The same noise at every validation: epochs are compared with common random numbers.
    validation_noise = streams.normal(len(validation), vae.latent_size, config.validation_samples)
    curves: dict[str, list[Any]] = {"epochs": [], "train": [], "validation": []}
    parts: dict[str, Any] = {"training": training, "streams": streams, "best": best}

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
            loss = training.epoch(order, noise, best.done, config.rate(epoch, task.epochs))
            if epoch % config.validate_every == 0 or epoch == task.epochs:
                held_out = training.loss(validation, validation_noise)
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


class Phase1Epochs(Stateful):
    """Training of E VAEs without ũ by Adam on minibatches.

    `fairall.nn.native.fastest` has the same compiled, which takes a replicate after the other and leaves the
    same weights to rounding.
    """

    def __init__(self, vae: ConditionalVAE, pool: Unlabelled, config: Phase1Config) -> None:
        self.vae, self.pool, self.config = vae, pool, config
        self.optimiser = Adam(vae.parameters(), config.learning_rate)

    def epoch(self, order: Tensor, noise: Tensor, done: Tensor, learning_rate: float) -> Tensor:
        """Update the VAE on every minibatch of an epoch.

        Args:
            order: indices of all people in the order of the epoch, shape (E, N).
            noise: standard normal ε, L samples per person in that order, shape (E, N, Z, L).
            done: seeds that need no update, shape (E,), bool; here they are updated with the others.
            learning_rate: of this epoch.

        Returns:
            The mean of the losses before each update, shape (E,), in nats per person.
        """
        self.optimiser.learning_rate = learning_rate
        total = torch.zeros(len(order))
        size = self.config.batch_size
        for rows, eps in zip(order.split(size, 1), noise.split(size, 1), strict=True):
            x, s = self.pool.rows(rows)
            loss = -phase1_elbo(self.vae, x, s, eps, beta=self.config.beta)
            self.optimiser.minimise(loss)
            total += loss.detach() * rows.shape[1]
        return total / order.shape[1]

    @torch.no_grad()
    def loss(self, people: Unlabelled, noise: Tensor) -> Tensor:
        """−K of N other people, shape (E,), in nats per person, with L samples for each, (E, N, Z, L)."""
        x, s = people.x.expand(len(noise), -1, -1), people.s.expand(len(noise), -1)
        return -phase1_elbo(self.vae, x, s, noise, beta=self.config.beta)


class BestWeights(Stateful):
    """The best weights so far of E replicates, selected for each by its validation loss.

    Attributes:
        loss: least validation loss, shape (E,); infinite before there was a finite one.
        epoch: epoch of that loss, shape (E,); 0 before there was one.
        done: seeds whose selected weights no longer change, shape (E,), bool.
    """

    kept = ("_best", "loss", "epoch", "done")

    def __init__(self, parameters: Iterable[nn.Parameter]) -> None:
        self._parameters = list(parameters)
        self._best = [parameter.detach().clone() for parameter in self._parameters]
        n_seeds = self._parameters[0].shape[0]
        self.loss = torch.full((n_seeds,), float("inf"))
        self.epoch = torch.zeros(n_seeds, dtype=torch.long)
        self.done = torch.zeros(n_seeds, dtype=torch.bool)

    def update(self, epoch: int, loss: Tensor, *, patience: int | None, margin: float) -> None:
        """Select the current weights of the seeds with their least loss so far.

        Args:
            epoch: number of the current epoch, from 1.
            loss: its validation loss, shape (E,).
            patience: a seed is done if its loss has not improved for so many epochs; None: never.
            margin: and is above its best by more than this.
        """
        better = ~self.done & (loss < self.loss)
        self.loss = torch.where(better, loss, self.loss)
        self.epoch[better] = epoch
        for kept, current in zip(self._best, self._parameters, strict=True):
            kept[better] = current.detach()[better]
        if patience is not None:
            self.done |= (epoch - self.epoch >= patience) & (loss > self.loss + margin)

    @torch.no_grad()
    def restore(self) -> None:
        """Copy the selected weights into the net; NaN for a seed that never had a finite loss."""
        diverged = self.epoch == 0
        for parameter, kept in zip(self._parameters, self._best, strict=True):
            parameter.copy_(kept)
            parameter[diverged] = torch.nan
