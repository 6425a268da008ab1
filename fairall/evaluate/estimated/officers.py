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

from fairall.evaluate.estimated.bounds import SIDES, Labels, second_moments
from fairall.evaluate.estimated.estimates import Estimate, Sample
from fairall.evaluate.estimated.estimators import People
from fairall.evaluate.estimated.nuisance import fit
from fairall.evaluate.log import DecisionLog

OFFICERS = "decision makers"  # name of their bounds
LEVELS = 4  # of strictness, that decision makers are merged to
LEAST_ROWS = 100  # of a level
LEAST_PROPENSITY = 0.01  # of a level, given x
SINGULAR = 1e-8  # share of the greatest variance below which one is rounding


@dataclass(frozen=True)
class Officers:
    """Bounds of each row's label by decision makers, as estimates of their means.

    Attributes:
        low: lower end of P(y = 1 | x) with the correction of `officers`, shape (N,).
        high: upper end, likewise.
        levels: number of levels of strictness.
        p_assignment: of the test that levels do not depend on the features and groups.
    """

    low: np.ndarray
    high: np.ndarray
    levels: int
    p_assignment: float

    def labels(self, people: People, logged: bool = False) -> Labels:
        """Labels for the bounds of `bounds`.

        Args:
            people: with the policy to judge, whose acceptance depends on the features.
            logged: whether the policy took the logged decisions; the labels of the accepted are then known.
        """
        if not logged:
            return Labels(people.target, self.low, self.high, 1.0)
        parts = np.stack([people.target, 1.0 - people.target])
        low, high = (np.stack([people.label, end - people.label]) for end in (self.low, self.high))
        return Labels(SIDES, low, high, parts, parts)

    def crossed(self, sample: Sample) -> Estimate:
        """Mean of the upper less the lower end, below 0 only where the assumption fails (Kitagawa 2015)."""
        support = sample.support(np.ones_like(self.low), lowest=-1.0, cut=False)
        return sample.mean(self.high - self.low).on(support)


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
    if len(np.unique(log.decision_maker)) == 1:
        return "one decision maker is no instrument: their strictness must differ"
    if strictness(log).max() == 0:
        return f"the decision makers give fewer than two levels of strictness of {LEAST_ROWS} rows each"
    return None


def p_of_assignment(log: DecisionLog, level: np.ndarray) -> float:
    """P value of the hypothesis that levels of decision makers do not depend on features and groups.

    The score test of a multinomial logistic regression of the level on the inputs: N times Pillai's trace of
    the two sets of columns is χ² with (levels − 1)·D degrees of freedom. Where it fails, cases were
    assigned by what the inputs tell; the bounds, which need an assignment at random *given* these, allow for
    that.
    """
    k = level.max() + 1
    moments = second_moments(np.eye(k)[level], log.inputs)
    cross = moments[k:, :k]
    slopes, _, rank, _ = np.linalg.lstsq(moments[k:, k:], cross, rcond=SINGULAR)
    pillai = ((cross * slopes).sum(0) / moments.diagonal()[:k]).sum() - 1.0  # 1 of the intercept
    return float(chi2.sf(len(level) * pillai, (k - 1) * (rank - 1)))


def officers(log: DecisionLog, folds: int = 5, seed: int = 0) -> Officers:
    """Bounds of labels by the log's decision makers.

    For each level z of strictness u_z(x) = P(r = 1, y = 1 | x, z) and v_z(x) = P(r = 0 | x, z) are
    cross-fitted, and P(z | x). A row takes z*, the level that by models of other folds has the least
    u_z + v_z; its upper end is u_z* + v_z* + 1[z = z*]/P(z* | x)·(r·y + 1 − r − u_z* − v_z*), whose mean is
    that of an upper bound of the label whatever z* is, to the product of two errors of the models (Levis et
    al. 2025). The lower end is that of the greatest u_z. All models are logistic regressions: where that of
    P(z | x) is right, as it is of an assignment at random, ends are valid, if wider, with any u and v.

    Args:
        log: with decision makers, and without a reason of `why_not`.
        folds: of the cross-fitting.
        seed: of folds and models.
    """
    level = strictness(log)
    levels, row = np.arange(level.max() + 1), np.arange(len(log))
    positive, missing, decided = np.nan_to_num(log.label), 1.0 - log.revealed, level == levels[:, None]

    def fitted(target: np.ndarray) -> np.ndarray:
        """Cross-fitted means of a column that is NaN where it is not known, or its mean, shape (N,)."""
        model = fit(log, target, "decision maker", "logistic", folds, seed)
        return np.full(len(log), np.nanmean(target)) if model is None else model.probability

    u, v, chance = (
        np.stack([*map(fitted, targets)])
        for targets in (
            np.where(decided, positive, np.nan),
            np.where(decided, missing, np.nan),
            decided.astype(float),
        )
    )

    def end(bound: np.ndarray, best: np.ndarray, observed: np.ndarray) -> np.ndarray:
        expected, share = bound[best, row], np.maximum(chance[best, row], LEAST_PROPENSITY)
        return expected + (level == best) / share * (observed - expected)

    low, high = end(u, u.argmax(0), positive), end(u + v, (u + v).argmin(0), positive + missing)
    return Officers(low, high, len(levels), p_of_assignment(log, level))
