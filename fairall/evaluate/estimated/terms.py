"""Products of up to three functions of single inputs, which a model or a test chooses from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations_with_replacement

import numpy as np
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import RobustScaler

MOST_INPUTS = 30  # the widest; of more, no products
TAIL = 2.6  # standard deviations of a normal distribution at which scores are cut, at 0.5 % of either end
MOST_CHOSEN = 10
THRESHOLDS = np.linspace(-1.6, 1.6, 33)  # of steps that are tried
BLOCK = 16  # products at once, which stay in the cache
SCORE, ALWAYS = np.nan, -np.inf  # thresholds of factors that are no steps: a score, and 1


class Products(TransformerMixin, BaseEstimator):
    """Inputs that tell the target, and products that tell what a logistic regression of these leaves over.

    Products are of up to three scores, inputs from the median by a robust standard deviation, or of up to
    three signs of scores: steps at the median, which are moved to where the correlation is largest. Of M
    inputs or products at most `MOST_CHOSEN` are chosen, whose correlations are above what the largest of M
    would be by chance, √(2 ln M) standard errors (Donoho and Johnstone 1994); of more inputs all.

    References:
        Donoho, D. and Johnstone, I. (1994). Ideal spatial adaptation by wavelet shrinkage. Biometrika.
    """

    def fit(self, inputs: np.ndarray, target: np.ndarray | None = None) -> Products:
        """Learn medians of inputs (N, D) and, with targets (N,) of 0 and 1, choose products."""
        self.columns_ = np.sort(np.argsort(-inputs.std(0), kind="stable")[:MOST_INPUTS])
        self.scaler_ = RobustScaler(unit_variance=True).fit(inputs[:, self.columns_])
        n = len(self.columns_)
        # Factors are scores, their signs, and 1, which makes products of fewer factors.
        kinds = [*range(n), 2 * n], range(n, 2 * n + 1)
        self.terms_ = np.array([term for kind in kinds for term in combinations_with_replacement(kind, 3)])
        if target is None:
            return self
        self.inputs_ = _telling(target - target.mean(), [inputs.T])
        if len(self.inputs_) == MOST_CHOSEN:
            self.inputs_ = np.arange(inputs.shape[1])
        self.chosen_: list[tuple[np.ndarray, np.ndarray]] = []
        selected, scores = self.transform(inputs), self._scores(inputs)
        linear = LogisticRegression(tol=1e-5, solver="newton-cholesky").fit(selected, target)
        residual = target - linear.predict_proba(selected)[:, 1]
        chosen = self.terms_[_telling(residual, self.values(inputs))]
        self.chosen_ = [*zip(chosen % n, np.array([SCORE, 0.0, ALWAYS])[chosen // n], strict=True)]
        for factors, at in self.chosen_:
            for place in np.flatnonzero(np.isfinite(at)):
                tried = [np.where(np.arange(3) == place, threshold, at) for threshold in THRESHOLDS]
                h = np.stack([_product(scores[factors], thresholds) for thresholds in tried])
                at[place] = THRESHOLDS[np.abs(deviations(residual, h)).argmax()]
        return self

    def transform(self, inputs: np.ndarray) -> np.ndarray:
        """Zeros, without which there may be no column to fit, and the chosen inputs and products."""
        scores, zeros = self._scores(inputs), np.zeros(len(inputs))
        products = [_product(scores[factors], at) for factors, at in self.chosen_]
        return np.column_stack([zeros, inputs[:, self.inputs_], *products])

    def values(self, inputs: np.ndarray) -> Iterator[np.ndarray]:
        """All products of inputs (N, D), (at most `BLOCK`, N) at a time."""
        scores = self._scores(inputs)
        factors = np.vstack([scores, np.sign(scores), np.ones(len(inputs))])
        for start in range(0, len(self.terms_), BLOCK):
            yield factors[self.terms_[start : start + BLOCK].T].prod(0)

    def inputs_of(self, term: int, names: Sequence[str]) -> list[str]:
        """Names of the inputs of a product, each once, among the names of all D inputs."""
        n = len(self.columns_)
        return list(dict.fromkeys(names[self.columns_[k % n]] for k in self.terms_[term] if k < 2 * n))

    def _scores(self, inputs: np.ndarray) -> np.ndarray:
        scaled = self.scaler_.transform(inputs[:, self.columns_])
        return scaled.T.clip(-TAIL, TAIL).astype(float)


def _telling(residual: np.ndarray, columns: Iterable[np.ndarray]) -> np.ndarray:
    """Positions of columns (..., N), whose correlation with the residual is not by chance among the largest."""
    size = np.concatenate([np.abs(deviations(residual, h)) for h in columns])
    best = np.argsort(-size, kind="stable")[:MOST_CHOSEN]
    return best[size[best] > np.sqrt(2.0 * np.log(len(size)))]


def _product(scores: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Product (N,) of three scores (3, N), or of their steps at thresholds (3,)."""
    return np.where(np.isnan(at)[:, None], scores, np.sign(scores - at[:, None])).prod(0)


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
