"""Log likelihood of the decoder with its gradient, computed together for a few replicates at a time.

The decoder sees L samples of every person, which makes it most of the work of training. Left to autograd,
hidden activations of all replicates go to memory and come back for the backward pass. But the loss is linear
in log p(x, ũ | z, s), with weights that are known before the decoder runs: so a few replicates at a time go
forward and at once backward, while their activations are in the cache.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from fairall.nn.likelihoods import MixedLikelihood, bernoulli_log_prob
from fairall.nn.manual_backward import backward_pass, forward_pass
from fairall.nn.native.calls import takes
from fairall.nn.native.nets import log_likelihood

CACHED = 300_000  # numbers: a layer of so many, its gradient and the next one's stay in 2 to 4 MiB of cache


@dataclass(frozen=True)
class WeightedTargets:
    """Values to decode, with a weight for each person.

    Attributes:
        x: features, shape (E, B, D).
        weight: of each person's log p(x | z, s), shape (E, B).
        utility: ũ in {0, 1}, shape (E, B), where it is modelled.
        utility_weight: of each person's log p(ũ | z, s, d = 1), shape (E, B), where it is modelled.
    """

    x: Tensor
    weight: Tensor
    utility: Tensor | None = None
    utility_weight: Tensor | None = None


@dataclass(frozen=True)
class Gradients:
    """Gradients of the weighted log likelihood summed over people.

    Attributes:
        given: with respect to the decoder's inputs, shape (E, Z + 1, B, L).
        layers: with respect to its weights and biases.
        weight: with respect to the weights of people, which is log p(x | z, s), shape (E, B).
        utility_weight: the same for log p(ũ | z, s, d = 1).
    """

    given: Tensor
    layers: list[Tensor]
    weight: Tensor
    utility_weight: Tensor


def weighted_log_likelihood(
    layers: Sequence[Tensor], likelihood: MixedLikelihood, given: Tensor, targets: WeightedTargets
) -> Tensor:
    """weight_b·log p(x_b | z, s) + utility_weight_b·log p(ũ_b | z, s, d = 1), averaged over samples of z.

    Differentiable once, with respect to the decoder's layers, its inputs and the weights of people. The
    terms of a replicate have to enter the loss with the same factor, for instance as sums over some people
    each; weights belong into `targets`.

    Args:
        layers: weights (E, in, out) and biases (E, 1, out) of the decoder in turn.
        likelihood: of the features, with P outputs of the decoder; where ũ is modelled its logit is one more.
        given: the decoder's inputs for L samples a person, shape (E, Z + 1, B, L).
        targets: what to decode.

    Returns:
        Shape (E, B), in nats.

    Raises:
        RuntimeError: in the backward pass, for people of a replicate that enter the loss with different
            factors.
    """
    if not torch.is_grad_enabled():
        return _value_and_gradients(layers, likelihood, given, targets, learning=False)[0]
    values = targets.x, targets.weight, targets.utility, targets.utility_weight
    return _WeightedLogLikelihood.apply(likelihood, given, *values, *layers)


def value_and_gradients(
    layers: Sequence[Tensor], likelihood: MixedLikelihood, given: Tensor, targets: WeightedTargets
) -> tuple[Tensor, Gradients]:
    """`weighted_log_likelihood`, and the gradients of its sum over people without autograd."""
    return _value_and_gradients(layers, likelihood, given, targets, learning=True)


@torch.no_grad()
def _value_and_gradients(
    layers: Sequence[Tensor],
    likelihood: MixedLikelihood,
    given: Tensor,
    targets: WeightedTargets,
    *,
    learning: bool,
) -> tuple[Tensor, Gradients]:
    n_outputs, weight = likelihood.n_outputs, targets.weight
    if takes(given, targets.x, weight, *layers):
        log_x, log_utility, of_given, of_layers = log_likelihood(
            layers, likelihood, given, *vars(targets).values(), learning=learning
        )
        gradients = Gradients(of_given, of_layers, log_x, log_utility)
        return _weighted(targets, gradients), gradients

    weights = weight.unsqueeze(1).expand(-1, n_outputs, -1)
    if targets.utility_weight is not None:
        weights = torch.cat([weights, targets.utility_weight.unsqueeze(1)], dim=1)
    per_sample = (weights / given.shape[-1]).unsqueeze(-1)
    gradients = Gradients(
        torch.empty_like(given),
        [torch.empty_like(layer) for layer in layers],
        torch.empty_like(weight),
        torch.zeros_like(weight),
    )
    for some in _few_replicates(given, layers):
        own = [layer[some] for layer in layers]
        *inputs, last = forward_pass(given[some].flatten(2), own)
        outputs = last.unflatten(2, given.shape[2:])
        score = torch.empty_like(outputs) if learning else None
        of_x, of_u = (None, None) if score is None else score.tensor_split([n_outputs], dim=1)
        gradients.weight[some] = likelihood.log_prob(outputs[:, :n_outputs], targets.x[some], of_x)
        if targets.utility is not None:
            value = targets.utility[some, None, :, None]
            gradients.utility_weight[some] = bernoulli_log_prob(outputs[:, n_outputs:], value, of_u)
        if score is not None:
            of_outputs = score.mul_(per_sample[some]).flatten(2)
            into = [layer[some] for layer in gradients.layers]
            gradients.given[some] = backward_pass(inputs, of_outputs, own, into).view_as(given[some])

    return _weighted(targets, gradients), gradients


def _weighted(targets: WeightedTargets, log_likelihoods: Gradients) -> Tensor:
    value = targets.weight * log_likelihoods.weight
    if targets.utility_weight is not None:
        value += targets.utility_weight * log_likelihoods.utility_weight
    return value


class _WeightedLogLikelihood(torch.autograd.Function):
    """`weighted_log_likelihood` for autograd; the gradients are computed with the value."""

    @staticmethod
    def forward(
        ctx: Any,
        likelihood: MixedLikelihood,
        given: Tensor,
        x: Tensor,
        weight: Tensor,
        utility: Tensor | None,
        utility_weight: Tensor | None,
        *layers: Tensor,
    ) -> Tensor:
        targets = WeightedTargets(x, weight, utility, utility_weight)
        value, ctx.gradients = value_and_gradients(layers, likelihood, given, targets)
        ctx.has_utility = utility is not None
        return value

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        gradients = ctx.gradients
        per_person = upstream[:, :1].sum(-1, keepdim=True)  # 0 where there are no people
        if not torch.equal(upstream, per_person.expand_as(upstream)):
            raise RuntimeError("people of a replicate enter the loss with different factors")
        per_weight = per_person.unsqueeze(-1)
        return (
            None,
            gradients.given * per_weight.unsqueeze(-1),
            None,
            gradients.weight * per_person,
            None,
            gradients.utility_weight * per_person if ctx.has_utility else None,
            *(layer * per_weight for layer in gradients.layers),
        )


def _few_replicates(given: Tensor, layers: Sequence[Tensor]) -> Iterator[slice]:
    """Slices of replicates, as many in each as fit the cache."""
    n_seeds, _, n_people, n_samples = given.shape
    widest = max(layer.shape[-1] for layer in layers)
    at_once = max(1, CACHED // max(1, widest * n_people * n_samples))
    for first in range(0, n_seeds, at_once):
        yield slice(first, first + at_once)
