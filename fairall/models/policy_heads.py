"""Policies derived from a semi-supervised VAE (section 4.2, appendix D.4)."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from fairall.config.schema import PolicyLoss, PolicyTarget
from fairall.data.people import Decided
from fairall.models.learner import Setting
from fairall.models.objectives import cost_sensitive_cross_entropy, ips_weight, masked_mean, reparameterize
from fairall.models.semi_supervised import SemiSupervisedVAE
from fairall.nn.native.calls import takes
from fairall.nn.native.nets import average_probability
from fairall.nn.stacked import StackedMLP
from fairall.randomness import SeedStreams


class LatentPolicy(nn.Module, ABC):
    """Acceptance probability computed from a semi-supervised VAE.

    Args:
        setting: the problem.
        latent_size: Z.
        arch: hidden layers of a policy with a net; the classifier's (appendix D.4).
        dropout: dropout of that net.
        streams: draw its initial weights.
    """

    def __init__(
        self, setting: Setting, latent_size: int, arch: Sequence[int], dropout: float, streams: SeedStreams
    ) -> None:
        super().__init__()
        self.setting = setting

    @property
    @abstractmethod
    def threshold(self) -> float:
        """Least probability at which a deterministic policy accepts."""

    @abstractmethod
    def probability(
        self, model: SemiSupervisedVAE, x: Tensor, s: Tensor, streams: SeedStreams, n_samples: int
    ) -> Tensor:
        """Acceptance probability, shape (E, B).

        Args:
            model: VAE and classifier.
            x: features, shape (E, B, D).
            s: sensitive attribute, shape (E, B).
            streams: draw z; `FixedSamples` for a deployed policy.
            n_samples: samples of z per person and ũ, for a policy that averages over z; even.
        """

    def loss(self, model: SemiSupervisedVAE, batch: Decided, streams: SeedStreams) -> Tensor:
        """Loss of the policy's own parameters on a minibatch, shape (E,); 0 for a policy without any."""
        return batch.s.new_zeros(len(batch.s))


class ClassifierPolicy(LatentPolicy):
    """π_clf: the classifier q(ũ | x, s), which sees s and has no fairness constraint."""

    threshold = 0.5  # the classifier's loss contains c: it gives ½ where p(ũ = 1) = c

    def probability(
        self, model: SemiSupervisedVAE, x: Tensor, s: Tensor, streams: SeedStreams, n_samples: int
    ) -> Tensor:
        """See `LatentPolicy.probability`; draws nothing."""
        return torch.sigmoid(model.classify(x, s))


class DecoderPolicy(LatentPolicy):
    """π_dec: the decoder p(ũ | z, s), which sees s."""

    @property
    def threshold(self) -> float:
        """The cost c, since the decoder estimates p(ũ = 1)."""
        return self.setting.cost

    def probability(
        self, model: SemiSupervisedVAE, x: Tensor, s: Tensor, streams: SeedStreams, n_samples: int
    ) -> Tensor:
        """See `LatentPolicy.probability`."""

        def averages(loc: Tensor, scale: Tensor, noise: Tensor) -> Tensor:
            return _over_samples(lambda z: model.decoded_utility(z, s), loc, scale, noise)

        return _averaged(averages, model, x, s, streams, n_samples)


