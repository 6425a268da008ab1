"""Gradient of the loss of Phase I, written out: autograd takes a third longer for nets of this size."""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from fairall.models.objectives import gaussian_kl, reparameterize
from fairall.models.vae import MIN_SCALE, ConditionalVAE
from fairall.nn.fused_decoder import WeightedTargets, value_and_gradients
from fairall.nn.manual_backward import backward_pass, forward_pass


@torch.no_grad()
def phase1_gradients(
    vae: ConditionalVAE, x: Tensor, s: Tensor, noise: Tensor, *, beta: float
) -> tuple[Tensor, list[Tensor]]:
    """`phase1_loss` and its gradients, for a VAE whose `frame` is the identity.

    With z = m + σ·ε, the gradient with respect to m is that of z, and the one with respect to σ is ε times
    it, both summed over samples; the KL adds β·m and β·(σ − 1/σ).

    Args:
        vae: a VAE without ũ.
        x: features, shape (E, B, D).
        s: sensitive attribute, shape (E, B).
        noise: ε, shape (E, B, Z, L).
        beta: weight of the KL term.

    Returns:
        The loss (E,), in nats per person, and its gradient with respect to each of `vae.parameters()`.
    """
    n_people = s.shape[1]
    encoder, decoder = vae.encoder.weights_and_biases(), vae.decoder.weights_and_biases()
    *inputs, output = forward_pass(vae.encoder_input(x, s), encoder)
    loc, raw_scale = output.chunk(2, dim=1)
    scale = F.softplus(raw_scale) + MIN_SCALE
    given = vae.decoder_input(reparameterize(loc.mT, scale.mT, noise), s)
    targets = WeightedTargets(x, torch.full_like(s, -1.0 / n_people))
    negative_likelihood, of_decoder = value_and_gradients(decoder, vae.likelihood, given, targets)

    of_z, epsilon = of_decoder.given[:, : vae.latent_size], noise.transpose(1, 2)
    of_loc = of_z.sum(-1) + beta / n_people * loc
    of_scale = (of_z * epsilon).sum(-1) + beta / n_people * (scale - 1.0 / scale)
    of_encoder = [torch.empty_like(layer) for layer in encoder]
    of_output = torch.cat([of_loc, of_scale * torch.sigmoid(raw_scale)], dim=1)
    backward_pass(inputs, of_output, encoder, of_encoder)

    loss = beta * gaussian_kl(loc.mT, scale.mT).mean(-1) + negative_likelihood.sum(-1)
    return loss, [*of_encoder, *of_decoder.layers]
