"""Logistic regression with a penalty, by Newton's method, and odds in a mixture of two parts.

Importing scikit-learn's regression takes most of a second.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import numpy as np
from scipy.special import expit

if TYPE_CHECKING:
    from torch import Tensor

EXACT = 1e-10  # largest component of the gradient of the mean loss in the end
MOST_STEPS = 100
ROUNDING = 1e-12  # relative, of the loss: no reason to shorten a step
SMALLEST = 1e-12  # least 1 − mean of a mixture, so that odds are finite

Values = TypeVar("Values", np.ndarray, "Tensor")


def ridge(
    x: np.ndarray,
    label: np.ndarray,
    c: float,
    weight: np.ndarray | None = None,
    *,
    standardises: bool = True,
) -> np.ndarray:
    """Slopes w and intercept of a logistic model that minimise Σ weight·loss + |w|²/(2c).

    Args:
        x: columns, shape (N, D), float64.
        label: in [0, 1], neither all 0 nor all 1, shape (N,).
        c: inverse strength of the penalty, which the intercept is without.
        weight: of each row, not negative, shape (N,); None: 1.
        standardises: whether the penalty is on the w of standardised columns, so that it does not depend on
            units, or of those given.

    Returns:
        Shape (D + 1,): w of the columns as given, and the intercept.
    """
    weight = np.ones(len(x)) if weight is None else weight
    share = weight / weight.sum()
    mean = standardises * x.mean(0)
    scale = np.where(standardises & (x != x[0]).any(0), x.std(0), 1.0)
    columns = np.column_stack([(x - mean) / scale, np.ones(len(x))])
    penalty = np.append(np.full(x.shape[1], 1.0 / (c * weight.sum())), 0.0)

    weights = minimum(columns, label, share, penalty, np.zeros(columns.shape[1]))
    slopes = weights[:-1] / scale
    return np.append(slopes, weights[-1] - slopes @ mean)


def minimum(
    columns: np.ndarray,
    label: np.ndarray | float,
    share: np.ndarray,
    penalty: np.ndarray,
    start: np.ndarray,
    offset: np.ndarray | float = 0.0,
) -> np.ndarray:
    """Weights w of log odds o = columns·w + offset that minimise Σ share·loss + Σ penalty·w²/2, shape (P,).

    Args:
        columns: shape (N, P).
        label: in [0, 1], shape (N,); the loss is log(1 + exp o) − label·o.
        share: not negative, shape (N,).
        penalty: of each w, shape (P,).
        start: w to begin with, shape (P,).
        offset: shape (N,).
    """

    def loss(weights: np.ndarray) -> float:
        odds = columns @ weights + offset
        return float(share @ (np.logaddexp(0.0, odds) - label * odds) + penalty @ weights**2 / 2)

    weights, reached = start, loss(start)
    for _ in range(MOST_STEPS):
        p = expit(columns @ weights + offset)
        gradient = columns.T @ (share * (p - label)) + penalty * weights
        if np.abs(gradient).max() <= EXACT:
            break
        curvature = (columns.T * (share * p * (1.0 - p))) @ columns + np.diag(penalty)
        step = np.linalg.solve(curvature, gradient)
        # Far from the minimum a whole step may lead further away; one that changes nothing ends this.
        while (further := loss(weights - step)) > reached * (1.0 + ROUNDING):
            step /= 2
        weights, reached = weights - step, further
    return weights


def linear(x: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Log odds of x (N, D) by slopes and intercept (D + 1,), shape (N,)."""
    return x @ weights[:-1] + weights[-1]


def mixture_odds(mean: Values, share: Values, gamma: float) -> Values:
    """Odds in one part of a mixture whose other part has Γ times these odds, and whose mean is known.

    The odds o solve share·Γo/(1 + Γo) + (1 − share)·o/(1 + o) = mean.

    Args:
        mean: probability in the whole, float64.
        share: of the part with odds Γo, of a shape that broadcasts with that of `mean`.
        gamma: Γ > 0.

    Examples:
        >>> odds = mixture_odds(np.array([0.5]), np.array([0.25]), 3.0)
        >>> 0.25 * 3 * odds / (1 + 3 * odds) + 0.75 * odds / (1 + odds)
        array([0.5])
    """
    other = (1.0 - mean).clip(min=SMALLEST)
    middle = 1.0 + (gamma - 1.0) * share - mean * (1.0 + gamma)
    return ((middle**2 + 4.0 * gamma * other * mean) ** 0.5 - middle) / (2.0 * gamma * other)
