"""Cross-fitted models of who is accepted, whose label is recorded, and who has a positive label."""

from __future__ import annotations

import itertools
import sys
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import Bounds, minimize
from scipy.special import expit, logit
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, PolynomialFeatures, RobustScaler, StandardScaler

from fairall.display.progress import doing
from fairall.errors import FairAllError
from fairall.evaluate.estimated.terms import TAIL, widest
from fairall.evaluate.log import DecisionLog

MODELS = {
    "auto": "logistic regression, with and without products of two inputs, and gradient boosting",
    "logistic": "logistic regression",
}
PENALTY = 1.0  # of squared coefficients, halved
# Training rows of a fold, beyond which these models gain little; the logistic regression uses all rows.
MOST_ROWS, MOST_ROWS_OF_PAIRS = 100_000, 20_000
MOST_CELLS = 10_000_000  # rows times inputs that trees are fitted on
LEAST_PROBABILITY = 1e-4
MOST_WEIGHT = 100.0  # 1/p; `checks.lacking` refuses where more people than chance explains are so unlikely
TOLERANCE = 1e-5  # of the mean gradient; the rounding of float32 hinders Newton steps below
MANY_ROWS = 400_000  # beyond which half of them train the models as well as more would
CHUNK = 65_536  # most rows that are predicted at once, which bounds the memory of products


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
        """1/p for weights, at most `MOST_WEIGHT`, shape (N,)."""
        return np.minimum(1.0 / self.probability, MOST_WEIGHT)


def fit(log: DecisionLog, target: np.ndarray, what: str, model: Any, folds: int, seed: int) -> Fitted | None:
    """Cross-fit P(target = 1 | features, group) and predict it for all rows.

    Args:
        log: the people.
        target: 0 or 1, NaN where unknown, shape (N,).
        what: of the target, in messages.
        model: `auto`, `logistic` or a scikit-learn classifier, which is cloned. `auto` stacks a logistic
            regression, one with all products of two inputs, of the `widest` that are cut at `TAIL`
            robust standard deviations from the median, and gradient boosting: a logistic regression with
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
    if not (model in MODELS if isinstance(model, str) else hasattr(model, "predict_proba")):
        known = f"{', '.join(MODELS)}, or a scikit-learn classifier with probabilities"
        raise FairAllError(f"model {model!r} is not possible: it must be {known}")
    if _rarer(target) < 2:
        return None
    members = _members(model, seed, log.design)
    order, fold = folds_of(log, target, folds, seed)
    probability = np.empty((len(members), len(target)))
    steps = [*itertools.product(enumerate(members), np.unique(fold).tolist())]
    for number, ((member, (estimator, most)), k) in enumerate(steps, 1):
        doing(f"fit {number} of {len(steps)}: {what}, fold {k + 1}")
        train = order[(fold != k)[order] & ~np.isnan(target[order])]
        # Evenly from the ordered rows, which keeps the strata and, with the ends, both targets.
        train = train[np.linspace(0, len(train) - 1, min(most, len(train))).astype(int)]
        if len(np.unique(target[train])) < 2:  # the other targets are of persons in fold k
            probability[member, fold == k] = np.nanmean(target[train] if len(train) else target)
            continue
        with warnings.catch_warnings():
            # The tolerance is near the precision of float32, at which the last line search may fail.
            warnings.simplefilter("ignore", ConvergenceWarning)
            fitted = clone(estimator).fit(log.design[train], target[train].astype(int))
        predicted = np.flatnonzero(fold == k)
        for rows in np.array_split(predicted, len(predicted) // CHUNK + 1):
            probability[member, rows] = fitted.predict_proba(log.design[rows])[:, 1]
    log_odds, known = logit(_inside(probability)), ~np.isnan(target)
    p = _inside(expit(log_odds[0] if model == "logistic" else _stacked(log_odds, target)))
    theory = _parametric(log, target, p) if model == "logistic" else None
    name = MODELS.get(model, type(model).__name__)
    loss, auc = (float(score(target[known], p[known])) for score in (log_loss, roc_auc_score))
    return Fitted(p, name, loss, auc, theory)


def _rarer(target: np.ndarray) -> int:
    """How many rows have the rarer target."""
    return int(min((target == 0).sum(), (target == 1).sum()))


def _members(model: Any, seed: int, design: np.ndarray) -> list[tuple[Any, int]]:
    """Classifiers of a model, with the most rows of a design (N, D) that each is fitted on."""
    if not isinstance(model, str):
        return [(model, MOST_ROWS)]
    logistic = LogisticRegression(C=1.0 / PENALTY, tol=TOLERANCE, solver="newton-cholesky")
    boosting = HistGradientBoostingClassifier(
        max_iter=80, max_leaf_nodes=8, l2_regularization=5.0, early_stopping=False, random_state=seed
    )
    # Tails are cut, which products would make heavier.
    pairs = make_pipeline(
        make_column_transformer(("passthrough", widest(design))),
        RobustScaler(unit_variance=True),
        FunctionTransformer(np.clip, kw_args={"a_min": -TAIL, "a_max": TAIL}),
        PolynomialFeatures(include_bias=False),
        StandardScaler(),
        LogisticRegression(C=0.1 / PENALTY, tol=TOLERANCE, solver="newton-cholesky"),
    )
    more = [(pairs, MOST_ROWS_OF_PAIRS), (boosting, min(MOST_ROWS, MOST_CELLS // design.shape[1]))]
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


def _stacked(log_odds: np.ndarray, target: np.ndarray) -> np.ndarray:
    """b₀ + Σ bₖ ηₖ by log odds (K, N), bₖ ≥ 0, of most likelihood on the known rows, shape (N,)."""
    inputs, known = np.vstack([np.ones(len(target)), log_odds]), np.flatnonzero(~np.isnan(target))
    known = known[:: len(known) // MOST_ROWS + 1]
    x, sign = inputs[:, known], 1.0 - 2.0 * target[known]

    def loss(b: np.ndarray) -> float:
        return float(np.logaddexp(0.0, sign * (b @ x)).mean())

    start = np.full(len(inputs), 1.0 / len(log_odds))
    return np.asarray(minimize(loss, start, bounds=Bounds([-np.inf, *0.0 * start[1:]])).x @ inputs)


def _parametric(log: DecisionLog, target: np.ndarray, probability: np.ndarray) -> Parametric:
    weight = np.where(np.isnan(target), 0.0, probability * (1 - probability)).astype(np.float32)
    information = (log.inputs.T * weight) @ log.inputs + np.diag([0.0, *[PENALTY] * log.design.shape[1]])
    return Parametric(log.inputs, np.nan_to_num(target - probability), np.linalg.inv(information))


def _inside(probability: np.ndarray) -> np.ndarray:
    return np.clip(probability, LEAST_PROBABILITY, 1.0 - LEAST_PROBABILITY)
