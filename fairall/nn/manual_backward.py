"""The forward and the backward pass of a stacked net, written out.

What is trained thousands of times on few people spends more on autograd's bookkeeping than on arithmetic,
and what is trained on many samples of people need not keep what autograd keeps. Layers are given as weight
(E, in, out) and bias (E, 1, out) in turn; people are in columns, values of shape (E, units, B).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor


def affine(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """What a layer makes of x (E, in, B), shape (E, out, B)."""
    return torch.baddbmm(bias.mT, weight.mT, x)


def forward_pass(x: Tensor, layers: Sequence[Tensor]) -> list[Tensor]:
    """What goes into every layer, x (E, in, B) first, and at the end what comes out of the last."""
    values = [x]
    for weight, bias in _pairs(layers):
        if len(values) > 1:
            values[-1].relu_()
        values.append(affine(values[-1], weight, bias))
    return values


def backward_pass(
    inputs: Sequence[Tensor], of_output: Tensor, layers: Sequence[Tensor], of_layers: Sequence[Tensor]
) -> Tensor:
    """From the gradient in a net's output to those in its layers and in its input.

    Args:
        inputs: of every layer, as `forward_pass` gives them; those behind a ReLU are overwritten.
        of_output: shape (E, out, B).
        layers: weights and biases.
        of_layers: where to put their gradients.

    Returns:
        The gradient in the first of `inputs`, shape (E, in, B).
    """
    gradient = of_output
    steps = zip(inputs, _pairs(layers), _pairs(of_layers), strict=True)
    for x, (weight, _), (of_weight, of_bias) in reversed(list(steps)):
        of_weight.copy_(torch.bmm(x, gradient.mT))  # with `out` the products would go one by one
        torch.sum(gradient, 2, out=of_bias.squeeze(1))
        gradient = torch.bmm(weight, gradient)
        if x is not inputs[0]:
            gradient.mul_(x.sign_())  # the slope of a ReLU
    return gradient


def _pairs(layers: Sequence[Tensor]) -> Iterator[tuple[Tensor, Tensor]]:
    """Weight and bias of each layer."""
    return zip(layers[::2], layers[1::2], strict=True)
