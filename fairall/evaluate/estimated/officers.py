"""Decision makers of different strictness as an instrument: bounds of labels, and tests of its assumption.

Cases are assigned to decision makers at random given the features x, and who decides does not change the
label. For a decision maker z, P(y = 1 | x) is then between P(r = 1, y = 1 | x, z) and
P(r = 1, y = 1 | x, z) + P(r = 0 | x, z), r whether the label was revealed, and so between the greatest of the
first and the least of the second over all z (Manski and Pepper 2000; Chen et al. 2025). No assumption is made
on what decision makers see beside x.

References:
    Manski, C. and Pepper, J. (2000). Monotone instrumental variables: with an application to the returns to
        schooling. Econometrica.
    Kitagawa, T. (2015). A test for instrument validity. Econometrica.
    Levis, A., Bonvini, M., Zeng, Z., Keele, L. and Kennedy, E. (2025). Covariate-assisted bounds on causal
        effects with instrumental variables. Journal of the Royal Statistical Society B.
    Chen, J. et al. (2025). Learning to defer under selective labels with heterogeneous decision makers: an
        instrumental-variable approach. ICML, arXiv 2306.07566.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.stats import chi2
from sklearn.linear_model import LinearRegression

from fairall.evaluate.estimated.bounds import Labels, observed
from fairall.evaluate.estimated.estimates import Estimate, Sample
from fairall.evaluate.estimated.estimators import People
from fairall.evaluate.estimated.nuisance import fit
from fairall.evaluate.log import DecisionLog

OFFICERS = "decision makers"  # name of their bounds
LEVELS = 4  # of strictness, that decision makers are merged to
LEAST_ROWS = 100  # of a level
LEAST_PROPENSITY = 0.01  # of a level, given x


@dataclass(frozen=True)
class Officers:
    """Bounds of each row's label by decision makers, as estimates of their means.

    Attributes:
        ends: of P(y = 1 | x), lower and upper, with the correction of `officers`, shape (2, N).
        levels: number of levels of strictness.
        p_assignment: of the test that strictness does not depend on the features and groups.
    """

    ends: np.ndarray
    levels: int
    p_assignment: float

    def labels(self, people: People, logged: bool = False) -> Labels:
        """Labels for the bounds of `bounds`.

        Args:
            people: with the policy to judge, whose acceptance depends on the features.
            logged: whether the policy took the logged decisions; the labels of the accepted are then known.
        """
        a = people.target
        if not logged:
            return Labels(a, self.ends[0], self.ends[1], 1.0)
        return observed(self.ends, np.stack([people.label, people.label]), np.stack([a, 1.0 - a]))

    def __str__(self) -> str:
        return (
            f"an instrument of {self.levels} levels of strictness, for which features may tell who decides a "
            f"case; test that they do not: p = {self.p_assignment:.2g}"
        )

    def crossed(self, sample: Sample) -> Estimate:
        """Mean of the upper less the lower end, below 0 only where the assumption fails (Kitagawa 2015)."""
        low, high = self.ends
        return sample.mean(high - low)


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


def p_of_assignment(log: DecisionLog, level: np.ndarray) -> float:
    """P value of the hypothesis that the strictness of decision makers does not depend on the inputs.

    The score test of a linear regression of the level on features and groups: N·R² is χ² with as many degrees
    of freedom as there are independent inputs. Where it fails, cases were assigned by what the inputs tell;
    the bounds, which need an assignment at random *given* these, allow for that.
    """
    inputs = log.design.astype(float)
    model = LinearRegression().fit(inputs, level)
    return float(chi2.sf(len(log) * model.score(inputs, level), model.rank_))


def officers(log: DecisionLog, folds: int = 5, seed: int = 0) -> Officers:
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
    """
    level = strictness(log)
    decided = level == np.arange(level.max() + 1)[:, None]

    def fitted(target: np.ndarray) -> np.ndarray:
        """Cross-fitted means of a column that is NaN where it is not known, or its mean, shape (N,)."""
        model = fit(log, target, "decision maker", "logistic", folds, seed)
        return np.full(len(log), np.nanmean(target)) if model is None else model.probability

    chance = np.stack([fitted(rows.astype(float)) for rows in decided])
    share = np.maximum(chance.T[decided.T], LEAST_PROPENSITY)  # of the level of each row

    def end(sign: float, known: np.ndarray) -> np.ndarray:
        """The greatest mean of a column over levels where the sign is 1, and the least where it is −1."""
        means = sign * np.stack([fitted(np.where(rows, known, np.nan)) for rows in decided])
        expected = sign * means.max(0)
        return expected + (level == means.argmax(0)) / share * (known - expected)

    ends = [end(sign, np.where(log.revealed, log.label, missing)) for sign, missing in ((1, 0.0), (-1, 1.0))]
    return Officers(np.stack(ends), len(decided), p_of_assignment(log, level))
