"""Adverse impact: selection rates and scores of each group beside those of a reference group.

Selection is acceptance by the policy. Without a given reference group it is that of the highest rate, which
is further from the others than a group that is not chosen by its rate. p-values and intervals then hold for
all pairs of groups together (Bonferroni's inequality), else for each comparison by itself.

References:
    Uniform guidelines on employee selection procedures, 29 CFR 1607.4 D (1978), for the four-fifths rule.
    Hedges, L. and Olkin, I. (1985). Statistical methods for meta-analysis. Chapter 5, for the standardised
        mean difference.
    Janssen, A. (1997). Studentized permutation tests for non-i.i.d. hypotheses and the generalized
        Behrens-Fisher problem. Statistics and Probability Letters.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from math import comb
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.stats import fisher_exact

from fairall.evaluate.estimated import gaps, proxies
from fairall.evaluate.estimated.bounds import Bounds, Limits
from fairall.evaluate.estimated.fairness import rates as rates_of
from fairall.evaluate.estimated.gaps import Ends, Interval, interval, lacking, ratios
from fairall.evaluate.log import DecisionLog

if TYPE_CHECKING:
    from fairall.evaluate.evaluation import Evaluation

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


def adverse_impact(of: Evaluation) -> dict[str, Any] | None:
    """Each group that is shown beside the reference group; None with fewer than two, or without a reference.

    `reference`: its name, and `reference_group` how it was chosen; `test`: that `p` is of; `difference_of`:
    score or acceptance; `groups`, by name: `people`, `accepted` (a sum of probabilities) and `rate`; `ratio`,
    the adverse impact ratio, and in words where it is by the four-fifths rule; `p` of equal rates;
    `difference` of means in pooled standard deviations; `shortfall`, further people to accept for the
    reference group's rate, and for four fifths of it; `by_score`, the ratio if the best `share` of all people
    were accepted, if there are scores. Of people with equal scores where the share ends each is accepted with
    the same probability.
    """
    models, log, shown = of.models, of.log, of.models.shown
    if log.probabilities is not None or len(shown) < 2:
        return None
    rates, score = of.rates["dr"]["dpu"], models.score
    x, people = of.target if score is None else score, np.bincount(log.group, minlength=len(log.groups))
    persons = np.array([rows.sum() for rows in log.people_of(log.group, len(log.groups))])
    chosen = reference_group(of, log.groups, rates.value, persons)
    if chosen is None:
        return None
    reference, pairs, told = chosen
    k, by_score = gaps.joint_normal(pairs), {}
    ratio = ratios(rates, rates[[reference]], k)
    _, place, tied = np.unique(x, return_inverse=True, return_counts=True)
    better = len(x) - np.cumsum(tied)
    for share in SHARES if score is not None else ():
        best = of.with_target(np.clip((share * len(x) - better) / tied, 0.0, 1.0)[place])
        of_best = rates_of("ips", best, of.by_group)["dpu"]
        by_score[share] = ratios(of_best, of_best[[reference]], k)
    exact = bool(np.isin(of.target, (0, 1)).all())
    exact &= log.person is None or len(np.unique(log.person)) == len(log)
    groups = {}
    for code in shown:
        itself, accepted = code == reference, float(of.target[log.group == code].sum())
        pair = None if itself else Pair.of(log, code, reference)
        wanted = float(people[code] * rates.value[reference])
        why = ITSELF if itself else lacking(rates[[code, reference]])
        groups[log.groups[code]] = {
            "people": int(people[code]),
            "accepted": accepted,
            "rate": interval(rates, code),
            "ratio": _one(ratio, code, why),
            "four_fifths": None if itself else verdict(_one(ratio, code, why)),
            "p": min(pairs * pair.p(of.target, exact, models.seed), 1.0) if pair else np.nan,
            "difference": (pair.standardised(x, k) if pair else Interval(0.0, np.nan, np.nan)).without_ends(
                why
            ),
            "shortfall": max(wanted - accepted, 0.0),
            "shortfall_of_four_fifths": max(FOUR_FIFTHS * wanted - accepted, 0.0),
            "by_score": [{"share": share, "ratio": _one(own, code, why)} for share, own in by_score.items()],
        }
    said = {
        "reference_group": told,
        "test": "Fisher's exact test" if exact else "permutation test of people",
        "difference_of": "acceptance" if score is None else "score",
    }
    return {"reference": log.groups[reference], **said, "groups": groups}


def reference_group(
    of: Evaluation, names: Sequence[str], rates: np.ndarray, people: np.ndarray
) -> tuple[int, int, str] | None:
    """The given reference group, or that of the highest rate; None where no group has people enough.

    Args:
        of: the policy and its log.
        names: of the G groups.
        rates: of selection, shape (G,).
        people: number of them, shape (G,).

    Returns:
        Place of the group; number of comparisons for which p-values and intervals hold together, 1 for each
        by itself; and how it was chosen, in words.
    """
    models = of.models
    if models.reference is not None:
        return names.index(models.reference), 1, GIVEN
    enough = people >= max(models.smallest_cell, LEAST_PEOPLE, LEAST_SHARE * people.sum())
    pairs = max(comb(int((people >= models.smallest_cell).sum()), 2), 1)
    return (int(np.where(enough, rates, -1.0).argmax()), pairs, CHOSEN) if enough.any() else None


def verdict(ratio: Interval) -> str | None:
    """Where an adverse impact ratio and its interval are, in words; None without a ratio."""
    if np.isnan(ratio.estimate):
        return None
    inside = ", 80 in the interval" if ratio.low < FOUR_FIFTHS <= ratio.high else ""
    return ("below" if ratio.estimate < FOUR_FIFTHS else "not below") + inside


def _one(found: Ends, code: int = 0, why: str | None = None) -> Interval:
    """One of the ratios (G, 1) to the reference group."""
    value, low, high = (float(end[code, 0]) for end in found)
    if not np.isfinite(value):
        return gaps.NOTHING.without_ends("nobody of the reference group is accepted")
    return Interval(value, low, high).without_ends(why)


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
            return gaps.NOTHING.without_ends(ALIKE)
        z, difference = (column - mean[self.own]) / variance**0.5, (mean[1] - mean[0]) / variance**0.5
        influence = z * (2 * self.own - 1) - difference / (2 * len(column)) * rows[self.own] * z**2
        people, _, errors = _moments(self.added(influence), self.side)
        equal = (1.0 / rows).sum() + difference**2 / (2 * len(column))
        error = np.sqrt(max((errors / np.maximum(people - 1, 1)).sum(), equal))
        half = gaps.student_quantile(k, people.min() - 1) * error
        found = Interval(float(difference), float(difference - half), float(difference + half))
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
        sums = np.array([(own.sum(), own @ own) for own in dealt])
        mean, error = _mean_and_error(sums, n)
        other, other_error = _mean_and_error([value.sum(), value @ value] - sums, len(value) - n)
        size = (mean - other) ** 2 / np.maximum(error + other_error, TINY)
        return float((size >= size[0] * (1.0 - 1e-9)).mean())


def _mean_and_error(sums: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Means and their variances by sums of n values and of their squares, (B, 2) → (B,) each."""
    mean, square = sums.T / n
    return mean, (square - mean**2) / n


