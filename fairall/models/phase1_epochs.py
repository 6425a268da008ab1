"""Epochs of Phase I in torch, by a gradient that is written out; `fairall.nn.native` has them compiled.

Autograd would take a third longer for nets of this size.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from fairall.models.objectives import gaussian_kl, reparameterize
from fairall.models.vae import MIN_SCALE, ConditionalVAE
from fairall.nn.adam import PaddedAdam
from fairall.nn.fused_decoder import WeightedTargets, value_and_gradients
from fairall.nn.manual_backward import backward_pass, forward_pass


class TorchEpochs:
    """Training of E VAEs by Adam on minibatches.

    Args:
        vae: a VAE without ũ, whose `frame` is the identity; its parameters are updated.
        x: features, shape (N, D).
        s: sensitive attribute, shape (N,).
        batch_size: people per minibatch.
        learning_rate: of Adam.
        beta: weight of the KL term.
    """

    def __init__(
        self, vae: ConditionalVAE, x: Tensor, s: Tensor, *, batch_size: int, learning_rate: float, beta: float
    ) -> None:
        self.vae, self.x, self.s = vae, x, s
        self.batch_size, self.beta = batch_size, beta
        self.optimiser = PaddedAdam(vae.parameters(), learning_rate)

    def epoch(self, order: Tensor, noise: Tensor, done: Tensor) -> Tensor:
        """Update the VAE on every minibatch of an epoch.

        Args:
            order: indices of all people in the order of the epoch, shape (E, N).
            noise: standard normal ε, L samples per person in that order, shape (E, N, Z, L).
            done: seeds that need no update, shape (E,), bool; here they are updated with the others.

        Returns:
            The mean of the losses before each update, shape (E,), in nats per person.
        """
        total = torch.zeros(len(order))
        batches = zip(order.split(self.batch_size, 1), noise.split(self.batch_size, 1), strict=True)
        for rows, eps in batches:
            loss, gradients = phase1_gradients(self.vae, self.x[rows], self.s[rows], eps, beta=self.beta)
            for parameter, gradient in zip(self.vae.parameters(), gradients, strict=True):
                parameter.grad = gradient
            self.optimiser.step()
            total += loss * rows.shape[1]
        return total / order.shape[1]

    def state_dict(self) -> dict[str, Any]:
        """State of the optimiser."""
        return self.optimiser.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what `state_dict` returned."""
        self.optimiser.load_state_dict(state)


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
