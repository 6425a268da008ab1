"""Bootstrap of sums over rows, and an interval with a finite-sample guarantee.

All estimates are functions of sums of per-row columns within cells (groups of people, or groups and bins).
The bootstrap therefore resamples sums of blocks of rows, at a cost that does not depend on their number.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from fairall.evaluate.nuisance import Fitted, Parametric

LEVEL = 0.95
DRAWS = 2000
BLOCKS = 5000  # random blocks of rows; with fewer rows than blocks each row is a block
DRAWS_AT_ONCE = 250  # bounds the memory of the counts


@dataclass(frozen=True)
class Columns:
    """K per-row quantities whose sums within cells an estimate is a function of.

    Attributes:
        values: shape (N, K).
        by_propensity: their derivatives by the log odds of the estimated propensity, shape (N, K); None where
            the propensities are recorded.
        by_outcome: their derivatives by the log odds of the outcome model, shape (N, K); None where they do
            not depend on it.
    """

    values: np.ndarray
    by_propensity: np.ndarray | None = None
    by_outcome: np.ndarray | None = None


@dataclass(frozen=True)
class Sums:
    """Sums within cells.

    Attributes:
        total: of all rows, shape (cells, K).
        draws: of bootstrap samples of the rows, shape (draws, cells, K).
    """

    total: np.ndarray
    draws: np.ndarray

    @property
    def overall(self) -> Sums:
        """The sums over all cells, shapes (K,) and (draws, K)."""
        return Sums(self.total.sum(-2), self.draws.sum(-2))


@dataclass(frozen=True)
class Bootstrap:
    """Nonparametric bootstrap (Efron 1979) of sums over N rows, with the same resamples for every column.

    Rows are dealt at random into equally large blocks, and blocks are resampled with replacement; sums of
    such blocks are independent and identically distributed as rows are, so that the variance of resampled
    sums is that of a bootstrap of rows, up to a relative error of 1/√(2·blocks) of the standard deviation.

    Sums of columns that depend on a logistic regression for the propensity or the outcome count the
    estimation of its parameters θ to first order: in a resample θ moves by H⁻¹ Σ (count − 1)·z·(target − p),
    with H the information, and the columns move along their derivatives by the log odds z·θ (the delta
    method for M-estimators; Newey & McFadden 1994, section 6). Models of other kinds, and calibration, are
    kept fixed.

    Args:
        n_rows: N.
        propensity: the model behind the propensities; None where those are recorded.
        outcome: the model behind the predicted labels, if any.
        seed: of the random blocks and resamples.

    References:
        Efron, B. (1979). Bootstrap methods: another look at the jackknife. Annals of Statistics.
        Newey, W. and McFadden, D. (1994). Large sample estimation and hypothesis testing. In Handbook of
        Econometrics, volume 4.
    """

    n_rows: int
    propensity: Fitted | None = None
    outcome: Fitted | None = None
    seed: int = 0
    draws: int = DRAWS
    _block: np.ndarray = field(init=False, repr=False)
    _n_blocks: int = field(init=False, repr=False)
    _moved: dict[int, np.ndarray] = field(init=False, repr=False, default_factory=dict)  # `_moves` by model

    def __post_init__(self) -> None:
        n_blocks = min(self.n_rows, BLOCKS)
        order = np.arange(self.n_rows)
        if n_blocks < self.n_rows:
            order = np.random.default_rng([self.seed, 0]).permutation(self.n_rows)
        object.__setattr__(self, "_n_blocks", n_blocks)
        object.__setattr__(self, "_block", order % n_blocks)

    def sums(self, columns: Columns, cell: np.ndarray, n_cells: int) -> Sums:
        """Sum columns within cells.

        Args:
            columns: of the N rows.
            cell: of each row, in 0..n_cells − 1, shape (N,); −1 leaves a row out.
            n_cells: number of cells.
        """
        within = cell >= 0
        flat = (self._block * n_cells + cell)[within]
        size = self._n_blocks * n_cells
        blocks = np.stack(
            [np.bincount(flat, weights=column[within], minlength=size) for column in columns.values.T], -1
        ).reshape(self._n_blocks, n_cells, -1)
        total = blocks.sum(0)
        for fitted, derivative in (
            (self.propensity, columns.by_propensity),
            (self.outcome, columns.by_outcome),
        ):
            if fitted is not None and fitted.derivative is not None and derivative is not None:
                blocks = blocks + self._of_estimation(fitted.derivative, derivative, cell, n_cells)
        return Sums(total, self._resampled(blocks.reshape(self._n_blocks, -1)).reshape(-1, *total.shape))

    def _of_estimation(
        self, model: Parametric, derivative: np.ndarray, cell: np.ndarray, n_cells: int
    ) -> np.ndarray:
        """What each block's rows add to the sums through θ, shape (blocks, cells, K)."""
        rows = [np.flatnonzero(cell == one) for one in range(n_cells)]
        slopes = np.stack([model.inputs[some].T @ derivative[some] for some in rows], 1)  # (D+1, cells, K)
        # Mean 0, since the whole sample is at the estimate.
        moves = self._moves(model)
        return np.tensordot(moves - moves.mean(0), slopes, axes=1)

    def _moves(self, model: Parametric) -> np.ndarray:
        """H⁻¹ Σ z·(target − p) of each block, shape (blocks, D+1)."""
        if id(model) not in self._moved:
            scores = [
                np.bincount(self._block, weights=column * model.residual, minlength=self._n_blocks)
                for column in model.inputs.T
            ]
            self._moved[id(model)] = np.stack(scores, axis=-1) @ model.inverse_information
        return self._moved[id(model)]

    def _resampled(self, blocks: np.ndarray) -> np.ndarray:
        """Sums over resampled blocks of columns (blocks, K), shape (draws, K)."""
        parts = range(0, self.draws, DRAWS_AT_ONCE)
        return np.concatenate(
            [self._counts[start : start + DRAWS_AT_ONCE].astype(float) @ blocks for start in parts]
        )

    @cached_property
    def _counts(self) -> np.ndarray:
        """How often each block is in each resample, shape (draws, blocks)."""
        random, n = np.random.default_rng([self.seed, 1]), self._n_blocks
        counts = np.empty((self.draws, n), dtype=np.uint8)  # a count of 256 has probability below 1e-500
        for draw in counts:
            draw[:] = np.bincount(random.integers(n, size=n), minlength=n)
        return counts


