"""Products of up to three functions of single inputs, which a sparse model or a test chooses from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy.special import ndtri
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression

MOST_INPUTS = 30  # the widest; of more, no triples
MOST_STEPS = 80  # functions of single inputs, beyond which real ones have one step, at their median
QUARTILES = (0.5, 0.25, 0.75)
TAIL = 0.005  # share of a real input at either end that is as far as the rest, in normal scores
GRID = np.linspace(0.0, 1.0, 201)
LEVELS = np.linspace(0.05, 0.95, 37)  # of the thresholds that `SparseLogistic` tries
BLOCK = 16  # terms at once, so that those of `MOST_ROWS_OF_PRODUCTS` rows stay in the cache
CANDIDATES = 100  # terms of most correlation with the first residuals, from which `SparseLogistic` chooses
MOST_CHOSEN = 10
NOTHING = -1  # position of a factor 1


class Terms:
    """Functions of D inputs: M products of one, two or three factors.

    A factor of a real input is its normal score, which heavy tails do not dominate, or a step at a quartile,
    centred; of an indicator the centred indicator. Terms are all factors, squares of normal scores, products
    of two factors of different inputs, and products of three normal scores, or of three steps at medians,
    indicators with either.

    Args:
        inputs: that quantiles and means are learnt from, shape (N, D).
        names: of the inputs.
    """

    def __init__(self, inputs: np.ndarray, names: Sequence[str] | None = None) -> None:
        self.names = names
        spread = inputs.std(0)
        widest = np.argsort(-spread, kind="stable")[:MOST_INPUTS]
        columns = np.sort(widest[spread[widest] > 0])
        indicator = np.isin(inputs[:, columns], (0, 1)).all(0)
        self.real, self.indicators = columns[~indicator], columns[indicator]
        self.quantiles = np.quantile(inputs[:, self.real], GRID, axis=0)
        steps = QUARTILES if len(columns) * (1 + len(QUARTILES)) <= MOST_STEPS else QUARTILES[:1]
        self.steps = [np.quantile(inputs[:, self.real], level, axis=0) for level in steps]
        # Factors: normal scores, indicators, and steps.
        self.input = np.concatenate([columns[~indicator], columns[indicator], *[self.real] * len(steps)])
        self.mean: np.ndarray | float = 0.0
        self.mean = self.factors(inputs)[:, :-1].mean(0)
        # Terms: each factor alone, pairs of factors of different inputs and squares of scores, and triples.
        reals, smooth = len(self.real), len(columns)
        own = np.arange(len(self.input))
        first, second = np.triu_indices(len(own))
        squares = (first == second) & (first < reals)
        pairs = (self.input[first] != self.input[second]) | squares
        both = range(reals, smooth)
        of_three = {
            three
            for others in (range(reals), range(smooth, smooth + reals))
            for three in combinations([*both, *others], 3)
        }
        self.factor = np.concatenate(
            [
                np.column_stack([own, np.full((len(own), 2), NOTHING)]),
                np.column_stack([first[pairs], second[pairs], np.full(pairs.sum(), NOTHING)]),
                np.array(sorted(of_three), dtype=int).reshape(-1, 3),
            ]
        )

    def __len__(self) -> int:
        return len(self.factor)

    def factors(self, inputs: np.ndarray) -> np.ndarray:
        """Centred factors of rows, and a last column of ones, shape (N, factors + 1), column by column."""
        real = inputs[:, self.real].astype(float)
        scores = np.empty_like(real)
        for score, x, quantiles in zip(scores.T, real.T, self.quantiles.T, strict=True):
            score[:] = ndtri(np.clip(np.interp(x, quantiles, GRID), TAIL, 1.0 - TAIL))
        steps = [(real > at).astype(float) for at in self.steps]
        factors = np.hstack([scores, inputs[:, self.indicators].astype(float), *steps])
        return np.asfortranarray(np.column_stack([factors - self.mean, np.ones(len(inputs))]))

    def values(self, factors: np.ndarray, terms: np.ndarray) -> np.ndarray:
        """Some terms of rows, shape (N, len(terms))."""
        first, second, third = (factors.T[one] for one in self.factor[terms].T)  # whole columns at a time
        first *= second
        first *= third
        return first.T

    def blocks(self, factors: np.ndarray) -> Iterator[np.ndarray]:
        """All terms of rows, (N, at most `BLOCK`) at a time."""
        for start in range(0, len(self), BLOCK):
            yield self.values(factors, np.arange(start, min(start + BLOCK, len(self))))

    def thresholds(self, term: int) -> dict[int, float]:
        """Thresholds of the steps among the three factors of a term, by place."""
        smooth = len(self.real) + len(self.indicators)
        of_steps = np.concatenate([np.full(smooth, np.nan), *self.steps])
        return {place: of_steps[one] for place, one in enumerate(self.factor[term]) if one >= smooth}

    def inputs_of(self, term: int) -> list[str]:
        """Names of the inputs of a term, each once."""
        assert self.names is not None
        factors = [one for one in self.factor[term] if one != NOTHING]
        return list(dict.fromkeys(self.names[self.input[one]] for one in factors))


def deviations(residual: np.ndarray, columns: np.ndarray, person: np.ndarray | None = None) -> np.ndarray:
    """Σ residual · h by its standard error for each column h, shape (M,), about N(0, 1) without correlation.

    Args:
        residual: of mean 0, shape (N,).
        columns: shape (N, M), which are centred.
        person: codes of people, whose rows depend on each other, shape (N,); None for a row each.
    """
    centred = columns - columns.mean(0)
    total = residual @ centred
    if person is None:
        squares = residual**2 @ np.square(centred, out=centred)
    else:
        order = np.argsort(person, kind="stable")
        starts = np.flatnonzero(np.diff(person[order], prepend=-1))
        product = np.add.reduceat((residual[:, None] * centred)[order], starts)
        squares = np.einsum("ij,ij->j", product, product)
    return total / np.maximum(np.sqrt(squares), np.finfo(float).tiny)


@dataclass
class Chosen:
    """A term of `terms` with thresholds of its own.

    Attributes:
        terms: of the same inputs.
        term: position.
        at: threshold of each factor that is a step, by place.
        mean: that each of these is centred by.
        scale: standard deviation that the term is divided by.
    """

    terms: Terms
    term: int
    at: dict[int, float]
    mean: dict[int, float]
    scale: float = 1.0

    @classmethod
    def of(cls, terms: Terms, term: int, inputs: np.ndarray, residual: np.ndarray) -> Chosen:
        """With the thresholds at which the residual is correlated most, one after the other, twice."""
        at = terms.thresholds(term)
        own = cls(terms, term, at, dict.fromkeys(at, 0.0))
        factors = terms.factors(inputs)
        for place in [*at, *at]:
            x = own._x(inputs, place)
            levels = np.unique(np.quantile(x, LEVELS))
            steps = (x[:, None] > levels).astype(float)
            others = own._product(inputs, factors, but=place)
            best = np.abs(deviations(residual, others[:, None] * (steps - steps.mean(0)))).argmax()
            own.at[place], own.mean[place] = levels[best], steps[:, best].mean()
        own.scale = max(float(own._product(inputs, factors).std()), 1e-6)
        return own

    def values(self, inputs: np.ndarray, factors: np.ndarray) -> np.ndarray:
        """Of rows with `Terms.factors`, shape (N,)."""
        return self._product(inputs, factors) / self.scale

    def _x(self, inputs: np.ndarray, place: int) -> np.ndarray:
        return inputs[:, self.terms.input[self.terms.factor[self.term][place]]]

    def _product(self, inputs: np.ndarray, factors: np.ndarray, but: int | None = None) -> np.ndarray:
        product = np.ones(len(inputs))
        for place, one in enumerate(self.terms.factor[self.term]):
            if place in self.at and place != but:
                product = product * ((self._x(inputs, place) > self.at[place]) - self.mean[place])
            elif place != but:
                product = product * factors[:, one]
        return product


class SparseLogistic(ClassifierMixin, BaseEstimator):
    """Logistic regression of few inputs and few of their `Terms`.

    Inputs, then terms, are chosen one after the other, the one of most correlation with the residuals first,
    while this is above what the largest of M would be by chance, √(2 ln M) standard errors (Donoho and
    Johnstone 1994). Where `MOST_CHOSEN` inputs are not enough, all are taken. Steps of terms are moved to
    where the correlation is largest.

    Args:
        inverse_penalty: of squared coefficients, as in `LogisticRegression`.

    References:
        Donoho, D. and Johnstone, I. (1994). Ideal spatial adaptation by wavelet shrinkage. Biometrika.
    """

    def __init__(self, inverse_penalty: float = 1.0) -> None:
        self.inverse_penalty = inverse_penalty

    def fit(self, inputs: np.ndarray, target: np.ndarray) -> SparseLogistic:
        """Fit to inputs (N, D) and targets (N,) of 0 and 1."""
        self.classes_ = np.array([0, 1])
        self.inputs_: list[int] = []
        residual = self._fitted(self._linear(inputs), target)
        while (found := _largest(residual, inputs, inputs.shape[1])) is not None:
            enough = len(self.inputs_) < MOST_CHOSEN
            self.inputs_ = [*self.inputs_, found] if enough else [*range(inputs.shape[1])]
            residual = self._fitted(self._linear(inputs), target)
            if not enough:
                break
        self.terms_ = Terms(inputs)
        self.chosen_: list[Chosen] = []
        factors, together = self.terms_.factors(inputs), self._linear(inputs)
        of_all = [np.abs(deviations(residual, h)) for h in self.terms_.blocks(factors)]
        candidates = np.argsort(-np.concatenate([*of_all, []]), kind="stable")[:CANDIDATES]
        columns = self.terms_.values(factors, candidates)
        while (found := _largest(residual, columns, len(self.terms_))) is not None:
            one = Chosen.of(self.terms_, candidates[found], inputs, residual)
            self.chosen_.append(one)
            together = np.column_stack([together, one.values(inputs, factors)])
            residual = self._fitted(together, target)
            if len(self.chosen_) == MOST_CHOSEN:
                break
        return self

    def _linear(self, inputs: np.ndarray) -> np.ndarray:
        """The chosen inputs, and zeros, without which there may be no column to fit."""
        return np.column_stack([np.zeros(len(inputs)), inputs[:, self.inputs_]])

    def _fitted(self, columns: np.ndarray, target: np.ndarray) -> np.ndarray:
        """Fit the model to columns (N, K), and return its residuals (N,)."""
        model = LogisticRegression(C=self.inverse_penalty, tol=1e-5, solver="newton-cholesky")
        self.model_ = model.fit(columns, target)
        return target - self.model_.predict_proba(columns)[:, 1]

    def predict_proba(self, inputs: np.ndarray) -> np.ndarray:
        """Probabilities of 0 and 1, shape (N, 2)."""
        factors = self.terms_.factors(inputs) if self.chosen_ else inputs
        chosen = [one.values(inputs, factors) for one in self.chosen_]
        return self.model_.predict_proba(np.column_stack([self._linear(inputs), *chosen]))


def _largest(residual: np.ndarray, columns: np.ndarray, many: int) -> int | None:
    """The column of most correlation, where this is not by chance the largest of `many`."""
    size = np.abs(deviations(residual, columns))
    chance = np.sqrt(2.0 * np.log(max(many, 2)))
    return int(size.argmax()) if size.max(initial=0.0) >= chance else None
