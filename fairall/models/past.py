"""Nets of earlier time steps."""

from __future__ import annotations

import copy
from collections.abc import Iterator

import torch
from torch import Tensor, nn

from fairall.models.classifier import ClassifierNet


class PastNets(nn.Module):
    """Places for K nets of earlier time steps; a subclass says which are kept.

    Args:
        net: whose past it is; what it computes does not matter.
        most: K.

    Attributes:
        added: number of nets so far, of which some are kept, shape ().
    """

    added: Tensor

    def __init__(self, net: ClassifierNet, most: int) -> None:
        super().__init__()
        self.nets = nn.ModuleList(copy.deepcopy(net) for _ in range(most)).requires_grad_(False)
        self.register_buffer("added", torch.tensor(0))

    def logits(self, columns: Tensor, number: int) -> Iterator[Tensor]:
        """The outputs, shape (E, B), of the nets at the first places, for columns (E, inputs, B)."""
        return (net(columns.mT).squeeze(-1) for net in self.nets[:number])
