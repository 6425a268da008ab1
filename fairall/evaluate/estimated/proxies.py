"""Bounds of selection rates by group where only probabilities of the groups are known, as by BISG.

Symbols: z, the probabilities of a person's K groups; p_k, that of group k; a, the acceptance. People are
put into cells of nearly equal z, in which d = E[a] and E[p_k] are known. The share w_k of people who are
of group k and accepted is not: it is between max(0, d + E[p_k] − 1) and min(d, E[p_k]) (Fréchet). The rate
of the group is the mean of w_k over cells, divided by that of p_k. With the greatest w_k in all cells the
least w_j of another group is possible too. So the bounds of rates, and of differences and ratios of two
rates, are sharp given the cells (Kallus, Mao and Zhou 2022). Larger cells give wider bounds, which hold as
well.

Which of the two sides is the minimum is decided in each cell by the people of other folds. Either side is a
bound, so that a wrong choice makes the bounds wider on average; the minimum of two noisy means is too small.

References:
    Kallus, N., Mao, X. and Zhou, A. (2022). Assessing algorithmic fairness with unobserved protected class
        using data combination. Management Science.
"""

from __future__ import annotations

import numpy as np
from sklearn.cluster import KMeans

from fairall.evaluate.estimated.bounds import Bounds
from fairall.evaluate.estimated.influence import Estimate, Sample

MOST_CELLS = 50
PEOPLE_OF_A_CELL = 50  # on average
DIGITS = 3  # of probabilities that count as equal
FOLDS = 5


def cells(probabilities: np.ndarray, seed: int) -> np.ndarray:
    """The cell of each person, shape (N,): of equal probabilities (N, K), or of near ones by k-means."""
    distinct, number, people = np.unique(
        probabilities.round(DIGITS), axis=0, return_inverse=True, return_counts=True
    )
    most = min(MOST_CELLS, max(1, len(probabilities) // PEOPLE_OF_A_CELL), len(distinct))
    found = KMeans(most, n_init=1, random_state=seed).fit(distinct, sample_weight=people)
    return found.labels_[number.ravel()]


def rate_bounds(
    target: np.ndarray, probabilities: np.ndarray, sample: Sample, seed: int = 0
) -> tuple[list[Bounds], list[Estimate]]:
    """Bounds of the selection rate of each group, and the rates weighted by probabilities.

    The latter are those of the groups if acceptance does not depend on the group given its probabilities.

    Args:
        target: a, shape (N,), in [0, 1].
        probabilities: of the groups, shape (N, K), rows that sum to 1.
        sample: of the people.
        seed: of folds and cells.
    """
    cell = cells(probabilities, seed)
    fold = np.random.default_rng(seed).permutation(sample.clusters)[sample.cluster] % FOLDS

    def of_others(column: np.ndarray) -> np.ndarray:
        """Sum over the people of a person's cell in other folds, shape (N,)."""
        sums = np.bincount(cell * FOLDS + fold, column, MOST_CELLS * FOLDS).reshape(MOST_CELLS, FOLDS)
        return (sums.sum(1, keepdims=True) - sums)[cell, fold]

    bounds, weighted = [], []
    accepted, people = of_others(target), of_others(np.ones_like(target))
    for p in probabilities.T:
        known, support = of_others(p), sample.support(p)
        low = np.where(accepted + known > people, target + p - 1.0, 0.0)
        high = np.where(known < accepted, p, target)
        size = sample.mean(p)
        rates = [(sample.mean(share) / size).on(support) for share in (low, high, p * target)]
        bounds.append(Bounds(*rates[:2]))
        weighted.append(rates[2])
    return bounds, weighted
