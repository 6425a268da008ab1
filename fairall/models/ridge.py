"""Logistic regression with a penalty as an estimator of scikit-learn's shape."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin

from fairall.models.logistic import linear, ridge


class Ridge(ClassifierMixin, BaseEstimator):
    """Logistic regression of labels in {0, 1} by `logistic.ridge`.

    Args:
        c: inverse strength of the penalty.
        standardises: whether the penalty is on standardised columns, or on the columns as they are.

    Attributes:
        classes_: 0 and 1.
        weights_: of the columns as they are given, and the intercept last, shape (F + 1,).
    """

    def __init__(self, c: float = 1.0, standardises: bool = True) -> None:
        self.c = c
        self.standardises = standardises

    def fit(self, x: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit to x (N, F), float64, labels (N,), both present, and weights (N,), by default 1."""
        self.classes_ = np.array([0, 1])
        self.weights_ = ridge(x, y, self.c, sample_weight, standardises=self.standardises)
        return self

    def predict_proba(self, x: Any) -> np.ndarray:
        """Probabilities of both labels, shape (N, 2)."""
        p = expit(linear(x, self.weights_))
        return np.stack([1.0 - p, p], axis=1)

    def predict(self, x: Any) -> np.ndarray:
        """The likelier label, shape (N,)."""
        return self.classes_[self.predict_proba(x).argmax(1)]
