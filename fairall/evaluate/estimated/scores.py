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
from typing import Any

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
        positive: g, how much each counts as a positive label, N rows; 0 of people who do not count.
        negative: b, likewise as a negative one.
        weights: of the known positive and negative labels that all this rests on, shape (2, N).
    """

    sample: Sample
    score: np.ndarray
    positive: Column
    negative: Column
    weights: np.ndarray

    @cached_property
    def supports(self) -> list[Support]:
        """Of shares of the positive and of the negative labels."""
        return [self.sample.support(weight) for weight in self.weights]

    @property
    def fewest(self) -> Support:
        """Of a comparison of positive and negative labels: that of the fewer ones."""
        return min(self.supports, key=lambda support: float(support.clusters))

    @cached_property
    def rank(self) -> np.ndarray:
        """Place of each score among the R different ones of people who count, (N,); of others the last."""
        counts = (self.positive.value != 0) | (self.negative.value != 0)
        return np.unique(np.where(counts, self.score, np.inf), return_inverse=True)[1]

    def up_to(self, mass: np.ndarray) -> np.ndarray:
        """Sum of a mass (N,), which only people who count have, up to each different score, shape (R,)."""
        return np.cumsum(np.bincount(self.rank, mass))

    def auc(self) -> Estimate:
        """P(a positive label has the higher score than a negative one), ties counting half."""
        mean, n, labels = self.sample.mean, len(self.score), (self.positive.value, self.negative.value)
        totals = [self.up_to(mass) for mass in labels]
        # Mass of people with a lower score, and half of an equal one.
        g, b = ((total + np.append(0.0, total[:-1]))[self.rank] / (2.0 * n) for total in totals)
        pairs = mean(self.positive * b + self.negative * (totals[0][-1] / n - g))
        with_itself = mean(np.multiply(*labels)).value / n  # of each person, which is no pair
        ordered = Estimate((pairs.value - with_itself) / 2.0, pairs.phi)
        return (ordered / (mean(self.positive) * mean(self.negative) - with_itself)).on(self.fewest)

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
        draw, outside = np.random.default_rng(self.sample.seed), np.zeros(len(self.score))
        for _ in range(REPEATS):
            fold = (draw.permutation(self.sample.clusters) % FOLDS)[self.sample.cluster]
            for k in range(FOLDS):
                outside += (fold == k) * self._below_furthest(fold != k) / REPEATS
        growth = (FOLDS / (FOLDS - 1)) ** (2 / 3)
        same, other = map(self.apart, (self._below_furthest(1.0), outside))
        size, error = np.abs(same.value), same.error
        value = (growth * size + 3.0 * np.abs(other.value)) / (growth + 3.0)
        share = (size - value) / (2.0 * error) if error > 0 else 0.0
        return Estimate(value, same.phi * np.sign(same.value) * np.sqrt(1.0 + share**2), self.fewest)

    def share(self, kind: int, rows: np.ndarray) -> Estimate:
        """Share of the positive (0) or negative (1) labels of some rows, as far as they count (N,)."""
        labels = (self.positive, self.negative)[kind]
        return (self.sample.mean(labels * rows) / self.sample.mean(labels)).on(self.supports[kind])

    def apart(self, rows: np.ndarray) -> Estimate:
        """Share of some rows in the negative labels less that in the positive ones."""
        return self.share(1, rows) - self.share(0, rows)

    def _below_furthest(self, rows: np.ndarray | float) -> np.ndarray:
        """Who is below the threshold where the distribution functions of some rows differ most, (N,)."""
        g, b = (self.up_to(labels.value * rows) for labels in (self.positive, self.negative))
        with np.errstate(divide="ignore", invalid="ignore"):
            apart = np.nan_to_num(np.abs(b / b[-1] - g / g[-1]))
        return self.rank <= apart.argmax()

    def brier(self) -> Estimate:
        """Mean squared difference of label and score."""
        return self._mean((1.0 - self.score) ** 2, self.score**2)

    def calibration(self) -> Estimate:
        """Mean label less mean score."""
        return 2.0 * self._mean(1.0 - self.score / 2.0, (1.0 - self.score) / 2.0) - 1.0

    def error(self) -> Estimate:
        """The same as a mean, whose interval is by Student's t, of an out-of-fold probability."""
        support = self.sample.support(self.weights.sum(0), lowest=-0.5, highest=0.5, cut=False)
        return self.calibration().on(support)

    def _mean(self, of_positive: np.ndarray, of_negative: np.ndarray) -> Estimate:
        """Mean of what a positive and a negative label of each person count, between 0 and 1, shape (N,)."""
        mean, positive, negative = self.sample.mean, self.positive, self.negative
        ratio = mean(positive * of_positive + negative * of_negative) / mean(positive + negative)
        return ratio.on(self.sample.support(self.weights.sum(0)))


