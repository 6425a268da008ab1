"""Cross-fitted models of who is accepted, whose label is recorded, and who has a positive label."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, logit
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, PolynomialFeatures, StandardScaler

from fairall.display.progress import doing
from fairall.errors import FairAllError
from fairall.evaluate.estimated.terms import SparseLogistic
from fairall.evaluate.log import DecisionLog

MODELS = ("auto", "logistic")
PENALTY = 1.0  # of squared coefficients, halved
MOST_INPUTS = 30  # whose products are inputs: 495 of them
# Training rows of a fold, beyond which these models gain little; the logistic regression uses all rows.
MOST_ROWS, MOST_ROWS_OF_PRODUCTS = 100_000, 20_000  # the second of both models of products
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
        return np.concatenate([((z @ self.inverse_information) * z).sum(1) for z in _chunks(self.inputs)])


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


def fit(
    log: DecisionLog,
    target: np.ndarray,
    what: str,
    model: Any,
    folds: int,
    seed: int,
    past: int | None = None,
) -> Fitted | None:
    """Cross-fit P(target = 1 | features, group) and predict it for all rows.

    Args:
        log: the people.
        target: 0 or 1, NaN where unknown, shape (N,).
        what: of the target, in messages.
        model: `auto`, `logistic` or a scikit-learn classifier, which is cloned. `auto` stacks a logistic
            regression; one with a ridge penalty and all products of two inputs, among them whether a real
            one is above its median (greedy trees do not see steps that cross); one with few products of up to
            three normal scores or steps (`terms.SparseLogistic`); and gradient boosting: a logistic
            regression with non-negative coefficients of their out-of-fold log odds (Wolpert 1992;
            van der Laan et al. 2007), which also calibrates them. A classifier is stacked alone.
        folds: of cross-fitting, stratified by group and target; the rows of a person are in one fold. At most
            as many as the rarer target has rows, and 2 with more than `MANY_ROWS` rows.
        seed: of the folds and the gradient boosting.
        past: rows from the first on that may be learnt from; the others, without a target, are predicted.

    Returns:
        None where fewer than two rows have one of the targets.

    Raises:
        FairAllError: if the model cannot be used.

    References:
        Wolpert, D. (1992). Stacked generalization. Neural Networks.
        van der Laan, M., Polley, E. and Hubbard, A. (2007). Super learner. Statistical Applications in
        Genetics and Molecular Biology.
    """
    if isinstance(model, str):
        if model not in MODELS:
            known = f"{', '.join(MODELS)}, or a scikit-learn classifier"
            raise FairAllError(f"model {model!r} is not possible: it must be {known}")
    elif not all(hasattr(model, name) for name in ("fit", "predict_proba", "get_params")):
        raise FairAllError(f"the model {type(model).__name__} is no classifier with probabilities")
    if _rarer(target) < 2:
        return None
    return CrossFit(log, target, folds, seed, past, what).fit(model)


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
    mixture, total, name = np.zeros(len(log)), np.zeros(len(log)), ""
    for version in np.unique(log.policy_version):
        own = log.policy_version == version
        fitted = fit(log, np.where(own, target, np.nan), what, model, folds, seed)
        by_version = target[own].mean() if fitted is None else fitted.probability  # all are alike, or nearly
        name = name if fitted is None else fitted.name
        chosen = fit(log, own.astype(float), "policy version", model, folds, seed)
        share = own.mean() if chosen is None else chosen.probability
        mixture, total = mixture + share * by_version, total + share
    probability = _inside(mixture / total)
    loss, auc = (float(score(target, probability)) for score in (log_loss, roc_auc_score))
    return Fitted(probability, f"{name or 'shares'}, by policy version", loss, auc)


def _rarer(target: np.ndarray) -> int:
    """How many rows have the rarer target."""
    return min(int((target == value).sum()) for value in (0, 1))


class CrossFit:
    """Folds of the rows, and the fits on them; arguments as of `fit`."""

    def __init__(
        self,
        log: DecisionLog,
        target: np.ndarray,
        folds: int,
        seed: int,
        past: int | None = None,
        what: str = "target",
    ) -> None:
        self.inputs, self.design, self.target, self.seed = log.inputs, log.design, target, seed
        self.what = what
        self.past = slice(past)
        self.known = ~np.isnan(target)
        most = folds if len(target) <= MANY_ROWS else 2
        self.folds = min(most, _rarer(target))
        # Neighbours in this order are alike, so that every n-th of it is stratified; targets come first, so
        # that those of a rare one are in different folds.
        shuffled = np.random.default_rng(seed).permutation(len(target))
        self.order = shuffled[np.lexsort((log.group[shuffled], target[shuffled]))]
        self.fold = np.empty(len(target), dtype=int)
        self.fold[self.order] = np.arange(len(target)) % self.folds
        if log.person is not None:
            first = np.unique(log.person, return_index=True)[1]
            self.fold = self.fold[first][log.person]

    def fit(self, model: Any) -> Fitted:
        """See `fit`."""
        if not isinstance(model, str):
            members = self._out_of_fold((model, MOST_ROWS, self.design))
            return self._fitted(self._stacked(members), type(model).__name__)
        logistic = _logistic(1.0 / PENALTY), len(self.target), self.design
        if model == "logistic":
            (member,) = self._out_of_fold(logistic)
            return self._fitted(member, "logistic regression", self._parametric(member))
        products = make_pipeline(
            FunctionTransformer(np.float64),  # squares and products are nearly collinear in float32
            PolynomialFeatures(include_bias=False),
            StandardScaler(),
            _logistic(0.1 / PENALTY),
        )
        boosting = HistGradientBoostingClassifier(
            max_iter=80, max_leaf_nodes=8, l2_regularization=5.0, early_stopping=False, random_state=self.seed
        )
        # The gradient boosting reads a column after the other, in this precision.
        by_column = FunctionTransformer(np.asfortranarray, kw_args={"dtype": np.float64})
        members = self._out_of_fold(
            logistic,
            (products, MOST_ROWS_OF_PRODUCTS, self._with_steps()),
            (SparseLogistic(1.0 / PENALTY), MOST_ROWS_OF_PRODUCTS, self.design),
            (make_pipeline(by_column, boosting), MOST_ROWS, self.design),
        )
        return self._fitted(
            self._stacked(members), "logistic regression, with and without products, and gradient boosting"
        )

    def _with_steps(self) -> np.ndarray:
        """The design and whether a real input is above its median, the `MOST_INPUTS` widest, float32."""
        seen = self.design[self.past]
        real = ~np.isin(seen[:CHUNK], (0, 1)).all(0)
        steps = self.design[:, real] > np.median(seen[:, real], axis=0)
        inputs = np.hstack([self.design, steps])
        widest = np.argsort(-inputs[self.past][: CHUNK * 4].var(0), kind="stable")[:MOST_INPUTS]
        return inputs[:, np.sort(widest)]

    def _parametric(self, probability: np.ndarray) -> Parametric:
        residual = np.where(self.known, np.nan_to_num(self.target) - probability, 0.0)
        information = np.diag([0.0, *np.full(self.design.shape[1], PENALTY)])
        weight = _chunks(np.where(self.known, probability * (1 - probability), 0.0))
        for z, weights in zip(_chunks(self.inputs), weight, strict=True):
            information += z.T @ (z * weights[:, None])
        return Parametric(self.inputs, residual, np.linalg.inv(information))

    def _out_of_fold(self, *models: tuple[Any, int, np.ndarray]) -> list[np.ndarray]:
        """Probabilities of all rows by each of some models, each row by a fit on other folds.

        Args:
            models: estimators, with the most rows that one is fitted on and its inputs (N, D).
        """
        members = [np.empty(len(self.target)) for _ in models]
        for number, fold in itertools.product(range(len(models)), range(self.folds)):
            fit, fits = number * self.folds + fold + 1, len(models) * self.folds
            doing(f"fit {fit} of {fits}: {self.what}, fold {fold + 1}")
            rows = np.flatnonzero(self.fold == fold)
            members[number][rows] = self._fitted_elsewhere(fold, rows, *models[number])
        return members

    def _fitted_elsewhere(
        self, fold: int, rows: np.ndarray, model: Any, most: int, inputs: np.ndarray
    ) -> np.ndarray | float:
        """Probabilities of `rows`, of a fold, by a model fitted on at most `most` rows of other folds."""
        train = self.order[(self.fold[self.order] != fold) & self.known[self.order]]
        # Evenly from the ordered rows, which keeps the strata and, with the ends, both targets.
        chosen = train[np.linspace(0, len(train) - 1, min(most, len(train))).astype(int)]
        target = self.target[chosen].astype(int)
        if len(target) == 0:  # all known targets are of persons in this fold
            return float(self.target[self.known].mean())
        if target.min() == target.max():  # the other target is of persons in this fold
            return float(target[0])
        with warnings.catch_warnings():
            # The tolerance is near the precision of float32, at which the last line search may fail.
            warnings.simplefilter("ignore", ConvergenceWarning)
            fitted = clone(model).fit(inputs[chosen], target)
        parts = (rows[start : start + CHUNK] for start in range(0, len(rows), CHUNK))
        return np.concatenate([[], *(fitted.predict_proba(inputs[part])[:, 1] for part in parts)])

    def _stacked(self, members: list[np.ndarray]) -> np.ndarray:
        """Probabilities σ(b₀ + Σ bₖ logit pₖ) with bₖ ≥ 0 of most likelihood on the known rows."""
        log_odds = np.stack([logit(_inside(one)) for one in members])
        fitted, target = log_odds[:, self.known], self.target[self.known]

        def loss(b: np.ndarray) -> tuple[float, np.ndarray]:
            eta = b[0] + b[1:] @ fitted
            error = expit(eta) - target
            mean = float((np.logaddexp(0.0, eta) - target * eta).mean())
            return mean, np.append(error.mean(), fitted @ error / len(error))

        start = np.append(0.0, np.full(len(members), 1.0 / len(members)))
        bounds = [(None, None), *[(0.0, None)] * len(members)]
        b = minimize(loss, start, jac=True, bounds=bounds, method="L-BFGS-B").x
        return expit(b[0] + b[1:] @ log_odds)

    def _fitted(self, probability: np.ndarray, name: str, parametric: Parametric | None = None) -> Fitted:
        probability = _inside(probability)
        p, target = probability[self.known], self.target[self.known]
        loss = -np.log(np.where(target == 1, p, 1 - p)).mean()
        return Fitted(probability, name, float(loss), float(roc_auc_score(target, p)), parametric)


def _logistic(inverse_penalty: float) -> LogisticRegression:
    return LogisticRegression(C=inverse_penalty, tol=TOLERANCE, solver="newton-cholesky")


def _inside(probability: np.ndarray) -> np.ndarray:
    return np.clip(probability, LEAST_PROBABILITY, 1.0 - LEAST_PROBABILITY)


def _chunks(rows: np.ndarray) -> Iterator[np.ndarray]:
    for start in range(0, len(rows), CHUNK):
        yield rows[start : start + CHUNK].astype(float)
