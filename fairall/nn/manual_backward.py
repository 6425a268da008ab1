"""Forward and backward pass of a stacked net without autograd.

For small minibatches autograd's bookkeeping takes longer than the arithmetic; for many samples per person it
keeps more activations than necessary. Layers are given as weight (E, in, out) and bias (E, 1, out) in turn;
people are in columns, values of shape (E, units, B).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor


def affine(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Affine map of x (E, in, B), shape (E, out, B)."""
    return torch.baddbmm(bias.mT, weight.mT, x)


def forward_pass(x: Tensor, layers: Sequence[Tensor]) -> list[Tensor]:
    """Inputs of every layer, x (E, in, B) first, and the output of the last layer."""
    values = [x]
    for weight, bias in _pairs(layers):
        if len(values) > 1:
            values[-1].relu_()
        values.append(affine(values[-1], weight, bias))
    return values


def backward_pass(
    inputs: Sequence[Tensor], of_output: Tensor, layers: Sequence[Tensor], of_layers: Sequence[Tensor]
) -> Tensor:
    """Gradients with respect to the layers and the input, given the one with respect to the output.

    Args:
        inputs: inputs of every layer from `forward_pass`; those after a ReLU are overwritten.
        of_output: gradient with respect to the output, shape (E, out, B).
        layers: weights and biases.
        of_layers: tensors to write their gradients to.

    Returns:
        The gradient with respect to the first of `inputs`, shape (E, in, B).
    """
    gradient = of_output
    steps = zip(inputs, _pairs(layers), _pairs(of_layers), strict=True)
    for x, (weight, _), (of_weight, of_bias) in reversed(list(steps)):
        of_weight.copy_(torch.bmm(x, gradient.mT))  # with `out=` the products are computed one by one
        torch.sum(gradient, 2, out=of_bias.squeeze(1))
        gradient = torch.bmm(weight, gradient)
        if x is not inputs[0]:
            gradient.mul_(x.sign_())  # the slope of a ReLU
    return gradient


def _pairs(layers: Sequence[Tensor]) -> Iterator[tuple[Tensor, Tensor]]:
    """Weight and bias of each layer."""
    return zip(layers[::2], layers[1::2], strict=True)
