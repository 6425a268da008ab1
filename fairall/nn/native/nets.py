"""Nets of E replicates, and the decoder with its likelihood, as one native call each."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from fairall.nn.likelihoods import MixedLikelihood
from fairall.nn.native.calls import kernels, over_replicates

# Samples of people at once: few enough for a layer's values, its gradient and the next one's to stay in the
# cache. OpenBLAS has faster code for products of up to SMALL multiply-adds.
COLUMNS, FEWEST, SMALL = 240, 80, 1_000_000


def apply(layers: Sequence[Tensor], x: Tensor) -> Tensor:
    """Outputs of nets with ReLUs, without autograd.

    Args:
        layers: weights (E, in, out) and biases (E, 1, out) in turn.
        x: inputs, shape (E, in, B).

    Returns:
        Shape (E, out, B).

    Raises:
        ValueError: if `x` does not have the nets' E and number of inputs.
    """
    _check("inputs of the nets", x, (*layers[0].shape[:2], x.shape[-1]))
    theta, sizes = _flat(layers)
    outputs = x.new_empty(len(x), int(sizes[-1]), x.shape[2])
    arrays = theta.numpy(), x.detach().contiguous().numpy(), outputs.numpy()

    def some(replicates: slice) -> None:
        theta, x, out = (array[replicates] for array in arrays)
        kernels().apply(theta, sizes, x, out, columns_of(sizes))

    over_replicates(some, len(x))
    return outputs


def average_probability(layers: Sequence[Tensor], loc: Tensor, scale: Tensor, noise: Tensor) -> Tensor:
    """Average over z = loc + scale·ε of the probability whose logit is a net's only output.

    Args:
        layers: weights (E, in, out) and biases (E, 1, out) of the net in turn.
        loc: locations of M distributions for each person, shape (E, B, M, Z).
        scale: their scales, same shape.
        noise: ε, shape (E, B, Z, L); where people share it (`Tensor.expand`), it is not copied for each.

    Returns:
        Shape (E, B, M).
    """
    theta, sizes = _flat(layers)
    averages = loc.new_empty(loc.shape[:3])
    if noise.stride(1) == 0:
        noise = noise[:, :1]
    theta_, *rest = (t.detach().contiguous().numpy() for t in (theta, loc, scale, noise, averages))

    def some(replicates: slice) -> None:
        own = (array[replicates] for array in rest)
        kernels().average(theta_[replicates], sizes, *own, columns_of(sizes))

    over_replicates(some, len(loc))
    return averages


def log_likelihood(
    layers: Sequence[Tensor],
    likelihood: MixedLikelihood,
    given: Tensor,
    x: Tensor,
    weight: Tensor,
    utility: Tensor | None,
    utility_weight: Tensor | None,
    *,
    learning: bool,
) -> tuple[Tensor, Tensor, Tensor, list[Tensor]]:
    """Log p(x | z, s) and log p(ũ | z, s, d = 1), shape (E, B), and gradients of their weighted sum.

    Args:
        layers: see `fairall.nn.fused_decoder.weighted_log_likelihood`.
        likelihood: the same.
        given: the same.
        x: see `fairall.nn.fused_decoder.WeightedTargets`.
        weight: the same.
        utility: the same.
        utility_weight: the same.
        learning: whether to compute gradients, which else are undefined.

    Returns:
        Both log likelihoods, averaged over samples, and the gradients in `given` and in `layers`.

    Raises:
        ValueError: if a shape is another one, or ũ or its weights are missing where it is modelled.
    """
    theta, sizes = _flat(layers)
    n_seeds, n_people = len(theta), given.shape[2]
    _check("inputs of the decoder", given, (n_seeds, int(sizes[0]), n_people, given.shape[-1]))
    _check("features", x, (n_seeds, n_people, likelihood.n_features))
    models_utility = int(sizes[-1]) > likelihood.n_outputs
    for name, each, needed in (
        ("weights", weight, True),
        ("utilities", utility, models_utility),
        ("weights of utilities", utility_weight, models_utility),
    ):
        if needed != (each is not None):
            raise ValueError(
                f"{name} are {'missing' if needed else 'given'}; ũ is modelled: {models_utility}"
            )
        if each is not None:
            _check(name, each, (n_seeds, n_people))
    of_theta, of_given = torch.empty_like(theta), given.new_empty(given.shape)
    log_x, log_utility = weight.new_empty(2, *weight.shape)
    none = weight[:, :0]
    values = (
        given.flatten(2),
        of_given.flatten(2),
        x.index_select(2, likelihood.columns),
        weight,
        none if utility is None else utility,
        none if utility_weight is None else utility_weight,
        log_x,
        log_utility,
    )
    # Results are contiguous, so that the arrays below share their memory.
    stacked = [t.detach().contiguous().numpy() for t in (theta, of_theta, *values)]

    def some(replicates: slice) -> None:
        theta, of_theta, given, of_given, x, *rest = (array[replicates] for array in stacked)
        kernels().decode(
            theta, of_theta, sizes, given, of_given, x, likelihood.layout, *rest, n_samples,
            columns_of(sizes), learning,
        )  # fmt: skip

    n_samples = given.shape[3]
    over_replicates(some, len(theta))
    parts = of_theta.split([layer[0].numel() for layer in layers], dim=1)
    # Contiguous, as the fused kernel of Adam takes them.
    gradients = [part.reshape(layer.shape).contiguous() for part, layer in zip(parts, layers, strict=True)]
    return log_x + likelihood.log_base(x), log_utility, of_given, gradients


def _check(name: str, tensor: Tensor, shape: tuple[int, ...]) -> None:
    """Compiled functions do not check indices: with other shapes they would read and write any memory."""
    if tensor.shape != shape:
        raise ValueError(f"{name} have shape {tuple(tensor.shape)} in place of {shape}")


def _flat(layers: Sequence[Tensor]) -> tuple[Tensor, np.ndarray]:
    """Parameters of each replicate as one vector, shape (E, n), and the sizes of the layers."""
    theta = torch.cat([layer.detach().flatten(1) for layer in layers], dim=1)
    return theta, np.array([layers[0].shape[1], *(bias.shape[2] for bias in layers[1::2])])


def columns_of(sizes: np.ndarray) -> int:
    """Samples of people that nets with these layers take at once."""
    small = SMALL // int((sizes[:-1] * sizes[1:]).max()) // 16 * 16
    return min(COLUMNS, small) if small >= FEWEST else COLUMNS
