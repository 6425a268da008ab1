"""Base class of learners that decide on a fair latent: all but the loss of the VAE and the classifier."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from fairall.config.checks import at_least, below_one, even, hidden_sizes, not_negative, one_of, positive
from fairall.config.schema import KL, LatentFrame, ModelConfig, NoiseKind
from fairall.data.people import Decided
from fairall.data.prepared import PreparedData
from fairall.display.progress import ProgressCallback
from fairall.errors import count
from fairall.models.alignment import matching_frame
from fairall.models.learner import (
    DECISIONS,
    DecisionRule,
    Learner,
    PretrainCurves,
    Setting,
)
from fairall.models.memory import MEMORIES, Memory
from fairall.models.objectives import ips_weight, train_on
from fairall.models.phase1 import Phase1Config, Phase1Task, Unlabelled, train_phase1
from fairall.models.policy_heads import NET_POLICIES, POLICIES, acceptance, net_loss
from fairall.models.vae import FEW, ConditionalVAE, SemiSupervisedVAE, nearest_large_groups
from fairall.nn.adam import Adam
from fairall.nn.native import Objective, fastest
from fairall.nn.noise import RandomNumbers
from fairall.nn.stacked import StackedMLP, in_chunks
from fairall.runtime.randomness import SeedStreams
from fairall.storage.checkpoint import Cache, Checkpoint, Stateful


@dataclass
class LatentConfig(ModelConfig):
    """Architecture and training of a learner with a latent; Phase I is skipped where `phase1` is null."""

    policy: str = one_of(POLICIES)
    decision: str = one_of(DECISIONS)
    memory: str = one_of(MEMORIES)
    learning_rate: float = positive()
    latent_size: int = at_least(1)
    vae_arch: list[int] = hidden_sizes()
    clf_arch: list[int] = hidden_sizes()
    clf_dropout: float = below_one()
    alpha: float = not_negative()
    beta: float = not_negative()
    elbo_samples: int = at_least(1)
    propensity_samples: int = even()
    phase1: Phase1Config | None = field(default_factory=Phase1Config)


class LatentLearner(Learner):
    """A semi-supervised VAE, pretrained in Phase I if there is one, and a policy derived from it.

    Attributes:
        model: VAE and classifier.
        policy_net: π^Z, of a policy that has a net.
        past: everybody so far, with `memory=all`; None with `memory=step`.
    """

    config: LatentConfig
    two_groups = False

    def __init__(self, config: LatentConfig, setting: Setting) -> None:
        super().__init__(config, setting)
        self.streams = SeedStreams(setting.seeds, "phase2")
        self.past = Memory("all") if config.memory == "all" else None
        self.replays = SeedStreams(setting.seeds, "replay")
        stratified = setting.protocol.noise is NoiseKind.stratified
        self.noise = RandomNumbers(setting.seeds, "noise of phase2", stratified=stratified)
        vae = ConditionalVAE(
            setting.schema,
            config.latent_size,
            config.vae_arch,
            self.streams,
            utility=True,
            group_blind=setting.group_blind,
        )

        def net(n_in: int) -> StackedMLP:
            dropout, gain = config.clf_dropout, setting.gain
            return StackedMLP(n_in, config.clf_arch, 1, self.streams, dropout=dropout, gain=gain)

        # The policy takes the classifier's architecture (appendix D.4).
        self.model = SemiSupervisedVAE(vae, net(vae.inputs.size_with_s))
        self.policy_net = net(config.latent_size) if config.policy in NET_POLICIES else None
        # The decoder estimates p(ũ = 1); the targets or the loss of the other policies contain c already.
        least = setting.cost if config.policy == "dec" else 0.5
        self.rule = DecisionRule(least, drawn=config.decision == "sample")
        self.epochs = fastest(Phase2Epochs, self)

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        owner = next(base for base in cls.__mro__ if vars(base).keys() & {"loss", "objective"})
        if "objective" not in vars(owner):
            cls.objective = LatentLearner.objective  # type: ignore[method-assign]

    @abstractmethod
    def loss(self, batch: Decided) -> Tensor:
        """Loss of VAE and classifier on a minibatch, shape (E,)."""

    def objective(self) -> Objective | None:
        """What `loss` computes, so that a compiled twin can, see `_objective`; None where there is no twin.

        A subclass with a `loss`, its own or a mixin's, and without an `objective` beside it has none.
        """
        return None

    def _objective(self, **terms: Any) -> Objective:
        """The loss in numbers; `terms` are the fields of `Objective` that are the method's own."""
        config, setting, protocol = self.config, self.setting, self.setting.protocol
        return Objective(
            n_elbo=config.elbo_samples,
            alpha=float(config.alpha),
            beta=float(config.beta),
            cost=setting.cost,
            dropout=float(config.clf_dropout),
            min_scale=self.model.vae.min_scale,
            density=protocol.kl is KL.density,
            stratified=self.noise.stratified,
            learns_labels=config.policy == "z_label",
            from_decoder=config.policy == "z_dec",
            **terms,
        )

    def tables(self, decided: Decided) -> tuple[Tensor, ...]:
        """What an `objective` is a function of, for each person.

        Returns:
            Inputs of the nets (E, B, inputs), s the last; features by kind, (E, B, D); and, all of shape
            (E, B), log h(x), d, ỹ, the weights of labelled people in R and in L, and the number of the frame.
        """
        vae, most = self.model.vae, self.setting.protocol.max_ips_weight
        return (
            vae.encoder_input(decided.x, decided.s).mT,
            decided.x[..., vae.likelihood.columns],
            vae.likelihood.log_base(decided.x),
            decided.accepted,
            decided.label,
            ips_weight(decided.propensity, decided.accepted, most),
            self.elbo_weight(decided),
            vae.frame_number(decided.s),
        )

    def elbo_weight(self, batch: Decided) -> Tensor:
        """Weight of labelled people in L, shape (E, B)."""
        return torch.ones_like(batch.propensity)

    def pretrain_units(self, data: PreparedData) -> int:
        """Number of Phase I epochs, 0 without a Phase I."""
        config = self.config.phase1
        return 0 if config is None else self.phase1_task(data, config).epochs

    def notes(self, data: PreparedData) -> list[str]:
        """A note where `phase1.updates` limits Phase I, and one on small groups of more than two."""
        told = self._small_groups(data)
        if (config := self.config.phase1) is None:
            return told
        epochs, planned = (
            one.epochs_within(self.setting.schedule.phase1_epochs, len(data.pool))
            for one in (config, replace(config, updates=None))
        )
        if epochs == planned:
            return told
        return [
            *told,
            f"Phase I is limited to {count(epochs, 'epoch')} of {planned} "
            f"(model.phase1.updates={config.updates}; null: no limit)",
        ]

    def _small_groups(self, data: PreparedData) -> list[str]:
        told, words = list[str](), data.pool_table.sensitive
        if words is None or not words.further:
            return told
        seen_as = nearest_large_groups(data.pool.x, data.pool.s, data.schema.n_groups)
        for g, name in enumerate(words.names):
            others = [words.names[other] for other in seen_as[:, g].unique().tolist() if other != g]
            if others:
                told.append(
                    f"group {name} has fewer than {FEW} people in the pool, so that encoder, decoder and "
                    f"classifier see it as {' or '.join(others)}"
                )
        return told

    def phase1_task(self, data: PreparedData, config: Phase1Config) -> Phase1Task:
        """Phase I of this learner on the people of `data`, within the limit of updates."""
        setting = self.setting
        planned = setting.schedule.phase1_epochs
        epochs = config.epochs_within(planned, len(data.pool))
        return Phase1Task(
            pool=Unlabelled.of(data.pool),
            validation=Unlabelled.of(data.validation),
            schema=setting.schema,
            seeds=list(setting.seeds),
            latent_size=self.config.latent_size,
            vae_arch=self.config.vae_arch,
            group_blind=setting.group_blind,
            config=config.shortened(epochs, planned),
            epochs=epochs,
        )

    def pretrain(self, data: PreparedData, cache: Cache, progress: ProgressCallback) -> PretrainCurves | None:
        """Train Phase I or take its result from the cache, and transfer its weights."""
        if self.config.phase1 is None:
            self.model.vae.see_small_groups_as_others(data.pool.x, data.pool.s)
            return None
        task, protocol = self.phase1_task(data, self.config.phase1), self.setting.protocol

        def train(checkpoint: Checkpoint) -> dict[str, Any]:
            vae, curves = train_phase1(task, progress=progress, checkpoint=checkpoint)
            return {"vae": vae.state_dict(), "curves": dict(vars(curves))}

        trained = cache.part("phase1").result(task.key(), train)
        vae = task.untrained_vae(task.streams())
        vae.load_state_dict(trained["vae"])
        if protocol.latent_frame is LatentFrame.matched:
            vae.apply_frame(matching_frame(vae, data.pool))
        self.model.vae.transfer_from(vae)
        return PretrainCurves(**trained["curves"])

    def warm_up_epoch(self, decided: Decided, epoch: int) -> dict[str, float]:
        """Train VAE and classifier for one epoch; after the last one, the policy for as many epochs."""
        if epoch == 0 and self.past is not None:
            self.past.add(decided)
        epochs, loss = self.setting.schedule.warm_up_epochs, self.epochs.model_epoch(self, decided)
        if epoch == epochs - 1:
            for _ in range(epochs):
                self.epochs.policy_epoch(self, decided)
            # Where the initial policy accepts only people with label 1, gradients end close to zero. With the
            # second moments of those, Adam's first steps in Phase II would be large enough to kill ReLUs.
            self.epochs = fastest(Phase2Epochs, self)
        return {"loss": loss}

    def update(self, decided: Decided) -> None:
        """Train VAE and classifier for one epoch, then the policy for one.

        With `memory=all` an epoch is of people drawn from everybody so far, with the propensities of their
        time, and a minibatch is as large as the applicants of a time step.
        """
        if self.past is not None:
            decided = self.past.replay(decided, self.setting.schedule.batches_per_epoch, self.replays)
        self.epochs.model_epoch(self, decided)
        self.epochs.policy_epoch(self, decided)

    @torch.no_grad()
    def score(self, x: Tensor, s: Tensor, streams: SeedStreams) -> Tensor:
        """Probability that the policy computes, shape (E, B); see `policy_heads.acceptance`."""
        policy, n_samples = self.config.policy, self.config.propensity_samples
        return in_chunks(
            lambda x, s: acceptance(policy, self.model, self.policy_net, x, s, streams, n_samples), x, s
        )

    @torch.no_grad()
    def representation(self, x: Tensor, s: Tensor) -> Tensor:
        """E[z | x, s], shape (E, B, Z)."""
        return in_chunks(self.model.latent_mean, x, s)

    @torch.no_grad()
    def reconstruction(self, x: Tensor, s: Tensor) -> Tensor:
        """X (E, B, D) decoded from its latent mean."""
        return in_chunks(self.model.reconstruct, self.representation(x, s), s)


