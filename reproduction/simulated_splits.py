"""Two methods that are equal over data sets, least squares of a feature each, on twenty splits of each."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.special import expit
from scipy.stats import t

from fairall.report import LEVEL, paired_p
from reproduction.population import Events, Random

PEOPLE, SPLITS = 1000, 20
TRAINING, TEST = 700, 150


def people(random: Random) -> tuple[np.ndarray, np.ndarray]:
    """Two features, shape (2, N), and labels, shape (N,)."""
    talent = random.normal(size=PEOPLE)
    features = talent[:, None] + random.normal(size=(PEOPLE, 2))
    return features.T, 1.0 * (random.random(PEOPLE) < expit(0.5 + talent))


def replicate(random: Random, labels: int, *, anew: bool = False) -> Events:
    """Whether the two methods differ on a data set.

    Args:
        random: generator of the data set and of its splits.
        labels: number of training people whose labels a method learns from, at random.
        anew: draw other people for each split.
    """
    (features, label), earned = people(random), []
    for _ in range(SPLITS):
        if anew:
            features, label = people(random)
        order = random.permutation(PEOPLE)
        test = order[-TEST:]
        for feature in features:
            learnt = random.choice(order[:TRAINING], labels, replace=False)
            granted = np.polyval(np.polyfit(feature[learnt], label[learnt], 1), feature[test]) > 0.5
            earned.append((granted * (label[test] - 0.5)).mean())  # test utility at c = ½
    first, second = pd.Series(earned[::2]), pd.Series(earned[1::2])
    p, apart = paired_p(first, second), first - second
    error = apart.std() * np.sqrt(1 / SPLITS + TEST / TRAINING)
    return {
        "differ, paired over splits": p is not None and p < LEVEL,
        "differ, corrected for splits": abs(apart.mean()) > t.ppf(1 - LEVEL / 2, SPLITS - 1) * error,
    }