class NetPolicy(LatentPolicy):
    """π^Z: a net of z alone, trained on the applicants of every step."""

    def __init__(
        self, setting: Setting, latent_size: int, arch: Sequence[int], dropout: float, streams: SeedStreams
    ) -> None:
        super().__init__(setting, latent_size, arch, dropout, streams)
        self.net = StackedMLP(latent_size, arch, 1, streams, dropout=dropout, gain=setting.gain)

    @property
    def threshold(self) -> float:
        """The cost c where the net estimates p(ũ = 1 | z); ½ where its targets or its loss contain c."""
        protocol = self.setting.protocol
        estimates = (
            protocol.policy_target is PolicyTarget.sampled and protocol.policy_loss is PolicyLoss.plain
        )
        return self.setting.cost if estimates else 0.5

    def probability(
        self, model: SemiSupervisedVAE, x: Tensor, s: Tensor, streams: SeedStreams, n_samples: int
    ) -> Tensor:
        """See `LatentPolicy.probability`."""

        def accepts(z: Tensor) -> Tensor:
            columns = z.transpose(1, 2).flatten(2)
            return torch.sigmoid(self.net.forward_transposed(columns)).view(len(z), z.shape[1], z.shape[-1])

        def averages(loc: Tensor, scale: Tensor, noise: Tensor) -> Tensor:
            if takes(loc) and not torch.is_grad_enabled():
                return average_probability(self.net.weights_and_biases(), loc, scale, noise)
            return _over_samples(accepts, loc, scale, noise)

        return _averaged(averages, model, x, s, streams, n_samples)

    def loss(self, model: SemiSupervisedVAE, batch: Decided, streams: SeedStreams) -> Tensor:
        """Cross-entropy with `training_targets`, weighted, averaged over their rows."""
        with torch.no_grad():
            z = model.draw_latent(batch, streams)
            target, weight, rows = self.training_targets(model, batch, z, streams)
        logit = self.net(z, streams).squeeze(-1)
        if self.setting.protocol.policy_loss is PolicyLoss.cost_sensitive:
            loss = cost_sensitive_cross_entropy(logit, target, self.setting.cost)
        else:
            loss = F.binary_cross_entropy_with_logits(logit, target, reduction="none")
        return masked_mean(loss * weight, rows)

    @abstractmethod
    def training_targets(
        self, model: SemiSupervisedVAE, batch: Decided, z: Tensor, streams: SeedStreams
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Targets of the net for latents z (E, B, Z).

        Returns:
            Decisions to learn, their weights, and a mask of the rows to learn from, each of shape (E, B).
        """

    def _targets_of_all(self, p_utility: Tensor, streams: SeedStreams) -> tuple[Tensor, Tensor, Tensor]:
        """Targets of all rows from an estimate `p_utility` (E, B) of p(ũ = 1): thresholded at c, or drawn."""
        if self.setting.protocol.policy_target is PolicyTarget.hard:
            target = p_utility >= self.setting.cost
        else:
            target = streams.uniform(*p_utility.shape[1:]) < p_utility
        return target.to(p_utility.dtype), torch.ones_like(p_utility), torch.ones_like(target)


class LabelPolicy(NetPolicy):
    """π^Z_label: trained on the labels of accepted applicants, weighted by 1/π."""

    @property
    def threshold(self) -> float:
        """The cost c where the net estimates p(ũ = 1 | z); ½ where its loss contains c."""
        return self.setting.cost if self.setting.protocol.policy_loss is PolicyLoss.plain else 0.5

    def training_targets(
        self, model: SemiSupervisedVAE, batch: Decided, z: Tensor, streams: SeedStreams
    ) -> tuple[Tensor, Tensor, Tensor]:
        """See `NetPolicy.training_targets`."""
        weight = ips_weight(batch.propensity, batch.accepted, self.setting.protocol.max_ips_weight)
        return batch.label, weight, batch.accepted


class ClassifierTaughtPolicy(NetPolicy):
    """π^Z_clf: trained on the classifier's estimates for all applicants."""

    def training_targets(
        self, model: SemiSupervisedVAE, batch: Decided, z: Tensor, streams: SeedStreams
    ) -> tuple[Tensor, Tensor, Tensor]:
        """See `NetPolicy.training_targets`."""
        # The classifier's loss weighs labels by c and 1 − c; the shift of the logit undoes that.
        cost = self.setting.cost
        p_utility = torch.sigmoid(model.classify(batch.x, batch.s) + math.log(cost / (1.0 - cost)))
        return self._targets_of_all(p_utility, streams)


class DecoderTaughtPolicy(NetPolicy):
    """π^Z_dec: trained on the decoder's estimates for all applicants; the paper's choice."""

    def training_targets(
        self, model: SemiSupervisedVAE, batch: Decided, z: Tensor, streams: SeedStreams
    ) -> tuple[Tensor, Tensor, Tensor]:
        """See `NetPolicy.training_targets`."""
        return self._targets_of_all(model.decoded_utility(z.unsqueeze(-1), batch.s).squeeze(-1), streams)


POLICIES: dict[str, type[LatentPolicy]] = {
    "z_dec": DecoderTaughtPolicy,
    "z_clf": ClassifierTaughtPolicy,
    "z_label": LabelPolicy,
    "clf": ClassifierPolicy,
    "dec": DecoderPolicy,
}


def _averaged(
    averages: Callable[[Tensor, Tensor, Tensor], Tensor],
    model: SemiSupervisedVAE,
    x: Tensor,
    s: Tensor,
    streams: SeedStreams,
    n_samples: int,
) -> Tensor:
    """Expectation of a probability over ũ ~ q(ũ | x, s), exactly, and z ~ q(z | x, s, ũ), by samples.

    Both values of ũ use the same antithetic ε. Terms odd in ε then cancel, which halves the number of samples
    needed for a given error (docs/protocols.md).

    Args:
        averages: the probability, averaged over z = loc + scale·ε, shape (E, B, 2), of loc and scale
            (E, B, 2, Z) and ε (E, B, Z, L).
        model: VAE and classifier.
        x: features, shape (E, B, D).
        s: sensitive attribute, shape (E, B).
        streams: draw ε.
        n_samples: samples of z per person and ũ; even.

    Returns:
        Shape (E, B).
    """
    loc, scale = model.posteriors(x, s)
    by_branch = averages(loc, scale, streams.normal_samples(x.shape[1], loc.shape[-1], n_samples))
    p_utility = torch.sigmoid(model.classify(x, s))
    return (1.0 - p_utility) * by_branch[..., 0] + p_utility * by_branch[..., 1]


def _over_samples(accepts: Callable[[Tensor], Tensor], loc: Tensor, scale: Tensor, noise: Tensor) -> Tensor:
    """`accepts` of samples of z (E, B, Z, L), averaged for both values of ũ, shape (E, B, 2)."""
    z = torch.cat(
        [reparameterize(loc[:, :, branch], scale[:, :, branch], noise) for branch in (0, 1)], dim=-1
    )
    return accepts(z).unflatten(-1, (2, -1)).mean(-1)
