"""Populations with known truth, and what may be odd about logs of decisions on them, for `evidence.yaml`.

A population is a table of N people; columns: features, the group `s`, `chance`: P(y = 1) of a person who was
accepted, `propensity` of the logged decisions, `first` and perhaps `second`: acceptance probabilities of the
policies to judge, perhaps `rejected`: P(y = 1) of a person who was rejected, if another one.
"""

from __future__ import annotations

import functools
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from scipy.special import expit, logit
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from fairall import load_dataset

Random: TypeAlias = np.random.Generator
FINITE = 1_000_000  # people of a population made from data; two rows of a log are rarely the same person
COST = 0.5
SCORED = ("auc", "gini", "ks", "brier", "calibration")
SECOND, DIFFERENCE = "{} of the second policy", "difference: {}"  # names of quantities


def truth_of(people: pd.DataFrame, cost: float = COST) -> dict[str, float]:
    """The truth of each quantity of a population by name, of the second policy and its difference too."""
    p = people.chance
    if "rejected" in people:
        p = people.propensity * p + (1 - people.propensity) * people.rejected
    of = p, people.s, people.get("gain", 1 - cost), people.get("loss", cost)
    found = policy_truth(people["first"], *of)
    if "second" in people:
        second = policy_truth(people["second"], *of)
        found |= {SECOND.format(name): value for name, value in second.items()} | {
            DIFFERENCE.format(name): value - found[name] for name, value in second.items()
        }
    return found | (score_truth(people.score.to_numpy(), p.to_numpy()) if "score" in people else {})


def policy_truth(a: pd.Series, p: pd.Series, s: pd.Series, gain: Any, loss: Any) -> dict[str, float]:
    """The truth of a policy: its value, gaps between groups, and true-positive rates.

    Args:
        a: acceptance probabilities, shape (N,).
        p: P(y = 1), or labels, shape (N,).
        s: groups, shape (N,).
        gain: of an accepted person with label 1, one for all or shape (N,).
        loss: of an accepted person with label 0.
    """
    sums = pd.DataFrame({"a": a, "y": p, "ay": a * p, "value": a * (p * gain - (1 - p) * loss)})
    by = sums.groupby(s).mean()
    rates = pd.DataFrame(
        {
            "dpu": by["a"],
            "equal_opportunity": by["ay"] / by["y"],
            "predictive_parity": by["ay"] / by["a"],
            "false_positive": (by["a"] - by["ay"]) / (1 - by["y"]),
        }
    )
    of_groups = rates["equal_opportunity"].add_prefix("TPR of group ")
    return {"value": float(sums["value"].mean()), **(rates.max() - rates.min()), **of_groups}


def score_truth(score: np.ndarray, chance: np.ndarray) -> dict[str, float]:
    """`SCORED` by quantity, of a score (N,) of people with the given P(y = 1), shape (N,)."""
    order = np.argsort(score)
    positive, negative = (of[order] / of.sum() for of in (chance, 1.0 - chance))
    apart = np.cumsum(negative) - np.cumsum(positive)
    auc = (positive * (np.cumsum(negative) - negative / 2.0)).sum()
    brier = (chance * (1.0 - score) ** 2 + (1.0 - chance) * score**2).mean()
    found = auc, 2.0 * auc - 1.0, np.abs(apart).max(), brier, (chance - score).mean()
    return {f"score: {name}": float(value) for name, value in zip(SCORED, found, strict=True)}


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
        x = pd.DataFrame({key: drawn[key] for key in dataset.config.observed})[dataset.schema.names]
        s, label = drawn["s"], drawn["label"].astype(float)
    else:
        table, rows = dataset.table(), random.integers(1000, size=FINITE)
        x, s, label = table.x.iloc[rows].reset_index(drop=True), table.s[rows], table.label[rows] * 1.0
        for one in table.schema:
            if one.kind.name == "REAL":
                x[one.name] *= random.lognormal(sigma=0.03, size=FINITE)
            elif one.kind.name == "CATEGORICAL":
                x[one.name] = "level " + x[one.name].astype(int).astype(str)
        x = x[table.schema.names]
    inputs = np.column_stack([pd.get_dummies(x).to_numpy(dtype=np.float32), s])
    inputs = StandardScaler().fit_transform(inputs)
    model = LogisticRegression(C=0.1, max_iter=1000).fit(inputs[:50_000], label[:50_000])
    score = model.decision_function(inputs)
    score = (score - score.mean()) / score.std()
    return x.assign(
        s=np.where(s > 0, "advantaged", "disadvantaged"),
        chance=expit(logit(label.mean()) + 1.5 * score) if simulated else label,
        propensity=expit(0.3 + 0.8 * score - 0.5 * (s < 0)),
        first=expit(2.0 * score),
        second=expit(0.5 + 1.0 * score),
    )


def sampled(n: int, random: Random, name: str, simulated: bool = False) -> pd.DataFrame:
    """People of a finite population; everybody if as many are asked for."""
    people = finite(name, simulated)
    return people if n >= FINITE else people.iloc[random.integers(FINITE, size=n)].reset_index(drop=True)


