"""Products of up to three functions of single inputs, which a model or a test chooses from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations_with_replacement

import numpy as np
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.preprocessing import RobustScaler

MOST_INPUTS = 30  # the widest; of more, no products
TAIL = 2.6  # standard deviations of a normal distribution at which scores are cut, at 0.5 % of either end
STEP = 0.1  # width of steps, below which the error of a median matters
MOST_CHOSEN = 15
BLOCK = 16  # products at once, which stay in the cache


class Products(TransformerMixin, BaseEstimator):
    """Products of up to three scores of inputs, or of up to three steps, that tell a target.

    Scores are inputs from the median by a robust standard deviation; steps are smooth, at the median. Of M
    products at most `MOST_CHOSEN` are chosen, whose correlations with the target are above what the largest
    of M would be by chance, √(2 ln M) standard errors (Donoho and Johnstone 1994).

    References:
        Donoho, D. and Johnstone, I. (1994). Ideal spatial adaptation by wavelet shrinkage. Biometrika.
    """

    def fit(self, inputs: np.ndarray, target: np.ndarray | None = None) -> Products:
        """Learn medians of inputs (N, D) and, with targets (N,), choose products."""
        self.columns_ = np.sort(np.argsort(-inputs.std(0), kind="stable")[:MOST_INPUTS])
        self.scaler_ = RobustScaler(unit_variance=True).fit(inputs[:, self.columns_])
        # Rows of `_factors`: scores, steps, and ones, which make products of fewer factors.
        n = len(self.columns_)
        kinds = [2 * n, *range(n)], [2 * n, *range(n, 2 * n)]
        self.terms_ = np.array([term for kind in kinds for term in combinations_with_replacement(kind, 3)])
        if target is not None:
            size = np.concatenate(
                [np.abs(deviations(target - target.mean(), h)) for h in self.values(inputs)]
            )
            size[0] = np.inf  # the constant, without which there may be no column to fit
            best = np.argsort(-size, kind="stable")[:MOST_CHOSEN]
            self.chosen_ = self.terms_[best[size[best] > np.sqrt(2.0 * np.log(len(size)))]]
        return self

    def transform(self, inputs: np.ndarray) -> np.ndarray:
        """The chosen products of inputs (N, D)."""
        return self._factors(inputs)[self.chosen_.T].prod(0).T

    def values(self, inputs: np.ndarray) -> Iterator[np.ndarray]:
        """All products of inputs (N, D), (at most `BLOCK`, N) at a time."""
        factors = self._factors(inputs)
        for block in np.array_split(self.terms_, len(self.terms_) // BLOCK + 1):
            yield factors[block.T].prod(0)

    def inputs_of(self, term: int, names: Sequence[str]) -> list[str]:
        """Names of the inputs of a product, each once, among the names of all D inputs."""
        n = len(self.columns_)
        return list(dict.fromkeys(names[self.columns_[k % n]] for k in self.terms_[term] if k < 2 * n))

    def _factors(self, inputs: np.ndarray) -> np.ndarray:
        scores = self.scaler_.transform(inputs[:, self.columns_]).T.astype(float).clip(-TAIL, TAIL)
        return np.vstack([scores, np.tanh(scores / STEP), np.ones(len(inputs))])


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
