"""Cross-fitted, calibrated models of who is accepted and of who has a positive label."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit, logit
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from fairall.errors import FairAllError
from fairall.evaluate.log import DecisionLog

MODELS = ("auto", "logistic", "boosting")
LOGISTIC, BOOSTING = "logistic regression", "gradient boosting"
PENALTY = 1.0  # of squared coefficients, halved
# Training rows of a fold, except of the logistic regression, whose theory counts all rows. Trees of 31 leaves
# then have thousands of rows in each, and more rows gain less than the calibration corrects.
MOST_ROWS = 100_000
LEAST_PROBABILITY = 1e-6
MOST_VARIANCE = 1.0  # of log odds
TOLERANCE = 1e-5  # of the mean gradient; the rounding of float32 hinders Newton steps below
CHUNK = 65_536  # rows of the information matrix at once, which bounds its memory


@dataclass(frozen=True)
class Parametric:
    """First-order theory of a logistic regression with intercept and L2 penalty.

    The error of its coefficients is `inverse_information` Σᵢ zᵢ residualᵢ, zᵢ the row of `inputs`.

    Attributes:
        inputs: `DecisionLog.inputs`, shape (N, D + 1), float32.
        residual: target − probability on the rows it is fitted on, 0 elsewhere, shape (N,).
        inverse_information: (Σᵢ pᵢ (1 − pᵢ) zᵢ zᵢᵀ + penalty)⁻¹ over the fitted rows, shape (D + 1, D + 1).
    """

    inputs: np.ndarray
    residual: np.ndarray
    inverse_information: np.ndarray


@dataclass(frozen=True)
class Fitted:
    """Out-of-fold predictions of a model.

    Attributes:
        probability: of all people, each by a model fitted on other folds, shape (N,), in (0, 1), calibrated.
        name: logistic regression, gradient boosting, or the class of a given estimator.
        log_loss: mean over the fitted rows.
        auc: over the fitted rows.
        derivative: for the logistic regression.
        folds: of the cross-fitting.
    """

    probability: np.ndarray
    name: str
    log_loss: float
    auc: float
    derivative: Parametric | None
    folds: int = 5


def fit_propensity(log: DecisionLog, model: Any = "auto", folds: int = 5, seed: int = 0) -> Fitted:
    """Fit P(accepted | features, group) on all rows.

    Args:
        log: the people.
        model: `logistic`, `boosting`, `auto`, or a scikit-learn classifier, which is cloned. `auto` is the
            gradient boosting if its out-of-fold log loss is smaller than that of the logistic regression by
            more than a standard error of the paired differences, else the logistic regression. All but the
            logistic regression are calibrated by Platt scaling of the out-of-fold log odds.
        folds: of cross-fitting, stratified by group and target; at most as many as the rarer target has rows.
        seed: of the folds and the gradient boosting.

    Raises:
        FairAllError: if there are less than two rows of a target, or the model cannot be used.
    """
    return _CrossFit(log, log.accepted.astype(float), "decision", folds, seed).fit(model)


def fit_outcome(log: DecisionLog, model: Any = "auto", folds: int = 5, seed: int = 0) -> Fitted:
    """Fit P(label = 1 | features, group, accepted) on the revealed labels, and predict it for all rows.

    Arguments and errors as for `fit_propensity`.
    """
    return _CrossFit(log, log.label, "label", folds, seed).fit(model)


def for_inverse(fitted: Fitted) -> np.ndarray:
    """Probabilities (N,) for weights 1/p, which a logistic regression then has unbiased to second order.

    The log odds η̂ of a row are those of a model fitted on other rows, with an error of about N(0, v). Then
    1/p̂ = 1 + exp(−η̂) has expectation 1 + exp(−η + v/2), so that v/2 is added to η̂, at most
    `MOST_VARIANCE`/2, beyond which the approximation fails. With 2,000 rows and 60 inputs the bias of IPS
    would be a third of its standard error. Other models are returned as they are.
    """
    if fitted.derivative is None:
        return fitted.probability
    z, inverse = fitted.derivative.inputs, fitted.derivative.inverse_information
    variance = np.empty(len(z))
    for start in range(0, len(z), CHUNK):
        rows = z[start : start + CHUNK].astype(float)
        variance[start : start + CHUNK] = ((rows @ inverse) * rows).sum(1)
    # The information is of all rows, the models are of all folds but one.
    variance *= fitted.folds / (fitted.folds - 1)
    return expit(logit(fitted.probability) + np.minimum(variance, MOST_VARIANCE) / 2.0)


class _CrossFit:
    """Folds of the rows, and the fits on them; `target` is NaN where it is unknown."""

    def __init__(self, log: DecisionLog, target: np.ndarray, what: str, folds: int, seed: int) -> None:
        self.inputs, self.design, self.target, self.seed = log.inputs, log.design, target, seed
        self.known = ~np.isnan(target)
        least = min(int((target == value).sum()) for value in (0, 1))
        if least < 2 or folds < 2:
            raise FairAllError(
                f"a model of the {what} needs two folds and two rows of either {what}; there are {folds} "
                f"folds, {int((target == 1).sum())} positive and {int((target == 0).sum())} negative rows"
            )
        self.folds = min(folds, least)
        # Neighbours in this order are alike, so that every n-th of it is stratified; targets come first, so
        # that those of a rare one are in different folds.
        shuffled = np.random.default_rng(seed).permutation(len(target))
        self.order = shuffled[np.lexsort((log.group[shuffled], target[shuffled]))]
        self.fold = np.empty(len(target), dtype=int)
        self.fold[self.order] = np.arange(len(target)) % self.folds

    def fit(self, model: Any) -> Fitted:
        boosting = HistGradientBoostingClassifier(early_stopping=False, random_state=self.seed)
        if model == "boosting":
            return self._calibrated(self._out_of_fold(boosting), BOOSTING)
        if not isinstance(model, str):
            if not all(hasattr(model, name) for name in ("fit", "predict_proba", "get_params")):
                raise FairAllError(f"the model {type(model).__name__} is no classifier with probabilities")
            return self._calibrated(self._out_of_fold(model), type(model).__name__)
        if model not in MODELS:
            raise FairAllError(
                f"model {model!r} is not possible: it must be {', '.join(MODELS)}, or a scikit-learn "
                "classifier"
            )
        logistic = self._logistic()
        if model == "logistic":
            return logistic
        first = self._predicted(boosting, 0)
        if len(self.fold) > MOST_ROWS and not self._better(first, logistic, self.fold == 0):
            return logistic  # one fold has rows enough to tell, and four more fits take long
        raw = self._out_of_fold(boosting, first)
        better = self._better(raw, logistic, np.ones_like(self.known))
        return self._calibrated(raw, BOOSTING) if better else logistic

    def _better(self, raw: np.ndarray, logistic: Fitted, rows: np.ndarray) -> bool:
        """Whether calibrated probabilities predict `rows` better than the logistic regression; see `auto`."""
        gain = self._losses(logistic.probability, rows) - self._losses(self._platt(raw, rows), rows)
        return gain.mean() > gain.std() / np.sqrt(len(gain))

    def _logistic(self) -> Fitted:
        model = LogisticRegression(C=1 / PENALTY, tol=TOLERANCE, solver="newton-cholesky")
        probability = np.empty(len(self.target))
        for fold in range(self.folds):
            train, rows = self._train(fold), self.fold == fold
            with warnings.catch_warnings():
                # The tolerance is near the precision of float32, at which the last line search may fail.
                warnings.simplefilter("ignore", ConvergenceWarning)
                model.fit(self.design[train], self.target[train])
            probability[rows] = model.predict_proba(self.design[rows])[:, 1]
        residual = np.where(self.known, np.nan_to_num(self.target) - probability, 0.0)
        penalty = np.diag([0.0, *np.full(self.design.shape[1], PENALTY)])
        information = self._information(probability) + penalty
        derivative = Parametric(self.inputs, residual, np.linalg.inv(information))
        return self._fitted(probability, LOGISTIC, derivative)

    def _information(self, probability: np.ndarray) -> np.ndarray:
        """Σ p (1 − p) z zᵀ over the fitted rows, shape (D + 1, D + 1)."""
        weight = np.where(self.known, probability * (1 - probability), 0.0)
        total = np.zeros((self.inputs.shape[1],) * 2)
        for start in range(0, len(weight), CHUNK):
            z = self.inputs[start : start + CHUNK].astype(float)
            total += z.T @ (z * weight[start : start + CHUNK, None])
        return total

    def _calibrated(self, raw: np.ndarray, name: str) -> Fitted:
        return self._fitted(self._platt(raw, np.ones_like(self.known)), name, None)

    def _out_of_fold(self, model: Any, first: np.ndarray | None = None) -> np.ndarray:
        """Probabilities of all rows, each by a model fitted on other folds; `first` holds those of fold 0."""
        raw = np.empty(len(self.target))
        for fold in range(self.folds):
            predicted = first if first is not None and fold == 0 else self._predicted(model, fold)
            raw = np.where(self.fold == fold, predicted, raw)
        return raw

    def _predicted(self, model: Any, fold: int) -> np.ndarray:
        """Probabilities of the rows of a fold, 0.5 elsewhere, shape (N,)."""
        train, rows = self._train(fold), self.fold == fold
        # Evenly from the ordered rows, which keeps the strata and, with the ends, both targets.
        chosen = train[np.linspace(0, len(train) - 1, min(MOST_ROWS, len(train))).astype(int)]
        fitted = clone(model).fit(self.design[chosen], self.target[chosen].astype(int))
        probability = np.full(len(rows), 0.5)
        probability[rows] = fitted.predict_proba(self.design[rows])[:, 1]
        return probability

    def _train(self, fold: int) -> np.ndarray:
        """Indices of the known rows of the other folds, in the order of the strata."""
        return self.order[(self.fold[self.order] != fold) & self.known[self.order]]

    def _platt(self, raw: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Probabilities σ(a + b logit raw) with a and b fitted on the known of `rows` (Platt 1999)."""
        log_odds = logit(np.clip(raw, LEAST_PROBABILITY, 1 - LEAST_PROBABILITY))[:, None]
        used = rows & self.known
        scaling = LogisticRegression(C=np.inf, tol=1e-6).fit(log_odds[used], self.target[used])
        return expit(scaling.intercept_ + log_odds[:, 0] * scaling.coef_[0])

    def _losses(self, probability: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Log losses of the known of `rows`."""
        used = rows & self.known
        p = np.clip(probability[used], LEAST_PROBABILITY, 1 - LEAST_PROBABILITY)
        return -np.log(np.where(self.target[used] == 1, p, 1 - p))

    def _fitted(self, probability: np.ndarray, name: str, derivative: Parametric | None) -> Fitted:
        probability = np.clip(probability, LEAST_PROBABILITY, 1 - LEAST_PROBABILITY)
        loss = float(self._losses(probability, self.known).mean())
        auc = float(roc_auc_score(self.target[self.known], probability[self.known]))
        return Fitted(probability, name, loss, auc, derivative, self.folds)
