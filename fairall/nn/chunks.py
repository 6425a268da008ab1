"""Many people a few at a time, so that what is computed on the way fits into the processor's cache."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

CHUNK = 64  # people: with some 30 latent samples each, hidden layers take a few megabytes


def in_chunks(compute: Callable[..., Tensor], *people: Tensor) -> Tensor:
    """What `compute` gives for people (E, N, ...), shape (E, N, ...), called with `CHUNK` of them at most."""
    parts = zip(*(values.split(CHUNK, dim=1) for values in people), strict=True)
    return torch.cat([compute(*part) for part in parts], dim=1)
