"""Equal treatment: acceptance of people of two groups who have equal features.

Symbols: x, the features; a, the acceptance; g, one of two groups; e(x) = P(g | x) among the people of both, and
μ_g(x) = E[a | x, g]. The rate that all people of both groups would have as members of g is

    S_g = E[μ_g(x)] + E[w (a − μ_g(x))]/E[w],    w = 1{group = g}/e(x),

the augmented inverse probability weighted estimate (Robins, Rotnitzky and Zhao 1994), which is right where e or μ
is. The adjusted difference is S_g − S_r for the reference group r; the adjusted odds ratio is of both rates
(Zhang 2008), with an interval on the log scale. The rest of the raw gap is explained by the features (Kitagawa
1955). Models are cross-fitted and do not see the group; where the acceptance is a probability, its models learn
from decisions drawn by it, and the corrections take the probability.

References:
    Kitagawa, E. (1955). Components of a difference between two rates. Journal of the American Statistical
        Association.
    Robins, J., Rotnitzky, A. and Zhao, L. P. (1994). Estimation of regression coefficients when some
        regressors are not always observed. Journal of the American Statistical Association.
    Zhang, Z. (2008). Estimating a marginal causal odds ratio subject to confounding. Communications in
        Statistics.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.special import logit

from fairall.display.format import interval as ends
from fairall.display.format import number
from fairall.evaluate.analyses.impact import LEAST_PEOPLE, reference_group
from fairall.evaluate.analysis import FAIRNESS, INTERVALS, Analysis, Record
from fairall.evaluate.estimated.gaps import NOTHING, Interval, interval, joint_normal
from fairall.evaluate.estimated.influence import Estimate, Sample, Support
from fairall.evaluate.estimated.nuisance import fit
from fairall.evaluate.judged.judgement import Judgement
from fairall.evaluate.log import DecisionLog
from fairall.tables.overlap import LEAST_EFFECTIVE

if TYPE_CHECKING:
    from fairall.evaluate.page import Shown

UNLIKELY, MOST_UNLIKELY = 0.01, 0.05  # P(group | x), and the share of people who may be below it
MOST_ROWS, MOST_LEARNT = 20_000, 5_000  # drawn at random to be compared, and for a model to learn from
SAME = 0.9999  # correlation of a feature with the score, from which on it is the score
PROBABLE = "of the groups only probabilities are known"
TINY = f"a group has fewer than {LEAST_PEOPLE} people"
NO_FEATURES = "the log has no features by which people are equal"
NO_OVERLAP = (
    f"the groups do not overlap: more than {100 * MOST_UNLIKELY:.0f} % of people have features with which "
    f"fewer than {100 * UNLIKELY:.0f} % are of a group, or its weights count as fewer than {LEAST_EFFECTIVE}"
)
MAY_BE_0 = "the raw gap may be 0"
NO_ODDS = "nobody, or everybody, of a group is accepted"


class Pair(NamedTuple):
    """The rows of two groups.

    Attributes:
        log: of these R rows.
        first: whether a row is of the first group, not the reference group, shape (R,), bool.
        sample: the rows in clusters.
        model: of group and acceptance, as of `nuisance.fit`.
        folds: likewise.
        seed: likewise.
    """

    log: DecisionLog
    first: np.ndarray
    sample: Sample
    model: Any
    folds: int
    seed: int

    def people(self) -> int:
        """People of the smaller group."""
        return min(int(rows.sum()) for rows in self.log.people_of(self.first.astype(int), 2))

    def raw(self, outcome: np.ndarray) -> Estimate:
        """Mean outcome (R,) of the first group less that of the reference group."""
        sides = [(side, self.sample.mean(side)) for side in (self.first * 1.0, ~self.first * 1.0)]
        first, second = (self.sample.mean(side * outcome) / share for side, share in sides)
        weight = sum(side / share.value for side, share in sides)
        return (first - second).on(self.support(weight))

    def support(self, weight: np.ndarray) -> Support:
        """Of a difference of means that weighs outcomes in [0, 1]."""
        return self.sample.support(weight, lowest=-1.0, cut=False)

    def standardised(self, outcome: np.ndarray) -> tuple[Estimate, Estimate] | str:
        """Mean of an outcome in [0, 1] (R,) if everybody was of the first, or of the reference group.

        Returns:
            Both with the support of their difference; or why there are none.
        """
        log, random = self.log, np.random.default_rng(self.seed)
        seen = np.append(True, np.array(log.input_names) != "") & ~_is(outcome, log.inputs)
        if seen.sum() == 1:
            return NO_FEATURES
        if self.people() < LEAST_PEOPLE:
            return TINY
        features = replace(log, inputs=log.inputs[:, seen], input_names=())

        def learnt(target: np.ndarray, what: str) -> Any:
            target[random.permutation(np.flatnonzero(~np.isnan(target)))[MOST_LEARNT:]] = np.nan
            return fit(features, target, what, self.model, self.folds, self.seed)

        group, weights, means = learnt(self.first * 1.0, "group"), [], []
        other = replace(group, probability=1.0 - group.probability)
        for side, chance in ((self.first, group), (~self.first, other)):
            weight = np.where(side, chance.inverse(), 0.0)
            few = self.sample.support(weight).clusters < LEAST_EFFECTIVE
            if few or (chance.probability < UNLIKELY).mean() > MOST_UNLIKELY:
                return NO_OVERLAP
            drawn = np.where(side, random.random(len(log)) < outcome, np.nan)
            model = learnt(drawn, "acceptance by group")
            mean = np.full(len(log), outcome[side].mean()) if model is None else model.probability
            correction = self.sample.mean(weight * (outcome - mean)) / self.sample.mean(weight)
            means.append(self.sample.mean(mean) + correction)
            weights.append(weight)
        support = self.support(weights[0] + weights[1])
        return means[0].on(support), means[1].on(support)

    def acceptance(self, outcome: np.ndarray, k: float) -> dict[str, Interval]:
        """The measures of acceptance (R,), with the normal quantile k of their intervals."""
        raw, means = self.raw(outcome), self.standardised(outcome)
        measures = {"raw": interval(raw, k=k)}
        if isinstance(means, str):
            refused = NOTHING.without_ends(means)
            return measures | dict.fromkeys(("adjusted", "odds_ratio", "explained", "share"), refused)
        first, second = means
        adjusted = first - second
        explained, support = raw - adjusted, first.support
        rates = np.array([first.value, second.value])
        ratio, share = NOTHING.without_ends(NO_ODDS), NOTHING.without_ends(MAY_BE_0)
        if 0 < rates.min() and rates.max() < 1:
            log_odds = [Estimate(logit(one.value), one.phi / (one.value * (1 - one.value))) for one in means]
            found = interval((log_odds[0] - log_odds[1]).on(support.moved(0.0, 0.0)), k=k)
            ratio = Interval(*np.exp(found[:3]), found.why)
        if measures["raw"].low > 0 or measures["raw"].high < 0:
            sign = np.sign(raw.value)
            share = interval(((explained * sign) / (raw * sign)).on(support), k=k)
        both = {"adjusted": adjusted, "explained": explained}
        measures |= {name: interval(one.on(support), k=k) for name, one in both.items()}
        return measures | {"odds_ratio": ratio, "share": share}

    def residual(self, score: np.ndarray, k: float) -> Interval:
        """Adjusted difference of a score (R,) in pooled standard deviations, without itself as a feature."""
        means = self.standardised(score)
        if isinstance(means, str):
            return NOTHING.without_ends(means)
        within = np.where(self.first, score[self.first].mean(), score[~self.first].mean())
        variance = self.sample.mean((score - within) ** 2)
        deviation = np.sqrt(variance.value)
        if deviation <= 0:
            return NOTHING.without_ends("all people of a group are alike")
        smd = (means[0] - means[1]) / Estimate(deviation, variance.phi / (2.0 * deviation))
        return interval(smd.on(means[0].support.moved(1.0 / deviation, 0.0)), k=k)


def _is(outcome: np.ndarray, inputs: np.ndarray) -> np.ndarray:
    """Which columns of inputs (R, D + 1) are the outcome (R,) in other units."""
    deviation = (outcome - outcome.mean()) / max(outcome.std(), 1e-12)
    correlation = deviation @ inputs / len(outcome) / np.maximum(inputs.std(0), 1e-12)
    return np.abs(correlation) > SAME


def equal_treatment(of: Judgement) -> list[Record]:
    """Measures of each group beside the reference group of adverse impact, of everybody and by decision maker.

    By decision maker models are logistic, and there are those with 30 people of both groups.
    """
    models, log = of.models, of.log
    if log.probabilities is not None:
        refused = NOTHING.without_ends(PROBABLE)
        return [{"line": group, "measure": "adjusted", "value": refused} for group in log.probable_groups]
    chosen = reference_group(of)
    if chosen is None:
        return []
    reference, pairs, _ = chosen
    k, random, records = joint_normal(pairs), np.random.default_rng(models.seed), list[Record]()
    makers = [] if log.decision_maker is None else [*np.unique(log.decision_maker)]
    for code, maker in ((code, maker) for code in models.shown for maker in (None, *makers)):
        here = np.isin(log.group, [code, reference])
        here &= True if maker is None else log.decision_maker == maker
        rows = np.sort(random.permutation(np.flatnonzero(here))[:MOST_ROWS])
        own, model = log.rows(rows), models.propensity_model if maker is None else "logistic"
        sample = Sample(len(rows), {}, own.person, models.seed)
        pair = Pair(own, own.group == code, sample, model, models.folds, models.seed)
        if code == reference or (maker is not None and pair.people() < LEAST_PEOPLE):
            continue
        measures = pair.acceptance(of.target[rows], k)
        if models.score is not None:
            measures["score"] = pair.residual(models.score[rows], k)
        keys = {"group": log.groups[code], "reference": log.groups[reference], "decision_maker": maker}
        line = keys["group"] if maker is None else f"{keys['group']}, decided by {maker}"
        records += [{"line": line, **keys, "measure": name, "value": one} for name, one in measures.items()]
    return records


def records(shown: Shown) -> Iterator[Record]:
    """Of each policy."""
    for policy, one in shown.evaluations.items():
        yield from ({"policy": policy, **record} for record in one.equal_treatment)


def told(shown: Shown) -> Iterator[str]:
    """The adjusted difference of each group, and what of the raw gap the features explain."""
    for one in shown.evaluations.values():
        overall = [record for record in one.equal_treatment if record.get("decision_maker", "") is None]
        for group in dict.fromkeys(record["group"] for record in overall):
            values = {record["measure"]: record["value"] for record in overall if record["group"] == group}
            adjusted, reference = values["adjusted"], overall[0]["reference"]
            if np.isnan(adjusted.low):
                yield f"Equal treatment of {group} and {reference} is not told: {adjusted.why}"
                continue
            less = adjusted.estimate < 0
            distances = sorted((-adjusted.low, -adjusted.high) if less else adjusted[1:3])
            raw, explained = (values[name].estimate * (-1.0) ** less for name in ("raw", "explained"))
            yield (
                f"Equal treatment: of people with equal features, {group} are accepted "
                f"{number(abs(adjusted.estimate))} {ends(*distances)} points {'less' if less else 'more'} "
                f"often than {reference}; features explain {number(explained)} of the raw gap of {number(raw)}"
            )


TREATMENT = Analysis(
    key="treatment",
    section=FAIRNESS,
    title="Equal treatment ×100",
    note=(
        "Acceptance of each group less that of the reference group of adverse impact. adjusted: among people "
        "of equal features, doubly robust over the people of both groups; odds ratio: likewise, 100 is equal; "
        "explained: the rest of the raw gap, and its share in per cent; SMD of the score: its adjusted "
        f"difference in pooled standard deviations, the score itself no feature. {INTERVALS}, those of a "
        "chosen reference group for all pairs of groups together. Disparate treatment is about equals, "
        "adverse impact about rates; features may hold past treatment."
    ),
    records=records,
    line="line",
    column="measure",
    columns={
        "raw": "raw gap",
        "adjusted": "adjusted",
        "odds_ratio": "odds ratio",
        "explained": "explained",
        "share": "explained %",
        "score": "SMD of the score",
    },
    told=told,
)
