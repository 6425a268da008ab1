"""Fully connected nets of E replicates, one batched matrix product per layer."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor, nn

from fairall.nn.manual_backward import affine
from fairall.randomness import SeedStreams

RELU_GAIN = math.sqrt(2.0)  # a ReLU lets half of the variance through


class StackedLinear(nn.Module):
    """E affine maps side by side: weight (E, in, out), Xavier-uniform · `gain`; bias (E, 1, out), zero."""

    def __init__(self, n_in: int, n_out: int, streams: SeedStreams, *, gain: float = 1.0) -> None:
        super().__init__()
        bound = gain * math.sqrt(6.0 / (n_in + n_out))
        weight = (2.0 * streams.uniform(n_in, n_out) - 1.0) * bound
        self.weight = nn.Parameter(weight)
        self.bias = nn.Parameter(torch.zeros(weight.shape[0], 1, n_out))

    def forward(self, x: Tensor) -> Tensor:
        """Maps x (E, B, in) to (E, B, out)."""
        return self.forward_transposed(x.mT).mT

    def forward_transposed(self, x: Tensor) -> Tensor:
        """The same of people in columns: maps x (E, in, B) to (E, out, B)."""
        return affine(x, self.weight, self.bias)


class StackedMLP(nn.Module):
    """E multilayer perceptrons side by side: ReLU, and dropout after each hidden layer.

    Args:
        n_in: size of the input.
        hidden: sizes of the hidden layers.
        n_out: size of the output.
        streams: draws the initial weights, replicate by replicate.
        dropout: probability that a hidden unit is dropped in training.
        gain: of the initial weights; `RELU_GAIN` keeps the size of a signal from layer to layer.
    """

    def __init__(
        self,
        n_in: int,
        hidden: Sequence[int],
        n_out: int,
        streams: SeedStreams,
        *,
        dropout: float = 0.0,
        gain: float = 1.0,
    ) -> None:
        super().__init__()
        sizes = [n_in, *hidden, n_out]
        self.layers = nn.ModuleList(
            StackedLinear(a, b, streams, gain=gain) for a, b in itertools.pairwise(sizes)
        )
        self.dropout = dropout

    def weights_and_biases(self) -> list[Tensor]:
        """Of every layer in turn, as `fairall.nn.manual_backward` takes them."""
        layers = cast(list[StackedLinear], list(self.layers))
        return [parameter for layer in layers for parameter in (layer.weight, layer.bias)]

    @torch.no_grad()
    def zero_input_weights(self, column: int) -> None:
        """Sets the weights of input `column` to zero, from which training may move them."""
        first = cast(StackedLinear, self.layers[0])
        first.weight[:, column] = 0.0

    def forward(self, x: Tensor, dropout_streams: SeedStreams | None = None) -> Tensor:
        """Maps x (E, B, in) to (E, B, out).

        Args:
            x: inputs, shape (E, B, in).
            dropout_streams: draws the dropout masks; without it nothing is dropped (evaluation).
        """
        return self.forward_transposed(x.mT, dropout_streams).mT

    def forward_transposed(self, x: Tensor, dropout_streams: SeedStreams | None = None) -> Tensor:
        """The same of people in columns: maps x (E, in, B) to (E, out, B).

        A unit's values for all people then lie side by side, and so do those of a few units.
        """
        *hidden, last = cast(list[StackedLinear], list(self.layers))
        for layer in hidden:
            x = layer.forward_transposed(x).relu_()
            if dropout_streams is not None and self.dropout > 0.0:
                kept = dropout_streams.uniform(*x.shape[1:]) >= self.dropout
                x = x * (kept / (1.0 - self.dropout))
        return last.forward_transposed(x)