class Phase2Epochs(Stateful):
    """Training of the nets of a learner by `LatentLearner.loss` and `policy_heads.net_loss`.

    `fairall.nn.native.fastest` has the same compiled, which takes a replicate after the other and leaves the
    same weights to rounding.
    """

    def __init__(self, learner: LatentLearner) -> None:
        rate, net = learner.config.learning_rate, learner.policy_net
        self.model = Adam(learner.model.parameters(), rate)
        self.policy = None if net is None else Adam(net.parameters(), rate)

    def model_epoch(self, learner: LatentLearner, decided: Decided) -> float:
        """Update VAE and classifier on every minibatch; the loss of the last, averaged over replicates."""
        return train_on(self._minibatches(learner, decided), learner.loss, self.model)

    def policy_epoch(self, learner: LatentLearner, decided: Decided) -> None:
        """Update the policy net, if there is one, on every minibatch."""
        policy, net = learner.config.policy, learner.policy_net

        def loss(batch: Decided) -> Tensor:
            assert net is not None
            return net_loss(policy, learner.model, net, batch, learner.noise, learner.setting)

        if self.policy is not None:
            train_on(self._minibatches(learner, decided), loss, self.policy)

    def _minibatches(self, learner: LatentLearner, decided: Decided) -> list[Decided]:
        return decided.minibatches(learner.setting.schedule.batches_per_epoch, learner.streams)
