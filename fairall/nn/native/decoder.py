"""`fairall.nn.fused_decoder` as one native call."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from fairall.nn.likelihoods import MixedLikelihood
from fairall.nn.native.calls import kernels, over_replicates

COLUMNS = 240


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
        layers, likelihood, given: see `weighted_log_likelihood`.
        x, weight, utility, utility_weight: see `WeightedTargets`.
        learning: whether to compute gradients, which else are undefined.

    Returns:
        Both log likelihoods, averaged over samples, and the gradients in `given` and in `layers`.
    """
    theta = torch.cat([layer.flatten(1) for layer in layers], dim=1)
    of_theta, of_given = torch.empty_like(theta), given.new_empty(given.shape)
    log_x, log_utility = weight.new_empty(2, *weight.shape)
    none = weight[:, :0]
    sizes = np.array([layers[0].shape[1], *(bias.shape[2] for bias in layers[1::2])])
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
            theta, of_theta, sizes, given, of_given, x, likelihood.layout, *rest, n_samples, COLUMNS, learning
        )

    n_samples = given.shape[3]
    over_replicates(some, len(theta))
    parts = of_theta.split([layer[0].numel() for layer in layers], dim=1)
    # Contiguous, as the fused kernel of Adam takes them.
    gradients = [part.reshape(layer.shape).contiguous() for part, layer in zip(parts, layers, strict=True)]
    return log_x + likelihood.log_base(x), log_utility, of_given, gradients
