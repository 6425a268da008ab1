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

from fairall.evaluate.estimated.bounds import Bounds
from fairall.evaluate.estimated.influence import Column, Estimate, Groups

FOLDS, REPEATS = 5, 4  # of the threshold of `Scored.ks`


@dataclass(frozen=True)
class Scored:
    """People with a score and labels that count in part, by group.

    Attributes:
        score: f, probability of a positive label, shape (N,).
        positive: g, how much each counts as a positive label, N rows.
        negative: b, likewise as a negative one.
        by_group: the rows by their G groups.
    """

    score: np.ndarray
    positive: Column
    negative: Column
    by_group: Groups

    @cached_property
    def order(self) -> np.ndarray:
        """Rows by group, then by increasing score, shape (N,)."""
        return np.lexsort((self.score, self.by_group.group))

    @cached_property
    def cell(self) -> np.ndarray:
        """Number of the distinct pair of group and score of each row of `order`, shape (N,)."""
        group, score = self.by_group.group[self.order], self.score[self.order]
        return np.cumsum(np.append(0, (np.diff(group) != 0) | (np.diff(score) != 0)))

    @cached_property
    def of_cell(self) -> np.ndarray:
        """Group of each cell, shape (cells,)."""
        return self.by_group.group[self.order][np.append(True, np.diff(self.cell) > 0)]

    @cached_property
    def last(self) -> np.ndarray:
        """Last cell of each group, shape (G,)."""
        return np.searchsorted(self.of_cell, np.arange(self.by_group.groups), side="right") - 1

    def argmax(self, of: np.ndarray) -> np.ndarray:
        """Cell of each group with the largest of some values (cells,), shape (G,)."""
        starts = np.append(0, self.last[:-1] + 1)
        cells = zip(starts, self.last, strict=True)  # none of a group without rows
        return np.array([a + np.argmax(of[a : b + 1]) if a <= b else -1 for a, b in cells])

    def up_to(self, cell: np.ndarray) -> np.ndarray:
        """Whether a row is at most in a cell (G,) of its group, shape (N,), bool."""
        found = np.empty(len(self.score), dtype=bool)
        found[self.order] = self.cell <= cell[self.of_cell[self.cell]]
        return found

    def until(self, mass: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mass of the rows of the same group up to each cell, with it, and of the cell, shape (cells,)."""
        own = np.bincount(self.cell, weights=mass[self.order])
        total = np.cumsum(own)
        first = np.searchsorted(self.of_cell, self.of_cell)
        return total - (total - own)[first], own

    def below(self, mass: np.ndarray) -> np.ndarray:
        """Mass of the rows of the same group with a lower score, and half of an equal one, shape (N,)."""
        total, own = self.until(mass)
        found = np.empty_like(mass)
        found[self.order] = (total - own / 2.0)[self.cell]
        return found

    def auc(self) -> Estimate:
        """P(a positive label has the higher score than a negative one), ties counting half, shape (G,)."""
        mean, n = self.by_group.mean, len(self.score)
        g, b = self.positive.value, self.negative.value
        totals = np.bincount(self.by_group.group, weights=g, minlength=self.by_group.groups)
        above = totals[self.by_group.group] - self.below(g)
        pairs = mean(self.positive * (self.below(b) / n) + self.negative * (above / n))
        own = mean(g * b).value / n  # of each with itself, which are no pairs
        ordered = Estimate((pairs.value - own) / 2.0, pairs.phi)
        both = mean(self.positive) * mean(self.negative)
        return ordered / Estimate(both.value - own, both.phi)

    def ks(self) -> Estimate:
        """Largest difference of the scores' distribution functions by label (Kolmogorov–Smirnov), (G,).

        At the threshold that is best for the same people the difference is too large, by 3·L; at the one that
        is best for other people it is too small, by L, as for the maximum of a Brownian motion with a
        parabolic drift and the place of it (Groeneboom 1989). With a share of (K − 1)/K of the people as
        others, L grows by (K/(K − 1))^⅔. The estimate is the mean in which both cancel. Half of this
        correction is added to the standard error, for its own.
        """
        sample, n = self.by_group.sample, len(self.score)
        draw, outside = np.random.default_rng(sample.seed), np.zeros(n)
        for _ in range(REPEATS):
            fold = (draw.permutation(sample.clusters) % FOLDS)[sample.cluster]
            for one in range(FOLDS):
                own = fold == one
                outside[own] += self._until_apart(~own)[own] / REPEATS
        growth = (FOLDS / (FOLDS - 1)) ** (2 / 3)
        found = self._apart(self._until_apart(np.ones(n, dtype=bool)))
        size, error = np.abs(found.value), found.error
        value = (growth * size + 3.0 * np.abs(self._apart(outside).value)) / (growth + 3.0)
        share = np.divide((size - value) / 2.0, error, out=np.zeros_like(size), where=error > 0)
        return Estimate(value, found.phi * (np.sign(found.value) * np.sqrt(1.0 + share**2))[:, None])

    def _apart(self, below: np.ndarray) -> Estimate:
        """Difference of shares of negative and of positive labels that are `below`, (N,), shape (G,)."""
        mean = self.by_group.mean
        found = mean(self.negative * below) / mean(self.negative)
        return found - mean(self.positive * below) / mean(self.positive)

    def _until_apart(self, rows: np.ndarray) -> np.ndarray:
        """Whether a row is below the threshold where the distributions of some `rows` differ most, (N,)."""
        (g, _), (b, _) = (self.until(of.value * rows) for of in (self.positive, self.negative))
        end = self.last[self.of_cell]
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.up_to(self.argmax(np.nan_to_num(np.abs(b / b[end] - g / g[end]))))

    def brier(self) -> Estimate:
        """Mean squared difference of label and score, shape (G,)."""
        squares = self.positive * (1.0 - self.score) ** 2 + self.negative * self.score**2
        return self.by_group.mean(squares) / self.by_group.mean(self.positive + self.negative)

    def calibration(self) -> Estimate:
        """Mean label less mean score, shape (G,)."""
        error = self.positive * (1.0 - self.score) - self.negative * self.score
        return self.by_group.mean(error) / self.by_group.mean(self.positive + self.negative)


@dataclass(frozen=True)
class Partial:
    """People with a score of whom some have no label, which may then be 0 or 1: bounds of all measures.

    Attributes:
        score: f, shape (N,).
        label: y, NaN where it is not known, shape (N,).
        by_group: the rows by their G groups.
    """

    score: np.ndarray
    label: np.ndarray
    by_group: Groups

    def with_labels(self, unknown: np.ndarray) -> Scored:
        """The people with labels (N,) in the place of unknown ones."""
        label = np.where(np.isnan(self.label), unknown, self.label)
        return Scored(self.score, Column(label), Column(1.0 - label), self.by_group)

    def auc(self) -> Bounds:
        """Sharp: for each number of positive labels the highest scores have them, or the lowest."""
        scored = self.with_labels(np.zeros(len(self.score)))
        rank, group = scored.below(np.ones(len(self.score))) + 0.5, self.by_group.group
        low, high = np.zeros((2, len(self.score)))
        for code in range(self.by_group.groups):
            rows = scored.order[group[scored.order] == code]
            free = rows[np.isnan(self.label[rows])]
            known = self.label[rows][~np.isnan(self.label[rows])].sum()
            ranks = np.nansum(self.label[rows] * rank[rows])
            positive = known + np.arange(len(free) + 1)
            pairs = positive * (len(rows) - positive)
            for labels, ordered, sign in ((low, free, -1.0), (high, free[::-1], 1.0)):
                ordered_pairs = ranks + np.append(0.0, np.cumsum(rank[ordered]))
                ordered_pairs -= positive * (positive + 1.0) / 2.0
                auc = np.divide(
                    sign * ordered_pairs, pairs, out=np.full(len(pairs), -np.inf), where=pairs > 0
                )
                labels[ordered[: int(np.argmax(auc))]] = 1.0
        return Bounds(self.with_labels(low).auc(), self.with_labels(high).auc())

    def ks(self) -> Bounds:
        """Largest of the thresholds' bounds; the upper one is sharp, the lower one may be too low.

        At one threshold the distributions are furthest apart where all unknown labels below it are negative
        and those above positive, or the other way round.
        """
        scored = self.with_labels(np.zeros(len(self.score)))
        known = [np.nan_to_num(of) for of in (self.label, 1.0 - self.label)]
        (g, _), (b, _), (u, _) = map(scored.until, (*known, np.isnan(self.label).astype(float)))
        end = scored.last[scored.of_cell]
        with np.errstate(divide="ignore", invalid="ignore"):
            apart = (b + u) / (b[end] + u) - g / (g[end] + u[end] - u)
            near = b / (b[end] + u[end] - u) - (g + u) / (g[end] + u)
        apart, near = np.nan_to_num(apart), np.nan_to_num(near)
        found = []
        # Of each end: the difference by threshold, and whether unknown labels above it are positive.
        ends = (np.maximum(near, -apart), near < -apart), (np.maximum(apart, -near), apart >= -near)
        for size, above in ends:
            best = scored.argmax(size)
            below = scored.up_to(best)
            labels = np.where(above[best][self.by_group.group], ~below, below).astype(float)
            difference = self.with_labels(labels)._apart(below)
            sign = np.where(size[best] > 0, np.sign(difference.value), 0.0)
            phi = np.nan_to_num(difference.phi * sign[:, None])
            found.append(Estimate(np.maximum(size[best], 0.0), phi))
        return Bounds(*found)

    def brier(self) -> Bounds:
        """Sharp: unknown labels are those nearest to the score, or the others."""
        near = (self.score >= 0.5).astype(float)
        return Bounds(self.with_labels(near).brier(), self.with_labels(1.0 - near).brier())

    def calibration(self) -> Bounds:
        """Sharp: unknown labels are all negative, or all positive."""
        ends = (np.full(len(self.score), label) for label in (0.0, 1.0))
        return Bounds(*(self.with_labels(labels).calibration() for labels in ends))
