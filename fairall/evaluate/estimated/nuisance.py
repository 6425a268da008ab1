"""Cross-fitted models of who is accepted, whose label is recorded, and who has a positive label."""

from __future__ import annotations

import sys
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import Bounds, minimize
from scipy.special import expit, logit
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from fairall.display.progress import doing
from fairall.errors import FairAllError
from fairall.evaluate.estimated.terms import Products
from fairall.evaluate.log import DecisionLog

MODELS = {
    "auto": "logistic regression, with and without products, and gradient boosting",
    "logistic": "logistic regression",
}
PENALTY = 1.0  # of squared coefficients, halved
# Training rows of a fold, beyond which these models gain little; the logistic regression uses all rows.
MOST_ROWS, MOST_ROWS_OF_PRODUCTS = 100_000, 20_000
LEAST_PROBABILITY = 1e-4
MOST_WEIGHT = 100.0  # 1/p; `checks.lacking` refuses where more people than chance explains are so unlikely
MOST_VARIANCE = 1.0  # of log odds
TOLERANCE = 1e-5  # of the mean gradient; the rounding of float32 hinders Newton steps below
MANY_ROWS = 400_000  # beyond which half of them train the models as well as more would
CHUNK = 65_536  # rows at once, which bounds memory


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

    def variance(self) -> np.ndarray:
        """Variance of the log odds of each row, zᵢᵀ H⁻¹ zᵢ, shape (N,)."""
        return ((self.inputs @ self.inverse_information.astype(np.float32)) * self.inputs).sum(1)


@dataclass(frozen=True)
class Fitted:
    """Out-of-fold predictions of a model.

    Attributes:
        probability: of all people, each by a model fitted on other folds, shape (N,), in (0, 1).
        name: of the model.
        log_loss: mean over the fitted rows.
        auc: over the fitted rows.
        parametric: of the logistic regression; None for models without first-order theory.
    """

    probability: np.ndarray
    name: str
    log_loss: float
    auc: float
    parametric: Parametric | None = None

    def inverse(self) -> np.ndarray:
        """1/p for weights, at most `MOST_WEIGHT`, shape (N,).

        Of a logistic regression without the bias of second order.
        The log odds η̂ of a row are those of a model fitted on other rows, with an error of about N(0, v).
        Then 1/p̂ = 1 + exp(−η̂) has the expectation 1 + exp(−η + v/2), so that v/2 is added to η̂, at most
        `MOST_VARIANCE`/2, beyond which the approximation fails.
        """
        shift = 0.0
        if self.parametric is not None:
            shift = np.minimum(self.parametric.variance(), MOST_VARIANCE) / 2.0
        return np.minimum(1.0 + np.exp(-logit(self.probability) - shift), MOST_WEIGHT)


def fit(log: DecisionLog, target: np.ndarray, what: str, model: Any, folds: int, seed: int) -> Fitted | None:
    """Cross-fit P(target = 1 | features, group) and predict it for all rows.

    Args:
        log: the people.
        target: 0 or 1, NaN where unknown, shape (N,).
        what: of the target, in messages.
        model: `auto`, `logistic` or a scikit-learn classifier, which is cloned. `auto` stacks a logistic
            regression, one with `terms.Products`, and gradient boosting: a logistic regression with
            non-negative coefficients of their out-of-fold log odds (Wolpert 1992; van der Laan et al. 2007),
            which also calibrates them. A classifier is stacked alone.
        folds: of cross-fitting, see `folds_of`.
        seed: of the folds and the gradient boosting.

    Returns:
        None where fewer than two rows have one of the targets.

    Raises:
        FairAllError: if the model cannot be used.

    References:
        Wolpert, D. (1992). Stacked generalization. Neural Networks.
        van der Laan, M., Polley, E. and Hubbard, A. (2007). Super learner. Statistical Applications in
        Genetics and Molecular Biology.
    """
    if isinstance(model, str) and model not in MODELS:
        known = f"{', '.join(MODELS)}, or a scikit-learn classifier"
        raise FairAllError(f"model {model!r} is not possible: it must be {known}")
    if not isinstance(model, str) and not hasattr(model, "predict_proba"):
        raise FairAllError(f"the model {type(model).__name__} is no classifier with probabilities")
    if _rarer(target) < 2:
        return None
    members, (order, fold) = _members(model, seed), folds_of(log, target, folds, seed)
    probability = np.empty((len(members), len(target)))
    for number, (member, k) in enumerate(np.ndindex(len(members), fold.max() + 1), 1):
        doing(f"fit {number} of {len(members) * (fold.max() + 1)}: {what}, fold {k + 1}")
        estimator, most = members[member]
        train = order[(fold != k)[order] & ~np.isnan(target[order])]
        # Evenly from the ordered rows, which keeps the strata and, with the ends, both targets.
        train = train[np.linspace(0, len(train) - 1, min(most, len(train))).astype(int)]
        rows = np.flatnonzero(fold == k)
        probability[member, rows] = _predicted(estimator, log.design, train, rows, target)
    probability = _inside(probability)
    if model == "logistic":
        return _scored(target, probability[0], MODELS[model], _parametric(log, target, probability[0]))
    name = MODELS["auto"] if isinstance(model, str) else type(model).__name__
    return _scored(target, _inside(_stacked(logit(probability), target)), name)


