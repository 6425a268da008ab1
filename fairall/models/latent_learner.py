"""Learners that decide on a fair latent: a semi-supervised VAE, and a policy derived from it (section 4).

Policies (section 4.2, appendix D.4): `clf` is the classifier q(ũ = 1 | x, s), which sees s and has no
fairness constraint, `dec` the decoder p(ũ = 1 | z, s), which sees s. `z_dec` (the paper's choice), `z_clf`
and `z_label` are π^Z, a net of z alone that is trained on the applicants of every step.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from fairall.config.checks import (
    at_least,
    below_one,
    even,
    hidden_sizes,
    not_negative,
    one_of,
    optional,
    positive,
)
from fairall.config.schema import KL, LatentFrame, ModelConfig, NoiseKind, VaeStart
from fairall.data.people import Decided, take
from fairall.data.prepared import PreparedData
from fairall.display.progress import ProgressCallback
from fairall.errors import count
from fairall.models.alignment import matching_frame
from fairall.models.elbo import elbo, reparameterize, unlabelled_elbo
from fairall.models.learner import (
    DECISIONS,
    DecisionRule,
    Learner,
    PretrainCurves,
    Setting,
)
from fairall.models.memory import MEMORIES, Memory
from fairall.models.objectives import (
    classification_risk,
    cost_sensitive_cross_entropy,
    ips_weight,
    masked_mean,
    packed,
    train_on,
)
from fairall.models.phase1 import Phase1Config, Phase1Task, train_phase1
from fairall.models.vae import FEW, ConditionalVAE, SemiSupervisedVAE, imputation, nearest_large_groups
from fairall.nn.adam import Adam
from fairall.nn.native import fastest
from fairall.nn.noise import RandomNumbers
from fairall.nn.objective import Objective
from fairall.nn.stacked import StackedMLP, average_probability, in_chunks
from fairall.runtime.randomness import SeedStreams
from fairall.storage.checkpoint import Cache, Checkpoint, Stateful

NET_POLICIES = ("z_dec", "z_clf", "z_label")
POLICIES = (*NET_POLICIES, "clf", "dec")


@dataclass
class LatentConfig(ModelConfig):
    """Architecture and training of a learner with a latent; Phase I is skipped where `phase1` is null.

    With `blind_encoder` encoder and classifier do not read s, so that a policy of z does not depend on it.
    """

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
    blind_encoder: bool | None = optional()
    kl_samples = 0  # K, of a subclass whose loss has U


class LatentLearner(Learner):
    """A semi-supervised VAE, pretrained in Phase I if there is one, and a policy derived from it.

    Its loss is J = α·R − L (eq. 2 without U), and where `config.kl_samples` is positive J = α·R − L − U. A
    subclass may have another `loss`, which is then trained by torch.

    Attributes:
        model: VAE and classifier.
        policy_net: π^Z, of a policy that has a net.
        past: everybody so far, with `memory=all`; empty with `memory=step`.
    """

    config: LatentConfig
    config_type = LatentConfig
    two_groups = False

    def __init__(self, config: LatentConfig, setting: Setting) -> None:
        super().__init__(config, setting)
        self.streams = SeedStreams(setting.seeds, "phase2")
        self.past = Memory(config.memory)
        self.replays = SeedStreams(setting.seeds, "replay")
        self.noise = RandomNumbers(
            setting.seeds, "noise of phase2", stratified=setting.protocol.noise is NoiseKind.stratified
        )
        vae = ConditionalVAE(
            setting.schema,
            config.latent_size,
            config.vae_arch,
            self.streams,
            utility=True,
            group_blind=setting.protocol.vae_start is VaeStart.group_blind,
            blind_encoder=config.blind_encoder,
        )
        net = functools.partial(
            StackedMLP,
            hidden=config.clf_arch,
            n_out=1,
            streams=self.streams,
            dropout=config.clf_dropout,
        )
        # The policy takes the classifier's architecture (appendix D.4).
        self.model = SemiSupervisedVAE(vae, net(vae.inputs.size_with_s))
        self.policy_net = net(config.latent_size) if config.policy in NET_POLICIES else None
        # The decoder estimates p(ũ = 1); the targets or the loss of the other policies contain c already.
        least = setting.cost if config.policy == "dec" else 0.5
        self.rule = DecisionRule(least, drawn=config.decision == "sample")
        self.epochs = fastest(Phase2Epochs, self)

    @property
    def trains_classifier(self) -> bool:
        """Whether R is part of the loss."""
        return True

    def elbo_weight(self, batch: Decided) -> Tensor:
        """Weight of labelled people in L, shape (E, B)."""
        return torch.ones_like(batch.propensity)

    def loss(self, batch: Decided) -> Tensor:
        """J on a minibatch, shape (E,): R and L averaged over labelled, U over unlabelled people."""
        config, vae, noise, risk = self.config, self.model.vae, self.noise, torch.zeros(())
        n_elbo, n_kl, size, beta = config.elbo_samples, config.kl_samples, config.latent_size, config.beta
        most = max(n_elbo, n_kl)
        if self.trains_classifier:
            classified = self.model.classifier.forward_transposed(
                vae.encoder_input(batch.x, batch.s), noise
            ).squeeze(1)
            risk = classification_risk(classified, batch, self.setting)
        rows, counts = packed(batch.accepted)
        known, eps = batch.rows(rows), noise.samples(rows.shape[1], size, most, counts=counts)
        of_label = elbo(vae, known.x, known.s, eps[..., :n_elbo], beta=beta, utility=known.label)
        loss = config.alpha * risk - masked_mean(self.elbo_weight(known) * of_label, known.accepted)
        if n_kl == 0:
            return loss
        rows, counts = packed(~batch.accepted)
        others, eps = batch.rows(rows), noise.samples(rows.shape[1], 2, size, most, counts=counts)
        given = vae, others.x, others.s, eps[..., :n_elbo], eps[..., :n_kl], take(classified.detach(), rows)
        of_others = unlabelled_elbo(*given, beta=beta, kl=self.setting.protocol.kl)
        return loss - masked_mean(of_others, ~others.accepted)

    def objective(self) -> Objective | None:
        """The losses in numbers, so that a compiled twin can; None where it could not compute them."""
        config, setting = self.config, self.setting
        if type(self).loss is not LatentLearner.loss or config.blind_encoder:
            return None
        return Objective(
            beta=float(config.beta),
            min_scale=self.model.vae.min_scale,
            n_elbo=config.elbo_samples,
            n_kl=config.kl_samples,
            alpha=float(config.alpha),
            cost=setting.cost,
            dropout=float(config.clf_dropout),
            unlabelled=config.kl_samples > 0,
            trains_classifier=self.trains_classifier,
            density=setting.protocol.kl is KL.density,
            stratified=self.noise.stratified,
            learns_labels=config.policy == "z_label",
            from_decoder=config.policy == "z_dec",
        )

    def tables(self, decided: Decided) -> tuple[Tensor, ...]:
        """What an `objective` is a function of, for each person.

        Returns:
            Inputs of the nets (E, B, inputs), s the last; features by kind, (E, B, D); and, all of shape
            (E, B), log h(x), d, ỹ, the weights of labelled people in R and in L, and the number of the group.
        """
        vae = self.model.vae
        return (
            vae.encoder_input(decided.x, decided.s).mT,
            decided.x[..., vae.likelihood.columns],
            vae.likelihood.log_base(decided.x),
            decided.accepted,
            decided.label,
            ips_weight(decided.propensity, decided.accepted, self.setting.protocol.max_ips_weight),
            self.elbo_weight(decided),
            vae.group(decided.s),
        )

    def pretrain_units(self, data: PreparedData) -> int:
        """Number of Phase I epochs, 0 without a Phase I."""
        config = self.config.phase1
        return 0 if config is None else self.phase1_task(data, config).epochs

    def notes(self, data: PreparedData) -> list[str]:
        """Notes on small groups of more than two, and one where `phase1.updates` limits Phase I."""
        told, pool, words = list[str](), data.pool, data.pool_table.sensitive
        names = words.names if words is not None else ()
        seen_as = nearest_large_groups(pool.x, pool.s, data.schema.n_groups)
        for name, numbers in zip(names, seen_as.mT, strict=False):
            others = [names[other] for other in numbers.unique().tolist() if names[other] != name]
            if others:
                told.append(
                    f"group {name} has fewer than {FEW} people in the pool, so that encoder, decoder and "
                    f"classifier see it as {' or '.join(others)}"
                )
        epochs, config = self.pretrain_units(data), self.config.phase1
        if config is not None:
            planned = self.phase1_task(data, replace(config, updates=None)).epochs
            if epochs < planned:
                told.append(
                    f"Phase I is limited to {count(epochs, 'epoch')} of {planned} "
                    f"(model.phase1.updates={config.updates}; null: no limit)"
                )
        return told

    def phase1_task(self, data: PreparedData, config: Phase1Config) -> Phase1Task:
        """Phase I of this learner on the people of `data`, within the limit of updates."""
        setting = self.setting
        planned = setting.schedule.phase1_epochs
        epochs = config.epochs_within(planned, len(data.pool))
        return Phase1Task(
            pool=data.pool,
            validation=data.validation,
            schema=setting.schema,
            seeds=list(setting.seeds),
            latent_size=self.config.latent_size,
            vae_arch=self.config.vae_arch,
            group_blind=setting.protocol.vae_start is VaeStart.group_blind,
            config=config.shortened(epochs, planned),
            epochs=epochs,
            blind_encoder=self.config.blind_encoder,
        )

    def pretrain(self, data: PreparedData, cache: Cache, progress: ProgressCallback) -> PretrainCurves | None:
        """Train Phase I or take its result from the cache, and transfer its weights."""
        if self.config.phase1 is None:
            self.model.vae.see_small_groups_as_others(data.pool)
            return None
        task = self.phase1_task(data, self.config.phase1)

        def train(checkpoint: Checkpoint) -> dict[str, Any]:
            vae, curves = train_phase1(task, progress=progress, checkpoint=checkpoint)
            return {"vae": vae.state_dict(), "curves": dict(vars(curves))}

        trained = cache.part("phase1").result(task.key(), train)
        vae = task.untrained_vae(task.streams())
        vae.load_state_dict(trained["vae"])
        matched = self.setting.protocol.latent_frame is LatentFrame.matched
        if matched and not self.config.blind_encoder:
            vae.frame.copy_(matching_frame(vae, data.pool))
        self.model.vae.transfer_from(vae)
        return PretrainCurves(**trained["curves"])

    def warm_up_epoch(self, decided: Decided, epoch: int) -> dict[str, float]:
        """Train VAE and classifier for one epoch; after the last one, the policy for as many epochs."""
        if epoch == 0:
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
        decided = self.past.replay(decided, self.setting.schedule.batches_per_epoch, self.replays)
        self.epochs.model_epoch(self, decided)
        self.epochs.policy_epoch(self, decided)

    @torch.no_grad()
    def score(self, x: Tensor, s: Tensor, streams: SeedStreams) -> Tensor:
        """Probability that the policy computes, shape (E, B).

        π(d=1 | x, s) = Σ_ũ q(ũ | x, s)·E_{z ~ q(z | x, s, ũ)}[π(z)]; of `clf` q(ũ = 1 | x, s). The streams
        draw ε for `config.propensity_samples` of z per person and ũ. Both values of ũ use the same antithetic
        ε: terms odd in ε then cancel, which halves the number of samples needed for a given error
        (docs/protocols.md).
        """
        config, model, net = self.config, self.model, self.policy_net

        def of_some(x: Tensor, s: Tensor) -> Tensor:
            logit = model.classify(x, s)
            if config.policy == "clf":
                return torch.sigmoid(logit)
            loc, scale = model.posteriors(x, s)
            noise = streams.normal_samples(x.shape[1], config.latent_size, config.propensity_samples)
            if net is None:
                z = reparameterize(loc, scale, noise.unsqueeze(2)).transpose(2, 3).flatten(3)
                accepts = model.decoded_utility(z, s).unflatten(-1, (2, -1)).mean(-1)
            else:
                accepts = average_probability(net, loc, scale, noise)
            return (imputation(logit) * accepts).sum(-1)

        return in_chunks(of_some, x, s)

    def policy_loss(self, batch: Decided) -> Tensor:
        """Cost-sensitive cross-entropy of π^Z with what it is to decide, shape (E,).

        `z_label` learns the labels of the accepted, weighted by 1/π; `z_clf` and `z_dec` learn from everybody
        whether the classifier's or the decoder's estimate of p(ũ = 1) is at least c.
        """
        model, policy, net, cost = self.model, self.config.policy, self.policy_net, self.setting.cost
        assert net is not None
        with torch.no_grad():
            z = model.draw_latent(batch, self.noise)
            if policy == "z_dec":
                estimate = model.decoded_utility(z.unsqueeze(-1), batch.s).squeeze(-1)
            elif policy == "z_clf":
                # The classifier's loss weighs labels by c and 1 − c; the shift of the logit undoes that.
                estimate = torch.sigmoid(model.classify(batch.x, batch.s) + math.log(cost / (1.0 - cost)))
        logit = net(z, self.noise).squeeze(-1)
        if policy == "z_label":
            return classification_risk(logit, batch, self.setting)
        return cost_sensitive_cross_entropy(logit, (estimate >= cost).to(logit.dtype), cost).mean(-1)

    @torch.no_grad()
    def representation(self, x: Tensor, s: Tensor) -> Tensor:
        """E[z | x, s], shape (E, B, Z)."""
        return in_chunks(self.model.latent_mean, x, s)

    @torch.no_grad()
    def reconstruction(self, x: Tensor, s: Tensor) -> Tensor:
        """X (E, B, D) decoded from its latent mean."""
        return in_chunks(self.model.reconstruct, self.representation(x, s), s)


class Phase2Epochs(Stateful):
    """Training of the nets of a learner by `LatentLearner.loss` and `LatentLearner.policy_loss`.

    `fairall.nn.native.fastest` has the same compiled, which takes a replicate after the other and leaves the
    same weights to rounding.
    """

    def __init__(self, learner: LatentLearner) -> None:
        net, rate = learner.policy_net, learner.config.learning_rate
        self.model = Adam(learner.model.parameters(), rate)
        self.policy = None if net is None else Adam(net.parameters(), rate)

    def model_epoch(self, learner: LatentLearner, decided: Decided) -> float:
        """Update VAE and classifier on every minibatch; the loss of the last, averaged over replicates."""
        batches = decided.minibatches(learner.setting.schedule.batches_per_epoch, learner.streams)
        return train_on(batches, learner.loss, self.model)

    def policy_epoch(self, learner: LatentLearner, decided: Decided) -> None:
        """Update the policy net, if there is one, on every minibatch."""
        if self.policy is not None:
            batches = decided.minibatches(learner.setting.schedule.batches_per_epoch, learner.streams)
            train_on(batches, learner.policy_loss, self.policy)
