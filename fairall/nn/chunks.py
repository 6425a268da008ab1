"""Computation over people in chunks whose intermediate values fit into the processor's cache."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

# People of all replicates; some 16 latent samples of each take a few megabytes.
AT_ONCE = 5120
# PyTorch draws normal numbers in blocks of 16, and fewer than 16 in another way; compiled nets compute 128
# columns at once. With chunks of at least 128 people, all but the last a multiple of 128, a replicate has the
# same numbers, however many are stacked.
MULTIPLE = 128


def in_chunks(compute: Callable[..., Tensor], *people: Tensor, rows: int | None = None) -> Tensor:
    """Apply `compute` to chunks of people and concatenate the results, shape (E, N, ...).

    Args:
        compute: maps people (E, B, ...) to values (E, B, ...).
        people: shape (E, N, ...) each.
        rows: B, people of each replicate per chunk, for a `compute` that draws nothing; by default about
            `AT_ONCE` over all replicates.
    """
    sizes = _sizes(*people[0].shape[:2]) if rows is None else rows
    parts = zip(*(values.split(sizes, dim=1) for values in people), strict=True)
    return torch.cat([compute(*part) for part in parts], dim=1)


def _sizes(n_replicates: int, n_people: int) -> list[int]:
    """Sizes of the chunks; a last one of fewer than `MULTIPLE` people is merged with the one before."""
    size = max(1, AT_ONCE // n_replicates // MULTIPLE) * MULTIPLE
    n_chunks = max(1, math.ceil((n_people - MULTIPLE + 1) / size))
    return [size] * (n_chunks - 1) + [n_people - (n_chunks - 1) * size]
