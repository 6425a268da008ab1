"""Rules that turn acceptance probabilities into decisions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from fairall.config.checks import between, number, whole_number
from fairall.errors import FairAllError
from fairall.worlds.capacity import n_places, ranks, top

MOST_DRAWN = 100_000  # rows; propensities of drawn decisions with few places take time in rows × places
SEED_OF_LOTS = 0  # where `draw` gives none


@dataclass(frozen=True)
class Rule:
    """A rule, by default: accept where the probability is at least `threshold`.

    Attributes:
        threshold: of decisions that are not drawn.
        draw: seed of decisions drawn with their probability; None for decisions that are not drawn.
        places: most people to accept, a number or a share of all, as of `capacity.n_places`; None: no limit.
            They go to the greatest margins (`Policy.encoded_margin`), of equal ones to the greatest
            probabilities, and are drawn among people who are equal in both.

    Raises:
        FairAllError: where `threshold` is no probability, or `draw` no whole number of at least 0.
    """

    threshold: float
    draw: int | None = None
    places: int | float | None = None

    def __post_init__(self) -> None:
        number("threshold", self.threshold, between(0, 1))
        if self.draw is not None:
            object.__setattr__(self, "draw", whole_number("draw", self.draw))

    def generator(self) -> np.random.Generator:
        """Source of uniform numbers, of which the n-th belongs to the n-th row of the table."""
        return np.random.default_rng(self._seed)

    @property
    def _seed(self) -> int:
        return SEED_OF_LOTS if self.draw is None else self.draw

    def acceptance(self, probability: np.ndarray) -> np.ndarray:
        """Probability with which each person is accepted where places are not limited, shape (N,).

        Args:
            probability: of acceptance by the policy, shape (N,).
        """
        return probability if self.draw is not None else (probability >= self.threshold).astype(float)

    def decisions(
        self, probability: np.ndarray, generator: np.random.Generator, margin: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Decide on a table, or on its next part where `places` is None.

        Whoever is accepted without a limit of places keeps a place if it is among the `places` first of
        these.

        Args:
            probability: of acceptance, shape (N,).
            generator: see `generator`; advances by N numbers for drawn decisions, then by N for places.
            margin: orders people for few places, shape (N,); by default all are equal in it.

        Returns:
            Who is accepted, bool, and the propensity with which this rule accepts, given all probabilities
            and margins: 0 or 1 where nothing is drawn. Both of shape (N,).
        """
        n, propensity = len(probability), self.acceptance(probability)
        accepted = propensity > 0.0 if self.draw is None else generator.random(n) < propensity
        if self.places is None:
            return accepted, propensity
        places, lot = self.n_places(n), generator.random(n)
        keys = (propensity > 0.0, np.zeros(n) if margin is None else margin, probability)
        rank = ranks(*(torch.from_numpy(np.asarray(key, dtype=float))[None] for key in keys))[0].numpy()
        order = np.lexsort((-lot, -rank))
        accepted[order[np.cumsum(accepted[order]) > places]] = False
        one_table = torch.from_numpy(propensity)[None], places, torch.from_numpy(rank)[None]
        return accepted, top(*one_table)[0].numpy()

    def check(self, n: int) -> None:
        """Raise FairAllError as `n_places` of n people, or where there are no exact propensities."""
        if self.places is None:
            return
        self.n_places(n)
        if self.draw is not None and n > MOST_DRAWN:
            raise FairAllError(
                f"--draw with --capacity: exact propensities take too long for {n} rows, of which there may "
                f"be {MOST_DRAWN}; leave one of the two out, or divide the table and its places"
            )

    def n_places(self, n: int) -> int:
        """Places for n people, where they are limited; raises as `capacity.n_places`."""
        return n_places(self.places, n, "places (--capacity)")

    def told(self, n: int = 0) -> str:
        """The rule for n people, in words; n counts where places are limited."""
        if self.draw is None:
            told = f"accept from a probability of {self.threshold:g} on"
        else:
            told = f"accept with the probability, drawn with seed {self.draw}"
        if self.places is None:
            return told
        return (
            f"{told}; of these at most {self.n_places(n)}, in the order of log odds less the policy's own "
            f"threshold, equal ones by lot with seed {self._seed}"
        )
