"""Phase I: the conditional VAE trained offline on people without labels (section 4.3).

References:
    Loshchilov, Hutter: SGDR: stochastic gradient descent with warm restarts, ICLR 2017.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from fairall.config.checks import MISSING, at_least, not_negative, positive, positive_share
from fairall.data.features import Schema
from fairall.data.people import People
from fairall.display.progress import ProgressCallback
from fairall.errors import FairAllError
from fairall.models.elbo import elbo
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
            patience=self.patience and share(self.patience),
        )


@dataclass(frozen=True)
class Phase1Task:
    """Everything that a Phase I is computed from; `train_phase1` takes it, and `key` hashes all of it.

    The VAE learns from the people in `pool`, at most `epochs` times, and its epoch is selected on those in
    `validation`; of both, x and s alone are used. `vae_arch` are the hidden layers of encoder and of decoder,
    see `ConditionalVAE`.
    """

    pool: People = field(repr=False)
    validation: People = field(repr=False)
    schema: Schema
    seeds: Sequence[int]
    latent_size: int
    vae_arch: Sequence[int]
    group_blind: bool
    config: Phase1Config
    epochs: int
    blind_encoder: bool | None = None

    def key(self) -> str:
        """Hash of the task, the code, the versions and the processor, 16 hexadecimal digits."""
        people = [values.numpy().tobytes() for of in (self.pool, self.validation) for values in (of.x, of.s)]
        return computation_key(processor().encode(), repr(self).encode(), *people)

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
            blind_encoder=self.blind_encoder,
        )
        vae.see_small_groups_as_others(self.pool)
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
    own = Phase1(task)
    begun = checkpoint.load()
    if begun is not None:
        own.load_state_dict(begun)
        progress(resumed=own.epoch)
    with signals.deferred():
        while own.epoch < task.epochs and not own.done.all():
            own.next_epoch(task)
            progress(validation_loss=own.loss.mean().item())
            checkpoint.maybe_save(own.state_dict)
    diverged = own.best_epoch == 0
    if diverged.all():
        raise FairAllError(
            "Phase I diverged: the validation loss was never finite; lower phase1.learning_rate, "
            f"which is {task.config.learning_rate:g}"
        )
    for parameter in own.best.parameters():
        parameter.data[diverged] = torch.nan
    epochs, train, held_out = zip(*own.curves, strict=True)
    return own.best, PretrainCurves(
        torch.tensor(epochs), torch.stack(train), torch.stack(held_out), own.best_epoch, own.loss
    )


class Phase1(Stateful):
    """A Phase I after some of its epochs.

    Attributes:
        best: the weights of each seed with its least validation loss so far.
        loss: that loss, shape (E,); infinite before there was a finite one.
        best_epoch: epoch of that loss, shape (E,); 0 before there was one.
        done: seeds whose selected weights no longer change, shape (E,), bool.
        curves: epoch, losses in training and validation losses, each (E,), of every validation.
    """

    kept = ("epoch", "curves", "loss", "best_epoch", "done")

    def __init__(self, task: Phase1Task) -> None:
        config = task.config
        self.streams = task.streams()
        vae = task.untrained_vae(self.streams)
        self.best = copy.deepcopy(vae)
        given = vae, task.pool, config
        # What is compiled has one s for encoder and decoder.
        self.training = Phase1Epochs(*given) if task.blind_encoder else fastest(Phase1Epochs, *given)
        # The same noise at every validation: epochs are compared with common random numbers.
        self._noise = self.streams.normal(len(task.validation), task.latent_size, config.validation_samples)
        self.epoch = 0
        self.curves: list[tuple[int, Tensor, Tensor]] = []
        self.loss = torch.full((len(task.seeds),), torch.inf)
        self.best_epoch = torch.zeros_like(self.loss, dtype=torch.long)
        self.done = self.best_epoch > 0

    def next_epoch(self, task: Phase1Task) -> None:
        """Train for an epoch; after every `config.validate_every`, and after the last one, validate."""
        config, n_people = task.config, len(task.pool)
        self.epoch += 1
        order = self.streams.permutations(n_people)
        noise = self.streams.normal(n_people, task.latent_size, config.elbo_samples)
        loss = self.training.epoch(order, noise, self.done, config.rate(self.epoch, task.epochs))
        if self.epoch % config.validate_every > 0 and self.epoch < task.epochs:
            return
        with torch.no_grad():
            held_out = self.training.loss(task.validation, self._noise)
        self.curves.append((self.epoch, loss, held_out))
        better = ~self.done & (held_out < self.loss)
        self.loss = torch.where(better, held_out, self.loss)
        self.best_epoch[better] = self.epoch
        for kept, current in zip(self.best.parameters(), self.training.vae.parameters(), strict=True):
            kept.data[better] = current.data[better]
        late = self.epoch - self.best_epoch >= (config.patience or math.inf)
        self.done |= late & (held_out > self.loss + config.margin)


class Phase1Epochs(Stateful):
    """Training of E VAEs without ũ by Adam on minibatches.

    `fairall.nn.native.fastest` has the same compiled, which takes a replicate after the other and leaves the
    same weights to rounding.
    """

    def __init__(self, vae: ConditionalVAE, pool: People, config: Phase1Config) -> None:
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
            loss = self.loss(self.pool.rows(rows), eps)
            self.optimiser.minimise(loss)
            total += loss.detach() * rows.shape[1]
        return total / order.shape[1]

    def loss(self, people: People, noise: Tensor) -> Tensor:
        """−K of N people, shape (E,), in nats per person, with L samples for each, (E, N, Z, L)."""
        x, s = people.x.expand(len(noise), -1, -1), people.s.expand(len(noise), -1)
        return -elbo(self.vae, x, s, noise, beta=self.config.beta).mean(-1)
