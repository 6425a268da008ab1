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
    Janssen, A. (1997). Studentized permutation tests for non-i.i.d. hypotheses and the generalized
        Behrens-Fisher problem. Statistics and Probability Letters.
    Kallus, N., Mao, X. and Zhou, A. (2022). Assessing algorithmic fairness with unobserved protected class
        using data combination. Management Science.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import comb
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from scipy.stats import chi2, fisher_exact, permutation_test, rankdata
from sklearn.cluster import KMeans

from fairall.evaluate.analysis import FAIRNESS, INTERVALS, Analysis, Record
from fairall.evaluate.estimated import estimates
from fairall.evaluate.estimated.bounds import Limits
from fairall.evaluate.estimated.estimates import NOTHING, Ends, Estimate, Interval, Sample, lacking, ratios
from fairall.evaluate.estimated.fairness import rates as rates_of
from fairall.evaluate.log import DecisionLog

if TYPE_CHECKING:
    from fairall.evaluate.analysis import Shown
    from fairall.evaluate.judgement import Judgement

FOUR_FIFTHS = 0.8
SHARES = np.arange(1, 10) / 10  # of all people, accepted by score
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
PERMUTATIONS, MOST_PERMUTED = 5_000, 10_000  # of people; beyond these the test is by the normal distribution
FEW = "fewer than {} people are expected in group {}"
FLAT = "the probabilities of group {} tell nothing: any rate is possible"
TWO_WORDS = "Adverse impact is about rates of groups, disparate treatment about equals."
KNOWN = (
    "AIR: adverse impact ratio, the acceptance rate by that of the reference group, below 80 a sign of "
    "adverse impact (four-fifths rule); p: of equal rates, Fisher's exact test, or a permutation test of "
    "people who have several rows or probabilities of acceptance; SMD: standardised mean difference of "
    "the score, else of acceptance; short: further people who would have to be accepted for the rate of "
    "the reference group, or for four fifths of it."
)
PROBABLE = (
    "people: expected. weighted: if acceptance does not depend on the group given its probabilities, "
    "which such data cannot tell. rate, difference, AIR: what is possible without this assumption; inf: "
    "no upper bound."
)
TINY = 1e-12
MOST_CELLS, PEOPLE_OF_A_CELL = 50, 50  # the latter on average
DIGITS = 3  # of probabilities that count as equal
FOLDS = 5


def adverse_impact(evaluation: Judgement) -> list[Record]:
    """Measures of each group beside the reference group; none with fewer than two, or without such a group.

    `people`, `accepted` (a sum of probabilities) and `rate`; `ratio`, the adverse impact ratio; `p` of equal
    rates; `smd`, the difference of means of the score, else of acceptance, in pooled standard deviations;
    `shortfall`, further people to accept for the reference group's rate, and for four fifths of it;
    `ratio_by_score`, if the best `share` of all people were accepted by the score. Of people with equal
    scores where the share ends each is accepted with the same probability.

    Where only probabilities of groups are known: `people`, the expected number; `weighted_rate` and
    `weighted_ratio`, if acceptance does not depend on the group given its probabilities (conditional
    independence); without this assumption the bounds of `rate`, of its `gap` and its `ratio` to that of the
    reference group. Each record has the `reference` group, and the number of `pairs` of groups for which
    p-values and intervals hold together.
    """
    if evaluation.log.probabilities is not None:
        return [*probable_groups(evaluation, evaluation.log.probabilities)]
    return [*known_groups(evaluation)] if len(evaluation.models.shown) > 1 else []


def chosen(evaluation: Judgement, rates: np.ndarray, people: np.ndarray) -> tuple[int | None, int]:
    """Number of the reference group, None without one, and `pairs`, by rates and people of groups (G,)."""
    models, log = evaluation.models, evaluation.log
    if models.reference is not None:
        return (log.probable_groups or log.groups).index(models.reference), 1
    enough = people >= max(models.smallest_cell, LEAST_PEOPLE, LEAST_SHARE * people.sum())
    pairs = max(comb(int((people >= models.smallest_cell).sum()), 2), 1)
    return int(np.where(enough, rates, -1.0).argmax()) if enough.any() else None, pairs


