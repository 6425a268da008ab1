"""Fully connected nets of E replicates, one batched matrix product per layer.

References:
    Glorot, Bengio: Understanding the difficulty of training deep feedforward neural networks, AISTATS 2010
    (Xavier-uniform weights).
    He, Zhang, Ren, Sun: Delving deep into rectifiers, ICCV 2015 (the gain of ReLUs).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, cast

import torch
from torch import Tensor, nn

from fairall.nn import native
from fairall.runtime.randomness import SeedStreams

if TYPE_CHECKING:
    from fairall.nn.noise import RandomNumbers

RELU_GAIN = math.sqrt(2.0)  # a ReLU halves the second moment of its input
# People of all replicates in a chunk; some 16 latent samples of each take a few megabytes.
AT_ONCE = 5120
# PyTorch draws normal numbers in blocks of 16, and fewer than 16 in another way; compiled nets compute 128
# columns at once. With chunks of at least 128 people, all but the last a multiple of 128, a replicate has the
# same numbers, however many are stacked.
MULTIPLE = 128


class StackedLinear(nn.Module):
    """E affine maps with weight (E, in, out) and bias (E, 1, out), initially Xavier-uniform · `gain` and 0.

    >>> StackedLinear(3, 2, SeedStreams([0, 1], "doctest"))
    StackedLinear(E=2, in=3, out=2)
    """

    def __init__(self, n_in: int, n_out: int, streams: SeedStreams, *, gain: float = 1.0) -> None:
        super().__init__()
        bound = gain * math.sqrt(6.0 / (n_in + n_out))
        weight = (2.0 * streams.uniform(n_in, n_out) - 1.0) * bound
        self.weight = nn.Parameter(weight)
        self.bias = nn.Parameter(torch.zeros(weight.shape[0], 1, n_out))

    def extra_repr(self) -> str:
        """Number of replicates and sizes."""
        n_seeds, n_in, n_out = self.weight.shape
        return f"E={n_seeds}, in={n_in}, out={n_out}"

    def forward(self, x: Tensor) -> Tensor:
        """Map x (E, B, in) to (E, B, out)."""
        return self.forward_transposed(x.mT).mT

    def forward_transposed(self, x: Tensor) -> Tensor:
        """Map x (E, in, B) to (E, out, B), people in columns."""
        return torch.baddbmm(self.bias.mT, self.weight.mT, x)


class StackedMLP(nn.Module):
    """E multilayer perceptrons with ReLU and dropout after each hidden layer.

    Initial weights have the gain `RELU_GAIN`, which keeps the scale of activations from layer to layer.

    Args:
        hidden: sizes of the hidden layers.
        dropout: probability that a hidden unit is dropped in training.
    """

    def __init__(
        self,
        n_in: int,
        hidden: Sequence[int],
        n_out: int,
        streams: SeedStreams,
        *,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            StackedLinear(a, b, streams, gain=RELU_GAIN)
            for a, b in itertools.pairwise([n_in, *hidden, n_out])
        )
        self.dropout = dropout

    def extra_repr(self) -> str:
        """Dropout; the layers give the sizes."""
        return f"dropout={self.dropout}"

    def weights_and_biases(self) -> list[Tensor]:
        """Weight (E, in, out) and bias (E, 1, out) of every layer in turn."""
        layers = cast(list[StackedLinear], list(self.layers))
        return [parameter for layer in layers for parameter in (layer.weight, layer.bias)]

    @torch.no_grad()
    def zero_input_weights(self, column: int) -> None:
        """Set the weights from input `column` to zero; training may change them."""
        cast(StackedLinear, self.layers[0]).weight[:, column] = 0.0

    def forward(self, x: Tensor, dropout_streams: SeedStreams | RandomNumbers | None = None) -> Tensor:
        """Map x (E, B, in) to (E, B, out), with dropout if `dropout_streams` are given to draw the masks."""
        return self.forward_transposed(x.mT, dropout_streams).mT

    def forward_transposed(
        self, x: Tensor, dropout_streams: SeedStreams | RandomNumbers | None = None
    ) -> Tensor:
        """Map x (E, in, B) to (E, out, B), people in columns, which is contiguous in memory for each unit."""
        return self.last.forward_transposed(self.hidden(x, dropout_streams))

    def hidden(self, x: Tensor, dropout_streams: SeedStreams | RandomNumbers | None = None) -> Tensor:
        """Units of the last hidden layer, shape (E, units, B), for x (E, in, B)."""
        for layer in cast(list[StackedLinear], list(self.layers)[:-1]):
            x = layer.forward_transposed(x).relu_()
            if dropout_streams is not None and self.dropout > 0.0:
                kept = dropout_streams.uniform(*x.shape[1:]) >= self.dropout
                x = x * (kept / (1.0 - self.dropout))
        return x

    @property
    def last(self) -> StackedLinear:
        """The layer of the outputs."""
        return cast(StackedLinear, self.layers[-1])


def evaluated(net: StackedMLP, x: Tensor) -> Tensor:
    """`net.forward_transposed(x)`, shape (E, out, B), without dropout; compiled without a gradient."""
    layers = net.weights_and_biases()
    if torch.is_grad_enabled() or not native.takes(x, *layers):
        return net.forward_transposed(x)
    return native.outputs(layers, x)


def average_probability(net: StackedMLP, loc: Tensor, scale: Tensor, noise: Tensor) -> Tensor:
    """Average of the logistic function of a net's only output over normal inputs z = loc + scale·ε.

    It is estimated by samples, and compiled where no gradient is needed.

    Args:
        net: E nets of Z inputs.
        loc: locations of M distributions of each person, shape (E, B, M, Z).
        scale: their scales, same shape.
        noise: ε, L samples for all M distributions, shape (E, B, Z, L).

    Returns:
        Shape (E, B, M), in [0, 1].
    """
    layers = net.weights_and_biases()
    if not torch.is_grad_enabled() and native.takes(loc, *layers):
        return native.average_probability(layers, loc, scale, noise)
    z = torch.addcmul(loc.unsqueeze(-1), scale.unsqueeze(-1), noise.unsqueeze(2))
    logit = net.forward_transposed(z.movedim(3, 1).flatten(2)).view(*loc.shape[:3], -1)
    return torch.sigmoid(logit).mean(-1)


def in_chunks(compute: Callable[..., Tensor], *people: Tensor, rows: int | None = None) -> Tensor:
    """Apply `compute` to chunks of people and concatenate the results, shape (E, N, ...).

    Args:
        compute: maps people (E, B, ...) to values (E, B, ...).
        people: shape (E, N, ...) each.
        rows: B, people of each replicate per chunk, for a `compute` that draws nothing; by default about
            `AT_ONCE` over all replicates.
    """
    sizes = _sizes(*people[0].shape[:2]) if rows is None else rows
    parts = zip(*(values.split(sizes, dim=1) for values in people), strict=True)
    return torch.cat([compute(*part) for part in parts], dim=1)


def _sizes(n_replicates: int, n_people: int) -> list[int]:
    """Sizes of the chunks; a last one of fewer than `MULTIPLE` people is merged with the one before."""
    size = max(1, AT_ONCE // n_replicates // MULTIPLE) * MULTIPLE
    n_chunks = max(1, math.ceil((n_people - MULTIPLE + 1) / size))
    return [size] * (n_chunks - 1) + [n_people - (n_chunks - 1) * size]
