"""Adverse impact: selection rates and scores of each group beside those of a reference group.

Selection is acceptance by the policy. The reference group is the given one, else that of the highest rate.

References:
    Uniform guidelines on employee selection procedures, 29 CFR 1607.4 D (1978), for the four-fifths rule.
    Hedges, L. and Olkin, I. (1985). Statistical methods for meta-analysis. Chapter 5, for the standardised
        mean difference.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import stdtr
from scipy.stats import fisher_exact

from fairall.evaluate.estimated import gaps, proxies
from fairall.evaluate.estimated.bounds import Bounds, Limits
from fairall.evaluate.estimated.gaps import Ends, Interval, interval, lacking, ratios
from fairall.evaluate.estimated.influence import Estimate, Support, Z
from fairall.evaluate.judged.judgement import Judgement

FOUR_FIFTHS = 0.8
SHARES = np.arange(1, 10) / 10  # of all people, accepted by score
ITSELF = "it is the reference group"
TINY = 1e-12


def adverse_impact(of: Judgement) -> dict[str, Any] | None:
    """Each group that is shown beside the reference group; None with fewer than two of them.

    `reference`: its name; `test`: that `p` is of; `difference_of`: score or acceptance; `groups`, by name:
    `people`, `accepted` (a sum of probabilities) and `rate`; `ratio`, the adverse impact ratio, and in
    words where it is by the four-fifths rule; `p` of equal rates; `difference` of means in pooled standard
    deviations; `shortfall`, further people to accept for the reference group's rate, and for four fifths
    of it; `by_score`, the ratio if the best `share` of all people were accepted, if there are scores.
    """
    models, log, shown = of.models, of.log, of.models.shown
    if log.probabilities is not None or len(shown) < 2:
        return None
    rates, score = of.rates["dr"]["dpu"], models.score
    x = of.target if score is None else score
    reference = int(shown[rates.value[shown].argmax()])
    if models.reference is not None:
        reference = log.groups.index(models.reference)
    size, support = of.by_group.mean(np.ones(len(log))), rates.support
    assert support is not None
    ratio, by_score = ratios(rates, rates[[reference]]), {}
    for share in SHARES if score is not None else ():
        best = of.by_group.mean((x >= np.quantile(x, 1.0 - share)).astype(float))
        by_score[share] = ratios((best / size).on(support), (best / size).on(support)[[reference]])
    difference = _standardised(of, x, reference)
    different = log.person is None or len(np.unique(log.person)) == len(log)
    exact = different and bool(np.isin(of.target, (0, 1)).all())
    groups = {}
    for code in shown:
        members, itself, pair = log.group == code, code == reference, [code, reference]
        people, accepted = int(members.sum()), float(of.target[members].sum())
        wanted, why = people * float(rates.value[reference]), ITSELF if itself else lacking(rates[pair])
        k = float(gaps.student_quantile(Z, support[pair].freedom.min()))
        alike = "all people of both groups are alike" if np.isnan(difference.value[code]) else None
        groups[log.groups[code]] = {
            "people": people,
            "accepted": accepted,
            "rate": interval(rates, code),
            "ratio": _one(ratio, code, why),
            "four_fifths": None if itself else verdict(_one(ratio, code, why)),
            "p": np.nan if itself else _p(of, code, reference, support[pair], exact),
            "difference": interval(difference, code, k).without_ends(why or alike),
            "shortfall": max(wanted - accepted, 0.0),
            "shortfall_of_four_fifths": max(FOUR_FIFTHS * wanted - accepted, 0.0),
            "by_score": [{"share": share, "ratio": _one(own, code, why)} for share, own in by_score.items()],
        }
    test = "Fisher's exact test" if exact else "score test" if different else "score test by person"
    said = {"test": test, "difference_of": "acceptance" if score is None else "score"}
    return {"reference": log.groups[reference], **said, "groups": groups}


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


def _standardised(of: Judgement, x: np.ndarray, reference: int) -> Estimate:
    """Mean of x (N,) of each group less the reference group's, in pooled standard deviations, shape (G,)."""
    centred = x - x.mean()
    size, first, second = map(of.by_group.mean, (np.ones_like(x), centred, centred**2))
    mean, squares = first / size, second - first * first / size
    both = size + size[[reference]]
    people = len(x) * both.value
    variance = (squares + squares[[reference]]) / both * (people / np.maximum(people - 2.0, 1.0))
    deviation = np.sqrt(np.where(variance.value > TINY, variance.value, np.nan))
    pooled = Estimate(deviation, variance.phi / (2.0 * deviation[:, None]))
    return (mean - mean[[reference]]) / pooled


def _p(of: Judgement, code: int, reference: int, support: Support, exact: bool) -> float:
    """P of the test that two groups have one rate: Fisher's, or a score test with errors by person."""
    own, other = of.log.group == code, of.log.group == reference
    if exact:
        counts = [[of.target[rows].sum(), (1.0 - of.target[rows]).sum()] for rows in (own, other)]
        return float(fisher_exact(np.array(counts, dtype=int)).pvalue)
    # Both rates less that of both groups together, so that the error is that of equal rates.
    residual = of.target - of.target[own | other].mean()
    change = np.bincount(of.sample.cluster, residual * (own / own.sum() - other / other.sum()))
    error = float(np.sqrt((change**2).sum() / max(support.shrinkage.min(), TINY)))
    deviation = abs(float(change.sum())) / error if error > 0 else 0.0
    return float(2.0 * stdtr(min(float(support.freedom.min()), 1e10), -deviation))


def impact_bounds(of: Judgement) -> dict[str, Any] | None:
    """What is possible of groups of which only probabilities are known; None where groups are known.

    `reference`: name of the reference group; `groups`, by name: `people`, the expected number;
    `weighted_rate` and `weighted_ratio`, if acceptance does not depend on the group given its
    probabilities (conditional independence); without this assumption the bounds of `rate`, and of its
    `difference` and `ratio` to that of the reference group.
    """
    log, least = of.log, of.models.smallest_cell
    if log.probabilities is None:
        return None
    bounds, weighted = proxies.rate_bounds(of.target, log.probabilities, of.sample, of.models.seed)
    people, names = log.probabilities.sum(0), log.probable_groups
    reasons = [_nothing(*one, least) for one in zip(names, bounds, people, strict=True)]
    known = [0.0 if why else float(one.value) for why, one in zip(reasons, weighted, strict=True)]
    reference = int(np.argmax(known))
    if of.models.reference is not None:
        reference = names.index(of.models.reference)
    base, groups = bounds[reference], {}
    for k, (name, own, why) in enumerate(zip(names, bounds, reasons, strict=True)):
        itself = ITSELF if k == reference else None
        beside = itself or why or reasons[reference]
        hidden = gaps.NOTHING.without_ends(why) if people[k] < least else None
        sides = (own.low[None], base.high[None]), (own.high[None], base.low[None])
        groups[name] = {
            "people": float(people[k]),
            "weighted_rate": hidden or interval(weighted[k]),
            "weighted_ratio": hidden
            or _one(ratios(weighted[k][None], weighted[reference][None]), why=itself or lacking(weighted[k])),
            "rate": _limits([gaps.ends(own.low), gaps.ends(own.high)], why),
            "difference": _limits([gaps.differences(*side) for side in sides], beside),
            "ratio": _limits([ratios(*side) for side in sides], beside),
        }
    return {"reference": names[reference], "groups": groups}


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
