"""Two methods that are equal over data sets, compared on twenty splits of each."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from scipy.stats import t

from fairall.report import LEVEL, paired_p
from reproduction.simulations import Case

TITLE = "Two equal methods on twenty splits of a data set"
NOTE = (
    "Data sets of 1,000 people, split twenty times into 70 % training, 15 % validation and 15 % test people. "
    "Two regressions see one feature each of equal quality, so that neither earns more over data sets. "
    "Events: their test utilities differ (p < 0.05) by the Wilcoxon signed-rank test paired over splits, and "
    "by the corrected resampled t-test of Nadeau and Bengio (2003), whose standard error has the factor "
    "√(1/20 + 15/70) in place of √(1/20)."
)
TESTED = ("fairall/report/statistics.py",)
PEOPLE, SPLITS = 1000, 20
TRAINING, TEST = 700, 150
WILCOXON, CORRECTED = "differ, paired over splits", "differ, corrected for splits"


def people(random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Two features, shape (N, 2), and labels, shape (N,)."""
    talent = random.normal(size=PEOPLE)
    features = talent[:, None] + random.normal(size=(PEOPLE, 2))
    return features, (random.random(PEOPLE) < 1 / (1 + np.exp(-0.5 - talent))).astype(float)


def earned(feature: np.ndarray, label: np.ndarray, learnt: np.ndarray, test: np.ndarray) -> float:
    """Test utility at c = ½ of a least-squares fit to the labels of some people."""
    inputs = np.column_stack([np.ones(PEOPLE), feature])
    weights = np.linalg.lstsq(inputs[learnt], label[learnt], rcond=None)[0]
    return float(((inputs[test] @ weights > 0.5) * (label[test] - 0.5)).mean())


def replicate(random: np.random.Generator, labels: int, *, anew: bool) -> Mapping[str, bool]:
    """Whether the two methods differ on a data set.

    Args:
        random: generator of the data set and of its splits.
        labels: number of training people whose labels a method learns from, at random.
        anew: draw other people for each split.
    """
    features, label = people(random)
    apart = []
    for _ in range(SPLITS):
        if anew:
            features, label = people(random)
        order = random.permutation(PEOPLE)
        sides = [
            earned(
                features[:, k], label, random.choice(order[:TRAINING], labels, replace=False), order[-TEST:]
            )
            for k in range(2)
        ]
        apart.append(sides[0] - sides[1])
    differences = pd.Series(apart)
    p = paired_p(differences, 0 * differences)
    error = differences.std() * np.sqrt(1 / SPLITS + TEST / TRAINING)
    return {
        WILCOXON: p is not None and p < LEVEL,
        CORRECTED: bool(abs(differences.mean()) > t.ppf(1 - LEVEL / 2, SPLITS - 1) * error),
    }


CASES = (
    Case(
        "splits of the same people, all labels of training people",
        lambda random: replicate(random, TRAINING, anew=False),
        1000,
        {WILCOXON: ("≥", 0.1), CORRECTED: ("≤", 0.05)},
    ),
    Case(
        "splits of the same people, a tenth of the labels",
        lambda random: replicate(random, TRAINING // 10, anew=False),
        1000,
        {WILCOXON: ("≥", 0.1), CORRECTED: ("≤", 0.05)},
    ),
    Case(
        "other people for each split, a tenth of the labels",
        lambda random: replicate(random, TRAINING // 10, anew=True),
        1000,
        {WILCOXON: ("≤", 0.06), CORRECTED: ("≤", 0.05)},
    ),
)
