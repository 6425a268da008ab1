"""Decision makers of different strictness as an instrument: bounds of labels.

Cases are assigned to decision makers at random given the features x, and who decides does not change the
label. For a decision maker z, P(y = 1 | x) is then between P(r = 1, y = 1 | x, z) and
P(r = 1, y = 1 | x, z) + P(r = 0 | x, z), r whether the label was revealed, and so between the greatest of the
first and the least of the second over all z (Manski and Pepper 2000; Chen et al. 2025). No assumption is made
on what decision makers see beside x.

References:
    Manski, C. and Pepper, J. (2000). Monotone instrumental variables: with an application to the returns to
        schooling. Econometrica.
    Levis, A., Bonvini, M., Zeng, Z., Keele, L. and Kennedy, E. (2025). Covariate-assisted bounds on causal
        effects with instrumental variables. Journal of the Royal Statistical Society B.
    Chen, J. et al. (2025). Learning to defer under selective labels with heterogeneous decision makers: an
        instrumental-variable approach. ICML, arXiv 2306.07566.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from fairall.evaluate.estimated.nuisance import fit
from fairall.evaluate.log import DecisionLog

OFFICERS = "decision makers"  # name of their bounds
LEVELS = 4  # of strictness, that decision makers are merged to
LEAST_ROWS = 100  # of a level
LEAST_PROPENSITY = 0.01  # of a level, given x


def strictness(log: DecisionLog) -> np.ndarray:
    """Level of the decision maker of each row, 0 the strictest, shape (N,).

    Decision makers in the order of their acceptance rates are cut into levels of about as many rows each, as
    many as there can be, up to `LEVELS`, with `LEAST_ROWS` each; a function of an instrument is one too.
    """
    rate = pd.Series(log.accepted).groupby(log.decision_maker).transform("mean")
    middle = rate.rank() - 0.5  # of the rows of a decision maker
    for levels in range(LEVELS, 0, -1):
        level = np.unique(levels * middle // len(log), return_inverse=True)[1]
        if np.bincount(level).min() >= LEAST_ROWS:
            break
    return level


def why_not(log: DecisionLog) -> str | None:
    """Why decision makers bound nothing; None where they do."""
    if log.decision_maker is None:
        return "no decision makers are given"
    if not log.labels_complete:
        return "some of the accepted have no label"
    if strictness(log).max() == 0:
        return f"the decision makers give fewer than two levels of strictness of {LEAST_ROWS} rows each"
    return None


def officers(log: DecisionLog, folds: int = 5, seed: int = 0) -> np.ndarray:
    """Bounds of labels by the log's decision makers.

    Without assumption the label of a row is between r·y and r·y + 1 − r. For each level z of strictness the
    means b_z(x) of the upper one are cross-fitted, and P(z | x). A row takes z*, the level that by models of
    other folds has the least b_z; its upper end is b_z* + 1[z = z*]/P(z* | x)·(r·y + 1 − r − b_z*), whose
    mean is that of an upper bound of the label whatever z* is, to the product of two errors of the models
    (Levis et al. 2025). The lower end is likewise that of the greatest mean of r·y. All models are logistic
    regressions: where that of P(z | x) is right, as it is of an assignment at random, ends are valid, if
    wider, with any b.

    Args:
        log: with decision makers, and without a reason of `why_not`.
        folds: of the cross-fitting.
        seed: of folds and models.

    Returns:
        Lower and upper ends, whose means over people are those of bounds, shape (2, N).
    """
    level = strictness(log)
    decided = level == np.arange(level.max() + 1)[:, None]

    def fitted(target: np.ndarray) -> np.ndarray:
        """Cross-fitted means of a column that is NaN where it is not known, or its mean, shape (N,)."""
        model = fit(log, target, "decision maker", "logistic", folds, seed)
        return np.full(len(log), np.nanmean(target)) if model is None else model.probability

    chance = np.stack([fitted(rows.astype(float)) for rows in decided])
    share = np.maximum(chance.T[decided.T], LEAST_PROPENSITY)  # of the level of each row

    ends = []
    for sign, missing in ((1.0, 0.0), (-1.0, 1.0)):
        known = np.where(log.revealed, log.label, missing)
        means = sign * np.stack([fitted(np.where(rows, known, np.nan)) for rows in decided])
        expected = sign * means.max(0)  # the greatest mean over levels, then the least
        ends.append(expected + (level == means.argmax(0)) / share * (known - expected))
    return np.stack(ends)
