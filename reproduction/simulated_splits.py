"""Two methods that are equal over data sets, compared on twenty splits of each."""

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


def earned(feature: np.ndarray, label: np.ndarray, learnt: np.ndarray, test: np.ndarray) -> float:
    """Test utility at c = ½ of a least-squares fit to the labels of some people."""
    fitted = np.polyfit(feature[learnt], label[learnt], 1)
    return float(((np.polyval(fitted, feature[test]) > 0.5) * (label[test] - 0.5)).mean())


def replicate(random: Random, labels: int, *, anew: bool = False) -> Events:
    """Whether the two methods differ on a data set.

    Args:
        random: generator of the data set and of its splits.
        labels: number of training people whose labels a method learns from, at random.
        anew: draw other people for each split.
    """
    (features, label), apart = people(random), []
    for _ in range(SPLITS):
        if anew:
            features, label = people(random)
        order = random.permutation(PEOPLE)
        first, second = (
            earned(own, label, random.choice(order[:TRAINING], labels, replace=False), order[-TEST:])
            for own in features
        )
        apart.append(first - second)
    differences = pd.Series(apart)
    p, error = (
        paired_p(differences, 0 * differences),
        differences.std() * np.sqrt(1 / SPLITS + TEST / TRAINING),
    )
    return {
        "differ, paired over splits": p is not None and p < LEVEL,
        "differ, corrected for splits": abs(differences.mean()) > t.ppf(1 - LEVEL / 2, SPLITS - 1) * error,
    }
