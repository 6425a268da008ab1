"""Many people a few at a time, so that what is computed on the way fits into the processor's cache."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

AT_ONCE = (
    1280  # people of all replicates; with some 16 latent samples each, hidden layers take a few megabytes
)
# PyTorch draws normal numbers in blocks of 16, and fewer than 16 in another way. With chunks of at least 16
# people, all but the last a multiple of it, a replicate draws the same numbers, however many are stacked.
MULTIPLE = 16


def in_chunks(compute: Callable[..., Tensor], *people: Tensor) -> Tensor:
    """What `compute` gives for people (E, N, ...), shape (E, N, ...), called with some `AT_ONCE` of them."""
    n_replicates, n_people = people[0].shape[:2]
    size = max(1, AT_ONCE // n_replicates // MULTIPLE) * MULTIPLE
    n_chunks = max(
        1, -(-(n_people - MULTIPLE + 1) // size)
    )  # a last chunk of fewer than 16 joins its neighbour
    sizes = [size] * (n_chunks - 1) + [n_people - (n_chunks - 1) * size]
    parts = zip(*(values.split(sizes, dim=1) for values in people), strict=True)
    return torch.cat([compute(*part) for part in parts], dim=1)
