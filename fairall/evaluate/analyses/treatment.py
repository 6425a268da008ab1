"""Equal treatment: acceptance of people of two groups who have equal features.

Symbols: x, the features; a, the acceptance; g, one of two groups; e(x) = P(g | x) among the people of both;
and μ_g(x) = E[a | x, g]. The rate that all people of both groups would have as members of g is

    S_g = E[μ_g(x)] + E[w (a − μ_g(x))]/E[w],    w = 1{group = g}/e(x),

the augmented inverse probability weighted estimate (Robins, Rotnitzky and Zhao 1994), which is right where e
or μ is. The adjusted difference is S_g − S_r for the reference group r; the adjusted odds ratio is of both
rates (Zhang 2008), with an interval on the log scale. The rest of the raw gap is explained by the features
(Kitagawa 1955). Models are cross-fitted and do not see the group. Where acceptance is a probability, they
learn from decisions drawn by it, and the corrections take the probability itself.

References:
    Kitagawa, E. (1955). Components of a difference between two rates. Journal of the American Statistical
        Association.
    Robins, J., Rotnitzky, A. and Zhao, L. P. (1994). Estimation of regression coefficients when some
        regressors are not always observed. Journal of the American Statistical Association.
    Zhang, Z. (2008). Estimating a marginal causal odds ratio subject to confounding. Communications in
        Statistics.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import logit

from fairall.evaluate.analyses.impact import LEAST_PEOPLE, TWO_WORDS, adverse_impact
from fairall.evaluate.analysis import FAIRNESS, INTERVALS, Analysis, Record, text
from fairall.evaluate.estimated.estimates import NOTHING, Estimate, Interval, Sample, joint_normal
from fairall.evaluate.estimated.nuisance import fit
from fairall.evaluate.log import DecisionLog
from fairall.tables.overlap import LEAST_EFFECTIVE

if TYPE_CHECKING:
    from fairall.evaluate.analysis import Shown
    from fairall.evaluate.judgement import Judgement

UNLIKELY, MOST_UNLIKELY = 0.01, 0.05  # P(group | x), and the share of people who may be below it
MOST_ROWS, MOST_LEARNT = 20_000, 5_000  # drawn at random to be compared, and for a model to learn from
SAME = 0.9999  # correlation of a feature with an outcome from which on they are the same
PROBABLE = "of the groups only probabilities are known"
SMALL = f"a group has fewer than {LEAST_PEOPLE} people"
NO_FEATURES = "the log has no features by which people are equal"
NO_OVERLAP = (
    f"the groups do not overlap: more than {100 * MOST_UNLIKELY:.0f} % of people have features with which "
    f"fewer than {100 * UNLIKELY:.0f} % are of a group, or its weights count as fewer than {LEAST_EFFECTIVE}"
)
TOLD = (
    "of people with equal features the acceptance rate differs from that of {} by {} points; features "
    "explain {} of the raw gap of {}"
)
NO_ODDS = "nobody, or everybody, of a group is accepted"


def standardised(
    log: DecisionLog, first: np.ndarray, outcome: np.ndarray, model: Any, folds: int, seed: int
) -> list[Estimate] | str:
    """Mean outcome if all people were of the first group, and of the other one, at equal features.

    Args:
        log: of two groups, N rows.
        first: whether a row is of the first group, shape (N,), bool.
        outcome: in [0, 1], shape (N,); a feature that is nothing else is left out.
        model: of group and outcome, as of `nuisance.fit`.
        folds: likewise.
        seed: likewise.

    Returns:
        S_g and S_r of the module, their difference, and that of the means of both groups; or why there are
        none.
    """
    sample, random = Sample(len(log), person=log.person, seed=seed), np.random.default_rng(seed)
    with np.errstate(invalid="ignore", divide="ignore"):
        covariance = (outcome - outcome.mean()) @ log.design / len(log)
        same = np.abs(covariance / log.design.std(0)) > SAME * outcome.std()
    seen = np.append(True, (np.array(log.input_names) != "") & ~same)
    if min(rows.sum() for rows in log.people_of(first.astype(int), 2)) < LEAST_PEOPLE:
        return SMALL
    if seen.sum() == 1:
        return NO_FEATURES
    features = replace(log, inputs=log.inputs[:, seen])

    def learnt(target: np.ndarray, what: str) -> Any:
        target[random.permutation(np.flatnonzero(~np.isnan(target)))[MOST_LEARNT:]] = np.nan
        return fit(features, target, what, model, folds, seed)

    group, weights, means, raw = learnt(first * 1.0, "group"), np.zeros(len(log)), [], []
    for side, chance in ((first, group), (~first, replace(group, probability=1 - group.probability))):
        weight = np.where(side, chance.inverse(), 0.0)
        few = sample.support(weight).clusters < LEAST_EFFECTIVE
        if few or (chance.probability < UNLIKELY).mean() > MOST_UNLIKELY:
            return NO_OVERLAP
        drawn = learnt(np.where(side, random.random(len(log)) < outcome, np.nan), "acceptance by group")
        mean = np.full(len(log), outcome[side].mean()) if drawn is None else drawn.probability
        means.append(sample.mean(mean) + sample.mean(weight * (outcome - mean)) / sample.mean(weight))
        raw.append(sample.mean(side * outcome) / sample.mean(side * 1.0))
        weights += weight
    support = sample.support(weights, lowest=-1.0, cut=False)
    return [estimate.on(support) for estimate in (*means, means[0] - means[1], raw[0] - raw[1])]


def compared(means: list[Estimate], k: float) -> Record:
    """Measures of the estimates of `standardised`, with the normal quantile k of their intervals."""
    first, second, adjusted, raw = means
    assert raw.support is not None
    ratio = NOTHING.without_ends(NO_ODDS)
    if all(0 < rate.value < 1 for rate in (first, second)):
        odds = [Estimate(logit(one.value), one.phi / (one.value - one.value**2)) for one in (first, second)]
        exact = replace(raw.support, lowest=np.zeros(()), highest=np.zeros(()))
        of_log = (odds[0] - odds[1]).on(exact).interval(k=k)
        estimate, low, high = np.exp(of_log[:3]).tolist()
        ratio = Interval(estimate, low, high, of_log.why)
    differences = {"raw": raw, "adjusted": adjusted, "explained": (raw - adjusted).on(raw.support)}
    measures = {name: one.interval(k=k) for name, one in differences.items()}
    certain = abs(raw.value) > k * raw.error
    share = {"share": f"{100 * (1 - adjusted.value / raw.value):.0f} %"} if certain else {}
    return measures | {"odds_ratio": ratio} | share


def equal_treatment(evaluation: Judgement) -> list[Record]:
    """Measures of each group beside the reference group of adverse impact, overall and by decision maker.

    `raw`: difference in acceptance rates; `adjusted` and `odds_ratio`: among people of equal features;
    `explained`: the rest of the raw gap, and its `share` where the raw gap is not 0 for certain; `score`: the
    adjusted difference of the score in pooled standard deviations. By decision maker the models are logistic,
    and there are those with enough people of both groups.
    """
    models, log, impact = evaluation.models, evaluation.log, evaluation.once(adverse_impact)
    if log.probabilities is not None:
        refused = NOTHING.without_ends(PROBABLE)
        return [{"who": name, "measure": "adjusted", "value": refused} for name in log.probable_groups]
    random, records = np.random.default_rng(models.seed), list[Record]()
    outcomes = {"adjusted": evaluation.target, "score": models.score}
    names = dict.fromkeys(record["group"] for record in impact if record["group"] != record["reference"])
    makers = [] if log.decision_maker is None else sorted(set(log.decision_maker))
    for name, maker in itertools.product(names, [None, *makers]):
        reference, k = impact[0]["reference"], joint_normal(impact[0]["pairs"])
        both = log.groups.index(name), log.groups.index(reference)
        here = np.isin(log.group, both) & (maker is None or log.decision_maker == maker)
        rows = np.sort(random.permutation(np.flatnonzero(here))[:MOST_ROWS])
        people, first = log.rows(rows), log.group[rows] == both[0]
        model, measures = models.propensity_model if maker is None else "logistic", Record()
        for measure, outcome in ((name, one[rows]) for name, one in outcomes.items() if one is not None):
            means = standardised(people, first, outcome, model, models.folds, models.seed)
            if isinstance(means, str):
                measures |= {measure: NOTHING.without_ends(means)} if maker is None or means != SMALL else {}
            elif measure == "adjusted":
                measures |= compared(means, k)
            else:
                within = outcome - np.where(first, outcome[first].mean(), outcome[~first].mean())
                measures["score"] = (means[2] * (1 / within.std())).interval(k=k)
        keys = {
            "who": f"{name}, decided by {maker}" if maker else name,
            "group": name,
            "decision_maker": maker,
        }
        keys |= {"reference": reference}
        records += [keys | {"measure": one, "value": value} for one, value in measures.items()]
    return records


def records(shown: Shown) -> Iterator[Record]:
    """Of each policy."""
    for policy, evaluation in shown.evaluations.items():
        yield from ({"policy": policy} | record for record in evaluation.once(equal_treatment))


def told(shown: Shown) -> Iterator[str]:
    """The adjusted difference of each group, and what of the raw gap the features explain."""
    for policy, evaluation in shown.evaluations.items():
        records = [one for one in evaluation.once(equal_treatment) if one.get("decision_maker") is None]
        values = {(one["who"], one["measure"]): one["value"] for one in records}
        for group, reference in {one["who"]: one.get("reference") for one in records}.items():
            known = [values.get((group, name), NOTHING) for name in ("adjusted", "explained", "raw")]
            texts = [text(value, {}) for value in known]
            yield f"Equal treatment of {group}, {policy}: {known[0].why or TOLD.format(reference, *texts)}"


TREATMENT = Analysis(
    key="treatment",
    section=FAIRNESS,
    title="Equal treatment ×100",
    note=(
        "Acceptance of each group less that of the reference group of adverse impact. adjusted: among people "
        "of equal features, doubly robust over the people of both groups; odds ratio: likewise, 100 is "
        "equal; explained: the rest of the raw gap, and its share; SMD of the score: its adjusted difference "
        "in pooled standard deviations, where a feature that is the score is left out. By decision maker by "
        f"logistic models. {INTERVALS}. {TWO_WORDS} Features may carry past treatment."
    ),
    records=records,
    line="who",
    column="measure",
    columns={
        "raw": "raw gap",
        "adjusted": "adjusted",
        "odds_ratio": "odds ratio",
        "explained": "explained",
        "share": "share explained",
        "score": "SMD of the score",
    },
    told=told,
)
