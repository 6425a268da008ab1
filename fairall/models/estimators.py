"""Classifiers of scikit-learn's shape: made from a configuration, fitted by replicate, saved without pickle.

References:
    Buitinck et al.: API design for machine learning software: experiences from the scikit-learn project,
    ECML PKDD workshop on languages for data mining and machine learning, 2013.
"""

from __future__ import annotations

import inspect
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from scipy.special import logit
from torch import Tensor, nn
from typing_extensions import override

from fairall.config.choices import targets
from fairall.errors import FairAllError
from fairall.models.learner import LEAST
from fairall.runtime.process import import_own
from fairall.storage.archive import archive_of, of_archive, types_in
from fairall.tables.cells import shown

if TYPE_CHECKING:  # takes half a second, and a run without such a method needs it not
    from sklearn.base import BaseEstimator

MOST_SHOWN = 500  # characters of a message of a classifier
SEEDS = 2**24  # of random numbers of a fit; a float32 below 1 has as many values
TREES: dict[str, Any] = {
    # Small trees and a penalty, since labels are often few; 63 bins take two thirds of the time of 255.
    "max_iter": 60,
    "max_leaf_nodes": 15,
    "l2_regularization": 1.0,
    "max_bins": 63,
    "early_stopping": False,
}


def boosted_trees() -> BaseEstimator:
    """The boosted trees of the package's methods."""
    from sklearn.ensemble import HistGradientBoostingClassifier  # takes a second

    return HistGradientBoostingClassifier(**TREES)


def logistic(c: float, *, standardises: bool = False) -> BaseEstimator:
    """A logistic regression with inverse strength c of its penalty; see `ridge.Ridge`."""
    from fairall.models.ridge import Ridge

    return Ridge(c, standardises)


def packages(node: Any) -> set[str]:
    """Packages whose classes a node names, apart from scikit-learn's, whose types are known."""
    return {name.partition(".")[0] for name in targets(node)} - {"sklearn", "fairall"}


def estimator_of(node: Mapping[str, Any], place: str) -> BaseEstimator:
    """The unfitted classifier that a node of a configuration describes.

    Args:
        node: `_target_` and arguments, each a plain value, a list, or a node of the same kind.
        place: key of the node, for messages.

    Raises:
        FairAllError: where a `_target_` is no estimator of scikit-learn's shape, which is found out before it
            is called, an argument is not possible, or the outermost one does not estimate probabilities.
    """
    made = _made(node, place)
    if not hasattr(made, "predict_proba"):
        raise FairAllError(f"{place}: {type(made).__name__} has no predict_proba to decide by")
    return made


def _made(node: Any, place: str) -> Any:
    """The values of a node with all estimators in it made."""
    if isinstance(node, list | tuple):
        return [_made(value, f"{place}[{i}]") for i, value in enumerate(node)]
    if not isinstance(node, Mapping):
        return node
    values = {key: _made(value, f"{place}.{key}") for key, value in node.items()}
    target = values.pop("_target_", None)
    if target is None:
        return values
    from sklearn.base import BaseEstimator

    module, _, name = str(target).rpartition(".")
    try:
        named = getattr(import_own(module), name)
    except Exception as error:  # a module of the user's may raise anything
        reason = f"{type(error).__name__}: {error}"
        raise FairAllError(f"{place}._target_={target} names no class as module.Class ({reason})") from error
    if not (inspect.isclass(named) and issubclass(named, BaseEstimator)):
        raise FairAllError(f"{place}._target_={target}: no subclass of sklearn.base.BaseEstimator")
    if values.get("memory") is not None:
        raise FairAllError(f"{place}.memory: leave it out: a cache of pickles can hold code")
    usual = inspect.signature(named).parameters
    for key, value in values.items():  # files have no tuples
        if isinstance(value, list) and key in usual and isinstance(usual[key].default, tuple):
            values[key] = tuple(value)
    try:
        return named(**values)
    except (TypeError, ValueError) as error:
        raise FairAllError(f"{place}: {error}") from error


def node_of(estimator: Any, place: str = "estimator") -> Any:
    """The node from which `estimator_of` makes an equal estimator, or the value of a parameter of one.

    Raises:
        FairAllError: where a parameter is no plain value, list, mapping or estimator.
    """
    if isinstance(estimator, Mapping):
        if not all(isinstance(key, str) for key in estimator):
            raise FairAllError(f"{place}: {estimator!r}: only texts can be keys of what is saved")
        return {key: node_of(value, f"{place}.{key}") for key, value in estimator.items()}
    if isinstance(estimator, list | tuple):
        return [node_of(value, f"{place}[{i}]") for i, value in enumerate(estimator)]
    if isinstance(estimator, np.generic):
        return estimator.item()
    if estimator is None or isinstance(estimator, bool | int | float | str):
        return estimator
    if not hasattr(estimator, "get_params") or inspect.isclass(estimator):
        raise FairAllError(
            f"{place}: {estimator!r} is no number, text, list or estimator, so that it cannot be saved"
        )
    kind = type(estimator)
    usual = inspect.signature(kind).parameters
    own = {
        name: node_of(value, f"{place}.{name}")
        for name, value in estimator.get_params(deep=False).items()
        if not (name in usual and value is usual[name].default)
    }
    return {"_target_": f"{kind.__module__}.{kind.__qualname__}"} | own


