"""Classifiers of scikit-learn's shape: made from a configuration, fitted by replicate, saved without pickle.

References:
    Buitinck et al.: API design for machine learning software: experiences from the scikit-learn project,
    ECML PKDD workshop on languages for data mining and machine learning, 2013.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from typing import Any

import numpy as np
import torch
from scipy.special import logit
from torch import Tensor, nn

from fairall.errors import FairAllError, one_line
from fairall.models.learner import LEAST
from fairall.runtime.process import import_own
from fairall.storage.archive import archive_of, of_archive, types_in

SEEDS = 2**24  # of random numbers of a fit; a float32 below 1 has as many values


def boosted_trees() -> Any:
    """The boosted trees of the package's methods, small and penalised since labels are often few."""
    from sklearn.ensemble import HistGradientBoostingClassifier  # takes a second

    return HistGradientBoostingClassifier(
        max_iter=60,
        max_leaf_nodes=15,
        l2_regularization=1.0,
        max_bins=63,  # they take two thirds of the time of 255
        early_stopping=False,
    )


def logistic(c: float, *, standardises: bool = False) -> Any:
    """A logistic regression with inverse strength c of its penalty; see `ridge.Ridge`."""
    from fairall.models.ridge import Ridge

    return Ridge(c, standardises)


def estimator_of(node: Any, place: str) -> Any:
    """The unfitted estimator that a node of a configuration describes, or the value of a parameter of one.

    Args:
        node: `_target_` and arguments, each a plain value, a list, or a node of the same kind.
        place: key of the node, for messages.

    Raises:
        FairAllError: where a `_target_` is no estimator of scikit-learn's shape, which is found out before it
            is called, or an argument is not possible.
    """
    if not isinstance(node, Mapping | list | tuple):
        return node
    values = _parts(estimator_of, node, place)
    if not isinstance(values, dict) or "_target_" not in values:
        return values
    from sklearn.base import BaseEstimator

    target = str(values.pop("_target_"))
    module, _, name = target.rpartition(".")
    with one_line(f"{place}: {target} cannot be made"):
        named = getattr(import_own(module), name)
        if not issubclass(named, BaseEstimator):  # which raises TypeError for what is no class
            raise TypeError("it is no subclass of sklearn.base.BaseEstimator")
        if values.get("memory") is not None:
            raise ValueError("memory: leave it out: a cache of pickles can hold code")
        for key, usual in inspect.signature(named).parameters.items():  # files have no tuples
            if isinstance(usual.default, tuple) and isinstance(values.get(key), list):
                values[key] = tuple(values[key])
        return named(**values)


def _parts(change: Callable[[Any, str], Any], of: Any, place: str) -> Any:
    """The parts of a list or mapping, each changed by a function of part and place."""
    if isinstance(of, Mapping):
        return {key: change(value, f"{place}.{key}") for key, value in of.items()}
    return [change(value, f"{place}[{i}]") for i, value in enumerate(of)]


def node_of(value: Any, place: str = "estimator") -> Any:
    """The node from which `estimator_of` makes an equal estimator, or the value of a parameter of one.

    Raises:
        FairAllError: where a parameter is no plain value, list, mapping or estimator.
    """
    from sklearn.base import BaseEstimator

    if isinstance(value, np.generic):
        return value.item()
    if value is None or isinstance(value, int | float | str):
        return value
    if isinstance(value, list | tuple) or (isinstance(value, Mapping) and {*map(type, value)} <= {str}):
        return _parts(node_of, value, place)
    if not isinstance(value, BaseEstimator):
        allowed = "number, text, list, mapping of texts or estimator"
        raise FairAllError(f"{place}: {value!r} is no {allowed}, so that it cannot be saved")
    kind, given = type(value), value.get_params(deep=False)
    for name, usual in inspect.signature(kind).parameters.items():
        if given.get(name) is usual.default:
            given.pop(name, None)
    return {"_target_": f"{kind.__module__}.{kind.__qualname__}", **node_of(given, place)}


