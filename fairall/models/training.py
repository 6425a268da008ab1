"""How nets are trained on the applicants of a time step."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from fairall.data.people import Decided
from fairall.randomness import SeedStreams


def one_epoch(
    loss_of: Callable[[Decided], Tensor],
    optimiser: torch.optim.Optimizer,
    decided: Decided,
    n_batches: int,
    streams: SeedStreams,
) -> float:
    """One pass over all applicants, in minibatches shuffled per replicate.

    Args:
        loss_of: loss of a minibatch, shape (E,); replicates are trained on its sum, each as if alone.
        optimiser: of what the loss depends on.
        decided: applicants, B rows.
        n_batches: minibatches to cut them into.
        streams: shuffles them.

    Returns:
        Loss of the last minibatch, averaged over replicates.
    """
    for batch in decided.minibatches(n_batches, streams):
        optimiser.zero_grad(set_to_none=True)
        loss = loss_of(batch)
        loss.sum().backward()
        optimiser.step()
    return loss.detach().mean().item()