class Fitted(nn.Module):
    """K fitted classifiers of a replicate, whose state is an archive of skops.

    The archive is read where it is needed: a run whose people are known needs no classifier.

    Args:
        n_models: K.
        trusted: packages whose types an archive may have beside those of scikit-learn.

    Attributes:
        changes: how often there were others.
    """

    def __init__(self, n_models: int, trusted: Collection[str] = ()) -> None:
        super().__init__()
        self.n_models = n_models
        self.trusted = set(trusted)
        self.changes = 0
        self._classifiers: list[Any] | None = []
        self._archive: bytes | None = b""

    def keep(self, classifiers: list[Any]) -> None:
        """Take K fitted classifiers in place of those before."""
        self._classifiers, self._archive = classifiers, None
        self.changes += 1

    def require_readable(self) -> None:
        """Raise FairAllError where a run that is killed could not go on with these classifiers."""
        if unknown := types_in(self.get_extra_state().numpy().tobytes(), self.trusted)[1]:
            raise FairAllError(f"a fitted classifier cannot be saved: it has the type {unknown[0]}")

    def read(self) -> list[Any]:
        """The classifiers, none before the first fit; raises as `archive.of_archive`."""
        if self._classifiers is None:
            found = of_archive(self._archive or b"", self.trusted)
            if not isinstance(found, list) or len(found) != self.n_models:
                raise FairAllError("the saved classifiers do not fit the method: run it anew")
            self._classifiers = found
        return self._classifiers

    def log_odds(self, inputs: Sequence[np.ndarray]) -> np.ndarray:
        """Log odds of label 1 by each classifier of its inputs (N, F), float64, shape (N, K); at first 0."""
        classifiers = self.read()
        if not classifiers:
            return np.zeros((len(inputs[0]), self.n_models))
        return np.stack([log_odds(*pair) for pair in zip(classifiers, inputs, strict=True)], -1)

    @override
    def get_extra_state(self) -> Tensor:
        """The archive, uint8, shape (n,)."""
        if self._archive is None:
            self._archive = archive_of(self._classifiers)
        return torch.tensor(np.frombuffer(self._archive, dtype=np.uint8).copy())

    @override
    def set_extra_state(self, state: Tensor) -> None:
        """Restore what `get_extra_state` returned."""
        self._archive = state.numpy().tobytes()
        self._classifiers = None if self._archive else []
        self.changes += 1


def fitted(
    estimator: BaseEstimator,
    x: np.ndarray,
    label: np.ndarray,
    weight: np.ndarray | None = None,
    *,
    cost: float = 0.5,
    seed: int = 0,
) -> Any:
    """A fitted clone of an estimator.

    Args:
        estimator: unfitted.
        x: inputs, shape (N, F).
        label: in [0, 1], shape (N,); a label p between counts as p of label 1 and 1 − p of label 0. Labels
            that are all 0 or all 1 give everybody (Σ label + 2c)/(N + 2), which is c without any.
        weight: of each row, not negative, shape (N,); None: 1.
        cost: c.
        seed: of all parameters `random_state` that are None.

    Raises:
        FairAllError: where the estimator fails, or takes no weights and some differ.
    """
    from sklearn.base import clone

    if (ones := float(label.sum())) in (0.0, len(label)):
        constant: Any = logistic(1.0)
        constant.weights_ = np.append(np.zeros(x.shape[1]), logit((ones + 2.0 * cost) / (len(label) + 2.0)))
        return constant
    between = (label > 0.0) & (label < 1.0)
    if between.any():
        weight = np.ones(len(label)) if weight is None else weight
        weight = np.concatenate(
            [np.where(between, label * weight, weight), ((1.0 - label) * weight)[between]]
        )
        label = np.concatenate([np.where(between, 1.0, label), np.zeros(between.sum())])
        x = np.concatenate([x, x[between]])
    own = clone(estimator)
    drawn = {
        name: seed
        for name, value in own.get_params().items()
        if value is None and name.rpartition("__")[2] == "random_state"
    }
    own.set_params(**drawn)
    given = {}
    if weight is not None and (name := _weight_name(own)):
        given = {name: weight}
    elif weight is not None and (weight != weight[0]).any():
        raise FairAllError(
            f"{type(estimator).__name__}: its fit takes no sample_weight, and rows differ in it"
        )
    try:
        own.fit(x, label.astype(int), **given)
    except Exception as error:  # a class of the user's may raise anything
        reason = shown(f"{type(error).__name__}: {error}", MOST_SHOWN)
        raise FairAllError(f"{type(estimator).__name__} cannot be fitted ({reason})") from error
    return own


def _weight_name(estimator: Any) -> str | None:
    """Keyword of `fit` that takes the weights of rows, of a pipeline that of its last step; None without."""
    from sklearn.utils.validation import has_fit_parameter

    if hasattr(estimator, "steps"):
        step, last = estimator.steps[-1]
        name = _weight_name(last)
        return name and f"{step}__{name}"
    return "sample_weight" if has_fit_parameter(estimator, "sample_weight") else None


def log_odds(estimator: Any, x: np.ndarray) -> np.ndarray:
    """Log odds of label 1 of people x (N, F) by a fitted classifier, float64, shape (N,)."""
    name = type(estimator).__name__
    try:
        both = np.asarray(estimator.predict_proba(x), float)
    except Exception as error:  # a class of the user's, or of a stranger's archive, may raise anything
        reason = shown(f"{type(error).__name__}: {error}", MOST_SHOWN)
        raise FairAllError(f"{name} cannot estimate ({reason})") from error
    if both.shape != (len(x), 2) or not np.isfinite(both).all():
        raise FairAllError(f"{name}: predict_proba gives no two finite probabilities for each person")
    odds: np.ndarray = logit(both[:, 1].clip(LEAST, 1.0 - LEAST))
    return odds
