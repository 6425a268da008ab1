"""Importances of hyperparameters for an objective."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING

from fairall.tuning.space import Range, Value
from fairall.tuning.study import Study

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

ENOUGH = 4  # finished points, below which nothing can be said


def importances(study: Study, measure: str) -> dict[str, float]:
    """Mean decrease of impurity by hyperparameter in a random forest that predicts the objective.

    fANOVA, the other method of Optuna 2, does not run with NumPy 2.

    Returns:
        The most important first, with sum 1; empty for too few finished points, or where all have one value.
    """
    import optuna  # slow
    from optuna.importance import MeanDecreaseImpurityImportanceEvaluator, get_param_importances

    means = study.means[measure]
    if len(means) < ENOUGH or means.nunique() == 1:
        return {}
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    space = {key: _distribution(of) for key, of in study.space.values.items()}
    points = optuna.create_study()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        for number, mean in means.items():
            point = study.point(number)
            points.add_trial(optuna.trial.create_trial(params=point, distributions=space, value=mean))
        return get_param_importances(points, evaluator=MeanDecreaseImpurityImportanceEvaluator(seed=0))


def _distribution(of: Sequence[Value] | Range) -> BaseDistribution:
    from optuna import distributions

    if not isinstance(of, Range):
        return distributions.CategoricalDistribution(of)
    if of.whole:
        whole = distributions.IntLogUniformDistribution if of.log else distributions.IntUniformDistribution
        return whole(of.low, of.high)
    real = distributions.LogUniformDistribution if of.log else distributions.UniformDistribution
    return real(of.low, of.high)
