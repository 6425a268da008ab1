"""How far below a threshold people are accepted so that their labels become known.

References:
    Yang, Liu, Naghizadeh: Adaptive data debiasing through bounded exploration, NeurIPS 2022.
"""

from __future__ import annotations

import torch
from torch import Tensor


def lower_bound(score: Tensor, weight: Tensor, threshold: Tensor | float) -> Tensor:
    """The score LB with F₀(LB) = 2·F₀(median of F₀) − F₀(threshold) (Yang et al. 2022, section 3).

    F₀ is the distribution of the scores of people with ỹ = 0. As many of them are between LB and their
    median as between the median and the threshold, so exploration does not move the estimate of the median.

    Args:
        score: of the M people with a weight, at least one, shape (M,).
        weight: of each person in F₀, above 0, shape (M,).
        threshold: least score accepted, one, or that of each person, shape (M,).

    Returns:
        Shape (); the threshold or more, so that nobody is between, where less than half of F₀ is below it.

    Examples:
        >>> lower_bound(torch.tensor([0.1, 0.2, 0.3, 0.4, 0.9]), torch.ones(5), threshold=0.5)
        tensor(0.1000)
    """
    weight = weight.double()
    below = weight[score < threshold].sum() / weight.sum()
    ordered, order = score.sort()
    share = weight[order].cumsum(0) / weight.sum()
    return ordered[torch.searchsorted(share, 1.0 - below - 1e-9)]  # rounding moves it by nobody
