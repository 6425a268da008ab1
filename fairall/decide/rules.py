"""Rules that turn acceptance probabilities into decisions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from fairall.config.checks import between, number, whole_number
from fairall.config.schema import FairnessConfig
from fairall.errors import FairAllError
from fairall.results.result import bound_of
from fairall.worlds.capacity import n_places, ranks, top

MOST_DRAWN = 100_000  # rows; propensities of drawn decisions with few places take time in rows × places


@dataclass(frozen=True)
class Rule:
    """A rule, by default: accept where the probability is at least `threshold`.

    Attributes:
        threshold: of decisions that are not drawn.
        draw: seed of decisions drawn with their probability; None for decisions that are not drawn.
        places: most people to accept, a number or a share of all, as of `capacity.n_places`; None: no limit.
            They go to the greatest margins (`Policy.encoded_margin`), of equal ones to the greatest
            probabilities, and are drawn among people who are equal in both.
        bound: on the gap between the groups' rates in the table, in place of `threshold` (`EqualRates`).

    Raises:
        FairAllError: where `threshold` is no probability, or `draw` no whole number of at least 0.
    """

    threshold: float
    draw: int | None = None
    places: int | float | None = None
    bound: FairnessConfig | None = None

    def __post_init__(self) -> None:
        number("threshold", self.threshold, between(0, 1))
        if self.draw is not None:
            object.__setattr__(self, "draw", whole_number("draw", self.draw))

    @property
    def seed(self) -> int:
        """Of the random numbers, of which the n-th belongs to the n-th row of the table; 0 by default."""
        return self.draw or 0

    def acceptance(self, probability: np.ndarray) -> np.ndarray:
        """Probability with which each person is accepted where places are not limited, shape (N,).

        Args:
            probability: of acceptance by the policy, shape (N,), or with `bound` by `EqualRates`.
        """
        if self.draw is not None or self.bound is not None:
            return probability
        return (probability >= self.threshold).astype(float)

    def decisions(
        self, probability: np.ndarray, margin: np.ndarray | float = 0.0, referred: np.ndarray | bool = False
    ) -> tuple[np.ndarray, np.ndarray]:
        """Decide on a table.

        Whoever is accepted without a limit of places keeps a place if it is among the `places` first of
        these.

        Args:
            probability: of acceptance, shape (N,).
            margin: orders people for few places, shape (N,); by default all are equal in it.
            referred: who is not accepted, since a person decides, shape (N,), bool; nobody by default.

        Returns:
            Who is accepted, bool, and the propensity with which this rule accepts, given all probabilities
            and margins: 0 or 1 where nothing is drawn. Both of shape (N,).
        """
        n, propensity = len(probability), np.where(referred, 0.0, self.acceptance(probability))
        if self.places is None:
            return np.random.default_rng(self.seed).random(n) < propensity, propensity
        keys = np.broadcast_arrays(propensity > 0.0, margin, probability)
        rank = ranks(*torch.tensor(np.array(keys, dtype=float)).unsqueeze(1))
        propensity = top(torch.from_numpy(propensity)[None], self.n_places(n), rank)[0].numpy()
        return self.by_lot(propensity), propensity

    def by_lot(self, propensity: np.ndarray, *groups: np.ndarray) -> np.ndarray:
        """Who of N people is accepted with their propensities, bool: up to one person as many as expected.

        So it is in each of the groups, too: this is systematic sampling of people in the order of groups,
        in a random order within them.

        Args:
            propensity: shape (N,).
            groups: numbers of the groups, shape (N,), by the last of which people are ordered first.
        """
        generator = np.random.default_rng(self.seed)
        order = np.lexsort((generator.random(len(propensity)), *groups))
        number = np.floor(np.cumsum(propensity[order]) + generator.random())
        return (np.diff(number, prepend=0.0) > 0.0)[np.argsort(order)]

    def n_places(self, n: int) -> int:
        """Places for n people, n where they are not limited.

        Raises:
            FairAllError: as `capacity.n_places`, or where exact propensities would take too long.
        """
        if self.places is None:
            return n
        if self.draw is not None and n > MOST_DRAWN:
            raise FairAllError(
                f"--draw with --capacity: exact propensities take too long for {n} rows, of which there may "
                f"be {MOST_DRAWN}; leave one of the two out, or divide the table and its places"
            )
        return n_places(self.places, n, "places (--capacity)")

    def told(self, n: int = 0) -> str:
        """The rule for n people, in words; n counts where places are limited."""
        if self.bound is not None:
            told = f"accept from thresholds of groups on, chosen in this table for {bound_of(self.bound)}"
        elif self.draw is None:
            told = f"accept from a probability of {self.threshold:g} on"
        else:
            told = f"accept with the probability, drawn with seed {self.draw}"
        if self.places is not None:
            order = " in the order of log odds less the policy's own threshold" * (self.bound is None)
            told += f"; of these at most {self.n_places(n)}{order}"
        elif self.bound is None:
            return told
        return f"{told}; equal people by lot with seed {self.seed}"
