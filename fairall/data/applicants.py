"""The applicants of Phase II: streams of them, and how people change by acceptance."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
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
        self.people = people
        self.one_order = one_order
        self.waiting = torch.empty(len(seeds), 0, dtype=torch.long)
        if one_order:
            n = len(people)
            positions = torch.arange(math.ceil(n / size) * size) % n
            self.waiting = self.streams.permutations(n)[:, positions]

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


class Dynamics(ABC):
    """People of E seeds with a state, shape (E, n, number of variables), float64, that changes over time."""

    @abstractmethod
    def draw(self, streams: SeedStreams, n: int) -> Tensor:
        """States of n new people per seed, shape (E, n, number of variables)."""

    @abstractmethod
    def people(self, state: Tensor, streams: SeedStreams, person: Tensor) -> People:
        """People in these states as they apply, shapes (E, n, ...); random labels come from `streams`."""

    @abstractmethod
    def changed(self, state: Tensor, good: Tensor) -> Tensor:
        """States of accepted people after their label, `good` (E, n), bool, of the shape of `state`."""

    @abstractmethod
    def score(self, state: Tensor) -> tuple[Tensor, Tensor]:
        """Score and s of people, shapes (E, n)."""
