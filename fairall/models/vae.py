"""The conditional VAE of both phases, and with a classifier the semi-supervised one of Phase II (section 4).

References:
    Kingma, Mohamed, Rezende, Welling: Semi-supervised learning with deep generative models, NeurIPS 2014.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import ClassVar

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from fairall.data.features import FeatureInputs, Schema
from fairall.data.people import Decided, People, group_index, take
from fairall.nn.likelihoods import MixedLikelihood, bernoulli_log_prob
from fairall.nn.noise import RandomNumbers
from fairall.nn.stacked import StackedMLP, evaluated
from fairall.runtime.randomness import SeedStreams

FEW = 50  # people of a group: of fewer the nets learn no embedding of its own


class ConditionalVAE(nn.Module):
    """E conditional VAEs: encoder q(z | x, s[, ũ]) and decoder p(x[, ũ] | z, s).

    With `utility` the proxy utility ũ in {0, 1} is the last input of the encoder, and the logit of
    p(ũ = 1 | z, s, d = 1) the last output of the decoder; without it, this is the VAE of Phase I.

    The nets have learnt the axes of z for each group by itself; `encode` gives z in axes that the groups
    share, and `decode` takes them. `posterior` and `log_likelihood` are in the learnt axes.

    Args:
        latent_size: Z.
        hidden: hidden layers of encoder and of decoder.
        group_blind: whether the weights from s start at zero, in encoder and decoder. The groups then start
            with the same encoding, and keep it more often than when they start with different ones.
        blind_encoder: whether the encoder, and the classifier beside it, get 0 in place of s: q(z | x[, ũ]).

    Attributes:
        frame: signed permutation of the latent axes, shape (E, G, Z, Z), by which the encodings of each group
            are multiplied from the right, see `fairall.models.alignment`. It changes neither ELBO nor prior;
            initially the identity. Groups are numbered as by `group_index`.
        seen_as: the group that nets see each of more than two groups as, shape (E, G); initially itself.
    """

    min_scale: ClassVar[float] = 1e-4  # a posterior of zero width has no density
    frame: Tensor
    seen_as: Tensor

    def __init__(
        self,
        schema: Schema,
        latent_size: int,
        hidden: Sequence[int],
        streams: SeedStreams,
        *,
        utility: bool,
        group_blind: bool,
        blind_encoder: bool | None = None,
    ) -> None:
        super().__init__()
        self.blind_encoder = blind_encoder
        self.likelihood = MixedLikelihood(schema)
        self.inputs = FeatureInputs(schema)
        n_x, n_s = self.inputs.size, self.inputs.size_with_s - self.inputs.size
        net = functools.partial(StackedMLP, hidden=hidden, streams=streams)
        self.encoder = net(n_x + n_s + utility, n_out=2 * latent_size)
        self.decoder = net(latent_size + n_s, n_out=self.likelihood.n_outputs + utility)
        if group_blind:
            for k in range(n_s):
                self.encoder.zero_input_weights(n_x + k)
                self.decoder.zero_input_weights(latent_size + k)
        n_seeds = len(streams)
        self.register_buffer("frame", torch.eye(latent_size).repeat(n_seeds, schema.n_groups, 1, 1))
        self.register_buffer("seen_as", torch.arange(schema.n_groups).repeat(n_seeds, 1))

    def encode(self, x: Tensor, s: Tensor, utility: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Location and scale of q(z | x, s[, ũ]), shapes (E, B, Z); ũ (E, B) exactly if the VAE models it."""
        loc, scale = self.posterior(x, s, utility)
        return self.framed(loc, s), self.framed(scale, s).abs()

    def posterior(self, x: Tensor, s: Tensor, utility: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """The same in learnt axes."""
        given = self.encoder_input(x, s, utility)
        loc, raw_scale = evaluated(self.encoder, given).mT.chunk(2, dim=-1)
        return loc, F.softplus(raw_scale) + self.min_scale

    def framed(self, z: Tensor, s: Tensor) -> Tensor:
        """Multiply z (E, B, Z) in learnt axes by the frame of the group of each person."""
        return (z.unsqueeze(-2) @ take(self.frame, self.group(s))).squeeze(-2)

    def group(self, s: Tensor) -> Tensor:
        """Number of the group that the nets see each person of, shape of s (E, B), long."""
        return group_index(self.seen(s), self.inputs.n_groups)

    def seen(self, s: Tensor) -> Tensor:
        """The group that the nets see each person of, shape of s (E, B): that of `seen_as`."""
        return s if self.inputs.n_groups == 2 else self.seen_as.gather(1, s.long()).to(s.dtype)

    def see_small_groups_as_others(self, people: People) -> None:
        """See each group as the one that `nearest_large_groups` of these people says."""
        self.seen_as.copy_(nearest_large_groups(people.x, people.s, self.inputs.n_groups))

    def encoder_input(self, x: Tensor, s: Tensor, utility: Tensor | None = None) -> Tensor:
        """Inputs of the encoder, people in columns, shape (E, inputs, B)."""
        given = self.inputs.columns_with_s(x, torch.zeros_like(s) if self.blind_encoder else self.seen(s))
        return given if utility is None else torch.cat([given, utility.unsqueeze(1)], dim=1)

    def decode(self, z: Tensor, s: Tensor) -> Tensor:
        """Outputs of the decoder for L samples z (E, B, Z, L) per person, shape (E, P[+1], B, L).

        First those that `MixedLikelihood.log_prob` takes, the logit of p(ũ = 1 | z, s, d = 1) last.
        """
        return self._decoded(take(self.frame, self.group(s)) @ z, s)

    def _decoded(self, z: Tensor, s: Tensor) -> Tensor:
        """The same for z in learnt axes."""
        z, of_s = z.transpose(1, 2), self.inputs.of_s(self.seen(s)).mT.unsqueeze(-1)
        given = torch.cat([z, of_s.expand(-1, -1, -1, z.shape[-1])], dim=1)
        return evaluated(self.decoder, given.flatten(2)).unflatten(2, given.shape[2:])

    def log_likelihood(self, z: Tensor, s: Tensor, x: Tensor, utility: Tensor | None = None) -> Tensor:
        """Log p(x | z, s), and with ũ log p(ũ | z, s, d = 1) more, averaged over samples of z.

        Args:
            z: samples in learnt axes, shape (E, B, Z, L).
            s: sensitive attribute, shape (E, B).
            x: features, shape (E, B, D).
            utility: ũ, shape (E, B).

        Returns:
            Shape (E, B), in nats.
        """
        outputs = self._decoded(z, s)
        log_x = self.likelihood.log_prob(outputs, x)
        if utility is None:
            return log_x
        return log_x + bernoulli_log_prob(outputs[:, -1], utility.unsqueeze(-1)).mean(-1)

    @torch.no_grad()
    def transfer_from(self, phase1: ConditionalVAE) -> None:
        """Copy the weights φ', θ' of a Phase I VAE; the connections of ũ keep their initial weights."""
        own = self.state_dict()
        for name, known in phase1.state_dict().items():
            own[name][tuple(map(slice, known.shape))] = known


def nearest_large_groups(x: Tensor, s: Tensor, n_groups: int) -> Tensor:
    """For each of G groups itself, or for one of fewer than `FEW` people the nearest one with as many.

    An embedding learnt from few people would be noise, and so would an alignment by them. Nearest is the
    group whose means of the features are, in units of their standard deviations; a group without anybody is
    seen as the largest. Where no group is large, or there are two, each is itself.

    Of people x (N, D), s (N,), or of each replicate's, (E, N, D) and (E, N); returns numbers of groups,
    (1, G) or (E, G), long.
    """
    member = F.one_hot(group_index(s, n_groups), n_groups).to(x.dtype)
    size, scaled = member.sum(-2), F.normalize(x - x.mean(-2, keepdim=True), dim=-2)
    means = member.mT @ scaled / size.unsqueeze(-1)
    large = size >= FEW
    distance = torch.cdist(means, means).where(large.unsqueeze(-2), torch.inf)
    nearest = torch.where(size > 0, distance.argmin(-1), size.argmax(-1, keepdim=True))
    itself = large | ~large.any(-1, keepdim=True) | (n_groups == 2)
    return torch.where(itself, torch.arange(n_groups), nearest).view(-1, n_groups)


class SemiSupervisedVAE(nn.Module):
    """Conditional VAE of (x, ũ) given s, and classifier q(ũ | x, s, d = 1) (section 4.1, appendix C.1)."""

    def __init__(self, vae: ConditionalVAE, classifier: StackedMLP) -> None:
        super().__init__()
        self.vae = vae
        self.classifier = classifier

    def classify(self, x: Tensor, s: Tensor) -> Tensor:
        """Logit of q(ũ = 1 | x, s, d = 1), shape (E, B), without dropout."""
        return evaluated(self.classifier, self.vae.encoder_input(x, s)).squeeze(1)

    def posteriors(self, x: Tensor, s: Tensor) -> tuple[Tensor, Tensor]:
        """Locations and scales of q(z | x, s, ũ) for ũ = 0 and ũ = 1, each of shape (E, B, 2, Z)."""
        loc, scale = self.vae.encode(*with_both_utilities(x, s))
        return loc.unflatten(1, (-1, 2)), scale.unflatten(1, (-1, 2))

    def latent_mean(self, x: Tensor, s: Tensor) -> Tensor:
        """E[z | x, s] = Σ_ũ q(ũ | x, s)·E[z | x, s, ũ], shape (E, B, Z)."""
        loc, _ = self.posteriors(x, s)
        return (imputation(self.classify(x, s)).unsqueeze(-1) * loc).sum(-2)

    def draw_latent(self, batch: Decided, noise: RandomNumbers) -> Tensor:
        """One z ~ q(z | x, s, ũ) per applicant, with ũ ~ q(ũ | x, s) where it is unknown, shape (E, B, Z)."""
        estimated = torch.sigmoid(self.classify(batch.x, batch.s))
        guessed = noise.uniform(batch.s.shape[1]) < estimated
        loc, scale = self.vae.posterior(batch.x, batch.s, torch.where(batch.accepted, batch.label, guessed))
        return self.vae.framed(loc + scale * noise.normal(*loc.shape[1:]), batch.s)

    def decoded_utility(self, z: Tensor, s: Tensor) -> Tensor:
        """p(ũ = 1 | z, s, d = 1) for samples z (E, B, Z, L) and s (E, B), shape (E, B, L)."""
        return torch.sigmoid(self.vae.decode(z, s)[:, -1])

    def reconstruct(self, z: Tensor, s: Tensor) -> Tensor:
        """Point estimates of the features, shape (E, B, D), for z (E, B, Z) and s (E, B)."""
        return self.vae.likelihood.reconstruct(self.vae.decode(z.unsqueeze(-1), s).squeeze(-1))


def with_both_utilities(x: Tensor, s: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Each of the people x (E, B, D), s (E, B) twice, and ũ = 0 and then ũ = 1 of them, (E, 2·B) rows."""
    branches = torch.tensor([0.0, 1.0]).repeat(x.shape[1]).expand(len(x), -1)
    return x.repeat_interleave(2, dim=1), s.repeat_interleave(2, dim=1), branches


def imputation(logit: Tensor) -> Tensor:
    """q(ũ | x, s) of ũ = 0 and ũ = 1, shape (..., 2), for the logit (...) of q(ũ = 1 | x, s)."""
    probability = torch.sigmoid(logit)
    return torch.stack([1.0 - probability, probability], dim=-1)
