"""Which parameters of a sweep matter for an objective."""

from __future__ import annotations

from fairall.tuning.objectives import Objective
from fairall.tuning.study import SharedStudy

ENOUGH = 4  # finished trials, below which nothing can be said


def importances(study: SharedStudy, objective: Objective) -> dict[str, float]:
    """By parameter the share of an objective's differences that a forest of trees puts down to it.

    Mean decrease of impurity; the other measure that Optuna 2 has, fANOVA, does not run with NumPy 2.

    Returns:
        The most important first, together 1; empty for too few finished trials, or none that differ.
    """
    from optuna.importance import MeanDecreaseImpurityImportanceEvaluator, get_param_importances

    which = study.objectives.index(objective)
    judged = study.judged()
    if len(judged) < ENOUGH or len({trial.mean(objective) for trial in judged}) == 1:
        return {}
    return get_param_importances(
        study.optuna_study,
        evaluator=MeanDecreaseImpurityImportanceEvaluator(seed=0),
        target=lambda trial: trial.values[which],
    )