def _moments(column: np.ndarray, side: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Number, mean and variance of a column (K,) by side (K,), 0 or 1: shape (2,) each."""
    number = np.bincount(side)
    mean = np.bincount(side, column) / number
    return number, mean, np.bincount(side, (column - mean[side]) ** 2) / number


def impact_bounds(of: Evaluation) -> dict[str, Any] | None:
    """What is possible of groups of which only probabilities are known; None where groups are known.

    `reference`: name of the reference group, and `reference_group` how it was chosen; None without one;
    `groups`, by name: `people`, the expected number; `weighted_rate` and `weighted_ratio`, if acceptance does
    not depend on the group given its probabilities (conditional independence); without this assumption the
    bounds of `rate`, and of its `difference` and `ratio` to that of the reference group.
    """
    log, least = of.log, of.models.smallest_cell
    if log.probabilities is None:
        return None
    bounds, weighted = proxies.rate_bounds(of.target, log.probabilities, of.sample, of.models.seed)
    people, names = log.probabilities.sum(0), log.probable_groups
    reasons = [_nothing(*one, least) for one in zip(names, bounds, people, strict=True)]
    known = [0.0 if why else float(one.value) for why, one in zip(reasons, weighted, strict=True)]
    chosen = reference_group(of, names, np.array(known), people)
    if chosen is None:
        return None
    reference, pairs, told = chosen
    base, groups, k = bounds[reference], {}, gaps.joint_normal(pairs)
    for code, (name, own, why) in enumerate(zip(names, bounds, reasons, strict=True)):
        itself = ITSELF if code == reference else None
        beside = itself or why or reasons[reference]
        hidden = gaps.NOTHING.without_ends(why) if people[code] < least else None
        sides = (own.low[None], base.high[None], k), (own.high[None], base.low[None], k)
        ratio = ratios(weighted[code][None], weighted[reference][None], k)
        groups[name] = {
            "people": float(people[code]),
            "weighted_rate": hidden or interval(weighted[code]),
            "weighted_ratio": hidden or _one(ratio, why=itself or lacking(weighted[code])),
            "rate": _limits([gaps.ends(own.low), gaps.ends(own.high)], why),
            "difference": _limits([gaps.differences(*side) for side in sides], beside),
            "ratio": _limits([ratios(*side) for side in sides], beside),
        }
    return {"reference": names[reference], "reference_group": told, "groups": groups}


def _nothing(group: str, own: Bounds, people: float, least: int) -> str | None:
    """Why nothing is said of a group; None where something is."""
    if people < least:
        return f"fewer than {least} people are expected in group {group}"
    if own.low.value < TINY and own.high.value > 1.0 - TINY:
        return f"the probabilities of group {group} tell nothing: any rate is possible"
    return lacking(own.low)


def _limits(sides: list[Ends], why: str | None) -> Limits:
    """Lower and upper bound with the outer ends of their intervals; NaN where there is a reason."""
    low, high = sides
    found = [end.item() for end in (low.value, high.value, low.low, high.high)]
    return Limits(*found) if why is None else Limits(np.nan, np.nan, np.nan, np.nan, why)
