"""CPU time, wall time and memory of a piece of work."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Usage:
    """What a process, or a part of it, used.

    Attributes:
        cpu_seconds: processor time of all its threads, user and system.
        wall_seconds: time on the clock.
        peak_mib: the most memory that was resident at once, in MiB; NaN where unknown.
        multiply_adds: of the products of nets (`products.count_products`); NaN where unknown.
        bound_seconds: what they take on one core at its `products.reached_rate`; NaN where unknown.
    """

    cpu_seconds: float
    wall_seconds: float
    peak_mib: float
    multiply_adds: float = math.nan
    bound_seconds: float = math.nan

    def __add__(self, other: Usage) -> Usage:
        """Usage of both, one after the other."""
        return Usage(
            self.cpu_seconds + other.cpu_seconds,
            self.wall_seconds + other.wall_seconds,
            max(self.peak_mib, other.peak_mib),
            self.multiply_adds + other.multiply_adds,
            self.bound_seconds + other.bound_seconds,
        )
