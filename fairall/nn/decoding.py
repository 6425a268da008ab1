"""The decoder's log likelihood and its gradient in one go, a few replicates at a time.

The decoder sees L samples of every person, which makes it most of the work of training. Left to autograd,
hidden activations of all replicates go to memory and come back for the backward pass. But the loss is linear
in log p(x, ũ | z, s), with weights that are known before the decoder runs: so a few replicates at a time go
forward and at once backward, while all that they need is in the cache.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from fairall.nn.likelihoods import MixedLikelihood, bernoulli_log_prob
from fairall.nn.stacked import StackedMLP

CACHED = 300_000  # numbers: a layer of so many, its gradient and the next one's stay in 2 to 4 MiB of cache


def weighted_log_likelihood(
    decoder: StackedMLP,
    likelihood: MixedLikelihood,
    given: Tensor,
    x: Tensor,
    weight: Tensor,
    utility: Tensor | None = None,
    utility_weight: Tensor | None = None,
) -> Tensor:
    """Σ_b weight_b·log p(x_b | z, s) + utility_weight_b·log p(ũ_b | z, s, d = 1), averaged over samples of z.

    Differentiable, once, in the weights of the decoder, in what it is given, and in the weights of people.

    Args:
        decoder: gives P outputs, and where ũ is modelled its logit as one more.
        likelihood: of the features.
        given: the decoder's inputs for L samples a person, shape (E, Z + 1, B, L).
        x: features, shape (E, B, D).
        weight: of each person's log p(x | z, s), shape (E, B).
        utility: ũ in {0, 1}, shape (E, B), where it is modelled.
        utility_weight: of each person's log p(ũ | z, s, d = 1), shape (E, B), where it is modelled.

    Returns:
        Shape (E,), in nats.
    """
    layers = [parameter for layer in decoder.layers for parameter in (layer.weight, layer.bias)]
    learning = torch.is_grad_enabled()
    return _WeightedLogLikelihood.apply(
        learning, likelihood, given, x, weight, utility, utility_weight, *layers
    )


class _WeightedLogLikelihood(torch.autograd.Function):
    """See `weighted_log_likelihood`; all gradients are computed with the value."""

    @staticmethod
    def forward(
        ctx: Any,
        learning: bool,
        likelihood: MixedLikelihood,
        given: Tensor,
        x: Tensor,
        weight: Tensor,
        utility: Tensor | None,
        utility_weight: Tensor | None,
        *layers: Tensor,
    ) -> Tensor:
        n_outputs = likelihood.n_outputs
        log_x, log_u = torch.empty_like(weight), torch.zeros_like(weight)
        weights = weight.unsqueeze(1).expand(-1, n_outputs, -1)
        if utility_weight is not None:
            weights = torch.cat([weights, utility_weight.unsqueeze(1)], dim=1)
        per_sample = (weights / given.shape[-1]).unsqueeze(-1)
        of_given, of_layers = torch.empty_like(given), [torch.empty_like(layer) for layer in layers]

        for some in _few_replicates(given, layers):
            own = [layer[some] for layer in layers]
            *inputs, last = _forward(given[some].flatten(2), own)
            outputs = last.unflatten(2, given.shape[2:])
            score = torch.empty_like(outputs) if learning else None
            of_x, of_u = (None, None) if score is None else score.tensor_split([n_outputs], dim=1)
            log_x[some] = likelihood.log_prob(outputs[:, :n_outputs], x[some], of_x)
            if utility is not None:
                log_u[some] = bernoulli_log_prob(outputs[:, n_outputs:], utility[some, None, :, None], of_u)
            if score is not None:
                into = [gradient[some] for gradient in of_layers]
                of_inputs = _backward(inputs, score.mul_(per_sample[some]).flatten(2), own, into)
                of_given[some] = of_inputs.view_as(given[some])

        ctx.gradients = of_given, log_x, None if utility is None else log_u, of_layers
        total = (weight * log_x).sum(-1)
        return total if utility_weight is None else total + (utility_weight * log_u).sum(-1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        of_given, log_x, log_u, of_layers = ctx.gradients
        per_person, per_weight = upstream[:, None], upstream[:, None, None]
        return (
            None,
            None,
            of_given * per_weight.unsqueeze(-1),
            None,
            log_x * per_person,
            None,
            None if log_u is None else log_u * per_person,
            *(gradient * per_weight for gradient in of_layers),
        )


def _few_replicates(given: Tensor, layers: tuple[Tensor, ...]) -> Iterator[slice]:
    """All replicates, as many at a time as fit the cache."""
    n_seeds, _, n_people, n_samples = given.shape
    widest = max(layer.shape[-1] for layer in layers)
    at_once = max(1, CACHED // (widest * n_people * n_samples))
    for first in range(0, n_seeds, at_once):
        yield slice(first, first + at_once)


def _forward(given: Tensor, layers: list[Tensor]) -> list[Tensor]:
    """What goes into every layer, people in columns, and at the end what comes out of the last."""
    values = [given]
    for weight, bias in _pairs(layers):
        if len(values) > 1:
            values[-1].relu_()
        values.append(torch.baddbmm(bias.mT, weight.mT, values[-1]))
    return values


def _backward(inputs: list[Tensor], gradient: Tensor, layers: list[Tensor], into: list[Tensor]) -> Tensor:
    """From the gradient in the outputs to that in the first of `inputs`; those of layers are put `into`."""
    for layer, ((weight, _), (of_weight, of_bias)) in reversed(
        list(enumerate(zip(_pairs(layers), _pairs(into), strict=True)))
    ):
        of_weight.copy_(torch.bmm(inputs[layer], gradient.mT))  # with `out` it would not be batched
        torch.sum(gradient, 2, out=of_bias.squeeze(1))
        gradient = torch.bmm(weight, gradient)
        if layer > 0:
            gradient.mul_(
                inputs[layer].sign_()
            )  # ReLUs let through 0 or 1 times it; nobody needs inputs again
    return gradient


def _pairs(layers: list[Tensor]) -> Iterator[tuple[Tensor, Tensor]]:
    """Weight and bias of each layer."""
    return zip(layers[::2], layers[1::2], strict=True)
