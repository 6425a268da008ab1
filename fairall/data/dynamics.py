"""Changes of people by acceptance, for data sets that model them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from torch import Tensor

from fairall.config.checks import not_negative
from fairall.data.people import People
from fairall.randomness import SeedStreams


@dataclass
class DynamicsConfig:
    """Changes of the score of an accepted person."""

    rise: float = not_negative()
    fall: float = not_negative()


class Dynamics(ABC):
    """People of E seeds with a state, shape (E, n, number of variables), float64, that changes over time."""

    @abstractmethod
    def draw(self, streams: SeedStreams, n: int) -> Tensor:
        """States of n new people per seed."""

    @abstractmethod
    def people(self, state: Tensor, streams: SeedStreams, person: Tensor) -> People:
        """People in these states as they apply, with labels drawn from `streams` where these are random."""

    @abstractmethod
    def changed(self, state: Tensor, good: Tensor) -> Tensor:
        """States of accepted people after their label, `good` (E, n), bool."""

    @abstractmethod
    def score(self, state: Tensor) -> tuple[Tensor, Tensor]:
        """Score and s of people, shapes (E, n)."""
