"""The conditional VAE of both phases, and with a classifier the semi-supervised one of Phase II (section 4).

References:
    Kingma, Mohamed, Rezende, Welling: Semi-supervised learning with deep generative models, NeurIPS 2014.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from fairall.data.features import FeatureInputs, Schema
from fairall.data.people import Decided
from fairall.nn.likelihoods import MixedLikelihood, bernoulli_log_prob
from fairall.nn.noise import RandomNumbers
from fairall.nn.stacked import RELU_GAIN, StackedMLP, evaluated
from fairall.runtime.randomness import SeedStreams

FEW = 50  # people of a group: of fewer the nets learn no embedding of its own


class ConditionalVAE(nn.Module):
    """E conditional VAEs: encoder q(z | x, s[, ũ]) and decoder p(x[, ũ] | z, s).

    With `utility` the proxy utility ũ in {0, 1} is the last input of the encoder, and the logit of
    p(ũ = 1 | z, s, d = 1) the last output of the decoder; without it, this is the VAE of Phase I.

    Args:
        latent_size: Z.
        hidden: hidden layers of encoder and of decoder.
        group_blind: whether the weights from s start at zero, in encoder and decoder. Both groups then start
            with the same encoding, and keep it more often than when they start with different ones.

    Attributes:
        frame: signed permutation of the latent axes, shape (E, Z, Z), that is applied to the encodings of
            S = −1, or of each of more than two groups, shape (E, G, Z, Z), see `fairall.models.alignment`. It
            changes neither ELBO nor prior; initially the identity.
        seen_as: of more than two groups the one that nets see each as, shape (E, G); initially itself.
    """

    min_scale: ClassVar[float] = 1e-4  # a posterior of zero width has no density
    frame: Tensor
    seen_as: Tensor
    _no_frame: Tensor

    def __init__(
        self,
        schema: Schema,
        latent_size: int,
        hidden: Sequence[int],
        streams: SeedStreams,
        *,
        utility: bool,
        group_blind: bool,
    ) -> None:
        super().__init__()
        self.likelihood = MixedLikelihood(schema)
        self.latent_size = latent_size
        n_utility = int(utility)
        self.inputs = FeatureInputs(schema)
        n_s, n_groups = self.inputs.size_with_s - self.inputs.size, schema.n_groups
        n_in, n_out = self.inputs.size_with_s + n_utility, self.likelihood.n_outputs + n_utility
        self.encoder = StackedMLP(n_in, hidden, 2 * latent_size, streams, gain=RELU_GAIN)
        self.decoder = StackedMLP(latent_size + n_s, hidden, n_out, streams, gain=RELU_GAIN)
        if group_blind:
            for k in range(n_s):
                self.encoder.zero_input_weights(self.inputs.size + k)
                self.decoder.zero_input_weights(latent_size + k)
        of_seeds = (len(streams), n_groups) if n_groups > 2 else (len(streams),)
        self.register_buffer("frame", torch.eye(latent_size).repeat(*of_seeds, 1, 1))
        self.register_buffer("_no_frame", self.frame.clone(), persistent=False)
        if n_groups > 2:
            self.register_buffer("seen_as", torch.arange(n_groups).repeat(len(streams), 1))

    def encode(self, x: Tensor, s: Tensor, utility: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Location and scale of q(z | x, s[, ũ]), shapes (E, B, Z); ũ (E, B) exactly if the VAE models it."""
        loc, scale = self.posterior(x, s, utility)
        if self._is_in_one_frame():
            return loc, scale
        return self.framed(loc, s), self._turned(scale, s, self.frames.abs())

    def posterior(self, x: Tensor, s: Tensor, utility: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """The same before `frame`, in the axes that encoder and decoder have learnt."""
        given = self.encoder_input(x, s, utility)
        loc, raw_scale = evaluated(self.encoder, given).mT.chunk(2, dim=-1)
        return loc, F.softplus(raw_scale) + self.min_scale

    def framed(self, z: Tensor, s: Tensor) -> Tensor:
        """Apply `frame` to z (E, B, Z) in learnt axes."""
        return self._turned(z, s, self.frames)

    def _turned(self, z: Tensor, s: Tensor, frames: Tensor) -> Tensor:
        """Multiply z (E, B, Z) from the right by the one of `frames` (E, F, Z, Z) that is of the group."""
        number, turned = self.frame_number(s).unsqueeze(-1), z
        for own, frame in enumerate(frames.unbind(1)):
            turned = torch.where(number == own, z @ frame, turned)
        return turned

    @property
    def frames(self) -> Tensor:
        """All frames, shape (E, F, Z, Z), F = 1 for two groups and G for more."""
        return self.frame if self.frame.dim() == 4 else self.frame.unsqueeze(1)

    def frame_number(self, s: Tensor) -> Tensor:
        """Which of `frames` is of each person, shape of s (E, B), long; −1 for S = +1, which has none."""
        return self.seen(s).long() if self.inputs.n_groups > 2 else -(s >= 0).long()

    def seen(self, s: Tensor) -> Tensor:
        """The group that the nets see each person of, shape of s (E, B): that of `seen_as`."""
        if self.inputs.n_groups == 2:
            return s
        return self.seen_as.gather(1, s.long()).to(s.dtype)

    @torch.no_grad()
    def see_small_groups_as_others(self, x: Tensor, s: Tensor) -> None:
        """See each of more than two groups as the one that `nearest_large_groups` of these people says."""
        if self.inputs.n_groups > 2:
            self.seen_as.copy_(nearest_large_groups(x, s, self.inputs.n_groups))

    def encoder_input(self, x: Tensor, s: Tensor, utility: Tensor | None = None) -> Tensor:
        """Inputs of the encoder, people in columns, shape (E, inputs, B)."""
        given = self.inputs.columns_with_s(x, self.seen(s))
        return given if utility is None else torch.cat([given, utility.unsqueeze(1)], dim=1)

    def decode(self, z: Tensor, s: Tensor, *, framed: bool = True) -> Tensor:
        """Outputs of the decoder for L samples z (E, B, Z, L) per person, shape (E, P[+1], B, L).

        First those that `MixedLikelihood.log_prob` takes, the logit of p(ũ = 1 | z, s, d = 1) last. Where
        z is `framed`, `frame` is undone.
        """
        z, of_s = z.transpose(1, 2), self.inputs.of_s(self.seen(s)).mT
        if framed and not self._is_in_one_frame():
            number, learnt = self.frame_number(s)[:, None, :, None], z
            for own, frame in enumerate(self.frames.unbind(1)):
                back = (frame @ learnt.flatten(2)).view_as(learnt)
                z = torch.where(number == own, back, z)
        given = torch.cat([z, of_s.unsqueeze(-1).expand(-1, -1, -1, z.shape[-1])], dim=1)
        return evaluated(self.decoder, given.flatten(2)).unflatten(2, given.shape[2:])

    def log_likelihood(
        self,
        z: Tensor,
        s: Tensor,
        x: Tensor,
        utility: Tensor | None = None,
        decision: Tensor | None = None,
    ) -> Tensor:
        """Log p(x | z, s) + d·log p(ũ | z, s, d = 1), averaged over samples z (E, B, Z, L) in learnt axes.

        Other arguments are as for `elbo.elbo_terms`; shape (E, B), in nats.
        """
        outputs = self.decode(z, s, framed=False)
        log_x = self.likelihood.log_prob(outputs[:, : self.likelihood.n_outputs], x)
        if utility is None:
            return log_x
        log_utility = bernoulli_log_prob(self.utility_logit(outputs), utility.unsqueeze(-1)).mean(-1)
        return log_x + (log_utility if decision is None else decision * log_utility)

    def utility_logit(self, outputs: Tensor) -> Tensor:
        """Logit of p(ũ = 1 | z, s, d = 1), shape (E, B, L), from decoder outputs (E, P + 1, B, L)."""
        return outputs[:, self.likelihood.n_outputs]

    @torch.no_grad()
    def apply_frame(self, frame: Tensor) -> None:
        """Apply `frame`, of the shape of the one in use, to encodings after that one."""
        self.frame.copy_(self.frame @ frame)

    def _is_in_one_frame(self) -> bool:
        return torch.equal(self.frame, self._no_frame)

    @torch.no_grad()
    def transfer_from(self, phase1: ConditionalVAE) -> None:
        """Copy the weights φ', θ' of a Phase I VAE; the connections of ũ keep their initial weights."""
        pretrained = dict(phase1.named_parameters())
        for name, own in self.named_parameters():
            known = pretrained[name]
            own[tuple(slice(size) for size in known.shape)] = known
        self.frame.copy_(phase1.frame)
        if self.inputs.n_groups > 2:
            self.seen_as.copy_(phase1.seen_as)


def nearest_large_groups(x: Tensor, s: Tensor, n_groups: int) -> Tensor:
    """For each of G groups itself, or for one of fewer than `FEW` people the nearest one with as many.

    An embedding learnt from few people would be noise, and so would an alignment by them. Nearest is the
    group whose means of the features are, in units of their standard deviations; a group without anybody is
    seen as the largest.

    Of people x (N, D), s (N,), or of each replicate's, (E, N, D) and (E, N); returns numbers of groups,
    (1, G) or (E, G), long. Where no group is large each is itself.
    """
    nearest = []
    for own, group in [(x, s)] if s.dim() == 1 else zip(x, s, strict=True):
        scaled, size = own / own.std(0).clamp(min=1e-6), group.long().bincount(minlength=n_groups)
        means = torch.stack([scaled[group == g].mean(0) for g in range(n_groups)])
        distance = torch.cdist(means, means)
        distance[:, size < FEW] = torch.inf
        other = torch.where(size > 0, distance.argmin(1), size.argmax())
        small = (size < FEW) & (size >= FEW).any()
        nearest.append(torch.where(small, other, torch.arange(n_groups)))
    return torch.stack(nearest)


class SemiSupervisedVAE(nn.Module):
    """Conditional VAE of (x, ũ) given s, and classifier q(ũ | x, s, d = 1) (section 4.1, appendix C.1)."""

    def __init__(self, vae: ConditionalVAE, classifier: StackedMLP) -> None:
        super().__init__()
        self.vae = vae
        self.classifier = classifier

    def classify(self, x: Tensor, s: Tensor, dropout_streams: RandomNumbers | None = None) -> Tensor:
        """Logit of q(ũ = 1 | x, s, d = 1), shape (E, B); dropout with `dropout_streams` only."""
        given = self.vae.encoder_input(x, s)
        if dropout_streams is None:
            return evaluated(self.classifier, given).squeeze(1)
        return self.classifier.forward_transposed(given, dropout_streams).squeeze(1)

    def posteriors(self, x: Tensor, s: Tensor) -> tuple[Tensor, Tensor]:
        """Locations and scales of q(z | x, s, ũ) for ũ = 0 and ũ = 1, each of shape (E, B, 2, Z)."""
        branches = torch.tensor([0.0, 1.0]).repeat(x.shape[1]).expand(len(x), -1)
        loc, scale = self.vae.encode(x.repeat_interleave(2, dim=1), s.repeat_interleave(2, dim=1), branches)
        return loc.unflatten(1, (-1, 2)), scale.unflatten(1, (-1, 2))

    def latent_mean(self, x: Tensor, s: Tensor) -> Tensor:
        """E[z | x, s] = Σ_ũ q(ũ | x, s)·E[z | x, s, ũ], shape (E, B, Z)."""
        loc, _ = self.posteriors(x, s)
        p_utility = torch.sigmoid(self.classify(x, s)).unsqueeze(-1)
        return (1.0 - p_utility) * loc[..., 0, :] + p_utility * loc[..., 1, :]

    def draw_latent(self, batch: Decided, noise: RandomNumbers) -> Tensor:
        """One z ~ q(z | x, s, ũ) per applicant, with ũ ~ q(ũ | x, s) where it is unknown.

        Shape (E, B, Z), in learnt axes.
        """
        estimated = torch.sigmoid(self.classify(batch.x, batch.s))
        guessed = (noise.uniform(*estimated.shape[1:]) < estimated).to(batch.label.dtype)
        loc, scale = self.vae.posterior(batch.x, batch.s, torch.where(batch.accepted, batch.label, guessed))
        return loc + scale * noise.normal(*loc.shape[1:])

    def decoded_utility(self, z: Tensor, s: Tensor, *, framed: bool = True) -> Tensor:
        """p(ũ = 1 | z, s, d = 1) for samples z (E, B, Z, L) and s (E, B), shape (E, B, L)."""
        return torch.sigmoid(self.vae.utility_logit(self.vae.decode(z, s, framed=framed)))

    def reconstruct(self, z: Tensor, s: Tensor) -> Tensor:
        """Point estimates of the features, shape (E, B, D), for z (E, B, Z) and s (E, B)."""
        likelihood = self.vae.likelihood
        outputs = self.vae.decode(z.unsqueeze(-1), s).squeeze(-1)
        return likelihood.reconstruct(outputs[:, : likelihood.n_outputs])
