"""The conditional VAE of both phases, and the transfer of weights between them (section 4.3)."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from fairall.data.encoding import FeatureInputs
from fairall.data.features import Schema
from fairall.nn.fused_decoder import WeightedTargets, weighted_log_likelihood
from fairall.nn.likelihoods import MixedLikelihood
from fairall.nn.stacked import StackedMLP
from fairall.randomness import SeedStreams

MIN_SCALE = 1e-4  # a posterior of zero width has no density


class ConditionalVAE(nn.Module):
    """E conditional VAEs: encoder q(z | x, s[, ũ]) and decoder p(x[, ũ] | z, s).

    With `utility` the proxy utility ũ in {0, 1} is the last input of the encoder, and the logit of
    p(ũ = 1 | z, s, d = 1) the last output of the decoder; without it, this is the VAE of Phase I.

    Args:
        schema: the features of x.
        latent_size: Z.
        hidden: hidden layers of encoder and of decoder.
        streams: draw the initial weights.
        utility: whether ũ is modelled.
        gain: gain of the initial weights, see `StackedMLP`.
        group_blind: whether the weights from s start at zero, in encoder and decoder. Both groups then start
            with the same encoding, and keep it more often than when they start with different ones.

    Attributes:
        frame: signed permutation of the latent axes, shape (E, Z, Z), that is applied to the encodings of
            S = −1, see `fairall.models.alignment`. It changes neither ELBO nor prior; initially the identity.
    """

    frame: Tensor
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
        gain: float = 1.0,
    ) -> None:
        super().__init__()
        self.likelihood = MixedLikelihood(schema)
        self.latent_size = latent_size
        n_utility = int(utility)
        self.inputs = FeatureInputs(schema)
        self.encoder = StackedMLP(
            self.inputs.size + 1 + n_utility, hidden, 2 * latent_size, streams, gain=gain, compiled=True
        )
        self.decoder = StackedMLP(
            latent_size + 1, hidden, self.likelihood.n_outputs + n_utility, streams, gain=gain, compiled=True
        )
        if group_blind:
            self.encoder.zero_input_weights(self.inputs.size)
            self.decoder.zero_input_weights(latent_size)
        self.register_buffer("frame", torch.eye(latent_size).repeat(len(streams), 1, 1))
        self.register_buffer("_no_frame", self.frame.clone(), persistent=False)

    def encode(self, x: Tensor, s: Tensor, utility: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Location and scale of q(z | x, s[, ũ]).

        Args:
            x: features, shape (E, B, D).
            s: sensitive attribute in {−1, +1}, shape (E, B).
            utility: ũ in {0, 1}, shape (E, B), exactly if the VAE models it.

        Returns:
            Two tensors of shape (E, B, Z); the scale is positive.
        """
        given = self.encoder_input(x, s, utility)
        loc, raw_scale = self.encoder.forward_transposed(given).mT.chunk(2, dim=-1)
        scale = F.softplus(raw_scale) + MIN_SCALE
        if self._is_in_one_frame():
            return loc, scale
        other = s.unsqueeze(-1) < 0
        return torch.where(other, loc @ self.frame, loc), torch.where(other, scale @ self.frame.abs(), scale)

    def encoder_input(self, x: Tensor, s: Tensor, utility: Tensor | None = None) -> Tensor:
        """Inputs of the encoder, people in columns, shape (E, inputs, B)."""
        given = [self.inputs(x).mT, s.unsqueeze(1)]
        if utility is not None:
            given.append(utility.unsqueeze(1))
        return torch.cat(given, dim=1)

    def decode(self, z: Tensor, s: Tensor) -> Tensor:
        """Outputs of the decoder for L samples per person.

        Args:
            z: samples, shape (E, B, Z, L).
            s: sensitive attribute in {−1, +1}, shape (E, B).

        Returns:
            Shape (E, P[+1], B, L): outputs first, as `MixedLikelihood.log_prob` takes them, the logit of
            p(ũ = 1 | z, s, d = 1) last.
        """
        given = self.decoder_input(z, s)
        return self.decoder.forward_transposed(given.flatten(2)).unflatten(2, given.shape[2:])

    def log_likelihood(self, z: Tensor, s: Tensor, targets: WeightedTargets) -> Tensor:
        """Weighted log p(x | z, s) and log p(ũ | z, s, d = 1) of each person, averaged over samples of z.

        Args:
            z: samples, shape (E, B, Z, L).
            s: sensitive attribute in {−1, +1}, shape (E, B).
            targets: x and weights, and ũ exactly if the VAE models it.

        Returns:
            Shape (E, B), in nats; its derivative is subject to `weighted_log_likelihood`.
        """
        layers = self.decoder.weights_and_biases()
        return weighted_log_likelihood(layers, self.likelihood, self.decoder_input(z, s), targets)

    def utility_logit(self, outputs: Tensor) -> Tensor:
        """Logit of p(ũ = 1 | z, s, d = 1), shape (E, B, L), from decoder outputs (E, P + 1, B, L)."""
        return outputs[:, self.likelihood.n_outputs]

    @torch.no_grad()
    def apply_frame(self, frame: Tensor) -> None:
        """Apply `frame` (E, Z, Z) to the encodings of S = −1, after the frame that is in use."""
        self.frame.copy_(self.frame @ frame)

    def decoder_input(self, z: Tensor, s: Tensor) -> Tensor:
        """Inputs of the decoder: z (E, B, Z, L) with `frame` undone, and s; shape (E, Z + 1, B, L)."""
        z = z.transpose(1, 2)
        s_row = s[:, None, :, None].expand(-1, 1, -1, z.shape[-1])
        if not self._is_in_one_frame():
            back = (self.frame @ z.flatten(2)).view_as(z)
            z = torch.where(s_row < 0, back, z)
        return torch.cat([z, s_row], dim=1)

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