def percentiles(draws: np.ndarray, level: float = LEVEL) -> tuple[float, float]:
    """The percentile interval of bootstrap draws (draws,); NaN where none is finite."""
    finite = draws[np.isfinite(draws)]
    if not len(finite):
        return math.nan, math.nan
    low, high = np.quantile(finite, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def guaranteed_interval(
    target: np.ndarray,
    weight: np.ndarray,
    label: np.ndarray,
    cost: float,
    *,
    clip: float,
    level: float = LEVEL,
) -> tuple[float, float]:
    """An interval that covers the value with at least `level` at any sample size, if propensities are right.

    The lower end is an empirical-Bernstein bound (Maurer & Pontil 2009, theorem 4) on the mean of
    r·min(w, M)·y − c·a, whose expectation is at most V = E[a(y − c)]; the upper end one on the mean of
    a·(1 − c) − r·min(w, M)·(1 − y), whose expectation is at least V. Clipping at M bounds the range M + 1
    of both, as in high-confidence off-policy evaluation (Thomas et al. 2015). If propensities are wrong, the
    lower end may be above the upper one, and no value is possible.

    Args:
        target: a, acceptance probabilities of the policy, shape (N,).
        weight: r·w with w = a/p, shape (N,).
        label: y in {0, 1}, any number where not revealed, shape (N,).
        cost: c.
        clip: M, chosen without looking at the log.
        level: of both ends together.

    Returns:
        Lower and upper end; NaN where no value is possible.

    References:
        Maurer, A. and Pontil, M. (2009). Empirical Bernstein bounds and sample variance penalization. COLT.
        Thomas, P., Theocharous, G. and Ghavamzadeh, M. (2015). High-confidence off-policy evaluation. AAAI.
    """
    weight = np.minimum(weight, clip)
    lower = weight * label - cost * target
    upper = target * (1.0 - cost) - weight * (1.0 - label)
    error = (1.0 - level) / 2.0
    low = lower.mean() - _bernstein(lower, clip + cost, error)
    high = upper.mean() + _bernstein(upper, clip + 1.0 - cost, error)
    return (max(float(low), -cost), min(float(high), 1.0 - cost)) if low <= high else (math.nan, math.nan)


def _bernstein(values: np.ndarray, width: float, error: float) -> float:
    """One-sided deviation of a mean of independent values (N,) in a range of `width`."""
    n, log = len(values), math.log(2.0 / error)
    return math.sqrt(2.0 * values.var(ddof=1) * log / n) + 7.0 * width * log / (3.0 * (n - 1))


def interval(estimate: float, draws: np.ndarray) -> dict[str, float | None]:
    """An estimate with its percentile interval as JSON holds it, None where there is none."""
    low, high = percentiles(draws)
    return as_plain(estimate=estimate, low=low, high=high)


def as_plain(**numbers: float) -> dict[str, float | None]:
    """Numbers as JSON can hold them: None where not finite."""
    return {name: float(value) if np.isfinite(value) else None for name, value in numbers.items()}


def stacked(columns: Sequence[np.ndarray]) -> np.ndarray:
    """Columns (N,) side by side, shape (N, K), float64."""
    return np.stack([np.asarray(column, dtype=float) for column in columns], axis=-1)