def fit_by_version(
    log: DecisionLog, target: np.ndarray, what: str, model: Any, folds: int, seed: int
) -> Fitted | None:
    """Cross-fit P(target = 1 | x) over all policy versions k of a log, Σ_k P(k | x)·P(target = 1 | x, k).

    Weights by this mixture are the balanced heuristic (Veach and Guibas 1995; Agarwal et al. 2017) where
    versions see other people too. They need overlap with the versions together only, and that labels do not
    depend on the version given the features. With one version, or none given, the same as `fit`; arguments
    likewise.

    References:
        Veach, E. and Guibas, L. (1995). Optimally combining sampling techniques for Monte Carlo rendering.
        SIGGRAPH.
        Agarwal, A., Basu, S., Schnabel, T. and Joachims, T. (2017). Effective evaluation using logged bandit
        feedback from multiple loggers. KDD.
    """
    if log.policy_version is None:
        return fit(log, target, what, model, folds, seed)
    if _rarer(target) < 2:
        return None
    mixture, total, name = np.zeros(len(log)), np.zeros(len(log)), "shares"
    for version in np.unique(log.policy_version):
        rows = log.policy_version == version
        chosen = fit(log, rows.astype(float), "policy version", model, folds, seed)
        fitted = fit(log, np.where(rows, target, np.nan), what, model, folds, seed)
        # Without a model all decisions of a version are alike, or nearly.
        share = rows.mean() if chosen is None else chosen.probability
        mixture = mixture + share * (target[rows].mean() if fitted is None else fitted.probability)
        total, name = total + share, name if fitted is None else fitted.name
    return _scored(target, _inside(mixture / total), f"{name}, by policy version")


def _rarer(target: np.ndarray) -> int:
    """How many rows have the rarer target."""
    return min(int((target == value).sum()) for value in (0, 1))


def _members(model: Any, seed: int) -> list[tuple[Any, int]]:
    """Classifiers of a model, with the most rows that each is fitted on."""
    if not isinstance(model, str):
        return [(model, MOST_ROWS)]
    logistic = LogisticRegression(C=1.0 / PENALTY, tol=TOLERANCE, solver="newton-cholesky")
    boosting = HistGradientBoostingClassifier(
        max_iter=80, max_leaf_nodes=8, l2_regularization=5.0, early_stopping=False, random_state=seed
    )
    # The gradient boosting reads a column after the other, in this precision.
    by_column = FunctionTransformer(np.asfortranarray, kw_args={"dtype": np.float64})
    more = [
        (make_pipeline(Products(), StandardScaler(), logistic), MOST_ROWS_OF_PRODUCTS),
        (make_pipeline(by_column, boosting), MOST_ROWS),
    ]
    return [(logistic, sys.maxsize), *(more if model == "auto" else [])]


def folds_of(log: DecisionLog, target: np.ndarray, folds: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows in an order whose neighbours are alike, and the number of the fold of each row, shape (N,).

    Folds are stratified by target and group, and the rows of a person are in one fold. There are at most as
    many as the rarer target has rows, and 2 with more than `MANY_ROWS` rows.
    """
    number = min(folds if len(target) <= MANY_ROWS else 2, _rarer(target))
    # Targets come first, so that those of a rare one are in different folds.
    shuffled = np.random.default_rng(seed).permutation(len(target))
    order = shuffled[np.lexsort((log.group[shuffled], target[shuffled]))]
    fold = np.argsort(order) % number
    if log.person is not None:
        fold = fold[np.unique(log.person, return_index=True)[1]][log.person]
    return order, fold


def _predicted(
    model: Any, inputs: np.ndarray, train: np.ndarray, rows: np.ndarray, target: np.ndarray
) -> np.ndarray | float:
    """Probabilities of `rows` by a model fitted on the rows `train`."""
    if len(np.unique(target[train])) < 2:  # the other targets are of persons in the fold that is predicted
        return float(np.nanmean(target[train] if len(train) else target))
    with warnings.catch_warnings():
        # The tolerance is near the precision of float32, at which the last line search may fail.
        warnings.simplefilter("ignore", ConvergenceWarning)
        fitted = clone(model).fit(inputs[train], target[train].astype(int))
    parts = np.array_split(rows, len(rows) // CHUNK + 1)
    return np.concatenate([fitted.predict_proba(inputs[part])[:, 1] for part in parts if len(part)] or [[]])


def _stacked(log_odds: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Probabilities σ(b₀ + Σ bₖ ηₖ) by log odds (K, N), bₖ ≥ 0, of most likelihood on the known rows."""
    inputs = np.vstack([np.ones(len(target)), log_odds])
    known = np.flatnonzero(~np.isnan(target))
    known = known[:: len(known) // MOST_ROWS + 1]
    x, y = inputs[:, known], target[known]

    def loss(b: np.ndarray) -> float:
        return float((np.logaddexp(0.0, b @ x) - y * (b @ x)).mean())

    start, least = np.full(len(inputs), 1.0 / len(log_odds)), np.append(-np.inf, np.zeros(len(log_odds)))
    return expit(minimize(loss, start, bounds=Bounds(least), method="L-BFGS-B").x @ inputs)


def _scored(target: np.ndarray, p: np.ndarray, name: str, theory: Parametric | None = None) -> Fitted:
    known = ~np.isnan(target)
    loss, auc = (float(score(target[known], p[known])) for score in (log_loss, roc_auc_score))
    return Fitted(p, name, loss, auc, theory)


def _parametric(log: DecisionLog, target: np.ndarray, probability: np.ndarray) -> Parametric:
    weight = np.where(np.isnan(target), 0.0, probability * (1 - probability)).astype(np.float32)
    information = (log.inputs.T * weight) @ log.inputs + np.diag([0.0, *[PENALTY] * log.design.shape[1]])
    return Parametric(log.inputs, np.nan_to_num(target - probability), np.linalg.inv(information))


def _inside(probability: np.ndarray) -> np.ndarray:
    return np.clip(probability, LEAST_PROBABILITY, 1.0 - LEAST_PROBABILITY)
