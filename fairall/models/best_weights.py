"""Selection of the weights of the best validation epoch, per seed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn


class BestWeights:
    """The best weights so far of E replicates, selected for each by its own validation loss.

    Args:
        parameters: parameters of the net that is trained, the axis of replicates first.

    Attributes:
        loss: least validation loss, shape (E,); infinite before there was a finite one.
        epoch: epoch of that loss, shape (E,); 0 before there was one.
        done: seeds whose selected weights no longer change, shape (E,), bool.
    """

    def __init__(self, parameters: Iterable[nn.Parameter]) -> None:
        self._parameters = list(parameters)
        self._best = [parameter.detach().clone() for parameter in self._parameters]
        n_seeds = self._parameters[0].shape[0]
        self.loss = torch.full((n_seeds,), float("inf"))
        self.epoch = torch.zeros(n_seeds, dtype=torch.long)
        self.done = torch.zeros(n_seeds, dtype=torch.bool)

    def update(self, epoch: int, loss: Tensor, *, patience: int | None, margin: float) -> None:
        """Select the current weights of the seeds with their least loss so far.

        Args:
            epoch: number of the current epoch, from 1.
            loss: its validation loss, shape (E,).
            patience: a seed is done if its loss has not improved for so many epochs; None: never.
            margin: and is above its best by more than this.
        """
        better = ~self.done & (loss < self.loss)
        self.loss = torch.where(better, loss, self.loss)
        self.epoch[better] = epoch
        for kept, current in zip(self._best, self._parameters, strict=True):
            kept[better] = current.detach()[better]
        if patience is not None:
            self.done |= (epoch - self.epoch >= patience) & (loss > self.loss + margin)

    @torch.no_grad()
    def restore(self) -> None:
        """Copy the selected weights into the net; NaN for a seed that never had a finite loss."""
        diverged = self.epoch == 0
        for parameter, kept in zip(self._parameters, self._best, strict=True):
            parameter.copy_(kept)
            parameter[diverged] = torch.nan

    def state_dict(self) -> dict[str, Any]:
        """Weights, losses and epochs."""
        return {"best": self._best, "loss": self.loss, "epoch": self.epoch, "done": self.done}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what `state_dict` returned."""
        self._best, self.loss, self.epoch, self.done = (
            state[name] for name in ("best", "loss", "epoch", "done")
        )
