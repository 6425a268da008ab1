"""Equal treatment: acceptance of people of two groups who have equal features.

Symbols: x, the features; a, the acceptance; g, one of two groups; e(x) = P(g | x) among the people of both;
and μ_g(x) = E[a | x, g]. The rate that all people of both groups would have as members of g is

    S_g = E[μ_g(x)] + E[w (a − μ_g(x))]/E[w],    w = 1{group = g}/e(x),

the augmented inverse probability weighted estimate (Robins, Rotnitzky and Zhao 1994), which is right where e
or μ is. The adjusted difference is S_g − S_r for the reference group r; the adjusted odds ratio is of both
rates (Zhang 2008), with an interval on the log scale. The rest of the raw gap is explained by the features
(Kitagawa 1955). Models are cross-fitted and do not see the group. Where acceptance is a probability, they
learn from `COPIES` of each person with decisions drawn by it, and the corrections take the probability.

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
import pandas as pd

from fairall.evaluate.analyses.impact import TWO_WORDS, adverse_impact
from fairall.evaluate.analysis import FAIRNESS, INTERVALS, Analysis, Record, of_each, text
from fairall.evaluate.estimated.estimates import NOTHING, Estimate, Interval, Sample, joint_normal
from fairall.evaluate.estimated.nuisance import Fitted, fit
from fairall.evaluate.log import DecisionLog
from fairall.tables.overlap import LEAST_EFFECTIVE

if TYPE_CHECKING:
    from fairall.evaluate.analysis import Shown
    from fairall.evaluate.judgement import Judgement
    from fairall.evaluate.models import Models

UNLIKELY, MOST_UNLIKELY = 0.01, 0.05  # P(group | x), and the share of people who may be below it
MOST_ROWS, MOST_LEARNT = 20_000, 5_000  # drawn at random to be compared, and for a model to learn from
COPIES = 5  # of a person whose acceptance is a probability, for decisions to be drawn by it
SAME = 0.9999  # correlation of a feature with an outcome from which on they are the same
PROBABLE = "of the groups only probabilities are known"
NO_FEATURES = "the log has no features by which people are equal"
NO_OVERLAP = (
    "the groups do not overlap: more than 5 % of people have features with which fewer than 1 % are of a "
    "group, or its people count as fewer than 30"
)
TOLD = (
    "of people with equal features the acceptance rate differs from that of {reference} by {adjusted} "
    "points; features explain {explained} of the raw gap of {raw}"
)
NO_ODDS = "nobody, or everybody, of a group is accepted"


def standardised(
    outcome: np.ndarray, log: DecisionLog, first: np.ndarray, model: Any, models: Models
) -> list[Estimate] | str:
    """Mean outcomes of two groups, if all people were of the first one or of the other.

    Args:
        outcome: in [0, 1], shape (N,); a feature that is nothing else is left out.
        log: of two groups, N rows.
        first: whether a row is of the first group, shape (N,), bool.
        model: of group and outcome, as of `nuisance.fit`.
        models: with folds and seed.

    Returns:
        S_g, S_r, their difference, and that of the means of both groups; or why there are none.
    """
    sample, random = Sample(len(log), person=log.person), np.random.default_rng(models.seed)
    with np.errstate(invalid="ignore", divide="ignore"):
        same = np.abs(np.corrcoef(outcome, log.design, rowvar=False)[0, 1:]) > SAME
    seen = (np.array(log.input_names) != "") & ~same
    if not seen.any():
        return NO_FEATURES
    # A probability counts as that share of the drawn decisions of several copies of a person.
    number = 1 if np.isin(outcome, (0, 1)).all() else COPIES
    rows = np.repeat(np.arange(len(log)), number)
    person = rows if log.person is None else log.person[rows]
    copies = replace(log.rows(rows), inputs=log.inputs[rows][:, np.append(True, seen)], person=person)

    def learnt(members: np.ndarray, target: np.ndarray, what: str) -> Fitted | None:
        some = np.isin(rows, random.permutation(np.flatnonzero(members))[:MOST_LEARNT])
        fitted = fit(copies, np.where(some, target, np.nan), what, model, models.folds, models.seed)
        return fitted and replace(fitted, probability=fitted.probability[::number])

    group = learnt(np.ones_like(first), first[rows], "group")
    weights, adjusted, raw = np.zeros_like(outcome), [], []
    if group is None:
        return NO_OVERLAP
    for side, chance in ((first, group), (~first, replace(group, probability=1 - group.probability))):
        weight = side * chance.inverse()
        few = sample.support(weight).clusters < LEAST_EFFECTIVE
        if few or (chance.probability < UNLIKELY).mean() > MOST_UNLIKELY:
            return NO_OVERLAP
        level = (np.add.outer(random.random(len(log)), np.arange(number)) / number).ravel()
        drawn = learnt(side, level < outcome[rows], "acceptance by group")
        mean = np.full(len(log), outcome[side].mean()) if drawn is None else drawn.probability
        adjusted.append(sample.mean(mean) + sample.mean(weight * (outcome - mean)) / sample.mean(weight))
        raw.append(sample.mean(side * outcome) / sample.mean(side * 1.0))
        weights += weight
    support = sample.support(weights, lowest=-1.0, cut=False)
    return [estimate.on(support) for estimate in (*adjusted, adjusted[0] - adjusted[1], raw[0] - raw[1])]


def compared(judgement: Judgement, group: str, reference: str, k: float, maker: str | None) -> dict[str, Any]:
    """Values by measure of a group beside the reference group.

    Args:
        judgement: of the policy.
        group: name of the group.
        reference: that of the reference group.
        k: normal quantile of intervals.
        maker: the decision maker, None for all of them; nothing where there is no estimate of one.
    """
    log, models, values = judgement.log, judgement.models, dict[str, Any]()
    members = [log.group == log.groups.index(name) for name in (group, reference)]
    here = (members[0] | members[1]) & (maker is None or log.decision_maker == maker)
    rows = np.sort(np.random.default_rng(models.seed).permutation(np.flatnonzero(here))[:MOST_ROWS])
    data = log.rows(rows), members[0][rows], "logistic" if maker else models.propensity_model, models
    if models.score is not None and np.ptp(score := models.score[rows]) > 0:
        means = standardised(score, *data)
        if not isinstance(means, str):
            pooled = pd.Series(score).groupby(members[0][rows]).transform("var").mean()
            values["score"] = (means[2] * pooled**-0.5).interval(k=k)
    means = standardised(judgement.target[rows], *data)
    if isinstance(means, str):
        return values if maker else values | {"adjusted": NOTHING.without_ends(means)}
    rate, other, adjusted, raw = means
    explained, odds = (raw - adjusted).on(raw.support), rate * (1.0 - other) / (other * (1.0 - rate))
    for name, difference in {"raw": raw, "adjusted": adjusted, "explained": explained}.items():
        values[name] = difference.interval(k=k)
    values["odds_ratio"] = NOTHING.without_ends(NO_ODDS)
    if odds.value > 0:
        of_log = Estimate(np.log(odds.value), odds.phi / odds.value, raw.support).interval(k=k)
        values["odds_ratio"] = Interval(*np.exp(of_log[:3]).tolist()).without_ends(of_log.why)
    return values


def equal_treatment(judgement: Judgement) -> list[Record]:
    """Measures of each group beside the reference group of adverse impact, overall and by decision maker.

    `raw`: difference in acceptance rates; `adjusted` and `odds_ratio`: among people of equal features;
    `explained`: the rest of the raw gap; `score`: the adjusted difference of the score in pooled standard
    deviations. By decision maker the models are logistic, and there are those with enough people of both
    groups.
    """
    log, records, values = judgement.log, list[Record](), {"adjusted": NOTHING.without_ends(PROBABLE)}
    makers = [] if log.decision_maker is None else sorted(set(log.decision_maker))
    others = [record for record in judgement.once(adverse_impact) if record["measure"] in ("smd", "gap")]
    for record, maker in itertools.product(others, [None, *makers]):
        name, reference = record["group"], record["reference"]
        if log.probabilities is None:
            values = compared(judgement, name, reference, joint_normal(record["pairs"]), maker)
        who = f"{name}, decided by {maker}" if maker else name
        keys = {"who": who, "group": name, "decision_maker": maker, "reference": reference}
        records += [keys | {"measure": measure, "value": value} for measure, value in values.items()]
    return records


def told(shown: Shown) -> Iterator[str]:
    """The largest adjusted difference, and how much of the raw gap the features explain."""
    for policy, judgement in shown.evaluations.items():
        overall = [record for record in judgement.once(equal_treatment) if record["decision_maker"] is None]
        adjusted = [record for record in overall if record["measure"] == "adjusted"]
        if adjusted:
            largest = max(adjusted, key=lambda record: np.nan_to_num(abs(record["value"].estimate)))
            texts = {
                record["measure"]: text(record["value"], {})
                for record in overall
                if record["group"] == largest["group"]
            }
            sentence = largest["value"].why or TOLD.format(reference=largest["reference"], **texts)
            yield f"Equal treatment of {largest['group']}, {policy}: {sentence}"


TREATMENT = Analysis(
    key="treatment",
    section=FAIRNESS,
    title="Equal treatment ×100",
    note=(
        "Acceptance of each group less that of the reference group of adverse impact. adjusted: among people "
        "of equal features, doubly robust over the people of both groups; odds ratio: likewise, 100 is "
        "equal; explained: the rest of the raw gap; SMD of the score: its adjusted difference "
        "in pooled standard deviations, where a feature that is the score is left out. By decision maker by "
        f"logistic models; {INTERVALS}. {TWO_WORDS} Features may carry past treatment."
    ),
    records=of_each(equal_treatment),
    line="who",
    column="measure",
    columns={
        "raw": "raw gap",
        "adjusted": "adjusted",
        "odds_ratio": "odds ratio",
        "explained": "explained",
        "score": "SMD of the score",
    },
    told=told,
)
