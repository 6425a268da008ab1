"""Many people a few at a time, so that what is computed on the way fits into the processor's cache."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

AT_ONCE = (
    1280  # people of all replicates; with some 16 latent samples each, hidden layers take a few megabytes
)
# PyTorch makes normal numbers by sixteens: by such chunks a replicate draws the same, however many there are.
MULTIPLE = 16


def in_chunks(compute: Callable[..., Tensor], *people: Tensor, rows: int | None = None) -> Tensor:
    """Apply `compute` to some people at a time.

    Args:
        compute: maps people (E, B, ...) to values (E, B, ...).
        people: shape (E, N, ...) each.
        rows: B, people of each replicate at a time; some `AT_ONCE` over all replicates unless given.

    Returns:
        Shape (E, N, ...).
    """
    if rows is None:
        rows = max(1, AT_ONCE // len(people[0]) // MULTIPLE) * MULTIPLE
    parts = zip(*(values.split(rows, dim=1) for values in people), strict=True)
    return torch.cat([compute(*part) for part in parts], dim=1)
