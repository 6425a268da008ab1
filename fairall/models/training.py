"""What methods share of training on the applicants of a time step: the classifier's risk, an epoch."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from fairall.data.people import Decided
from fairall.models.learner import Setting
from fairall.models.objectives import cost_sensitive_cross_entropy, ips_risk, ips_weight
from fairall.nn.adam import Adam
from fairall.randomness import SeedStreams


def classification_risk(logit: Tensor, decided: Decided, setting: Setting) -> Tensor:
    """R: cost-sensitive cross-entropy of the labelled rows, weighted by 1/π (eq. 4).

    Args:
        logit: of q(ũ = 1 | x, s), shape (E, B).
        decided: applicants, B rows.
        setting: for c, and for the bound of the weights.

    Returns:
        Shape (E,); 0 for a replicate with no labelled row.
    """
    return ips_risk(
        cost_sensitive_cross_entropy(logit, decided.label, setting.cost),
        ips_weight(decided.propensity, decided.accepted, setting.protocol.max_ips_weight),
        decided.accepted,
    )


def one_epoch(
    loss_of: Callable[[Decided], Tensor],
    optimiser: Adam,
    decided: Decided,
    n_batches: int,
    streams: SeedStreams,
) -> float:
    """One pass over all applicants, in minibatches shuffled per replicate.

    Args:
        loss_of: loss of a minibatch, shape (E,); replicates are trained on its sum, which gives
            each the gradient that it has alone, to rounding (docs/reliability.md).
        optimiser: of what the loss depends on.
        decided: applicants, B rows.
        n_batches: minibatches to cut them into.
        streams: shuffles them.

    Returns:
        Loss of the last minibatch, averaged over replicates.
    """
    for batch in decided.minibatches(n_batches, streams):
        optimiser.zero_grad()
        loss = loss_of(batch)
        loss.sum().backward()
        optimiser.step()
    return loss.detach().mean().item()
