"""Discrimination and calibration of a score of a positive label, for people whose labels count in part.

A person with score f counts as g positive and b negative labels: of revealed labels g = y and b = 1 − y, of
all people doubly robust pseudo-labels g = q + w·(y − q) and b = 1 − g (`estimators`). All measures are
ratios of means over people or over pairs of different people, of which g and b are multiplied. A mean over
pairs has the influence function of a U-statistic (Hoeffding 1948; of the AUC DeLong et al. 1988).

References:
    Hoeffding, W. (1948). A class of statistics with asymptotically normal distribution. Annals of
        Mathematical Statistics.
    DeLong, E., DeLong, D. and Clarke-Pearson, D. (1988). Comparing the areas under two or more correlated
        receiver operating characteristic curves. Biometrics.
    Groeneboom, P. (1989). Brownian motion with a parabolic drift and Airy functions. Probability Theory and
        Related Fields.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.stats import rankdata

from fairall.evaluate.estimated.bounds import Bounds
from fairall.evaluate.estimated.estimates import Column, Estimate, Sample, Support

FOLDS, REPEATS = 5, 4  # of the threshold of `Scored.ks`


@dataclass(frozen=True)
class Scored:
    """People with a score and labels that count in part.

    Attributes:
        sample: all N people.
        score: f, probability of a positive label, shape (N,).
        labels: g and b, how much each counts as a positive and as a negative label, N rows each; 0 of people
            who do not count.
        weights: of the known positive and negative labels that all this rests on, shape (2, N).
    """

    sample: Sample
    score: np.ndarray
    labels: tuple[Column, Column]
    weights: np.ndarray

    @cached_property
    def fewest(self) -> Support:
        """Of a comparison of positive and negative labels: that of the fewer ones."""
        return min(map(self.sample.support, self.weights), key=lambda support: float(support.clusters))

    @cached_property
    def rank(self) -> np.ndarray:
        """Place of each score among the R different ones, (N,)."""
        return np.unique(self.score, return_inverse=True)[1]

    def auc(self) -> Estimate:
        """P(a positive label has the higher score than a negative one), ties counting half."""
        (g, b), mean, n = self.labels, self.sample.mean, len(self.score)
        masses = (np.bincount(self.rank, labels.value) / n for labels in (g, b))
        # Mass of people with a lower score, and half of an equal one.
        lower_g, lower_b = ((np.cumsum(mass) - mass / 2.0)[self.rank] for mass in masses)
        itself = mean(g.value * b.value / n).value  # of each person, which is no pair
        pairs = mean(g * lower_b + b * (g.value.mean() - lower_g))
        ordered = Estimate((pairs.value - itself) / 2.0, pairs.phi)
        return (ordered / (mean(g) * mean(b) - itself)).on(self.fewest)

    def gini(self) -> Estimate:
        """2·AUC − 1."""
        return 2.0 * self.auc() - 1.0

    def ks(self) -> Estimate:
        """Largest difference of the scores' distribution functions by label (Kolmogorov–Smirnov).

        At the threshold that is best for the same people the difference is too large, by 3·L; at the one that
        is best for other people it is too small, by L, as for the maximum of a Brownian motion with a
        parabolic drift and the place of it (Groeneboom 1989). With a share of (K − 1)/K of the people as
        others, L grows by (K/(K − 1))^⅔. The estimate is the mean in which both cancel. Half of this
        correction is added to the standard error, for its own.
        """
        sample, draw = self.sample, np.random.default_rng(self.sample.seed)
        folds = [(draw.permutation(sample.clusters) % FOLDS)[sample.cluster] for _ in range(REPEATS)]
        parts = ((fold == k, fold != k) for fold in folds for k in range(FOLDS))
        outside = sum(part * self._below_furthest(others) for part, others in parts) / REPEATS
        growth = (FOLDS / (FOLDS - 1)) ** (2 / 3)
        same, other = map(self._apart, (self._below_furthest(1.0), outside))
        size, error = np.abs(same.value), same.error
        value = (growth * size + 3.0 * np.abs(other.value)) / (growth + 3.0)
        share = (size - value) / (2.0 * error) if error > 0 else 0.0
        return Estimate(value, same.phi * np.sign(same.value) * np.hypot(1.0, share), self.fewest)

    def _apart(self, rows: np.ndarray) -> Estimate:
        """Share of some rows in the negative labels, as far as they count (N,), less that in the positive."""
        g, b = (self.sample.mean(labels * rows) / self.sample.mean(labels) for labels in self.labels)
        return b - g

    def _below_furthest(self, rows: np.ndarray | float) -> np.ndarray:
        """Who is below the threshold where the distribution functions of some rows differ most, (N,)."""
        g, b = (np.cumsum(np.bincount(self.rank, labels.value * rows)) for labels in self.labels)
        return self.rank <= np.abs(b * g[-1] - g * b[-1]).argmax()

    def brier(self) -> Estimate:
        """Mean squared difference of label and score."""
        return self._mean((1.0 - self.score) ** 2, self.score**2)

    def calibration(self) -> Estimate:
        """Mean label less mean score."""
        return 2.0 * self._mean(1.0 - self.score / 2.0, (1.0 - self.score) / 2.0) - 1.0

    def _mean(self, positive: np.ndarray, negative: np.ndarray) -> Estimate:
        """Mean of what a positive and a negative label of each person count, between 0 and 1, shape (N,)."""
        (g, b), mean = self.labels, self.sample.mean
        ratio = mean(g * positive + b * negative) / mean(g + b)
        return ratio.on(self.sample.support(self.weights.sum(0)))


def bounds(measure: str, sample: Sample, score: np.ndarray, label: np.ndarray, members: np.ndarray) -> Bounds:
    """Least and greatest value of a measure over the unknown labels of some people; both are sharp.

    Args:
        measure: name of a method of `Scored` other than `ks`.
        sample: all N people.
        score: f, shape (N,).
        label: y, NaN where it is not known, shape (N,).
        members: who counts, shape (N,), bool.
    """
    f, y = score[members], label[members]
    if measure in ("auc", "gini"):
        extremes = [_least_ordered(f, y), _least_ordered(-f, y)]
    else:
        free = [f >= 0.5, f < 0.5] if measure == "brier" else [[0.0], [1.0]]
        extremes = [*np.where(np.isnan(y), free, y)]
    ends = []
    for labels in extremes:
        g, weights = np.zeros(len(score)), np.stack([members, members])
        g[members] = labels
        ends.append(getattr(Scored(sample, score, (Column(g), Column(members - g)), weights), measure)())
    return Bounds(*ends)


def _least_ordered(score: np.ndarray, label: np.ndarray) -> np.ndarray:
    """Labels (N,) with the least AUC: of each number of positive ones the lowest free scores have them."""
    labels, rank, free = np.nan_to_num(label), rankdata(score), np.flatnonzero(np.isnan(label))
    free = free[np.argsort(rank[free], kind="stable")]
    positive = labels.sum() + np.arange(len(free) + 1)
    ranks = labels @ rank + np.append(0.0, np.cumsum(rank[free]))
    with np.errstate(invalid="ignore"):  # NaN where all labels are alike
        auc = (ranks - positive * (positive + 1) / 2) / (positive * (len(label) - positive))
    labels[free[: np.nan_to_num(auc, nan=np.inf).argmin()]] = 1.0
    return labels
