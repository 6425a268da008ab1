"""Epochs of Phase II: VAE, classifier and policy net by Adam on minibatches of applicants (section 4.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor

from fairall.data.people import Decided
from fairall.models.objectives import train_on
from fairall.models.policy_heads import net_loss
from fairall.nn.adam import Adam
from fairall.storage.state import Stateful

if TYPE_CHECKING:
    from fairall.models.latent_learner import LatentLearner


class Phase2Epochs(Stateful):
    """Training of the nets of a learner by `LatentLearner.loss` and `policy_heads.net_loss`.

    `fairall.nn.twins.fastest` has the same compiled, which takes a replicate after the other and leaves the
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
        policy, model, net, setting = (
            learner.config.policy,
            learner.model,
            learner.policy_net,
            learner.setting,
        )

        def loss(batch: Decided) -> Tensor:
            assert net is not None
            return net_loss(policy, model, net, batch, learner.noise, setting)

        if self.policy is not None:
            train_on(self._minibatches(learner, decided), loss, self.policy)

    def _minibatches(self, learner: LatentLearner, decided: Decided) -> list[Decided]:
        return decided.minibatches(learner.setting.schedule.batches_per_epoch, learner.streams)
