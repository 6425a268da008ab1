"""People whom a policy refers to a person, who decides on them instead."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from torch import Tensor

from fairall.config.checks import require
from fairall.decide.reasons import contributions
from fairall.models.learner import MARGIN_DECIMALS
from fairall.policy import DECIMALS, Policy
from fairall.worlds.capacity import n_places


@dataclass(frozen=True)
class Refer:
    """Who is referred: by default those nearest to the threshold.

    Attributes:
        most: number of people or share of all, as of `capacity.n_places`, which is rounded.
        band: least and greatest probability of acceptance of whoever is referred.
        by_conflict: whether those are referred whose features count most both for and against them.

    Raises:
        FairAllError: where `band` is no band of probabilities, or there is not one of `most` and `band`.
    """

    most: int | float | None = None
    band: tuple[float, float] | None = None
    by_conflict: bool = False

    def __post_init__(self) -> None:
        one = (self.most is None) != (self.band is None) and not (self.band and self.by_conflict)
        require(one, "refer", self, "one of a number, a share and a band of probabilities")
        if self.band is None:
            n_places(self.most, 2**31, "refer")
        else:
            low, high = self.band
            require(
                0 <= low <= high <= 1, "refer", f"{low:g}-{high:g}", "two probabilities, the smaller first"
            )

    def people(
        self,
        policy: Policy,
        x: Tensor,
        s: Tensor,
        probability: np.ndarray,
        *,
        threshold: float | None = None,
        by: str = "mean",
    ) -> np.ndarray:
        """Who of N people is referred, bool, shape (N,).

        Nearest are those whose probability is nearest to the threshold, of equal ones those whose margin is
        nearest to 0. In conflict are those of whom the smaller one of two sums is largest, that of the
        positive contributions and that of the negative ones. Lots among equal people are always the same.

        Args:
            policy: that decides on the others.
            x: people as of `Policy.encoded`, shape (N, D).
            s: likewise, shape (N,).
            probability: of acceptance by `policy`, shape (N,).
            threshold: of decisions that are not drawn; `Policy.threshold` by default.
            by: see `Policy.combined`.

        """
        if self.band is not None:
            return (probability >= self.band[0]) & (probability <= self.band[1])
        if self.by_conflict:
            effect = contributions(policy, x, s, by)
            # The smaller one of the sums P and N is (P + N − |P − N|)/2.
            keys = [(np.abs(effect.sum(axis=1)) - np.abs(effect).sum(axis=1)).round(DECIMALS)]
        else:
            margin = policy.combined(policy.encoded_margin(x, s), by, decimals=MARGIN_DECIMALS)
            least = policy.threshold if threshold is None else threshold
            keys = [np.abs(margin), np.abs(probability - least).round(DECIMALS)]
        order = np.lexsort((np.random.default_rng(0).random(len(s)), *keys))
        most = self.most or 0
        is_share = isinstance(most, float) and most <= 1
        return np.argsort(order) < (round(most * len(s)) if is_share else most)

    def __str__(self) -> str:
        if self.band is not None:
            return "with a probability from {:g} to {:g}".format(*self.band)
        by = "whose features count most both for and against them"
        return by if self.by_conflict else "nearest to the threshold"
