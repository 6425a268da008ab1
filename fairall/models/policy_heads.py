"""The policies that a semi-supervised VAE offers (section 4.2, appendix D.4)."""

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
from fairall.nn.stacked import StackedMLP
from fairall.randomness import SeedStreams


class LatentPolicy(nn.Module, ABC):
    """From what the model knows of people to the probability of a yes.

    Args:
        setting: the problem.
        latent_size: Z.
        arch: hidden layers of a policy that has a net of its own; the classifier's (appendix D.4).
        dropout: of that net.
        streams: draws its initial weights.
    """

    def __init__(
        self, setting: Setting, latent_size: int, arch: Sequence[int], dropout: float, streams: SeedStreams
    ) -> None:
        super().__init__()
        self.setting = setting

    @property
    @abstractmethod
    def threshold(self) -> float:
        """The probability from which on a deterministic policy says yes."""

    @abstractmethod
    def probability(
        self, model: SemiSupervisedVAE, x: Tensor, s: Tensor, streams: SeedStreams, n_samples: int
    ) -> Tensor:
        """Probability of a yes, shape (E, B).

        Args:
            model: of people.
            x: features, shape (E, B, D).
            s: sensitive attribute, shape (E, B).
            streams: draws z; `FixedSamples` for a deployed policy.
            n_samples: z per person and ũ, for a policy that averages over drawn z; even.
        """

    def loss(self, model: SemiSupervisedVAE, batch: Decided, streams: SeedStreams) -> Tensor:
        """What training minimises, shape (E,); nothing for a policy without parameters of its own."""
        return batch.s.new_zeros(len(batch.s))


class ClassifierPolicy(LatentPolicy):
    """π_clf: the classifier q(ũ | x, s) decides. It sees s, and knows of no fairness."""

    threshold = 0.5  # the classifier is trained with c: its ½ is where p(ũ = 1) = c

    def probability(
        self, model: SemiSupervisedVAE, x: Tensor, s: Tensor, streams: SeedStreams, n_samples: int
    ) -> Tensor:
        """See `LatentPolicy.probability`; nothing is drawn."""
        return torch.sigmoid(model.classify(x, s))


class DecoderPolicy(LatentPolicy):
    """π_dec: the decoder p(ũ | z, s) decides. It sees s too."""

    @property
    def threshold(self) -> float:
        """The cost c, as the decoder is trained by likelihood alone."""
        return self.setting.cost

    def probability(
        self, model: SemiSupervisedVAE, x: Tensor, s: Tensor, streams: SeedStreams, n_samples: int
    ) -> Tensor:
        """See `LatentPolicy.probability`."""

        def accepts(z: Tensor) -> Tensor:
            return model.decoded_utility(z, s)

        return _averaged(accepts, model, x, s, streams, n_samples)


class NetPolicy(LatentPolicy):
    """π^Z: a net that sees z and nothing else, and learns from the applicants of every step."""

    def __init__(
        self, setting: Setting, latent_size: int, arch: Sequence[int], dropout: float, streams: SeedStreams
    ) -> None:
        super().__init__(setting, latent_size, arch, dropout, streams)
        self.net = StackedMLP(latent_size, arch, 1, streams, dropout=dropout, gain=setting.gain)

    @property
    def threshold(self) -> float:
        """The cost c where the net estimates p(ũ = 1 | z); ½ where its labels or its loss have c in them."""
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

        return _averaged(accepts, model, x, s, streams, n_samples)

    def loss(self, model: SemiSupervisedVAE, batch: Decided, streams: SeedStreams) -> Tensor:
        """Cross-entropy of the decisions that `training_targets` asks for, averaged over its rows."""
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
        """For latents z (E, B, Z): the decisions to learn, their weights, and which rows to learn from."""

    def _everyone(self, p_utility: Tensor, streams: SeedStreams) -> tuple[Tensor, Tensor, Tensor]:
        """Targets for everybody: the optimal decisions by an estimate `p_utility` (E, B) of p(ũ = 1)."""
        if self.setting.protocol.policy_target is PolicyTarget.hard:
            target = p_utility >= self.setting.cost
        else:
            target = streams.uniform(*p_utility.shape[1:]) < p_utility
        return target.to(p_utility.dtype), torch.ones_like(p_utility), torch.ones_like(target)


class LabelPolicy(NetPolicy):
    """π^Z_label: learns from labelled applicants alone, weighted by 1/π."""

    @property
    def threshold(self) -> float:
        """The cost c where the net estimates p(ũ = 1 | z); ½ where its loss has c in it."""
        return self.setting.cost if self.setting.protocol.policy_loss is PolicyLoss.plain else 0.5

    def training_targets(
        self, model: SemiSupervisedVAE, batch: Decided, z: Tensor, streams: SeedStreams
    ) -> tuple[Tensor, Tensor, Tensor]:
        """See `NetPolicy.training_targets`."""
        weight = ips_weight(batch.propensity, batch.accepted, self.setting.protocol.max_ips_weight)
        return batch.label, weight, batch.accepted


class ClassifierTaughtPolicy(NetPolicy):
    """π^Z_clf: learns from all applicants what the classifier thinks of them."""

    def training_targets(
        self, model: SemiSupervisedVAE, batch: Decided, z: Tensor, streams: SeedStreams
    ) -> tuple[Tensor, Tensor, Tensor]:
        """See `NetPolicy.training_targets`."""
        # The classifier is trained with weights c and 1 − c; without them its odds are those of p(ũ = 1).
        cost = self.setting.cost
        p_utility = torch.sigmoid(model.classify(batch.x, batch.s) + math.log(cost / (1.0 - cost)))
        return self._everyone(p_utility, streams)


class DecoderTaughtPolicy(NetPolicy):
    """π^Z_dec: learns from all applicants what the decoder thinks of their z; the paper's choice."""

    def training_targets(
        self, model: SemiSupervisedVAE, batch: Decided, z: Tensor, streams: SeedStreams
    ) -> tuple[Tensor, Tensor, Tensor]:
        """See `NetPolicy.training_targets`."""
        return self._everyone(model.decoded_utility(z.unsqueeze(-1), batch.s).squeeze(-1), streams)


POLICIES: dict[str, type[LatentPolicy]] = {
    "z_dec": DecoderTaughtPolicy,
    "z_clf": ClassifierTaughtPolicy,
    "z_label": LabelPolicy,
    "clf": ClassifierPolicy,
    "dec": DecoderPolicy,
}


def _averaged(
    accepts: Callable[[Tensor], Tensor],
    model: SemiSupervisedVAE,
    x: Tensor,
    s: Tensor,
    streams: SeedStreams,
    n_samples: int,
) -> Tensor:
    """E over ũ ~ q(ũ | x, s), exactly, and z ~ q(z | x, s, ũ), by samples, of `accepts`, shape (E, B).

    Both branches use the same ε, in training antithetic ones: what is odd in ε leaves no error, which halves
    the number of samples that a given error takes (docs/protocols.md).
    `accepts` maps samples of z (E, B, Z, L) to probabilities (E, B, L).
    """
    loc, scale = model.posteriors(x, s)
    noise = streams.normal_samples(x.shape[1], loc.shape[-1], n_samples)
    z = torch.cat(
        [reparameterize(loc[:, :, branch], scale[:, :, branch], noise) for branch in (0, 1)], dim=-1
    )
    by_branch = accepts(z).unflatten(-1, (2, -1)).mean(-1)
    p_utility = torch.sigmoid(model.classify(x, s))
    return (1.0 - p_utility) * by_branch[..., 0] + p_utility * by_branch[..., 1]
