"""Semi-supervised VAE of (x, ũ) given s, with classifier q(ũ | x, s).

References:
    Kingma, Mohamed, Rezende, Welling: Semi-supervised learning with deep generative models, NeurIPS 2014.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from fairall.data.features import Schema
from fairall.data.people import Decided
from fairall.models.vae import ConditionalVAE
from fairall.nn.stacked import StackedMLP
from fairall.randomness import SeedStreams


class SemiSupervisedVAE(nn.Module):
    """Conditional VAE of (x, ũ) given s, and the classifier q(ũ | x, s, d = 1) (section 4.1, appendix C.1).

    Args:
        schema: the features of x.
        latent_size: Z.
        vae_arch: hidden layers of encoder and of decoder.
        clf_arch: hidden layers of the classifier.
        clf_dropout: dropout of the classifier.
        streams: draw the initial weights.
        group_blind: see `ConditionalVAE`.
        gain: gain of the initial weights, see `StackedMLP`.
    """

    def __init__(
        self,
        schema: Schema,
        latent_size: int,
        vae_arch: Sequence[int],
        clf_arch: Sequence[int],
        clf_dropout: float,
        streams: SeedStreams,
        *,
        group_blind: bool,
        gain: float,
    ) -> None:
        super().__init__()
        self.vae = ConditionalVAE(
            schema, latent_size, vae_arch, streams, utility=True, group_blind=group_blind, gain=gain
        )
        self.classifier = StackedMLP(
            self.vae.inputs.size + 1, clf_arch, 1, streams, dropout=clf_dropout, gain=gain, compiled=True
        )

    def classify(self, x: Tensor, s: Tensor, dropout_streams: SeedStreams | None = None) -> Tensor:
        """Logit of q(ũ = 1 | x, s, d = 1), shape (E, B); dropout with `dropout_streams` only."""
        columns = self.vae.inputs.columns_with_s(x, s)
        return self.classifier.forward_transposed(columns, dropout_streams).squeeze(1)

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

    def draw_latent(self, batch: Decided, streams: SeedStreams) -> Tensor:
        """One z ~ q(z | x, s, ũ) per applicant, shape (E, B, Z), with ũ ~ q(ũ | x, s) where it is unknown."""
        estimated = torch.sigmoid(self.classify(batch.x, batch.s))
        guessed = (streams.uniform(*estimated.shape[1:]) < estimated).to(batch.label.dtype)
        loc, scale = self.vae.encode(batch.x, batch.s, torch.where(batch.accepted, batch.label, guessed))
        return loc + scale * streams.normal(*loc.shape[1:])

    def decoded_utility(self, z: Tensor, s: Tensor) -> Tensor:
        """p(ũ = 1 | z, s, d = 1) for samples z (E, B, Z, L) and s (E, B), shape (E, B, L)."""
        return torch.sigmoid(self.vae.utility_logit(self.vae.decode(z, s)))

    def reconstruct(self, z: Tensor, s: Tensor) -> Tensor:
        """Point estimates of the features, shape (E, B, D), for z (E, B, Z) and s (E, B)."""
        likelihood = self.vae.likelihood
        outputs = self.vae.decode(z.unsqueeze(-1), s).squeeze(-1)
        return likelihood.reconstruct(outputs[:, : likelihood.n_outputs])
