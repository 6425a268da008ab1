"""Adverse impact: selection rates and scores of each group beside those of a reference group.

Selection is acceptance by the policy. Without a given reference group it is that of the highest rate, which
is further from the others than a group that is not chosen by its rate. p-values and intervals then hold for
all pairs of groups together (Bonferroni's inequality), else for each comparison by itself.

Where only probabilities of the groups are known, as by BISG, rates are between bounds. Symbols: z, the
probabilities of a person's K groups; p_k, that of group k; a, the acceptance. People are put into cells of
nearly equal z, in which d = E[a] and E[p_k] are known. The share w_k of people who are of group k and
accepted is not: it is between max(0, d + E[p_k] − 1) and min(d, E[p_k]) (Fréchet). The rate of the group is
the mean of w_k over cells, divided by that of p_k. With the greatest w_k in all cells the least w_j of
another group is possible too. So the bounds of rates, and of differences and ratios of two rates, are sharp
given the cells (Kallus, Mao and Zhou 2022). Which of the two sides is the minimum is decided in each cell
by the people of other folds: either side is a bound, and the minimum of two noisy means is too small.

References:
    Uniform guidelines on employee selection procedures, 29 CFR 1607.4 D (1978), for the four-fifths rule.
    Hedges, L. and Olkin, I. (1985). Statistical methods for meta-analysis. Chapter 5, for the standardised
        mean difference.
    Kallus, N., Mao, X. and Zhou, A. (2022). Assessing algorithmic fairness with unobserved protected class
        using data combination. Management Science.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from math import comb
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pandas as pd
from scipy.special import ndtr
from scipy.stats import fisher_exact
from sklearn.cluster import KMeans

from fairall.evaluate.analysis import FAIRNESS, INTERVALS, Analysis, Record, of_each
from fairall.evaluate.estimated.bounds import Limits
from fairall.evaluate.estimated.estimates import (
    NOTHING,
    Ends,
    Estimate,
    Interval,
    Sample,
    Support,
    differences,
    joint_normal,
    lacking,
    ratios,
)

if TYPE_CHECKING:
    from fairall.evaluate.analysis import Shown
    from fairall.evaluate.judgement import Judgement

FOUR_FIFTHS = 0.8
ITSELF = "it is the reference group"
ALIKE = "all people of a group are alike"
NOBODY = "nobody of the reference group is accepted"
LEAST_PEOPLE, LEAST_SHARE = 30, 0.02  # of people, for a group to be chosen as the reference group
GIVEN = "was given: p-values and intervals hold for each comparison by itself"
CHOSEN = (
    "has the highest rate of the groups with at least 30 people and 2 % of all: p-values, and intervals of "
    "ratios and differences, hold for all pairs of groups together"
)
NO_REFERENCE = "no group has 30 people and 2 % of all, to be the reference group; give one"
TWO_WORDS = "Adverse impact is about rates of groups, disparate treatment about equals."
KNOWN = (
    "AIR: adverse impact ratio, the acceptance rate by that of the reference group, below 80 a sign of "
    "adverse impact (four-fifths rule); p: of equal rates, Fisher's exact test, or that of the interval of "
    "AIR where people have several rows or probabilities of acceptance; SMD: standardised mean difference of "
    "the score, else of acceptance; short: further people who would have to be accepted for the rate of "
    "the reference group, or for four fifths of it."
)
PROBABLE = (
    "people: expected. weighted: if acceptance does not depend on the group given its probabilities, "
    "which such data cannot tell. rate, difference, AIR: what is possible without this assumption; inf: "
    "no upper bound. Groups of fewer expected people than --smallest-cell are not shown."
)
TINY = 1e-12
MOST_CELLS, PEOPLE_OF_A_CELL = 50, 50  # the latter on average
DIGITS = 3  # of probabilities that count as equal
FOLDS = 5
QUANTILES = np.linspace(0.0, 8.0, 8001)  # normal ones, of intervals that are searched for a p-value
Rates: TypeAlias = Sequence[tuple[Estimate, ...]]  # of each group, shape (1,) each


def adverse_impact(judgement: Judgement) -> list[Record]:
    """Measures of each group beside the reference group; none with fewer than two, or without such a group.

    `people`, `accepted` (a sum of probabilities) and `rate`; `ratio`, the adverse impact ratio; `p` of equal
    rates; `smd`, the difference of means of the score, else of acceptance, in pooled standard deviations;
    `shortfall`, further people to accept for the reference group's rate, and for four fifths of it.

    Where only probabilities of groups are known: `people`, the expected number; `weighted_rate` and
    `weighted_ratio`, if acceptance does not depend on the group given its probabilities (conditional
    independence); without this assumption the bounds of `rate`, of its `gap` and its `ratio` to that of the
    reference group. Each record has the `reference` group, and the number of `pairs` of groups for which
    p-values and intervals hold together.
    """
    log, models = judgement.log, judgement.models
    if log.probabilities is None:
        names, measures, shown = log.groups, known_group, list(models.shown)
        people = np.array([persons.sum() for persons in log.people_of(log.group, len(names))])
        rates: Rates = [(judgement.rates["dr"]["dpu"][[code]],) for code in range(len(names))]
    else:
        names, measures, people = log.probable_groups, probable_group, log.probabilities.sum(0)
        rates = rate_bounds(judgement.target, log.probabilities, judgement.sample, models.seed)
        shown = np.flatnonzero(people >= models.smallest_cell).tolist()
    least, pairs = max(LEAST_PEOPLE, LEAST_SHARE * people.sum()), max(comb(len(shown), 2), 1)
    candidates = [code for code in shown if people[code] >= least]
    if models.reference is not None:
        candidates, pairs = [names.index(models.reference)], 1
    if len(shown) < 2 or not candidates:
        return []
    reference = max(candidates, key=lambda code: float(rates[code][-1].value.item()))
    return [
        {"group": names[code], "reference": names[reference], "pairs": pairs, "measure": name}
        | (value if isinstance(value, dict) else {"value": value})
        for code in shown
        for name, value in measures(judgement, rates, code, reference, pairs).items()
    ]


def known_group(judgement: Judgement, rates: Rates, code: int, reference: int, pairs: int) -> dict[str, Any]:
    """Measures of a group beside the reference group.

    Args:
        judgement: of the policy.
        rates: a single estimate of each group.
        code: number of the group.
        reference: that of the reference group.
        pairs: for how many comparisons intervals hold together.
    """
    (rate,), (base,) = rates[code], rates[reference]
    accepted = judgement.target[judgement.log.group == code]
    equal, total = len(accepted) * base.value.item(), float(accepted.sum())
    measures = {
        "people": len(accepted),
        "accepted": total,
        "rate": rate.interval(0),
        "ratio": ratio(rate, base, pairs, ITSELF if code == reference else None),
        "shortfall": max(equal - total, 0.0),
        "shortfall_of_four_fifths": max(FOUR_FIFTHS * equal - total, 0.0),
    }
    if code != reference:
        measures["smd"] = standardised(judgement, [code, reference], pairs)
    if code != reference and lacking(rate, base) is None:
        p = min(pairs * p_of_equal_rates(judgement, rates, code, reference), 1.0)
        measures["p"] = {"p": p, "value": f"{p:.3f}" if p >= 0.0005 else "< 0.001"}
    return measures


def ratio(rate: Estimate, base: Estimate, pairs: int, why: str | None) -> Interval:
    """A ratio of two rates, shape (1,) each, without interval where there is a reason."""
    if base.value.item() <= 0:
        return NOTHING.without_ends(NOBODY)
    ends = ratios(rate, base, joint_normal(pairs))
    return Interval(*(end.item() for end in ends)).without_ends(why or lacking(rate, base))


def p_of_equal_rates(judgement: Judgement, rates: Rates, *pair: int) -> float:
    """P of equal rates of two groups.

    Fisher's exact test of decisions on different people. Else the level at which the interval of the
    difference, as that of the ratio, ends at no difference.
    """
    log, accepted = judgement.log, judgement.target
    if not log.several_rows and np.isin(accepted, (0, 1)).all():
        return float(fisher_exact(pd.crosstab(log.group, accepted).loc[[*pair]]).pvalue)
    low, high = sorted((rates[code][0] for code in pair), key=lambda rate: float(rate.value.item()))
    place = bisect_left(QUANTILES[:-1], True, key=lambda k: not differences(high, low, k).low.item() > 0)
    return float(2.0 * ndtr(-QUANTILES[place]))


def standardised(judgement: Judgement, pair: list[int], pairs: int) -> Interval:
    """Mean score, else acceptance, of the first of two groups less that of the second, by its deviation.

    The deviation is the pooled one within both groups. The variance of the difference is that of its
    influence function, by the chain rule from sums of groups. The quantile is of Student's t with the freedom
    of the smaller group. There is no difference where all people of a group are alike.
    """
    by_group, score = judgement.by_group, judgement.models.score
    x, ones = judgement.target if score is None else score, np.ones(len(judgement.target))
    size, (first, second) = by_group.mean(ones), pair
    mean = by_group.mean(x) / size
    within = by_group.mean((x - mean.value[judgement.log.group]) ** 2)
    if within.value[pair].min() <= TINY:
        return NOTHING.without_ends(ALIKE)
    pooled = (within[first] + within[second]) / (size[first] + size[second])
    difference = (mean[first] - mean[second]) * (1.0 / np.sqrt(pooled.value))
    phi = (difference - pooled * (difference.value / pooled.value / 2.0)).phi
    supports = vars(by_group.support(ones, cut=False)[pair]).values()
    least = Support(*(part.min() for part in supports))
    return Estimate(difference.value, phi, least).interval(k=joint_normal(pairs))


def probable_group(
    judgement: Judgement, rates: Rates, code: int, reference: int, pairs: int
) -> dict[str, Any]:
    """The same where only probabilities of groups are known; the rates are of `rate_bounds`."""
    (low, high, rate), (least, most, base), k = rates[code], rates[reference], joint_normal(pairs)
    assert judgement.log.probabilities is not None
    why = ITSELF if code == reference else lacking(low, least)
    return {
        "people": float(judgement.log.probabilities[:, code].sum()),
        "weighted_rate": rate.interval(0),
        "weighted_ratio": ratio(rate, base, pairs, why),
        "rate": limits(low.ends(), high.ends(), lacking(low)),
        "gap": limits(differences(low, most, k), differences(high, least, k), why),
        "ratio": limits(ratios(low, most, k), ratios(high, least, k), why),
    }


def limits(low: Ends, high: Ends, why: str | None) -> Limits:
    """Lower and upper bound with the outer ends of their intervals; NaN where there is a reason."""
    if why is not None:
        return Limits(np.nan, np.nan, np.nan, np.nan, why)
    return Limits(low.value.item(), high.value.item(), low.low.item(), high.high.item())


def rate_bounds(target: np.ndarray, probabilities: np.ndarray, sample: Sample, seed: int = 0) -> Rates:
    """Lower and upper bound of the selection rate of each group, and the rate weighted by probabilities.

    The latter is that of the group if acceptance does not depend on the group given its probabilities.

    Args:
        target: a, shape (N,), in [0, 1].
        probabilities: of the groups, shape (N, K), rows that sum to 1.
        sample: of the people.
        seed: of folds and cells.

    Returns:
        Three estimates of each group, shape (1,).
    """
    rounded, bounds = probabilities.round(DIGITS), []
    most = min(MOST_CELLS, max(1, len(rounded) // PEOPLE_OF_A_CELL), len(np.unique(rounded, axis=0)))
    cell = KMeans(most, n_init=1, random_state=seed).fit_predict(rounded)
    columns = pd.DataFrame(np.column_stack([np.ones_like(target), target, probabilities]))
    # Sums over the people of a person's cell in other folds.
    fold = np.random.default_rng(seed).permutation(sample.clusters)[sample.cluster] % FOLDS
    others = columns.groupby(cell).transform("sum") - columns.groupby([cell, fold]).transform("sum")
    people, accepted, *expected = others.to_numpy().T
    for p, known in zip(probabilities.T, expected, strict=True):
        low = np.where(accepted + known > people, target + p - 1.0, 0.0)
        parts = (low, np.where(known < accepted, p, target), p * target)
        rates = [(sample.mean(part) / sample.mean(p)).on(sample.support(p)) for part in parts]
        bounds.append(tuple(rate[None] for rate in rates))
    return bounds


def note(shown: Shown) -> str:
    """What the columns are."""
    how = CHOSEN if shown.first.models.reference is None else GIVEN
    columns = KNOWN if shown.log.probabilities is None else PROBABLE
    return f"Each group beside the reference group, which {how}. {columns} ×100, {INTERVALS}. {TWO_WORDS}"


def told(shown: Shown) -> Iterator[str]:
    """That there is no reference group."""
    groups = shown.log.probable_groups or shown.first.models.shown
    if len(groups) > 1 and not shown.first.once(adverse_impact):
        yield f"Adverse impact: none, {NO_REFERENCE}"


IMPACT = Analysis(
    key="impact",
    section=FAIRNESS,
    title="Adverse impact",
    note=note,
    records=of_each(adverse_impact),
    line="group",
    column="measure",
    columns={
        "people": "people",
        "accepted": "accepted",
        "weighted_rate": "weighted rate",
        "weighted_ratio": "weighted AIR",
        "rate": "rate",
        "gap": "difference",
        "ratio": "AIR",
        "p": "p",
        "smd": "SMD",
        "shortfall": "short",
        "shortfall_of_four_fifths": "short of 4/5",
    },
    told=told,
)