def known_groups(evaluation: Judgement) -> Iterator[Record]:
    """`adverse_impact` of groups that are known."""
    log, target, score = evaluation.log, evaluation.target, evaluation.models.score
    rates, by_group = evaluation.rates["dr"]["dpu"], evaluation.by_group
    persons = np.array([rows.sum() for rows in log.people_of(log.group, len(log.groups))])
    reference, pairs = chosen(evaluation, rates.value, persons)
    if reference is None:
        return
    k = estimates.joint_normal(pairs)
    compared: list[tuple[Record, Ends]] = [({"measure": "ratio"}, ratios(rates, rates[[reference]], k))]
    for share in SHARES if score is not None else ():
        rank = rankdata(score, "max")
        best = (rank - (1 - share) * len(log)) / (rank - rankdata(score, "min") + 1)
        selected = rates_of("ips", evaluation.with_target(best.clip(0, 1)), by_group)["dpu"]
        keys = {"measure": "ratio_by_score", "share": share}
        compared.append((keys, ratios(selected, selected[[reference]], k)))
    people, accepted = (np.bincount(log.group, weight) for weight in (None, target))
    short = people * rates.value[reference]
    x = target if score is None else score
    for code in evaluation.models.shown:
        why = ITSELF if code == reference else lacking(rates[[code, reference]])
        measures = {
            "people": int(people[code]),
            "accepted": float(accepted[code]),
            "rate": rates.interval(code),
            "shortfall": max(float(short[code] - accepted[code]), 0.0),
            "shortfall_of_four_fifths": max(float(FOUR_FIFTHS * short[code] - accepted[code]), 0.0),
        }
        if code != reference:
            codes = code, reference
            if np.isin(target, (0, 1)).all() and not log.several_rows:
                p = fisher_exact([(accepted[one], people[one] - accepted[one]) for one in codes]).pvalue
            else:
                p = permuted(added(log, target, codes), evaluation.models.seed)
            measures["smd"] = standardised(log, x, codes, k).without_ends(why)
        group = {"group": log.groups[code], "reference": log.groups[reference], "pairs": pairs}
        yield from (group | {"measure": name, "value": value} for name, value in measures.items())
        if code != reference:
            p = min(pairs * float(p), 1.0)
            yield group | {"measure": "p", "p": p, "value": f"{p:.3f}" if p >= 0.0005 else "< 0.001"}
        yield from (group | keys | {"value": ratio(ends, code, why)} for keys, ends in compared)


def ratio(ends: Ends, code: int, why: str | None) -> Interval:
    """One of the ratios (G, 1) to the reference group, without interval where there is a reason."""
    estimate, low, high = (float(end[code, 0]) for end in ends)
    if not np.isfinite(estimate):
        return NOTHING.without_ends(NOBODY)
    return Interval(estimate, low, high).without_ends(why)


def added(log: DecisionLog, column: np.ndarray, codes: Sequence[int]) -> list[np.ndarray]:
    """What people of each of two groups add to its mean less that of both, by their number; column (N,)."""
    person = np.arange(len(log)) if log.person is None else log.person
    mean, parts = column[np.isin(log.group, codes)].mean(), []
    for members in (log.group == code for code in codes):
        sums = pd.Series(column[members] - mean).groupby(person[members]).sum().to_numpy()
        parts.append((sums * len(sums) / members.sum()).round(9))
    return parts


def standardised(log: DecisionLog, x: np.ndarray, codes: Sequence[int], k: float) -> Interval:
    """Mean of x (N,) of the first of two groups less that of the second, in pooled standard deviations.

    The variance of the difference d is that of its influence function, by group the mean of
    ±z − d·(n/N)·z²/2 with z = (x − mean of the group)/deviation and n of N rows in the group, and at
    least 1/n + 1/m + d²/2N, that of Hedges and Olkin (1985) for groups of equal variances. Its quantile
    is of Student's t, with the degrees of freedom of the smaller group, for the normal quantile k.
    There is no interval where all people of a group are alike.
    """
    first, sides = log.group == codes[0], [x[log.group == code] for code in codes]
    means, spreads, sizes = np.transpose([(side.mean(), side.var(), len(side)) for side in sides])
    deviation = np.sqrt(sizes @ spreads / max(sizes.sum() - 2, 1))
    if deviation**2 <= TINY:
        return NOTHING.without_ends(ALIKE)
    d, z = float((means[0] - means[1]) / deviation), (x - np.where(first, *means)) / deviation
    over = d / (2 * sizes.sum())
    parts = added(log, np.where(first, z, -z) - over * np.where(first, *sizes) * z**2, codes)
    error = sum(part.var() / max(len(part) - 1, 1) for part in parts)
    error = np.sqrt(max(error, (1 / sizes).sum() + over * d))
    half = float(estimates.student_quantile(k, min(map(len, parts)) - 1) * error)
    return Interval(d, d - half, d + half).without_ends(ALIKE if spreads.min() <= TINY else None)


def permuted(both: Sequence[np.ndarray], seed: int) -> float:
    """P of a permutation test that two groups have one acceptance rate, by what their people add to it.

    People, with all their rows in a group, are dealt to the two groups at random. Means are compared by the
    square of their difference by its variance (Janssen 1997), since groups may differ in more than their
    rates; in a small group it is right approximately only where they do.
    """

    def distance(first: np.ndarray, second: np.ndarray, axis: int) -> np.ndarray:
        error = first.var(axis) / first.shape[axis] + second.var(axis) / second.shape[axis]
        return ((first.mean(axis) - second.mean(axis)) ** 2 / np.maximum(error, TINY)).round(9)

    if sum(map(len, both)) > MOST_PERMUTED:
        return float(chi2.sf(distance(both[0], both[1], 0), 1))
    how = {"n_resamples": PERMUTATIONS, "batch": 200, "alternative": "greater", "vectorized": True}
    return float(permutation_test(both, distance, rng=seed, **how).pvalue)


