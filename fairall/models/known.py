"""People who are known by what they are like."""

from __future__ import annotations

import torch
from torch import Tensor

from fairall.storage.checkpoint import Stateful


class Known(Stateful):
    """Values of known people by hash; people who are alike have the same.

    Args:
        n_values: V.

    Attributes:
        hashes: of the people, ascending, shape (N,).
        values: theirs, float64, shape (N, V).
    """

    kept = ("hashes", "values")

    def __init__(self, n_values: int) -> None:
        # The last person's values are not known, so that there is always a next one. Not 0, which is the hash
        # of who has 0 of everything.
        self.hashes = torch.tensor([2**63 - 1])
        self.values = torch.full((1, n_values), torch.nan, dtype=torch.float64)

    def add(self, hashes: Tensor, values: Tensor) -> None:
        """Add people with hashes (N,) and values (N, V), equal for people who are alike."""
        self.hashes, order = torch.cat([self.hashes, hashes]).sort()
        self.values = torch.cat([self.values, values])[order]

    def of(self, hashes: Tensor) -> Tensor:
        """Values of people with hashes (...), NaN of those who are not known, shape (..., V)."""
        place = torch.searchsorted(self.hashes, hashes)
        return self.values[place].where((self.hashes[place] == hashes).unsqueeze(-1), torch.nan)


def hashes(x: Tensor, s: Tensor) -> Tensor:
    """A number of each person that equal x (..., D) and s (...) share, shape (...), int64."""
    values = torch.cat([x, s.unsqueeze(-1)], -1).float() + 0.0  # no negative zeros
    odd = torch.randint(2**62, values.shape[-1:], generator=torch.Generator().manual_seed(0)) * 2 + 1
    return (values.view(torch.int32).long() * odd).sum(-1)