@dataclass(frozen=True)
class Partial:
    """People with a score of whom some have no label, which may then be 0 or 1: bounds of all measures.

    Attributes:
        sample: all N people.
        score: f, shape (N,).
        label: y, NaN where it is not known, shape (N,).
        members: who counts, shape (N,), bool.
    """

    sample: Sample
    score: np.ndarray
    label: np.ndarray
    members: np.ndarray

    def labelled(self, unknown: np.ndarray | float) -> Scored:
        """The people with labels (N,) in the place of unknown ones."""
        label = np.where(np.isnan(self.label), unknown, self.label) * self.members
        weights = np.stack([self.members, self.members])
        return Scored(self.sample, self.score, Column(label), Column(self.members - label), weights)

    def bounds(self, measure: str) -> Bounds:
        """Least and greatest value of a measure, which is the name of a method of `Scored`.

        They are sharp, except for the least KS, which may be too low.
        """
        if measure == "ks":
            return self._ks()
        near = self.score >= 0.5
        extremes: list[Any] = [near, ~near] if measure == "brier" else [0.0, 1.0]
        if measure in ("auc", "gini"):
            extremes = self._ordered()
        return Bounds(*(getattr(self.labelled(unknown), measure)() for unknown in extremes))

    def _ordered(self) -> list[np.ndarray]:
        """Unknown labels (N,) for the least and the greatest AUC.

        Of each number of positive labels the lowest scores have them, or the highest.
        """
        rows = np.flatnonzero(self.members)
        label, rank = self.label[rows], rankdata(self.score[rows])
        free = np.flatnonzero(np.isnan(label))
        free = free[np.argsort(rank[free], kind="stable")]
        positive, extremes = np.nansum(label) + np.arange(len(free) + 1), []
        pairs = positive * (len(rows) - positive)
        for order, sign in ((free, 1.0), (free[::-1], -1.0)):
            ranks = np.nansum(label * rank) + np.append(0.0, np.cumsum(rank[order]))
            ordered = sign * (ranks - positive * (positive + 1.0) / 2.0)
            auc = np.divide(ordered, pairs, out=np.full(len(pairs), np.inf), where=pairs > 0)
            extremes.append(np.isin(np.arange(len(self.score)), rows[order[: auc.argmin()]]))
        return extremes

    def _ks(self) -> Bounds:
        """Largest of the thresholds' bounds.

        At one threshold the distributions are furthest apart where all unknown labels below it are negative
        and those above positive, or the other way round.
        """
        scored, extremes = self.labelled(0.0), []
        masses = (self.label == 1, self.label == 0, np.isnan(self.label))
        g, b, u = (scored.up_to(self.members & mass) for mass in masses)
        with np.errstate(divide="ignore", invalid="ignore"):
            ways = [(y + u) / (y[-1] + u) - z / (z[-1] + u[-1] - u) for y, z in ((b, g), (g, b))]
        apart = np.nan_to_num(ways)
        for size in (-apart, apart):
            way, best = np.unravel_index(size.argmax(), size.shape)
            below = scored.rank <= best
            difference = self.labelled(below if way else ~below).apart(below)
            sign = np.sign(difference.value) if size.max() > 0 else 0.0
            phi = np.nan_to_num(difference.phi * sign)
            extremes.append(Estimate(np.maximum(size.max(), 0.0), phi, scored.fewest))
        return Bounds(*extremes)
