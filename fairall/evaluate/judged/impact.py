"""Adverse impact: how selection rates and scores of each group compare with those of a reference group.

Selection is acceptance by the policy. Intervals of rates and ratios are those of `gaps`.

References:
    Uniform guidelines on employee selection procedures, 29 CFR 1607.4 D (1978), for the four-fifths rule.
    Morris, S. and Dunleavy, E., editors (2017). Adverse impact analysis. Routledge.
    Hedges, L. and Olkin, I. (1985). Statistical methods for meta-analysis. Chapter 5, for the standardised
        mean difference.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.special import stdtr
from scipy.stats import fisher_exact

from fairall.config.choices import flattened
from fairall.evaluate.estimated import proxies
from fairall.evaluate.estimated.bounds import Limits
from fairall.evaluate.estimated.gaps import (
    NOTHING,
    Ends,
    Interval,
    differences,
    interval,
    lacking,
    ratios,
    student_quantile,
)
from fairall.evaluate.estimated.influence import Estimate, Groups, Z
from fairall.evaluate.judged.judgement import Judgement
from fairall.evaluate.plain import plain

FOUR_FIFTHS = 0.8
SHARES = np.linspace(0.1, 0.9, 9)  # selected by score, the best
ITSELF = "it is the reference group"
FISHER, SCORE_TEST = "Fisher's exact test", "score test"
TRIVIAL = "the probabilities tell nothing: every value is possible"
TINY = 1e-12


class Impact(NamedTuple):
    """A group beside the reference group.

    Attributes:
        people: rows of the group.
        selected: acceptances, a sum of probabilities.
        rate: selected / people.
        ratio: adverse impact ratio, the rate by that of the reference group.
        verdict: where the ratio is by the four-fifths rule, in words; None without a ratio.
        p: of the test that both rates are equal; NaN of the reference group.
        difference: standardised mean difference, of the mean less that of the reference group in pooled
            standard deviations, of scores or acceptances.
        shortfall: further people who would have to be selected for the rate of the reference group.
        shortfall_of_four_fifths: likewise for four fifths of it.
        by_score: `ratio` if the best were selected by score: `share` of all people, `estimate`, `low` and
            `high`; None without scores.
    """

    people: int
    selected: float
    rate: Interval
    ratio: Interval
    verdict: str | None
    p: float
    difference: Interval
    shortfall: float
    shortfall_of_four_fifths: float
    by_score: pd.DataFrame | None


class AdverseImpact(NamedTuple):
    """All groups beside the reference group.

    Attributes:
        reference: its name.
        test: that `Impact.p` is of.
        difference_of: what `Impact.difference` is of, `score` or `selection`.
        groups: by name.
    """

    reference: str
    test: str
    difference_of: str
    groups: dict[str, Impact]

    def to_frame(self) -> pd.DataFrame:
        """A row per group; columns as `ratio.estimate`, without `by_score`."""
        rows = {name: flattened(plain(own._replace(by_score=None))) for name, own in self.groups.items()}
        return pd.DataFrame.from_dict(rows, orient="index")


class GroupBounds(NamedTuple):
    """What is possible of a group of which only probabilities are known, beside the reference group.

    Attributes:
        people: expected number, a sum of probabilities.
        weighted_rate: the rate if acceptance does not depend on the group given its probabilities.
        weighted_ratio: adverse impact ratio, likewise.
        rate: bounds of the selection rate.
        difference: bounds of the rate less that of the reference group.
        ratio: bounds of the adverse impact ratio, infinite where the reference group's rate may be 0.
    """

    people: float
    weighted_rate: Interval
    weighted_ratio: Interval
    rate: Limits
    difference: Limits
    ratio: Limits


class ImpactBounds(NamedTuple):
    """All groups, by name, beside the reference group."""

    reference: str
    groups: dict[str, GroupBounds]


def adverse_impact(of: Judgement) -> AdverseImpact | None:
    """Compare all groups that are shown with the reference group; None with fewer than two of them."""
    models, log, shown = of.models, of.log, of.models.shown
    if log.probabilities is not None or len(shown) < 2:
        return None
    rates, score = of.rates["dr"]["dpu"], models.score
    reference = int(shown[rates.value[shown].argmax()])
    if models.reference is not None:
        reference = log.groups.index(models.reference)
    people_alone = log.person is None or len(np.unique(log.person)) == len(log)
    exact = people_alone and bool(np.isin(of.target, (0, 1)).all())
    ratio = _ratios_to(rates, reference)
    difference = _standardised(of, of.target if score is None else score, reference)
    by_score = None if score is None else _by_score(of.by_group, score, reference)
    people = np.bincount(log.group, minlength=len(log.groups))
    selected = np.bincount(log.group, of.target, len(log.groups))
    fair = people * float(rates.value[reference])
    groups = {}
    for code in shown:
        groups[log.groups[code]] = Impact(
            people=int(people[code]),
            selected=float(selected[code]),
            rate=interval(rates, code),
            ratio=ratio[code],
            verdict=None if code == reference else verdict(ratio[code]),
            p=np.nan if code == reference else _p(of, code, reference, exact),
            difference=difference[code],
            shortfall=max(float(fair[code] - selected[code]), 0.0),
            shortfall_of_four_fifths=max(float(FOUR_FIFTHS * fair[code] - selected[code]), 0.0),
            by_score=None if by_score is None else by_score[code],
        )
    test = FISHER if exact else SCORE_TEST if people_alone else f"{SCORE_TEST} by person"
    return AdverseImpact(log.groups[reference], test, "selection" if score is None else "score", groups)


def verdict(ratio: Interval) -> str | None:
    """Where an adverse impact ratio and its interval are, in words; None without a ratio."""
    if np.isnan(ratio.estimate):
        return None
    told = "below" if ratio.estimate < FOUR_FIFTHS else "not below"
    if np.isnan(ratio.low):
        return f"{told}, no interval"
    return f"{told}, in the interval" if ratio.low < FOUR_FIFTHS <= ratio.high else told


def _ratios_to(rates: Estimate, reference: int) -> list[Interval]:
    """Each rate (G,) by that of the reference group."""
    own = ratios(rates, rates[[reference]])
    found = []
    for code, (value, low, high) in enumerate(zip(*(end[:, 0].tolist() for end in own), strict=True)):
        why = ITSELF if code == reference else lacking(rates[[code, reference]])
        one = Interval(value, low, high)
        if rates.value[reference] <= 0:
            one, why = NOTHING, "nobody of the reference group is selected"
        found.append(one.without_ends(why))
    return found


def _by_score(by_group: Groups, score: np.ndarray, reference: int) -> list[pd.DataFrame]:
    """`Impact.by_score` of each group; thresholds are quantiles of the scores (N,) of all people."""
    rows: list[list[tuple[float, ...]]] = [[] for _ in range(by_group.groups)]
    one = np.ones_like(score)
    size, support = by_group.mean(one), by_group.support(one)
    for share in SHARES:
        selected = (score >= np.quantile(score, 1.0 - share)).astype(float)
        rates = (by_group.mean(selected) / size).on(support)
        for own, found in zip(rows, _ratios_to(rates, reference), strict=True):
            own.append((share, *found[:3]))
    return [pd.DataFrame(own, columns=["share", "estimate", "low", "high"]) for own in rows]


def _standardised(of: Judgement, x: np.ndarray, reference: int) -> list[Interval]:
    """Mean of x (N,) in each group less that of the reference group, in pooled standard deviations."""
    one, centred = np.ones_like(x), x - x.mean()
    size, first, second = map(of.by_group.mean, (one, centred, centred**2))
    mean, squares = first / size, second - first * first / size
    support, found = of.by_group.support(one), []
    for code in range(len(of.log.groups)):
        pair = [code, reference]
        people = float(size.value[pair].sum() * len(x))
        variance = (squares[code] + squares[reference]) / (size[code] + size[reference])
        variance = variance * (people / max(people - 2.0, 1.0))
        if code == reference:
            found.append(Interval(0.0, np.nan, np.nan, ITSELF))
        elif not variance.value > TINY:
            found.append(NOTHING.without_ends("all people of both groups are alike"))
        else:
            deviation = np.sqrt(variance.value)
            spread = Estimate(deviation, variance.phi / (2.0 * deviation))
            # As for rates, few clusters tell little about the variance.
            k = float(student_quantile(Z, support[pair].freedom.min()))
            own = interval((mean[code] - mean[reference]) / spread, k=k)
            found.append(own.without_ends(lacking(mean[pair].on(support[pair]))))
    return found


def _p(of: Judgement, code: int, reference: int, exact: bool) -> float:
    """P of the test that two groups have one selection rate: Fisher's, or a score test by clusters."""
    own, other = of.log.group == code, of.log.group == reference
    if exact:
        counts = [[of.target[rows].sum(), (1.0 - of.target[rows]).sum()] for rows in (own, other)]
        return float(fisher_exact(np.array(counts, dtype=int)).pvalue)
    # Both rates less that of both groups together, so that the error is that of equal rates.
    residual = of.target - of.target[own | other].mean()
    difference = of.sample.mean(len(own) * residual * (own / own.sum() - other / other.sum()))
    support = of.rates["dr"]["dpu"].support
    assert support is not None
    pair = support[[code, reference]]
    error = float(difference.error / np.sqrt(max(pair.shrinkage.min(), TINY)))
    deviation = abs(float(difference.value)) / error if error > 0 else 0.0
    return float(2.0 * stdtr(min(float(pair.freedom.min()), 1e10), -deviation))