def linear(n: int, random: Random, groups: int = 2) -> pd.DataFrame:
    """Decisions and labels by logistic models; the second policy is fair: its feature matters to nothing."""
    x, s = random.standard_normal((n, 5)), random.integers(groups, size=n)
    x0, x1, x2, x3, _ = x.T
    people = pd.DataFrame(x, columns=[f"x{i}" for i in range(5)]).assign(s=[f"g{k}" for k in s])
    share = s / (groups - 1)
    return people.assign(
        chance=expit(0.3 + 0.8 * x0 + 0.5 * x2 - 0.4 * share),
        propensity=expit(0.6 * x0 - 0.5 * x1 + 0.4 * share),
        first=expit(x0 + 0.6 * x2 + share - 0.5),
        second=expit(1.5 * x3),
    )


def interaction(n: int, random: Random, kind: str) -> pd.DataFrame:
    """Decisions and labels by a product of two features or by crossing steps, which no linear model sees."""
    people = linear(n, random)
    x0, x1, x2, x3, s = people.x0, people.x1, people.x2, people.x3, people.s == "g1"
    if kind == "product":
        product = x0 * x1
        decision, label = 0.9 * product + 0.5 * x2, 0.2 + 1.2 * product + 0.6 * x3 * np.where(s, 1, -1)
    else:
        crossed = (x0 > 0) ^ (x1 > 0)
        decision, label = 1.2 * crossed - 0.6 + 0.5 * x2, 1.6 * crossed - 0.8 + 0.5 * np.abs(x3)
    return people.assign(
        chance=expit(label),
        propensity=np.clip(expit(decision), 0.02, 0.98),
        first=expit(2 * x0 + 1.5 * x1 * s - 0.5),
        second=expit(x2 + s - 0.5),
    )


def near_the_threshold(
    n: int, random: Random, deterministic: bool = False, rotated: bool = False, compared: bool = False
) -> pd.DataFrame:
    """Decisions above a threshold of a score or random; a policy that accepts others near the threshold.

    `compared` puts the policy that logged the decisions first.
    """
    people = linear(n, random)
    score = logit(people.propensity)
    moved = (score + (0.12 * people.x2 if rotated else 0.05) > 0).astype(float)
    propensity = (score > 0).astype(float) if deterministic else people.propensity
    return people.assign(propensity=propensity, first=propensity if compared else moved, second=moved)


def knowing(n: int, random: Random, officer: bool = False, model: bool = False) -> pd.DataFrame:
    """A policy that the decision enters, a model's prediction enters, or both."""
    people = linear(n, random)
    likes = people["first"] > 0.5 if model else 1.0
    return people.assign(first=likes * (people.propensity if officer else 1.0))


def with_missing(n: int, random: Random) -> pd.DataFrame:
    """A number that is missing more often where it is high; the decisions are by what the log holds."""
    people = linear(n, random)
    x0 = people.x0.mask(random.random(n) < expit(1.5 * people.x0))
    seen = x0.fillna(-0.5)
    propensity, first = expit(0.8 * seen - 0.5 * people.x1), expit(2.0 * seen + people.x2)
    return people.assign(x0=x0, propensity=propensity, first=first)


def rare(n: int, random: Random, share: float) -> pd.DataFrame:
    """Few people with the rarer label."""
    people = linear(n, random)
    return people.assign(chance=expit(logit(share) + 0.7 * (logit(people.chance) - 0.1)))


def confounded(n: int, random: Random, odds: float) -> pd.DataFrame:
    """Labels of the rejected have `odds` times the odds of those of accepted people with equal features."""
    people = linear(n, random)
    weighted = odds * people.chance
    return people.assign(rejected=weighted / (weighted + 1 - people.chance))


def with_score(n: int, random: Random, by: str) -> pd.DataFrame:
    """A score that is not the best possible, and decisions by it, by another score or by noise."""
    people = linear(n, random)
    log_odds = 0.4 + 0.8 * people.x0 + 0.3 * people.x2 + 0.3 * people.x3
    another = 0.3 + 0.9 * people.x2 + 0.4 * people.x1
    decision = {"itself": 1.5 * log_odds - 0.5, "another": another, "noise": 0.0 * log_odds}[by]
    return people.assign(score=expit(log_odds), propensity=np.clip(expit(decision), 0.05, 0.95))


def with_amounts(n: int, random: Random) -> pd.DataFrame:
    """A gain and a loss for each person, which depend on a feature."""
    people = linear(n, random)
    amount = np.exp(0.5 * people.x0 + 0.3 * random.standard_normal(n))
    return people.assign(gain=0.4 * amount, loss=0.6 * amount)


# Changes of a log of a population's columns, decision, and y: the label of everybody.


def labels_kept(log: pd.DataFrame, random: Random, by: str) -> pd.DataFrame:
    """A log in which each label stays known with a probability by group or by a feature."""
    chance = np.where(log.s == "g0", 1.0, 0.3) if by == "group" else expit(0.5 + 1.5 * log.x0)
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
    scores = expit(0.6 * log.x0 - 0.5 * log.x1)
    recorded = {"of the accepted": log.propensity.where(log.decision), "1 − π": 1 - log.propensity}
    recorded |= {"scores of the accepted": scores.where(log.decision)}
    return log.assign(propensity=recorded.get(told, 1.0))


def after_the_decision(log: pd.DataFrame, random: Random) -> pd.DataFrame:
    """A log whose policy accepts only whom the decision accepted."""
    return log.assign(first=np.where(log.decision, log["first"] / log.propensity, 0.0))
