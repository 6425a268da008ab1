"""Adverse impact: selection rates and scores of each group beside those of a reference group.

Selection is acceptance by the policy. Without a given reference group it is that of the highest rate, which
is further from the others than a group that is not chosen by its rate. p-values and intervals then hold for
all pairs of groups together (Bonferroni's inequality), else for each comparison by itself.

Where only probabilities of the groups are known, as by BISG, rates are between bounds. Symbols: z, the
probabilities of a person's K groups; p_k, that of group k; a, the acceptance. People are put into cells of
nearly equal z, in which d = E[a] and E[p_k] are known. The share w_k of people who are of group k and accepted is
not: it is between max(0, d + E[p_k] − 1) and min(d, E[p_k]) (Fréchet). The rate of the group is the mean of w_k
over cells, divided by that of p_k. With the greatest w_k in all cells the least w_j of another group is possible
too. So the bounds of rates, and of differences and ratios of two rates, are sharp given the cells (Kallus, Mao and
Zhou 2022). Which of the two sides is the minimum is decided in each cell by the people of other folds: either side
is a bound, and the minimum of two noisy means is too small.

References:
    Uniform guidelines on employee selection procedures, 29 CFR 1607.4 D (1978), for the four-fifths rule.
    Hedges, L. and Olkin, I. (1985). Statistical methods for meta-analysis. Chapter 5, for the standardised
        mean difference.
    Janssen, A. (1997). Studentized permutation tests for non-i.i.d. hypotheses and the generalized
        Behrens-Fisher problem. Statistics and Probability Letters.
    Kallus, N., Mao, X. and Zhou, A. (2022). Assessing algorithmic fairness with unobserved protected class
        using data combination. Management Science.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from math import comb
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import fisher_exact
from sklearn.cluster import KMeans

from fairall.evaluate.analysis import FAIRNESS, INTERVALS, Analysis, Record
from fairall.evaluate.estimated import gaps
from fairall.evaluate.estimated.bounds import Bounds, Limits
from fairall.evaluate.estimated.fairness import rates as rates_of
from fairall.evaluate.estimated.gaps import NOTHING, Ends, Interval, interval, lacking, ratios
from fairall.evaluate.estimated.influence import Estimate, Sample
from fairall.evaluate.judged.judgement import Judgement
from fairall.evaluate.log import DecisionLog

FOUR_FIFTHS = 0.8
SHARES = np.arange(1, 10) / 10  # of all people, accepted by score
ITSELF = "it is the reference group"
ALIKE = "all people of a group are alike"
LEAST_PEOPLE, LEAST_SHARE = 30, 0.02  # of people, for a group to be chosen as the reference group
GIVEN = "was given: p-values and intervals hold for each comparison by itself"
CHOSEN = (
    "has the highest rate of the groups with at least 30 people and 2 % of all: p-values, and intervals of "
    "ratios and differences, hold for all pairs of groups together"
)
NO_REFERENCE = "no group has 30 people and 2 % of all, to be the reference group; give one"
PERMUTATIONS = 5_000
TINY = 1e-12
MOST_CELLS = 50
PEOPLE_OF_A_CELL = 50  # on average
DIGITS = 3  # of probabilities that count as equal
FOLDS = 5


class Reference(NamedTuple):
    """The group beside which others are shown.

    Attributes:
        code: its number.
        pairs: number of comparisons for which p-values and intervals hold together, 1 for each by itself.
        how: it was chosen, in words.
    """

    code: int
    pairs: int
    how: str

    @property
    def k(self) -> float:
        """Normal quantile of the intervals."""
        return gaps.joint_normal(self.pairs)


def reference_group(of: Judgement) -> Reference | None:
    """The given reference group, or that of the highest rate; None where no group has people enough."""
    log, models = of.log, of.models
    if log.probabilities is None:
        names, rates = log.groups, of.rates["dr"]["dpu"].value
        people = np.array([rows.sum() for rows in log.people_of(log.group, len(names))])
    else:
        names, people = log.probable_groups, log.probabilities.sum(0)
        rates = of.target @ log.probabilities / np.maximum(people, TINY)
    if models.reference is not None:
        return Reference(names.index(models.reference), 1, GIVEN)
    shown = people >= models.smallest_cell
    enough = shown & (people >= max(LEAST_PEOPLE, LEAST_SHARE * people.sum()))
    if not enough.any():
        return None
    return Reference(int(np.where(enough, rates, -1.0).argmax()), max(comb(int(shown.sum()), 2), 1), CHOSEN)


def adverse_impact(of: Judgement) -> dict[str, Any] | None:
    """Each group beside the reference group; None with fewer than two, or without a reference group.

    `reference`: its name, and `reference_group` how it was chosen; `test`: that `p` is of; `difference_of`:
    score or acceptance; `groups`, by name: `people`, `accepted` (a sum of probabilities) and `rate`; `ratio`,
    the adverse impact ratio; `p` of equal rates; `difference` of means in pooled standard deviations;
    `shortfall`, further people to accept for the reference group's rate, and for four fifths of it;
    `by_score`, the ratio by share of all people if the best were accepted by a given score. Of people with
    equal scores where the share ends each is accepted with the same probability.

    Where only probabilities of groups are known: `people`, the expected number; `weighted_rate` and
    `weighted_ratio`, if acceptance does not depend on the group given its probabilities (conditional
    independence); without this assumption the bounds `rate_bounds`, `difference_bounds` and `ratio_bounds`.
    """
    log, models = of.log, of.models
    known = log.probabilities is None
    if known and len(models.shown) < 2:
        return None
    reference = reference_group(of)
    if reference is None:
        return None
    names = log.groups if known else log.probable_groups
    exact = bool(np.isin(of.target, (0, 1)).all())
    exact &= log.person is None or len(np.unique(log.person)) == len(log)
    return {
        "reference": names[reference.code],
        "reference_group": reference.how,
        "test": "Fisher's exact test" if exact else "permutation test of people",
        "difference_of": "acceptance" if models.score is None else "score",
        "groups": dict(known_groups(of, reference, exact) if known else probable_groups(of, reference)),
    }


def known_groups(of: Judgement, reference: Reference, exact: bool) -> Iterator[tuple[str, dict[str, Any]]]:
    """Names and measures of groups that are known; whether the test is exact."""
    log, models, k = of.log, of.models, reference.k
    rates, score = of.rates["dr"]["dpu"], models.score
    x, itself = of.target if score is None else score, rates[[reference.code]]
    ratio, by_score = ratios(rates, itself, k), dict[float, Ends]()
    _, place, tied = np.unique(x, return_inverse=True, return_counts=True)
    better = len(x) - np.cumsum(tied)
    for share in SHARES if score is not None else ():
        best = of.with_target(np.clip((share * len(x) - better) / tied, 0.0, 1.0)[place])
        of_best = rates_of("ips", best, of.by_group)["dpu"]
        by_score[share] = ratios(of_best, of_best[[reference.code]], k)
    for code in models.shown:
        members = log.group == code
        people, accepted = int(members.sum()), float(of.target[members].sum())
        wanted, why, p = float(people * itself.value[0]), ITSELF, np.nan
        difference = Interval(0.0, np.nan, np.nan)
        if code != reference.code:
            pair, why = Pair.of(log, code, reference.code), lacking(rates[[code, reference.code]])
            difference = pair.standardised(x, k)
            p = min(reference.pairs * pair.p(of.target, exact, models.seed), 1.0)
        yield (
            log.groups[code],
            {
                "people": people,
                "accepted": accepted,
                "rate": interval(rates, code),
                "ratio": _one(ratio, code, why),
                "p": p,
                "difference": difference.without_ends(why),
                "shortfall": max(wanted - accepted, 0.0),
                "shortfall_of_four_fifths": max(FOUR_FIFTHS * wanted - accepted, 0.0),
                "by_score": {share: _one(best, code, why) for share, best in by_score.items()},
            },
        )


def _one(ends: Ends, code: int = 0, why: str | None = None) -> Interval:
    """One of the ratios (G, 1) to the reference group."""
    ratio = Interval(*(float(end[code, 0]) for end in ends))
    if not np.isfinite(ratio.estimate):
        ratio, why = NOTHING, "nobody of the reference group is accepted"
    return ratio.without_ends(why)


class Pair(NamedTuple):
    """The rows of two groups, and the people whose they are.

    Attributes:
        rows: whether a row of the log is of either group, shape (N,), bool.
        own: 1 for rows of the first group, 0 for those of the second, shape (R,).
        unit: number of the person of each row; in each of the groups another one, shape (R,).
        side: 1 for people of the first group, 0 for those of the second, shape (P,).
    """

    rows: np.ndarray
    own: np.ndarray
    unit: np.ndarray
    side: np.ndarray

    @classmethod
    def of(cls, log: DecisionLog, code: int, reference: int) -> Pair:
        """Those of a log by the codes of two groups."""
        rows = np.isin(log.group, [code, reference])
        own = (log.group[rows] == code).astype(int)
        person = np.arange(len(own)) if log.person is None else log.person[rows]
        _, first, unit = np.unique(2 * person + own, return_index=True, return_inverse=True)
        return cls(rows, own, unit, own[first])

    def added(self, column: np.ndarray) -> np.ndarray:
        """What people add to the mean of a column (R,) in their group less that in both, shape (P,).

        It is multiplied by the number of people of the group, so that their mean is that of the group.
        """
        parts = (column - column.mean()) / np.bincount(self.own)[self.own]
        return np.bincount(self.unit, parts) * np.bincount(self.side)[self.side]

    def standardised(self, x: np.ndarray, k: float) -> Interval:
        """Mean of x (N,) of the first group less that of the second, in pooled standard deviations.

        The variance of the difference d is that of its influence function, by group the mean of
        ±z − d·(n/N)·z²/2 with z = (x − mean of the group)/deviation and n of N rows in the group, and at
        least 1/n + 1/m + d²/2N, that of Hedges and Olkin (1985) for groups of equal variances. Its quantile
        is of Student's t, with the degrees of freedom of the smaller group, for the normal quantile k.
        There is no interval where all people of a group are alike.
        """
        column = x[self.rows]
        rows, mean, spread = _moments(column, self.own)
        variance = rows @ spread / max(len(column) - 2, 1)
        if variance <= TINY:
            return NOTHING.without_ends(ALIKE)
        z, difference = (column - mean[self.own]) / variance**0.5, float(mean[1] - mean[0]) / variance**0.5
        influence = z * (2 * self.own - 1) - difference / (2 * len(column)) * rows[self.own] * z**2
        people, _, errors = _moments(self.added(influence), self.side)
        equal = (1.0 / rows).sum() + difference**2 / (2 * len(column))
        error = np.sqrt(max((errors / np.maximum(people - 1, 1)).sum(), equal))
        half = float(gaps.student_quantile(k, people.min() - 1) * error)
        found = Interval(difference, difference - half, difference + half)
        return found.without_ends(ALIKE if spread.min() <= TINY else None)

    def p(self, target: np.ndarray, exact: bool, seed: int) -> float:
        """P of the test that both groups have one mean of target (N,): Fisher's, or a permutation test.

        The latter deals people, with all their rows in a group, to the two groups at random. Means of what
        they add are compared by the square of their difference by its variance (Janssen 1997), since groups
        may differ in more than their rates; in a small group it is right approximately only where they do.
        """
        if exact:
            counts = np.bincount(2 * self.own + target[self.rows].astype(int), minlength=4)
            return float(fisher_exact(counts.reshape(2, 2)).pvalue)
        value = self.added(target[self.rows])
        value = (value - value.mean()).round(9)
        smaller = np.flatnonzero(self.side == int(2 * self.side.sum() <= len(self.side)))
        n, choice = len(smaller), np.random.default_rng(seed).choice
        deals = (choice(len(value), n, replace=False, shuffle=False) for _ in range(PERMUTATIONS))
        dealt = (value[people] for people in itertools.chain([smaller], deals))
        sums = np.array([(part.sum(), part @ part) for part in dealt])
        sides = (sums / n, ([value.sum(), value @ value] - sums) / (len(value) - n))
        (mean, error), (other, other_error) = (
            (one, (square - one**2) / many)
            for (one, square), many in zip((side.T for side in sides), (n, len(value) - n), strict=True)
        )
        size = (mean - other) ** 2 / np.maximum(error + other_error, TINY)
        return float((size >= size[0] * (1.0 - 1e-9)).mean())


def _moments(column: np.ndarray, side: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Number, mean and variance of a column (K,) by side (K,), 0 or 1: shape (2,) each."""
    many = np.bincount(side)
    mean = np.bincount(side, column) / many
    return many, mean, np.bincount(side, (column - mean[side]) ** 2) / many
