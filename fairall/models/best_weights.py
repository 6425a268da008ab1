"""Which weights of a training are kept: per seed, those of its best validation epoch."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn


class BestWeights:
    """The best weights so far of E replicates, chosen for each by its own loss.

    Args:
        parameters: of the net that is trained, E replicates first.

    Attributes:
        loss: the least validation loss, shape (E,); infinite before there was a finite one.
        epoch: when that was, shape (E,); 0 before.
        done: seeds whose best is settled, whatever comes, shape (E,), bool.
    """

    def __init__(self, parameters: Iterable[nn.Parameter]) -> None:
        self._parameters = list(parameters)
        self._best = [parameter.detach().clone() for parameter in self._parameters]
        n_seeds = self._parameters[0].shape[0]
        self.loss = torch.full((n_seeds,), float("inf"))
        self.epoch = torch.zeros(n_seeds, dtype=torch.long)
        self.done = torch.zeros(n_seeds, dtype=torch.bool)

    def look(self, epoch: int, loss: Tensor, *, patience: int | None, margin: float) -> None:
        """Takes the current weights of the seeds whose loss (E,) is their least.

        A seed is done whose loss has not improved for `patience` epochs and is above its best by more than
        `margin`.
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
        """Gives the net its best weights; NaN to a seed that never had a finite loss."""
        diverged = self.epoch == 0
        for parameter, kept in zip(self._parameters, self._best, strict=True):
            parameter.copy_(kept)
            parameter[diverged] = torch.nan

    def state_dict(self) -> dict[str, Any]:
        """Weights, losses and epochs."""
        return {"best": self._best, "loss": self.loss, "epoch": self.epoch, "done": self.done}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Goes on where `state_dict` was taken."""
        self._best, self.loss, self.epoch, self.done = (
            state[name] for name in ("best", "loss", "epoch", "done")
        )
