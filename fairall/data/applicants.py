"""The applicants of Phase II: streams of them, and how people change by acceptance."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from fairall.config.checks import not_negative
from fairall.data.people import People
from fairall.runtime.randomness import SeedStreams
from fairall.storage.checkpoint import Stateful

Draw = Callable[[SeedStreams, int], People]
"""Draws n new people per seed: (streams, n) to fields of shape (E, n, ...)."""


class RecycledApplicants(Stateful):
    """`size` applicants per time step of a finite population in random order, reshuffled after each pass.

    With `one_order` every pass has the order of the first, and a person the same position in their time step:
    the last step of a pass is filled up with the first people of the order.
    """

    kept = ("waiting",)

    def __init__(
        self, people: People, size: int, seeds: Sequence[int], purpose: str, *, one_order: bool = False
    ) -> None:
        self.size, self.streams = size, SeedStreams(seeds, purpose)
        self.people, self.one_order = people, one_order
        self.waiting = torch.empty(len(seeds), 0, dtype=torch.long)
        if one_order:
            n = len(people)
            self.waiting = self.streams.permutations(n)[:, torch.arange(math.ceil(n / size) * size) % n]

    def next(self) -> People:
        """The next people in the shuffled order, fields of shape (E, size, ...)."""
        while self.waiting.shape[1] < self.size:
            self.waiting = torch.cat([self.waiting, self.streams.permutations(len(self.people))], dim=1)
        rows, rest = self.waiting[:, : self.size], self.waiting[:, self.size :]
        self.waiting = torch.cat([rest, rows], dim=1) if self.one_order else rest
        return self.people.rows(rows)


class DrawnApplicants(Stateful):
    """`size` new people per time step, drawn on demand."""

    def __init__(self, draw: Draw, size: int, seeds: Sequence[int], purpose: str) -> None:
        self.size, self.streams = size, SeedStreams(seeds, purpose)
        self.draw = draw

    def next(self) -> People:
        """New people, fields of shape (E, size, ...)."""
        return self.draw(self.streams, self.size)


@dataclass
class DynamicsConfig:
    """Changes of the score of an accepted person."""

    rise: float = not_negative()
    fall: float = not_negative()


@dataclass(frozen=True)
class Dynamics:
    """How accepted people change: their score rises after a good label and falls after a bad one.

    People of E seeds have a state, shape (E, n, number of variables), float64: the score, s, and whatever
    else determines them.

    Attributes:
        config: by how much the score changes.
        draw: states of n new people per seed, from (streams, n).
        people: people in these states as they apply, from (states, streams); shapes (E, n, ...). Random
            labels come from the streams.
        greatest: of a score from 0; None: it has no bounds.
    """

    config: DynamicsConfig
    draw: Callable[[SeedStreams, int], Tensor]
    people: Callable[[Tensor, SeedStreams], People]
    greatest: float | None = None

    def changed(self, state: Tensor, good: Tensor) -> Tensor:
        """States of accepted people after their label, `good` (E, n), bool, of the shape of `state`."""
        moved = state.clone()
        moved[..., 0] += torch.where(good, state.new_tensor(self.config.rise), -self.config.fall)
        if self.greatest is not None:
            moved[..., 0].clamp_(0.0, self.greatest)
        return moved

    def score(self, state: Tensor) -> tuple[Tensor, Tensor]:
        """Score, from 0 to 1 where it has bounds, and s of people, shapes (E, n)."""
        return state[..., 0] / (self.greatest or 1.0), state[..., 1]
