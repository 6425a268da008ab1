"""Populations with known truth, and what may be odd about logs of decisions on them, for `evidence.yaml`.

A population is a table of N people; columns: features, the group `s`, `chance`: P(y = 1) of a person who was
accepted, `propensity` of the logged decisions, `first` and perhaps `second`: acceptance probabilities of the
policies to judge, perhaps `rejected`: P(y = 1) of a person who was rejected, if another one.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit, logit
from scipy.stats import zscore
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import auc, roc_curve
from sklearn.preprocessing import StandardScaler

from fairall import load_dataset
from reproduction.population import Random, logistic

FINITE = 1_000_000  # people of a population made from data; two rows of a log are rarely the same person
COST = 0.5
SECOND, DIFFERENCE = "{} of the second policy", "difference: {}"  # names of quantities


def made(calls: Mapping[str, Any], of: Any, *given: Any) -> pd.DataFrame:
    """What functions of this module, with options, make of people, a log or a number, one after the other."""
    for name, options in calls.items():
        of = globals()[name](of, *given, **options)
    return of


def truth_of(people: pd.DataFrame, cost: float = COST) -> pd.Series:
    """The truth of each quantity of a population by name, of the second policy and its difference too."""
    p = people.propensity * people.chance
    p += (1 - people.propensity) * people.get("rejected", people.chance)
    of = p, people.s, people.get("gain", 1 - cost), people.get("loss", cost)
    first, second = (policy_truth(people[name], *of) for name in ("first", "second"))
    found = [first, second.rename(SECOND.format), (second - first).rename(DIFFERENCE.format)]
    return pd.concat([*found, score_truth(people.score, p)] if "score" in people else found)


def policy_truth(a: pd.Series, p: pd.Series, s: pd.Series, gain: Any, loss: Any) -> pd.Series:
    """The truth of a policy: its value, gaps between groups, and true-positive rates.

    Args:
        a: acceptance probabilities, shape (N,).
        p: P(y = 1), or labels, shape (N,).
        s: groups, shape (N,).
        gain: of an accepted person with label 1, one for all or shape (N,).
        loss: of an accepted person with label 0.
    """
    by = pd.DataFrame({"a": a, "p": p, "both": a * p}).groupby(s).mean()
    rates = pd.DataFrame(
        {
            "dpu": by.a,
            "equal_opportunity": by.both / by.p,
            "predictive_parity": by.both / by.a,
            "false_positive": (by.a - by.both) / (1 - by.p),
        }
    )
    value = pd.Series({"value": (a * (p * gain - (1 - p) * loss)).mean()})
    of_groups = rates["equal_opportunity"].add_prefix("TPR of group ")
    return pd.concat([value, rates.max() - rates.min(), of_groups])


def score_truth(score: pd.Series, chance: pd.Series) -> pd.Series:
    """The quality of a score of people with the given P(y = 1), shapes (N,), by quantity."""
    labels, weights = np.repeat([1, 0], len(score)), np.concatenate([chance, 1 - chance])
    fpr, tpr, _ = roc_curve(labels, np.tile(score, 2), sample_weight=weights)
    area, brier = auc(fpr, tpr), (chance - 2 * chance * score + score**2).mean()
    found = {"auc": area, "gini": 2 * area - 1, "ks": (tpr - fpr).max(), "brier": brier}
    return pd.Series(found | {"calibration": (chance - score).mean()}).add_prefix("score: ")


@functools.cache
def finite(name: str, simulated: bool) -> pd.DataFrame:
    """A large population of `synthetic` or `credit`, with their labels or ones that a logistic model has.

    The logging policy is logistic in a linear prediction of the label, less for the disadvantaged; the
    first policy is steeper and has none, the second is less steep. Rows of credit are drawn from its 1,000
    people, with real features multiplied by random numbers near 1; their labels are always simulated.
    """
    dataset: Any = load_dataset(name)
    random = np.random.default_rng(0)
    if name == "synthetic":
        drawn = dataset.individuals("population", FINITE)
        x = pd.DataFrame(drawn, columns=dataset.schema.names)
        s, label = drawn["s"], drawn["label"]
    else:
        table, rows = dataset.table(), random.integers(1000, size=FINITE)
        x, s, label = table.x.iloc[rows].reset_index(drop=True), table.s[rows], table.label[rows]
        for one in table.schema:
            if one.kind.name == "REAL":
                x[one.name] *= random.lognormal(sigma=0.03, size=FINITE)
            elif one.kind.name == "CATEGORICAL":
                x[one.name] = x[one.name].map("level {:.0f}".format)
    inputs = np.column_stack([pd.get_dummies(x).to_numpy(dtype=np.float32), s])
    inputs = StandardScaler().fit_transform(inputs)
    model = LogisticRegression(C=0.1, max_iter=1000).fit(inputs[:50_000], label[:50_000])
    score = zscore(model.decision_function(inputs))
    of = {"score": score, "less": s < 0}
    return x.assign(
        s=np.where(s > 0, "advantaged", "disadvantaged"),
        chance=expit(logit(label.mean()) + 1.5 * score) if simulated else label.astype(float),
        propensity=logistic(of, 0.3, score=0.8, less=-0.5),
        first=logistic(of, score=2.0),
        second=logistic(of, 0.5, score=1.0),
    )


def sampled(n: int, random: Random, name: str, simulated: bool = False) -> pd.DataFrame:
    """People of a finite population; everybody if as many are asked for."""
    people = finite(name, simulated)
    return people if n >= FINITE else people.iloc[random.integers(FINITE, size=n)].reset_index(drop=True)


def linear(n: int, random: Random, groups: int = 2) -> pd.DataFrame:
    """Decisions and labels by logistic models; the second policy is fair: its feature matters to nothing."""
    people = pd.DataFrame(random.standard_normal((n, 5))).add_prefix("x")
    s = random.integers(groups, size=n)
    of = people.assign(share=s / (groups - 1))
    return people.assign(
        s=np.char.mod("g%d", s),
        chance=logistic(of, 0.3, x0=0.8, x2=0.5, share=-0.4),
        propensity=logistic(of, x0=0.6, x1=-0.5, share=0.4),
        first=expit(of.x0 + 0.6 * of.x2 + of.share - 0.5),
        second=logistic(of, x3=1.5),
    )


def interaction(people: pd.DataFrame, random: Random, kind: str) -> pd.DataFrame:
    """Decisions and labels by a product of two features or by crossing steps, which no linear model sees."""
    x0, x1, x2, x3, s = people.x0, people.x1, people.x2, people.x3, people.s == "g1"
    if kind == "product":
        both, steep, label = x0 * x1, (0.9, 1.2), 0.2 + 0.6 * x3 * np.where(s, 1, -1)
    else:
        both, steep, label = ((x0 > 0) ^ (x1 > 0)) - 0.5, (1.2, 1.6), 0.5 * np.abs(x3)
    return people.assign(
        chance=expit(label + steep[1] * both),
        propensity=np.clip(expit(steep[0] * both + 0.5 * x2), 0.02, 0.98),
        first=expit(2 * x0 + 1.5 * x1 * s - 0.5),
        second=expit(x2 + s - 0.5),
    )


def near_the_threshold(
    people: pd.DataFrame, random: Random, deterministic: bool = False, rotated: bool = False
) -> pd.DataFrame:
    """Decisions above a threshold of a score or random; a policy that accepts others near the threshold."""
    score = logit(people.propensity)
    moved = (score + (0.12 * people.x2 if rotated else 0.05) > 0).astype(float)
    propensity = (score > 0).astype(float) if deterministic else people.propensity
    return people.assign(propensity=propensity, first=moved, second=moved)


def knowing(people: pd.DataFrame, random: Random, officer: bool = False, model: bool = False) -> pd.DataFrame:
    """A policy that the decision enters, a model's prediction enters, or both."""
    likes = people["first"] > 0.5 if model else 1.0
    return people.assign(first=likes * (people.propensity if officer else 1.0))


