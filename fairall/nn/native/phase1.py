"""Epochs of Phase I as one native call each."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from fairall.nn.likelihoods import MixedLikelihood
from fairall.nn.native.calls import kernels, over_replicates
from fairall.nn.native.nets import columns_of
from fairall.nn.stacked import StackedMLP


class NativeEpochs:
    """Training of E VAEs by Adam on minibatches, as `TorchEpochs` in `fairall.models.phase1_epochs`.

    The nets' parameters become views of one vector per replicate, which the compiled functions update.

    Args:
        encoder: E encoders of inputs, s the last, to location and scale before the softplus.
        decoder: E decoders of z and s.
        likelihood: of the decoder's outputs.
        given: inputs of the encoder, shape (1, inputs, N).
        x: features, shape (N, D).
        batch_size: people per minibatch.
        n_samples: L.
        learning_rate: of Adam.
        beta: weight of the KL term.
        min_scale: least scale of z.
    """

    def __init__(
        self,
        encoder: StackedMLP,
        decoder: StackedMLP,
        likelihood: MixedLikelihood,
        given: Tensor,
        x: Tensor,
        *,
        batch_size: int,
        n_samples: int,
        learning_rate: float,
        beta: float,
        min_scale: float,
    ) -> None:
        parameters = [*encoder.weights_and_biases(), *decoder.weights_and_biases()]
        self.theta = torch.cat([parameter.detach().flatten(1) for parameter in parameters], dim=1)
        sizes = [parameter[0].numel() for parameter in parameters]
        for parameter, values in zip(parameters, self.theta.split(sizes, dim=1), strict=True):
            parameter.data = values.view(parameter.shape)
        self.batch_size = batch_size
        self.mean, self.square = torch.zeros_like(self.theta), torch.zeros_like(self.theta)
        self.steps = torch.zeros((), dtype=torch.long)
        self.loss = torch.full((len(self.theta),), torch.nan)
        self.people = (
            given[0].T.contiguous().numpy(),
            x[:, likelihood.columns].contiguous().numpy(),
            likelihood.log_base(x.unsqueeze(0))[0].contiguous().numpy(),
            likelihood.layout,
            encoder.sizes,
            decoder.sizes,
        )
        # A minibatch is computed in equal parts, of which the products are small (see `columns_of`).
        most = min(columns_of(encoder.sizes), columns_of(decoder.sizes))
        n_parts = -(-min(batch_size, len(x)) * n_samples // most)
        at_once = -(-min(batch_size, len(x)) // n_parts // 16) * 16
        self.training = at_once, batch_size, learning_rate, np.float32(beta), np.float32(min_scale)

    def epoch(self, order: Tensor, noise: Tensor, done: Tensor) -> Tensor:
        """See `TorchEpochs.epoch`; a seed that is done keeps its weights, and its loss."""
        stacked = [t.numpy() for t in (self.theta, self.mean, self.square, order, noise, self.loss)]
        steps = int(self.steps)

        def some(replicates: slice) -> None:
            theta, mean, square, order, noise, loss = (values[replicates] for values in stacked)
            kernels().epochs(theta, mean, square, steps, order, noise, *self.people, *self.training, loss)

        over_replicates(some, len(order), done.tolist())
        self.steps += -(-order.shape[1] // self.batch_size)
        return self.loss.clone()

    def state_dict(self) -> dict[str, Any]:
        """Adam's moments and number of updates, and the losses of the last epoch."""
        return {"mean": self.mean, "square": self.square, "steps": self.steps, "loss": self.loss}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what `state_dict` returned."""
        for name, own in self.state_dict().items():
            own.copy_(state[name])