def impact_bounds(of: Judgement) -> ImpactBounds | None:
    """Bounds of the rates of groups of which only probabilities are known; None where groups are known."""
    log, models = of.log, of.models
    if log.probabilities is None:
        return None
    bounds, weighted = proxies.rate_bounds(of.target, log.probabilities, of.sample, models.seed)
    people, names = log.probabilities.sum(0), log.probable_groups
    enough = people >= models.smallest_cell
    reference = int(np.where(enough, [float(rate.value) for rate in weighted], -1.0).argmax())
    if models.reference is not None:
        reference = names.index(models.reference)
    base, groups = bounds[reference], {}
    few = f"fewer than {models.smallest_cell} people are expected in the group"
    for k, (name, own) in enumerate(zip(names, bounds, strict=True)):
        why = None if enough[k] else few
        beside = why or (ITSELF if k == reference else None if enough[reference] else few)
        rate = own.limits()
        groups[name] = GroupBounds(
            people=float(people[k]),
            weighted_rate=interval(weighted[k]),
            weighted_ratio=_one(ratios(weighted[k][None], weighted[reference][None])).without_ends(
                ITSELF if k == reference else None
            ),
            rate=_told(Interval(rate.low, *rate[2:]), Interval(rate.high, *rate[2:]), (0.0, 1.0), why),
            difference=_told(
                _one(differences(own.low[None], base.high[None])),
                _one(differences(own.high[None], base.low[None])),
                (-1.0, 1.0),
                beside,
            ),
            ratio=_told(
                _one(ratios(own.low[None], base.high[None])),
                _one(ratios(own.high[None], base.low[None])),
                (0.0, np.inf),
                beside,
            ),
        )
    return ImpactBounds(names[reference], groups)


def _one(found: Ends) -> Interval:
    """Ends of shape (1, 1)."""
    value, low, high = (float(end.item()) for end in found)
    return Interval(value, low, high)


def _told(low: Interval, high: Interval, possible: tuple[float, float], why: str | None) -> Limits:
    """Bounds with the outer ends of their intervals, or NaN where there is a reason, or all is possible."""
    if why is None and low.estimate <= possible[0] + TINY and high.estimate >= possible[1] - TINY:
        why = TRIVIAL
    if why is not None:
        return Limits(np.nan, np.nan, np.nan, np.nan, why)
    return Limits(low.estimate, high.estimate, low.low, high.high)
