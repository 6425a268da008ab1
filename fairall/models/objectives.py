"""Risks and means over people as functions of stacked tensors, and an epoch of training (section 4.1)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from fairall.data.people import Decided
from fairall.models.learner import Setting
from fairall.nn.adam import Adam

cross_entropy = partial(F.binary_cross_entropy_with_logits, reduction="none")
"""Cross-entropy of labels in [0, 1] and logits, of their shape."""


def packed(mask: Tensor) -> tuple[Tensor, list[int]]:
    """Rows of a mask (E, B), moved to the front of each replicate so that the others cost nothing.

    >>> rows, counts = packed(torch.tensor([[True, False, True], [False, True, False]]))
    >>> rows.tolist(), counts
    ([[0, 2], [1, 0]], [2, 1])

    Returns:
        Indices of the rows in their order, shape (E, n), n the largest count of a replicate, padded with rows
        outside the mask; and the counts.
    """
    counts = mask.sum(-1)
    front = mask.byte().argsort(dim=-1, descending=True, stable=True)
    return front[:, : int(counts.max())], counts.tolist()


def masked_mean(values: Tensor, mask: Tensor) -> Tensor:
    """Mean of `values` (E, B) over the rows of `mask` (E, B), shape (E,); 0 for a replicate without any.

    >>> masked_mean(torch.tensor([[1.0, 3.0], [5.0, 7.0]]), torch.tensor([[True, True], [False, False]]))
    tensor([2., 0.])
    """
    total = torch.where(mask, values, 0.0).sum(-1)
    return total / mask.sum(-1).clamp(min=1)


def by_group(s: Tensor) -> Tensor:
    """Who is of S = −1 and who of S = +1, bool, shape (2, E, B), for s (E, B); 0 is of neither."""
    return torch.stack([s < 0, s > 0])


def cost_sensitive_cross_entropy(logit: Tensor, label: Tensor, cost: Tensor | float) -> Tensor:
    """−[c·(1 − ỹ)·log(1 − q) + (1 − c)·ỹ·log q], the classification loss of a row without its weight (eq. 5).

    It is least at q = ½ where p(ỹ = 1) = c:

    >>> logit, p = torch.linspace(-2.0, 2.0, 41), 0.3
    >>> ones = torch.ones(41)
    >>> expected = p * cost_sensitive_cross_entropy(logit, ones, p)
    >>> expected = expected + (1.0 - p) * cost_sensitive_cross_entropy(logit, 0.0 * ones, p)
    >>> abs(logit[expected.argmin()].item()) < 1e-6
    True

    Args:
        logit: logit of q(ũ = 1), any shape.
        label: ỹ in {0, 1}, same shape.
        cost: c in (0, 1), or that of each row, same shape.

    Returns:
        Non-negative, same shape.
    """
    return cost * (1.0 - label) * F.softplus(logit) + (1.0 - cost) * label * F.softplus(-logit)


def ips_weight(propensity: Tensor, accepted: Tensor, most: float | None) -> Tensor:
    """1/π of the labelled rows, at most `most`, and 1 of the others (section 2.1), shape (E, B).

    A bound gives an estimate of a mean over all applicants less variance and a bias: rows with a smaller
    propensity than 1/`most` count less than they should.

    >>> ips_weight(torch.tensor([[0.5, 0.1, 0.0]]), torch.tensor([[True, True, False]]), most=4.0)
    tensor([[2., 4., 1.]])

    Args:
        propensity: π(d=1 | x, s) with which each row was decided, shape (E, B), positive on accepted rows.
        accepted: which rows are labelled, shape (E, B), bool.
        most: 1 or more; None for no bound.
    """
    # The weight of a rejected row is never used; 1 keeps 0 · inf out of the gradient.
    return (1.0 / torch.where(accepted, propensity, 1.0)).clamp(1.0, most)


def ips_risk(loss: Tensor, weight: Tensor, accepted: Tensor) -> Tensor:
    """Inverse-propensity-scored mean of a loss (E, B) over the labelled rows (section 2.1), shape (E,).

    Times the labelled share of the batch this is the Horvitz-Thompson estimate, unbiased for the mean loss
    over all applicants; the mean over labelled rows is the expectation over A^L that the paper's J takes. It
    is 0 for a replicate with no labelled row.
    """
    return masked_mean(loss * weight, accepted)


def classification_risk(logit: Tensor, decided: Decided, setting: Setting) -> Tensor:
    """R: cost-sensitive cross-entropy of the labelled rows, weighted by 1/π (eq. 5), shape (E,).

    `logit` is that of q(ũ = 1 | x, s), shape (E, B). With amounts a row weighs as its stake, so that the loss
    is one of money.
    """
    stake, cost = setting.stake_and_cost(decided.x)
    return ips_risk(
        decided.weighted(stake * cost_sensitive_cross_entropy(logit, decided.label, cost)),
        ips_weight(decided.propensity, decided.accepted, setting.protocol.max_ips_weight),
        decided.accepted,
    )


def train_on(batches: Iterable[Decided], loss_of: Callable[[Decided], Tensor], optimiser: Adam) -> float:
    """Make a step of gradient descent on each of one or more minibatches, with a loss of shape (E,).

    Returns:
        Loss of the last minibatch, averaged over replicates.
    """
    for batch in batches:
        loss = loss_of(batch)
        optimiser.minimise(loss)
    return loss.detach().mean().item()
