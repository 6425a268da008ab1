"""Products of up to three functions of single inputs, and how far a residual deviates along them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations_with_replacement

import numpy as np
from scipy.sparse import csr_array
from sklearn.preprocessing import RobustScaler

MOST_INPUTS = 30  # the widest; of more, no products
TAIL = 2.6  # standard deviations of a normal distribution at which scores are cut, at 0.5 % of either end
STEP = 0.1  # width of steps, below which the error of a median matters
BLOCK = 16  # products at once, which stay in the cache


def widest(inputs: np.ndarray) -> np.ndarray:
    """Columns of at most `MOST_INPUTS` inputs (N, D), those of the largest standard deviations."""
    return np.sort(np.argsort(-inputs.std(0), kind="stable")[:MOST_INPUTS])


def products(inputs: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """All products of up to three scores of inputs (N, D), and of up to three steps, some at a time.

    Scores are inputs from the median by a robust standard deviation; steps are smooth, at the median.

    Returns:
        The three inputs of each product, −1 for 1 in place of an input, shape (M, 3), and its values (M, N).
    """
    columns = widest(inputs)
    scores = RobustScaler(unit_variance=True).fit_transform(inputs[:, columns]).T.astype(float)
    scores = scores.clip(-TAIL, TAIL)
    terms = np.array([*combinations_with_replacement(range(-1, len(columns)), 3)])
    for kind in (scores, np.tanh(scores / STEP)):
        factors = np.vstack([kind, np.ones(len(inputs))])
        for block in np.array_split(terms, len(terms) // BLOCK + 1):
            yield np.append(columns, -1)[block], factors[block.T].prod(0)


def deviations(residual: np.ndarray, h: np.ndarray, person: np.ndarray | None = None) -> np.ndarray:
    """Σ residual · (h − mean h) by its standard error for each h, shape (M,), about N(0, 1) by chance.

    Args:
        residual: of mean 0, shape (N,).
        h: shape (M, N).
        person: codes of people, whose rows depend on each other, shape (N,); None for a row each.
    """
    product = residual * (h - h.mean(1, keepdims=True))
    if person is not None:
        rows = np.arange(len(person))
        product = (csr_array((np.ones(len(rows)), (person, rows))) @ product.T).T
    return product.sum(1) / np.maximum(np.sqrt((product**2).sum(1)), np.finfo(float).tiny)