def with_missing(people: pd.DataFrame, random: Random) -> pd.DataFrame:
    """A number that is missing more often where it is high; the decisions are by what the log holds."""
    x0 = people.x0.mask(random.random(len(people)) < logistic(people, x0=1.5))
    seen = people.assign(x0=x0.fillna(-0.5))
    first = logistic(seen, x0=2.0, x2=1.0)
    return people.assign(x0=x0, propensity=logistic(seen, x0=0.8, x1=-0.5), first=first)


def rare(people: pd.DataFrame, random: Random, share: float) -> pd.DataFrame:
    """Few people with the rarer label."""
    return people.assign(chance=expit(logit(share) + 0.7 * (logit(people.chance) - 0.1)))


def confounded(people: pd.DataFrame, random: Random, odds: float) -> pd.DataFrame:
    """Labels of the rejected have `odds` times the odds of those of accepted people with equal features."""
    weighted = odds * people.chance
    return people.assign(rejected=weighted / (weighted + 1 - people.chance))


def with_score(people: pd.DataFrame, random: Random, by: str) -> pd.DataFrame:
    """A score that is not the best possible, and decisions by it, by another score or by noise."""
    log_odds = 0.4 + 0.8 * people.x0 + 0.3 * people.x2 + 0.3 * people.x3
    another = 0.3 + 0.9 * people.x2 + 0.4 * people.x1
    decision = {"itself": 1.5 * log_odds - 0.5, "another": another, "noise": 0.0}[by]
    return people.assign(score=expit(log_odds), propensity=np.clip(expit(decision), 0.05, 0.95))


def with_amounts(people: pd.DataFrame, random: Random) -> pd.DataFrame:
    """A gain and a loss for each person, which depend on a feature."""
    amount = np.exp(0.5 * people.x0 + 0.3 * random.standard_normal(len(people)))
    return people.assign(gain=0.4 * amount, loss=0.6 * amount)


# Changes of a log of a population's columns, decision, and y: the label of everybody.


def labels_kept(log: pd.DataFrame, random: Random, by: str) -> pd.DataFrame:
    """A log in which each label stays known with a probability by group or by a feature."""
    chance = np.where(log.s == "g0", 1.0, 0.3) if by == "group" else logistic(log, 0.5, x0=1.5)
    return log.assign(y=log["y"].where(random.random(len(log)) < chance))


def repeated(log: pd.DataFrame, random: Random, own: bool = False) -> pd.DataFrame:
    """A fifth of the rows, five times each with own decisions; `own`: and with an own feature."""
    people = np.repeat(np.arange(len(log) // 5), 5)
    log = log.iloc[people].reset_index(drop=True).assign(who=people)
    if own:
        log["x4"] = random.standard_normal(len(log))
    return log.assign(decision=random.random(len(log)) < log["propensity"])


def recorded_as(log: pd.DataFrame, random: Random, told: str) -> pd.DataFrame:
    """A log whose propensities are of the accepted only, or wrong."""
    recorded = {
        "of the accepted": log.propensity.where(log.decision),
        "scores of the accepted": logistic(log, x0=0.6, x1=-0.5).where(log.decision),
        "1 − π": 1 - log.propensity,
        "1": 1.0,
    }
    return log.assign(propensity=recorded[told])


def after_the_decision(log: pd.DataFrame, random: Random) -> pd.DataFrame:
    """A log whose policy accepts only whom the decision accepted."""
    return log.assign(first=np.where(log.decision, log["first"] / log.propensity, 0.0))
