"""The conditional VAE of both phases, and the transfer of weights between them (section 4.3)."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from fairall.data.features import Schema
from fairall.data.inputs import FeatureInputs
from fairall.nn.likelihoods import MixedLikelihood
from fairall.nn.stacked import StackedMLP
from fairall.randomness import SeedStreams

MIN_SCALE = 1e-4  # a posterior of zero width has no density


class ConditionalVAE(nn.Module):
    """E conditional VAEs side by side: q(z | x, s[, ũ]) and p(x[, ũ] | z, s).

    With `utility` the encoder reads the proxy utility ũ (coded {0, 1}) as its last input and the decoder
    gives the logit of p(ũ = 1 | z, s, d = 1) as its last output; without it, it is the VAE of Phase I.

    Args:
        schema: the features of x.
        latent_size: Z.
        hidden: hidden layers of encoder and of decoder.
        streams: draws the initial weights.
        utility: whether ũ is modelled too.
        gain: of the initial weights, see `StackedMLP`.
        group_blind: whether the weights from s start at zero, in encoder and decoder. Both groups then begin
            with one code, and keep it more often than when they begin with two.

    Attributes:
        frame: signed permutation of the latent axes, shape (E, Z, Z): what the code of S = −1 goes through to
            be read as that of S = +1. It changes neither ELBO nor prior, and is the identity until
            `read_together` is told otherwise.
    """

    frame: Tensor

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
            self.inputs.size + 1 + n_utility, hidden, 2 * latent_size, streams, gain=gain
        )
        self.decoder = StackedMLP(
            latent_size + 1, hidden, self.likelihood.n_outputs + n_utility, streams, gain=gain
        )
        if group_blind:
            self.encoder.ignore(self.inputs.size)
            self.decoder.ignore(latent_size)
        self.register_buffer("frame", torch.eye(latent_size).repeat(len(streams), 1, 1))

    def encode(self, x: Tensor, s: Tensor, utility: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Location and scale of q(z | x, s[, ũ]).

        Args:
            x: features, shape (E, B, D).
            s: sensitive attribute in {−1, +1}, shape (E, B).
            utility: ũ in {0, 1}, shape (E, B); given exactly where the VAE models it.

        Returns:
            Two tensors of shape (E, B, Z); the scale is positive.
        """
        given = [self.inputs(x), s.unsqueeze(-1)]
        if utility is not None:
            given.append(utility.unsqueeze(-1))
        loc, raw_scale = self.encoder(torch.cat(given, dim=-1)).chunk(2, dim=-1)
        scale = F.softplus(raw_scale) + MIN_SCALE
        if self._is_in_one_frame():
            return loc, scale
        other = s.unsqueeze(-1) < 0
        return torch.where(other, loc @ self.frame, loc), torch.where(other, scale @ self.frame.abs(), scale)

    def decode(self, z: Tensor, s: Tensor) -> Tensor:
        """Decoder outputs for z (E, B, ..., Z) and s (E, B): shape (E, B, ..., P[+1]), ũ's logit last."""
        s_column = s.reshape(*s.shape, *(1,) * (z.dim() - s.dim())).expand(*z.shape[:-1], 1)
        if not self._is_in_one_frame():
            back = (z.flatten(1, -2) @ self.frame.mT).reshape(z.shape)
            z = torch.where(s_column < 0, back, z)
        flat = torch.cat([z, s_column], dim=-1).flatten(1, -2)
        return self.decoder(flat).unflatten(1, z.shape[1:-1])

    def utility_logit(self, outputs: Tensor) -> Tensor:
        """Logit of p(ũ = 1 | z, s, d = 1), shape (...), from decoder outputs (..., P + 1)."""
        return outputs[..., self.likelihood.n_outputs]

    def utility_log_prob(self, outputs: Tensor, utility: Tensor) -> Tensor:
        """Log p(ũ | z, s, d = 1), shape (...), from decoder outputs (..., P + 1) and ũ (...) in {0, 1}."""
        logit = self.utility_logit(outputs)
        return -F.binary_cross_entropy_with_logits(logit, utility.expand_as(logit), reduction="none")

    def log_prob(self, outputs: Tensor, x: Tensor) -> Tensor:
        """Log p(x | z, s), shape (...), from decoder outputs (..., P[+1]) and x (..., D)."""
        return self.likelihood.log_prob(outputs[..., : self.likelihood.n_outputs], x)

    @torch.no_grad()
    def read_together(self, frame: Tensor) -> None:
        """From now on the code of S = −1, as it is now, is read through `frame` (E, Z, Z) too."""
        self.frame.copy_(self.frame @ frame)

    def _is_in_one_frame(self) -> bool:
        return bool((self.frame.diagonal(dim1=-2, dim2=-1) == 1.0).all())

    @torch.no_grad()
    def transfer_from(self, phase1: ConditionalVAE) -> None:
        """Starts from a Phase I VAE: φ', θ' are copied, the connections of ũ keep their random start."""
        pretrained = dict(phase1.named_parameters())
        for name, own in self.named_parameters():
            known = pretrained[name]
            own[tuple(slice(size) for size in known.shape)] = known
        self.frame.copy_(phase1.frame)
