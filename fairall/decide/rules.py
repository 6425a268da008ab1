"""Rules that turn acceptance probabilities into decisions."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch

from fairall.errors import FairAllError
from fairall.worlds.capacity import ROUNDING, top

MOST_DRAWN = 100_000  # rows; propensities of drawn decisions with few places take time in rows × places


@dataclass(frozen=True)
class Rule:
    """A rule, by default: accept where the probability is at least `threshold`.

    Attributes:
        threshold: of decisions that are not drawn.
        draw: seed of decisions drawn with their probability; None for decisions that are not drawn.
        places: most people to accept, a number (int) or a share of all (float); None: no limit.
    """

    threshold: float
    draw: int | None = None
    places: int | float | None = None

    def generator(self) -> np.random.Generator:
        """Source of uniform numbers, of which the n-th belongs to the n-th row of the table."""
        return np.random.default_rng(self.draw)

    def decisions(
        self, probability: np.ndarray, generator: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Decide on a table, or on its next part where `places` is None.

        Whoever is accepted without a limit of places keeps a place if it is among the `places` greatest
        probabilities of these; equal ones go by the order of rows.

        Args:
            probability: of acceptance, shape (N,).
            generator: see `generator`; advances by N numbers.

        Returns:
            Who is accepted, bool, and the propensity with which this rule accepts, given all probabilities:
            0 or 1 where nothing is drawn. Both of shape (N,).
        """
        if self.draw is None:
            accepted = probability >= self.threshold
            propensity = accepted.astype(float)
        else:
            accepted = generator.random(len(probability)) < probability
            propensity = probability
        if self.places is None:
            return accepted, propensity
        places = self.n_places(len(probability))
        order = np.argsort(-probability, kind="stable")
        accepted[order[np.cumsum(accepted[order]) > places]] = False
        if self.draw is None:
            return accepted, accepted.astype(float)
        return accepted, top(torch.from_numpy(probability)[None], places)[0].numpy()

    def check(self, n: int) -> None:
        """Raise FairAllError if the rule has no place for any of n people, or no exact propensities."""
        if self.places is None:
            return
        if self.n_places(n) < 1:
            assert isinstance(self.places, float)
            raise FairAllError(f"--capacity {100 * self.places:g}%: not one place for {n} people")
        if self.draw is not None and n > MOST_DRAWN:
            raise FairAllError(
                f"--draw with --capacity: exact propensities take too long for {n} rows, of which there may "
                f"be {MOST_DRAWN}; leave one of the two out, or divide the table and its places"
            )

    def n_places(self, n: int) -> int:
        """Places for n people, where they are limited."""
        assert self.places is not None
        return self.places if isinstance(self.places, int) else math.floor(self.places * n + ROUNDING)

    def told(self, n: int) -> str:
        """The rule for n people, in words."""
        if self.draw is None:
            told = f"accept from a probability of {self.threshold:g} on"
        else:
            told = f"accept with the probability, drawn with seed {self.draw}"
        if self.places is None:
            return told
        return f"{told}; of these the {self.n_places(n)} most probable at most"
