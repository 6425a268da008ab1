"""The rows of a mask, such as the labelled ones, side by side."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Pack:
    """The rows of a mask, moved to the front of each replicate so that nothing is computed for the others.

    Attributes:
        rows: shape (E, n), n the largest count of a replicate; padded with rows outside the mask.
        valid: which of `rows` are in the mask, shape (E, n), bool.
        counts: rows in the mask, per replicate.
    """

    rows: Tensor
    valid: Tensor
    counts: list[int]

    @property
    def mean_weight(self) -> Tensor:
        """What each row counts in a mean over the mask, shape (E, n); 0 for the padding."""
        return self.valid / self.valid.sum(-1, keepdim=True).clamp(min=1)

    @classmethod
    def of(cls, mask: Tensor) -> Pack:
        """The rows of `mask`, shape (E, B), bool, in their order."""
        counts = mask.sum(-1)
        rows = torch.argsort(mask.to(torch.uint8), dim=-1, descending=True, stable=True)[
            :, : int(counts.max())
        ]
        return cls(rows, torch.arange(rows.shape[1]) < counts.unsqueeze(-1), counts.tolist())