class Fitted(nn.Module):
    """K fitted classifiers, whose state is an archive of skops.

    The archive is read where it is needed: a run whose people are known needs no classifier.

    Args:
        n_models: K.
        trusted: packages whose types an archive may have beside those of scikit-learn.

    Attributes:
        known: estimates by these classifiers, by people, for whoever asks for them again.
    """

    def __init__(self, n_models: int, trusted: Collection[str] = ()) -> None:
        super().__init__()
        self.n_models = n_models
        self.trusted = set(trusted)
        self._classifiers: list[Any] = []
        self._archive = b""  # empty where it is not made yet
        self.known = dict[Any, np.ndarray]()

    def keep(self, classifiers: list[Any]) -> None:
        """Take K fitted classifiers in place of those before.

        Raises:
            FairAllError: where a run that is killed could not go on with one of them, of a type that there
                was not before.
        """
        before = {*map(type, self._classifiers)}
        new = {type(one): one for one in classifiers if type(one) not in before}
        if new and (unknown := types_in(archive_of([*new.values()]), self.trusted)[1]):
            raise FairAllError(f"a fitted classifier cannot be saved: it has the type {unknown[0]}")
        self._classifiers, self._archive, self.known = classifiers, b"", {}

    def read(self) -> list[Any]:
        """The classifiers, none before the first fit; raises as `archive.of_archive`."""
        if self._archive and not self._classifiers:
            found = of_archive(self._archive, self.trusted)
            if not isinstance(found, list) or len(found) != self.n_models:
                raise FairAllError("the saved classifiers do not fit the method: run it anew")
            self._classifiers = found
        return self._classifiers

    def get_extra_state(self) -> Tensor:
        """The archive, uint8, shape (n,)."""
        if self._classifiers and not self._archive:
            self._archive = archive_of(self._classifiers)
        return torch.tensor(np.array(bytearray(self._archive)))

    def set_extra_state(self, state: Tensor) -> None:
        """Restore what `get_extra_state` returned; the classifiers stay where they are the same ones."""
        if (archive := state.numpy().tobytes()) != self._archive:
            self._classifiers, self._archive, self.known = [], archive, {}


def fitted(
    estimator: Any,
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
    from sklearn.utils.validation import has_fit_parameter

    if (ones := float(label.sum())) in (0.0, len(label)):
        constant: Any = logistic(1.0)
        constant.weights_ = np.append(np.zeros(x.shape[1]), logit((ones + 2.0 * cost) / (len(label) + 2.0)))
        return constant
    weight = np.ones(len(label)) if weight is None else weight
    rows = np.append(np.arange(len(label)), np.flatnonzero((label > 0.0) & (label < 1.0)))
    one = np.append(label > 0.0, np.zeros(len(rows) - len(label), dtype=bool))
    weight = weight[rows] * np.where(one, label[rows], 1.0 - label[rows])
    with one_line(f"{type(estimator).__name__} cannot be fitted"):
        seeds = {
            name: seed
            for name, value in estimator.get_params().items()
            if value is None and name.endswith("random_state")
        }
        own = clone(estimator).set_params(**seeds)
        prefix, last = "", own
        while hasattr(last, "steps"):  # of a pipeline the last step takes the weights
            step, last = last.steps[-1]
            prefix += f"{step}__"
        given = {f"{prefix}sample_weight": weight} if has_fit_parameter(last, "sample_weight") else {}
        if not given and (weight != weight[0]).any():
            raise ValueError("its fit takes no sample_weight, and rows differ in it")
        own.fit(x[rows], one.astype(int), **given)
    return own


def log_odds(estimator: Any, x: np.ndarray) -> np.ndarray:
    """Log odds of label 1 of people x (N, F) by a fitted classifier, float64, shape (N,).

    Raises:
        FairAllError: where it fails, or gives no two probabilities for each person.
    """
    with one_line(f"{type(estimator).__name__} cannot estimate"):
        both = np.asarray(estimator.predict_proba(x), float)
        if both.shape != (len(x), 2) or not np.isfinite(both).all():
            raise ValueError("predict_proba gives no two finite probabilities for each person")
    return np.asarray(logit(both[:, 1].clip(LEAST, 1.0 - LEAST)))
