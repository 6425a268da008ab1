"""Importances of hyperparameters for an objective."""

from __future__ import annotations

from fairall.tuning.objectives import Objective
from fairall.tuning.study import SharedStudy

ENOUGH = 4  # finished trials, below which nothing can be said


def importances(study: SharedStudy, objective: Objective) -> dict[str, float]:
    """Mean decrease of impurity by hyperparameter in a random forest that predicts the objective.

    fANOVA, the other method of Optuna 2, does not run with NumPy 2.

    Returns:
        The most important first, with sum 1; empty for too few finished trials, or where all have one value.
    """
    from optuna.importance import MeanDecreaseImpurityImportanceEvaluator, get_param_importances

    which = study.objectives.index(objective)
    complete = study.complete()
    if len(complete) < ENOUGH or len({trial.mean(objective) for trial in complete}) == 1:
        return {}
    return get_param_importances(
        study.optuna_study,
        evaluator=MeanDecreaseImpurityImportanceEvaluator(seed=0),
        target=lambda trial: trial.values[which],
    )
