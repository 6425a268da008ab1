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
from fairall.evaluate.estimated.estimates import Array, Column, Estimate, Sample, Support

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
    score: Array
    labels: tuple[Column, Column]
    weights: Array

    @cached_property
    def fewest(self) -> Support:
        """Of a comparison of positive and negative labels: that of the fewer ones."""
        return min(map(self.sample.support, self.weights), key=lambda support: support.clusters.item())

    @cached_property
    def rank(self) -> Array:
        """Place of each score among the R different ones, (N,)."""
        return np.unique(self.score, return_inverse=True)[1]

    def auc(self) -> Estimate:
        """P(a positive label has the higher score than a negative one), ties counting half."""
        (g, b), mean, n = self.labels, self.sample.mean, len(self.score)
        masses = (np.bincount(self.rank, labels.value) / n for labels in self.labels)
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
        parts = ((fold == k) * self._below_furthest(fold != k) for fold in folds for k in range(FOLDS))
        outside = sum(parts) / REPEATS
        growth = (FOLDS / (FOLDS - 1)) ** (2 / 3)
        same, other = map(self._apart, (self._below_furthest(1.0), outside))
        size, error = abs(same.value), same.error
        value = (growth * size + 3.0 * abs(other.value)) / (growth + 3.0)
        share = (size - value) / (2.0 * error) if error > 0 else 0.0
        return Estimate(value, same.phi * np.sign(same.value) * np.hypot(1.0, share), self.fewest)

    def _apart(self, rows: Array) -> Estimate:
        """Share of some rows in the negative labels, as far as they count (N,), less that in the positive."""
        g, b = (self.sample.mean(labels * rows) / self.sample.mean(labels) for labels in self.labels)
        return b - g

    def _below_furthest(self, rows: Array | float) -> Array:
        """Who is below the threshold where the distribution functions of some rows differ most, (N,)."""
        g, b = (labels.value * rows for labels in self.labels)
        apart = np.cumsum(np.bincount(self.rank, b * g.sum() - g * b.sum()))
        return self.rank <= abs(apart).argmax()

    def brier(self) -> Estimate:
        """Mean squared difference of label and score."""
        return self._mean((1.0 - self.score) ** 2, self.score**2)

    def calibration(self) -> Estimate:
        """Mean label less mean score."""
        return 2.0 * self._mean(1.0 - self.score / 2.0, (1.0 - self.score) / 2.0) - 1.0

    def _mean(self, positive: Array, negative: Array) -> Estimate:
        """Mean of what a positive and a negative label of each person count, between 0 and 1, shape (N,)."""
        (g, b), mean = self.labels, self.sample.mean
        ratio = mean(g * positive + b * negative) / mean(g + b)
        return ratio.on(self.sample.support(self.weights.sum(0)))


def bounds(measure: str, sample: Sample, score: Array, label: Array, members: Array) -> Bounds:
    """Least and greatest value of a measure over the unknown labels of some people; both are sharp.

    Args:
        measure: name of a method of `Scored` other than `ks`.
        sample: all N people.
        score: f, shape (N,).
        label: y, NaN where it is not known, shape (N,).
        members: who counts, shape (N,), bool.
    """
    label = np.where(members, label, 0.0)
    if measure in ("auc", "gini"):
        extremes = [_least_ordered(f, label, members) for f in (score, -score)]
    else:
        least = score >= 0.5 if measure == "brier" else np.zeros_like(members)
        extremes = [np.where(np.isnan(label), free, label) for free in (least, ~least)]
    weights = np.stack([members, members])
    ends = [Scored(sample, score, (Column(g), Column(members - g)), weights) for g in extremes]
    return Bounds(*(getattr(end, measure)() for end in ends))


def _least_ordered(score: Array, label: Array, members: Array) -> Array:
    """Labels (N,) with the least AUC: of each number of positive ones the lowest free scores have them."""
    labels, rank = np.nan_to_num(label), rankdata(np.where(members, score, np.inf))
    lowest_first = np.argsort(rank, kind="stable")
    free = lowest_first[np.isnan(label)[lowest_first]]
    positive = labels.sum() + np.arange(len(free) + 1)
    ordered = np.cumsum(np.append(labels @ rank, rank[free])) - positive * (positive + 1) / 2
    with np.errstate(invalid="ignore"):  # NaN where all labels are alike
        auc = ordered / (positive * (members.sum() - positive))
    labels[free[: np.nan_to_num(auc, nan=np.inf).argmin()]] = 1.0
    return labels
