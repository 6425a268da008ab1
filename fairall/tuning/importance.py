"""Importances of hyperparameters for an objective."""

from __future__ import annotations

import numpy as np

from fairall.tuning.space import Interval
from fairall.tuning.study import Study

ENOUGH = 4  # finished points, below which nothing can be said
TREES = 64


def importances(study: Study, measure: str) -> dict[str, float]:
    """Mean decrease of impurity by hyperparameter in a random forest that predicts the objective.

    It is what Optuna's `MeanDecreaseImpurityImportanceEvaluator` computes: a number is a feature of the
    forest, a choice has an indicator for each value.

    Returns:
        The most important first, with sum 1; empty for too few finished points, or where all have one value.
    """
    from sklearn.ensemble import RandomForestRegressor  # slow

    means = study.means[measure]
    if len(means) < ENOUGH or means.nunique() == 1:
        return {}
    points = [study.point(number) for number in means.index]
    features = {}  # of the forest, by hyperparameter, shape (points, features)
    for key, of in sorted(study.space.values.items()):
        taken = [point[key] for point in points]
        if isinstance(of, Interval):
            features[key] = np.array(taken, dtype=float)[:, np.newaxis]
        else:
            features[key] = np.eye(len(of))[[of.index(value) for value in taken]]
    forest = RandomForestRegressor(n_estimators=TREES, random_state=0)
    forest.fit(np.column_stack(list(features.values())), means)
    ends = np.cumsum([own.shape[1] for own in features.values()])[:-1]
    shares = [float(own.sum()) for own in np.split(forest.feature_importances_, ends)]
    return {key: share for share, key in sorted(zip(shares, features, strict=True), reverse=True)}
