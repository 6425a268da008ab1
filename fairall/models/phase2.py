"""Epochs of Phase II: VAE, classifier and policy net by Adam on minibatches of applicants (section 4.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from fairall.config.schema import KL, PolicyLoss, PolicyTarget
from fairall.data.people import Decided
from fairall.models.objectives import ips_weight, train_on
from fairall.models.policy_heads import NET_POLICIES, net_loss
from fairall.models.vae import MIN_SCALE
from fairall.nn import native
from fairall.nn.adam import Adam
from fairall.storage.state import Stateful

if TYPE_CHECKING:
    from fairall.models.latent_learner import LatentLearner


def phase2_epochs(learner: LatentLearner) -> TorchPhase2 | CompiledPhase2:
    """Training of a learner's nets, compiled if possible."""
    compiled = learner.compiled_loss is not None and native.takes(*learner.parameters())
    return CompiledPhase2(learner) if compiled else TorchPhase2(learner)


class TorchPhase2(Stateful):
    """Epochs by `LatentLearner.loss` and `policy_heads.net_loss`, which are differentiated by torch."""

    def __init__(self, learner: LatentLearner) -> None:
        rate, net = learner.config.learning_rate, learner.policy_net
        self.model = Adam(learner.model.parameters(), rate)
        self.policy = None if net is None else Adam(net.parameters(), rate)

    def model_epoch(self, learner: LatentLearner, decided: Decided) -> float:
        """Update VAE and classifier on every minibatch; the loss of the last, averaged over replicates."""
        return train_on(minibatches(learner, decided), learner.loss, self.model)

    def policy_epoch(self, learner: LatentLearner, decided: Decided) -> None:
        """Update the policy net, if there is one, on every minibatch."""
        if self.policy is None:
            return
        policy, model, setting = learner.config.policy, learner.model, learner.setting

        def loss(batch: Decided) -> Tensor:
            return net_loss(policy, model, learner.policy_net, batch, learner.noise, setting)

        train_on(minibatches(learner, decided), loss, self.policy)


def minibatches(learner: LatentLearner, decided: Decided) -> list[Decided]:
    """The minibatches of an epoch."""
    return decided.minibatches(learner.setting.schedule.batches_per_epoch, learner.streams)


class CompiledPhase2:
    """The same compiled, from the same random numbers, one replicate after the other."""

    def __init__(self, learner: LatentLearner) -> None:
        config, setting, vae = learner.config, learner.setting, learner.model.vae
        protocol, loss = setting.protocol, learner.compiled_loss
        net = learner.policy_net
        nets = [one.weights_and_biases() for one in (vae.encoder, vae.decoder, learner.model.classifier)]
        self.epochs = native.Phase2Epochs(
            nets,
            [] if net is None else net.weights_and_biases(),
            vae.likelihood,
            vae.frame,
            learner.noise.state,
            native.Objective(
                n_batches=setting.schedule.batches_per_epoch,
                n_elbo=config.elbo_samples,
                n_kl=loss["kl_samples"],
                stratified=learner.noise.stratified,
                dropout=np.float32(config.clf_dropout),
                learning_rate=config.learning_rate,
                alpha=np.float32(config.alpha),
                beta=np.float32(config.beta),
                cost=np.float32(setting.cost),
                min_scale=np.float32(MIN_SCALE),
                unlabelled=loss["unlabelled"],
                trains_classifier=loss["trains_classifier"],
                through_classifier=protocol.classifier_in_unlabelled_elbo,
                density=protocol.kl is KL.density,
                hard=protocol.policy_target is PolicyTarget.hard,
                cost_sensitive=protocol.policy_loss is PolicyLoss.cost_sensitive,
            ),
            NET_POLICIES.index(config.policy) if net is not None else 0,
        )

    def model_epoch(self, learner: LatentLearner, decided: Decided) -> float:
        vae = learner.model.vae
        order = learner.streams.permutations(decided.s.shape[1])
        given = vae.encoder_input(decided.x, decided.s)
        x = decided.x[..., vae.likelihood.columns].mT
        ips = ips_weight(decided.propensity, decided.accepted, learner.setting.protocol.max_ips_weight)
        people = (given, x, vae.likelihood.log_base(decided.x), decided.accepted, decided.label, ips)
        return self.epochs.model_epoch(order, (*people, learner.elbo_weight(decided))).mean().item()

    def policy_epoch(self, learner: LatentLearner, decided: Decided) -> None:
        if learner.policy_net is None:
            return
        order = learner.streams.permutations(decided.s.shape[1])
        given = learner.model.vae.encoder_input(decided.x, decided.s)
        ips = ips_weight(decided.propensity, decided.accepted, learner.setting.protocol.max_ips_weight)
        self.epochs.policy_epoch(order, (given, decided.accepted, decided.label, ips))

    def state_dict(self) -> dict[str, Any]:
        return self.epochs.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.epochs.load_state_dict(state)
