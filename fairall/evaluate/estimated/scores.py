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
from fairall.evaluate.estimated.influence import Column, Estimate, Sample

FOLDS, REPEATS = 5, 4  # of the threshold of `Scored.ks`


@dataclass(frozen=True)
class Scored:
    """People with a score and labels that count in part.

    Attributes:
        sample: all N people.
        score: f, probability of a positive label, shape (N,).
        positive: g, how much each counts as a positive label, N rows; 0 of people who do not count.
        negative: b, likewise as a negative one.
    """

    sample: Sample
    score: np.ndarray
    positive: Column
    negative: Column

    @cached_property
    def rows(self) -> np.ndarray:
        """Numbers of the K people who count, shape (K,)."""
        return np.flatnonzero((self.positive.value != 0) | (self.negative.value != 0))

    @cached_property
    def rank(self) -> np.ndarray:
        """Place of the score of each person who counts among the R different ones, shape (K,)."""
        return np.unique(self.score[self.rows], return_inverse=True)[1]

    def up_to(self, mass: np.ndarray) -> np.ndarray:
        """Sum of a mass (N,) of people with at most each of the different scores, shape (R,)."""
        return np.cumsum(np.bincount(self.rank, mass[self.rows]))

    def at_most(self, rank: int | np.ndarray) -> np.ndarray:
        """Whether a person counts and has at most a rank, shape (N,), bool."""
        below = np.zeros(len(self.score), dtype=bool)
        below[self.rows] = self.rank <= rank
        return below

    def _below(self, mass: np.ndarray) -> np.ndarray:
        """Mass of the people with a lower score, and half of an equal one, shape (N,)."""
        total, below = self.up_to(mass), np.zeros(len(mass))
        below[self.rows] = ((total + np.append(0.0, total[:-1])) / 2.0)[self.rank]
        return below

    def auc(self) -> Estimate:
        """P(a positive label has the higher score than a negative one), ties counting half."""
        mean, n, g, b = self.sample.mean, len(self.score), self.positive.value, self.negative.value
        above = g.sum() - self._below(g)
        pairs = mean(self.positive * (self._below(b) / n) + self.negative * (above / n))
        with_itself = mean(g * b).value / n  # of each person, which is no pair
        ordered = Estimate((pairs.value - with_itself) / 2.0, pairs.phi)
        return ordered / (mean(self.positive) * mean(self.negative) - with_itself)

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
                outside += (fold == k) * self.at_most(self._furthest(fold != k)) / REPEATS
        growth = (FOLDS / (FOLDS - 1)) ** (2 / 3)
        everyone = np.ones(len(self.score))
        same, other = map(self.apart, (self.at_most(self._furthest(everyone)), outside))
        value = (growth * np.abs(same.value) + 3.0 * np.abs(other.value)) / (growth + 3.0)
        half = (np.abs(same.value) - value) / 2.0
        share = half / same.error if same.error > 0 else 0.0
        return Estimate(value, same.phi * np.sign(same.value) * np.sqrt(1.0 + share**2))

    def shares(self, rows: np.ndarray) -> tuple[Estimate, Estimate]:
        """Share of some rows, as far as each belongs to them (N,), in the positive and the negative labels."""
        mean = self.sample.mean
        positive, negative = (mean(labels * rows) / mean(labels) for labels in (self.positive, self.negative))
        return positive, negative

    def apart(self, rows: np.ndarray) -> Estimate:
        """Share of some rows (N,) in the negative labels less that in the positive ones."""
        positive, negative = self.shares(rows)
        return negative - positive

    def _furthest(self, rows: np.ndarray) -> int:
        """Rank up to which the distribution functions of some rows (N,) differ most."""
        g, b = (self.up_to(labels.value * rows) for labels in (self.positive, self.negative))
        with np.errstate(divide="ignore", invalid="ignore"):
            return int(np.nan_to_num(np.abs(b / b[-1] - g / g[-1])).argmax())

    def brier(self) -> Estimate:
        """Mean squared difference of label and score."""
        return self._mean(self.positive * (1.0 - self.score) ** 2 + self.negative * self.score**2)

    def calibration(self) -> Estimate:
        """Mean label less mean score."""
        return self._mean(self.positive * (1.0 - self.score) - self.negative * self.score)

    def _mean(self, column: Column) -> Estimate:
        return self.sample.mean(column) / self.sample.mean(self.positive + self.negative)


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
        label = np.where(np.isnan(self.label), unknown, self.label)
        columns = (Column(labels * self.members) for labels in (label, 1.0 - label))
        return Scored(self.sample, self.score, *columns)

    def auc(self) -> Bounds:
        """Sharp: for each number of positive labels the highest scores have them, or the lowest."""
        members = np.flatnonzero(self.members)
        rows = members[np.argsort(self.score[members], kind="stable")]
        label, rank = self.label[rows], rankdata(self.score[rows])
        free = np.isnan(label)
        positive = np.nansum(label) + np.arange(free.sum() + 1)
        pairs, extremes = positive * (len(rows) - positive), []
        for step in (1, -1):  # from the lowest score, or from the highest
            ranks = np.nansum(label * rank) + np.append(0.0, np.cumsum(rank[free][::step]))
            ordered = step * (ranks - positive * (positive + 1.0) / 2.0)
            auc = np.divide(ordered, pairs, out=np.full(len(pairs), np.inf), where=pairs > 0)
            unknown = np.zeros(len(self.score))
            unknown[rows[free][::step][: auc.argmin()]] = 1.0
            extremes.append(self.labelled(unknown).auc())
        return Bounds(*extremes)

    def gini(self) -> Bounds:
        """2·AUC − 1."""
        return Bounds(*(2.0 * end - 1.0 for end in self.auc()))

    def ks(self) -> Bounds:
        """Largest of the thresholds' bounds; the upper one is sharp, the lower one may be too low.

        At one threshold the distributions are furthest apart where all unknown labels below it are negative
        and those above positive, or the other way round.
        """
        scored, unknown = self.labelled(0.0), np.isnan(self.label)
        masses = (self.label == 1, self.label == 0, unknown)
        g, b, u = (scored.up_to(np.where(self.members, mass, 0.0)) for mass in masses)
        with np.errstate(divide="ignore", invalid="ignore"):
            apart = np.nan_to_num((b + u) / (b[-1] + u) - g / (g[-1] + u[-1] - u))
            near = np.nan_to_num(b / (b[-1] + u[-1] - u) - (g + u) / (g[-1] + u))
        extremes = []
        # Of each end: the difference by threshold, and whether unknown labels above it are positive.
        for size, above in (
            (np.maximum(near, -apart), near < -apart),
            (np.maximum(apart, -near), apart >= -near),
        ):
            best = int(size.argmax())
            below = scored.at_most(best)
            difference = self.labelled(below != above[best]).apart(below)
            sign = np.sign(difference.value) if size[best] > 0 else 0.0
            extremes.append(Estimate(np.maximum(size[best], 0.0), np.nan_to_num(difference.phi * sign)))
        return Bounds(*extremes)

    def brier(self) -> Bounds:
        """Sharp: unknown labels are those nearest to the score, or the others."""
        near = self.score >= 0.5
        return Bounds(self.labelled(near).brier(), self.labelled(~near).brier())

    def calibration(self) -> Bounds:
        """Sharp: unknown labels are all negative, or all positive."""
        return Bounds(self.labelled(0.0).calibration(), self.labelled(1.0).calibration())