def probable_groups(evaluation: Judgement, probabilities: np.ndarray) -> Iterator[Record]:
    """`adverse_impact` of groups of which only the probabilities (N, K) are known."""
    models, names, people = evaluation.models, evaluation.log.probable_groups, probabilities.sum(0)
    bounds = rate_bounds(evaluation.target, probabilities, evaluation.sample, models.seed)
    reasons = [lacking(low) for low, _, _ in bounds]
    for code, (low, high, _) in enumerate(bounds):
        if low.value < TINY and high.value > 1.0 - TINY:
            reasons[code] = FLAT.format(names[code])
        if people[code] < models.smallest_cell:
            reasons[code] = FEW.format(models.smallest_cell, names[code])
    rates = [0.0 if why else rate.value for why, (_, _, rate) in zip(reasons, bounds, strict=True)]
    reference, pairs = chosen(evaluation, np.array(rates), people)
    if reference is None:
        return
    k, (least, most, base) = estimates.joint_normal(pairs), (rate[None] for rate in bounds[reference])
    for code, (low, high, rate) in enumerate(bounds):
        own = reasons[code]
        why = ITSELF if code == reference else own or reasons[reference]
        sides = (low[None], most, k), (high[None], least, k)
        measures = {
            "people": float(people[code]),
            "weighted_rate": NOTHING.without_ends(own) if own else rate.interval(),
            "weighted_ratio": NOTHING.without_ends(why)
            if own
            else ratio(ratios(rate[None], base, k), 0, why),
            "rate": limits([low.ends(), high.ends()], own),
            "gap": limits([estimates.differences(*side) for side in sides], why),
            "ratio": limits([ratios(*side) for side in sides], why),
        }
        group = {"group": names[code], "reference": names[reference], "pairs": pairs}
        yield from (group | {"measure": name, "value": value} for name, value in measures.items())


def limits(sides: list[Ends], why: str | None) -> Limits:
    """Lower and upper bound with the outer ends of their intervals; NaN where there is a reason."""
    if why is not None:
        return Limits(np.nan, np.nan, np.nan, np.nan, why)
    low, high = sides
    return Limits(low.value.item(), high.value.item(), low.low.item(), high.high.item())


def cells(probabilities: np.ndarray, seed: int) -> np.ndarray:
    """The cell of each person, shape (N,): of equal probabilities (N, K), or of near ones by k-means."""
    distinct, number, people = np.unique(
        probabilities.round(DIGITS), axis=0, return_inverse=True, return_counts=True
    )
    most = min(MOST_CELLS, max(1, len(probabilities) // PEOPLE_OF_A_CELL), len(distinct))
    fitted = KMeans(most, n_init=1, random_state=seed).fit(distinct, sample_weight=people)
    return fitted.labels_[number.ravel()]


def rate_bounds(
    target: np.ndarray, probabilities: np.ndarray, sample: Sample, seed: int = 0
) -> list[tuple[Estimate, ...]]:
    """Lower and upper bound of the selection rate of each group, and the rate weighted by probabilities.

    The latter is that of the group if acceptance does not depend on the group given its probabilities.

    Args:
        target: a, shape (N,), in [0, 1].
        probabilities: of the groups, shape (N, K), rows that sum to 1.
        sample: of the people.
        seed: of folds and cells.
    """
    cell = cells(probabilities, seed)
    fold = np.random.default_rng(seed).permutation(sample.clusters)[sample.cluster] % FOLDS
    columns = pd.DataFrame(np.column_stack([np.ones_like(target), target, probabilities]))
    # Sums over the people of a person's cell in other folds.
    others = columns.groupby(cell).transform("sum") - columns.groupby([cell, fold]).transform("sum")
    people, accepted, *expected = others.to_numpy().T
    bounds = []
    for p, known in zip(probabilities.T, expected, strict=True):
        low = np.where(accepted + known > people, target + p - 1.0, 0.0)
        parts = (low, np.where(known < accepted, p, target), p * target)
        bounds.append(tuple((sample.mean(part) / sample.mean(p)).on(sample.support(p)) for part in parts))
    return bounds


def records(shown: Shown) -> Iterator[Record]:
    """Of each policy."""
    for policy, evaluation in shown.evaluations.items():
        yield from ({"policy": policy} | record for record in evaluation.once(adverse_impact))


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
    records=records,
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
