"""Logs of past decisions drawn from populations with known truth, for `reproduction.evidence`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from scipy.special import expit, logit
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from fairall import load_dataset

Random: TypeAlias = np.random.Generator
FINITE = 1_000_000  # people of a population made from data; two rows of a log are rarely the same person
COST = 0.5
GAPS = ("dpu", "equal_opportunity", "predictive_parity", "false_positive")
SCORED = ("auc", "gini", "ks", "brier", "calibration")
ODDS = 2.0  # by which labels of the rejected differ in the sensitivity analysis, Γ
EVERY = ("value", "gaps", "differences", "guarantee", "bounds")  # parts of an evaluation
SOURCE = {True: "recorded", False: "estimated"}  # of propensities


@dataclass(frozen=True)
class People:
    """N people, what becomes of them, and the policies to judge.

    Attributes:
        x: features and the group `s`, N rows.
        chance: P(y = 1) of a person who was accepted, shape (N,).
        propensity: of the logged decisions, shape (N,).
        policies: acceptance probabilities of the first policy and perhaps of a second, shape (N,) each.
        of_rejected: P(y = 1) of a person who was rejected, if another one, shape (N,).
        cost: c.
    """

    x: pd.DataFrame
    chance: np.ndarray
    propensity: np.ndarray
    policies: tuple[np.ndarray, ...]
    of_rejected: np.ndarray | None = None
    cost: float = COST

    def __len__(self) -> int:
        return len(self.x)

    def truth(self) -> dict[str, float]:
        """The truth of each quantity by name, of the second policy too, and second minus first."""
        first, *others = map(self._truth_of, self.policies)
        found = dict(first)
        for second in others:
            found |= {f"{name} of the second policy": value for name, value in second.items()}
            found |= {f"difference: {name}": value - first[name] for name, value in second.items()}
        return found

    def _truth_of(self, a: np.ndarray) -> dict[str, float]:
        p = self.chance
        if self.of_rejected is not None:
            p = self.propensity * p + (1 - self.propensity) * self.of_rejected
        gain, loss = self.x.get("gain", 1 - self.cost), self.x.get("loss", self.cost)
        sums = pd.DataFrame({"a": a, "y": p, "ay": a * p, "value": a * (p * gain - (1 - p) * loss)})
        by = sums.groupby(self.x["s"].to_numpy()).mean()
        rates = {
            "dpu": by["a"],
            "equal_opportunity": by["ay"] / by["y"],
            "predictive_parity": by["ay"] / by["a"],
            "false_positive": (by["a"] - by["ay"]) / (1 - by["y"]),
        }
        found = {"value": sums["value"].mean()} | {name: of.max() - of.min() for name, of in rates.items()}
        found |= {f"TPR of group {s}": rate for s, rate in rates["equal_opportunity"].items()}
        if "score" in self.x:
            found |= {
                f"score: {name}": one for name, one in score_truth(self.x["score"].to_numpy(), p).items()
            }
        return {name: float(value) for name, value in found.items()}


def score_truth(score: np.ndarray, chance: np.ndarray) -> dict[str, float]:
    """`SCORED` of a score (N,) of people with the given P(y = 1), shape (N,)."""
    order = np.argsort(score)
    positive, negative = (of[order] / of.sum() for of in (chance, 1.0 - chance))
    apart = np.cumsum(negative) - np.cumsum(positive)
    auc = float((positive * (np.cumsum(negative) - negative / 2.0)).sum())
    brier = float((chance * (1.0 - score) ** 2 + (1.0 - chance) * score**2).mean())
    found = auc, 2.0 * auc - 1.0, float(np.abs(apart).max()), brier, float((chance - score).mean())
    return dict(zip(SCORED, found, strict=True))


Draw: TypeAlias = Callable[[int, Random], People]
# Changes a log of columns x, s, decision, y (the label of everybody), propensity, first and second.
Change: TypeAlias = Callable[[pd.DataFrame, Random], pd.DataFrame]


@functools.cache
def finite(name: str, simulated: bool) -> People:
    """A large population of `synthetic` or `credit`, with their labels or ones that a logistic model has.

    The logging policy is logistic in a linear prediction of the label, less for the disadvantaged; the
    first policy is steeper and has none, the second is less steep. Rows of credit are drawn from its 1,000
    people, with real features multiplied by random numbers near 1; their labels are always simulated.
    """
    dataset: Any = load_dataset(name)
    random = np.random.default_rng(0)
    if name == "synthetic":
        drawn = dataset.individuals("population", FINITE)
        x = pd.DataFrame({key: drawn[key] for key in dataset.config.observed})
        s, label, features = drawn["s"], drawn["label"].astype(float), dataset.schema
    else:
        table, rows = dataset.table(), random.integers(1000, size=FINITE)
        x, s, label = (
            table.x.iloc[rows].reset_index(drop=True),
            table.s[rows],
            table.label[rows].astype(float),
        )
        features = table.schema
        for one in features:
            if one.kind.name == "REAL":
                x[one.name] *= random.lognormal(sigma=0.03, size=FINITE)
            elif one.kind.name == "CATEGORICAL":
                x[one.name] = "level " + x[one.name].astype(int).astype(str)
    x = x[features.names]
    inputs = pd.get_dummies(x).to_numpy(dtype=np.float32)
    inputs = StandardScaler().fit_transform(np.column_stack([inputs, s]))
    score = (
        LogisticRegression(C=0.1, max_iter=1000)
        .fit(inputs[:50_000], label[:50_000])
        .decision_function(inputs)
    )
    score = (score - score.mean()) / score.std()
    return People(
        x.assign(s=np.where(s > 0, "advantaged", "disadvantaged")),
        label if not simulated and name == "synthetic" else expit(logit(label.mean()) + 1.5 * score),
        expit(0.3 + 0.8 * score - 0.5 * (s < 0)),
        (expit(2.0 * score), expit(0.5 + 1.0 * score)),
        cost=0.6 if name == "credit" else COST,
    )


def sampled(n: int, random: Random, name: str, simulated: bool = False) -> People:
    """People of a finite population; everybody if as many are asked for."""
    all_people = finite(name, simulated)
    if n >= FINITE:
        return all_people
    rows = random.integers(FINITE, size=n)
    return replace(
        all_people,
        x=all_people.x.iloc[rows].reset_index(drop=True),
        chance=all_people.chance[rows],
        propensity=all_people.propensity[rows],
        policies=tuple(a[rows] for a in all_people.policies),
    )


def _normal(n: int, random: Random, groups: int = 2) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """Features x0 to x4, with the group; the features as array (N, 5); and the number of the group (N,)."""
    x, s = random.standard_normal((n, 5)), random.integers(groups, size=n)
    return pd.DataFrame(x, columns=[f"x{i}" for i in range(5)]).assign(s=[f"g{k}" for k in s]), x, s


def linear(n: int, random: Random, groups: int = 2) -> People:
    """Decisions and labels by logistic models; the second policy is fair: its feature matters to nothing."""
    table, x, s = _normal(n, random, groups)
    chance, propensity = (
        expit(0.3 + 0.8 * x[:, 0] + 0.5 * x[:, 2] - 0.4 * s / (groups - 1)),
        expit(0.6 * x[:, 0] - 0.5 * x[:, 1] + 0.4 * s / (groups - 1)),
    )
    unfair = expit(x[:, 0] + 0.6 * x[:, 2] + s / (groups - 1) - 0.5)
    return People(table, chance, propensity, (unfair, expit(1.5 * x[:, 3])))


def interaction(n: int, random: Random, kind: str) -> People:
    """Decisions and labels by a product of two features or by crossing steps, which no linear model sees."""
    table, x, s = _normal(n, random)
    if kind == "product":
        decision = 0.9 * x[:, 0] * x[:, 1] + 0.5 * x[:, 2]
        label = 0.2 + 1.2 * x[:, 0] * x[:, 1] + 0.6 * x[:, 3] * np.where(s == 1, 1, -1)
    else:
        crossed = (x[:, 0] > 0) ^ (x[:, 1] > 0)
        decision, label = 1.2 * crossed - 0.6 + 0.5 * x[:, 2], 1.6 * crossed - 0.8 + 0.5 * np.abs(x[:, 3])
    target = expit(2 * x[:, 0] + 1.5 * x[:, 1] * s - 0.5)
    return People(
        table, expit(label), np.clip(expit(decision), 0.02, 0.98), (target, expit(x[:, 2] + s - 0.5))
    )


def near_the_threshold(
    n: int, random: Random, deterministic: bool, rotated: bool, compared: bool = False
) -> People:
    """Decisions above a threshold of a score or random; a policy that accepts others near the threshold.

    `compared` puts the policy that logged the decisions first.
    """
    people = linear(n, random)
    score = logit(people.propensity)
    moved = score + (0.12 * people.x["x2"].to_numpy() if rotated else 0.05)
    propensity = (score > 0).astype(float) if deterministic else people.propensity
    policies = (*([propensity] if compared else []), (moved > 0).astype(float))
    return replace(people, propensity=propensity, policies=policies)


def knowing(n: int, random: Random, officer: bool, model: bool) -> People:
    """A policy that the decision enters, a model's prediction enters, or both."""
    people = linear(n, random)
    likes = (people.policies[0] > 0.5) if model else np.ones(n)
    return replace(people, policies=(likes * (people.propensity if officer else 1.0),))


def with_missing(n: int, random: Random) -> People:
    """A number that is missing more often where it is high; the decisions are by what the log holds."""
    people = linear(n, random)
    x0, missing = people.x["x0"], random.random(n) < expit(1.5 * people.x["x0"])
    seen = x0.mask(missing, -0.5)
    return replace(
        people,
        x=people.x.assign(x0=x0.mask(missing)),
        propensity=expit(0.8 * seen - 0.5 * people.x["x1"]).to_numpy(),
        policies=(expit(2.0 * seen + people.x["x2"]).to_numpy(),),
    )


def rare(n: int, random: Random, share: float, cost: float) -> People:
    """Few people with the rarer label."""
    people = linear(n, random)
    score = logit(people.chance)
    return replace(people, chance=expit(logit(share) + 0.7 * (score - 0.1)), cost=cost)


def confounded(n: int, random: Random, odds: float) -> People:
    """Labels of the rejected have `odds` times the odds of those of accepted people with equal features."""
    people = linear(n, random)
    return replace(people, of_rejected=expit(logit(people.chance) + np.log(odds)) if odds else np.zeros(n))


def with_score(n: int, random: Random, by: str) -> People:
    """A score that is not the best possible, and decisions by it, by another score or by noise."""
    people = linear(n, random)
    x0, x1, x2, x3 = (people.x[name].to_numpy() for name in ("x0", "x1", "x2", "x3"))
    log_odds = 0.4 + 0.8 * x0 + 0.3 * x2 + 0.3 * x3
    decision = {"itself": 1.5 * log_odds - 0.5, "another": 0.3 + 0.9 * x2 + 0.4 * x1, "noise": 0.0 * x0}[by]
    return replace(
        people, x=people.x.assign(score=expit(log_odds)), propensity=np.clip(expit(decision), 0.05, 0.95)
    )


def with_amounts(n: int, random: Random) -> People:
    """A gain and a loss for each person, which depend on a feature."""
    people = linear(n, random)
    amount = np.exp(0.5 * people.x["x0"] + 0.3 * random.standard_normal(n))
    return replace(people, x=people.x.assign(gain=0.4 * amount, loss=0.6 * amount))


def labels_kept(log: pd.DataFrame, random: Random, chance: Any) -> pd.DataFrame:
    """The log, in which each label stays known with probability `chance`."""
    return log.assign(y=log["y"].where(random.random(len(log)) < chance))


def by_group(log: pd.DataFrame, random: Random) -> pd.DataFrame:
    """All labels of one group, 30 % of the other."""
    return labels_kept(log, random, np.where(log["s"] == "g0", 1.0, 0.3))


def by_feature(log: pd.DataFrame, random: Random) -> pd.DataFrame:
    """More labels where a feature is high."""
    return labels_kept(log, random, expit(0.5 + 1.5 * log["x0"]))


def repeated(log: pd.DataFrame, random: Random, own: bool = False) -> pd.DataFrame:
    """A fifth of the rows, five times each with own decisions; `own`: and with an own feature."""
    people = np.repeat(np.arange(len(log) // 5), 5)
    log = log.iloc[people].reset_index(drop=True).assign(who=people)
    if own:
        log["x4"] = random.standard_normal(len(log))
    return log.assign(decision=random.random(len(log)) < log["propensity"])


def with_probability(of: Callable[[pd.DataFrame], Any]) -> Change:
    """A log with another recorded propensity."""
    return lambda log, random: log.assign(propensity=of(log))


def both_like(log: pd.DataFrame, random: Random) -> pd.DataFrame:
    """The policy of `knowing` as it looks in a log: accepted by the officer and by the model."""
    return log.assign(first=np.where(log["decision"], log["first"] / log["propensity"], 0.0))


@dataclass(frozen=True)
class Case:
    """Logs of one kind.

    Attributes:
        setting: heading of its table.
        name: what is special about the log.
        draw: draws people.
        sizes: rows of a log.
        share: of the number of logs of a basic case.
        recorded: whether the log has propensities.
        change: of the log.
        options: of `fairall.evaluate.evaluate`.
        policy: column, if not that of the first policy.
        asked: parts of the evaluation, of `evidence.PARTS`.
        wrong: whether the log cannot tell, or is told wrong, so that a refusal is right.
    """

    setting: str
    name: str
    draw: Draw
    sizes: Sequence[int] = (500, 2_000)
    share: float = 0.25
    recorded: bool = True
    change: Change | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    policy: str = "first"
    asked: Sequence[str] = ("value",)
    wrong: bool = False

    def log(self, n: int, random: Random) -> tuple[pd.DataFrame, float]:
        """One log of n rows, and c."""
        people = self.draw(n, random)
        log = people.x.assign(
            decision=random.random(n) < people.propensity,
            y=(random.random(n) < people.chance).astype(float),
            propensity=people.propensity,
            **dict(zip(("first", "second"), people.policies, strict=False)),
        )
        log = log if self.change is None else self.change(log, random)
        log = log.assign(decision=log["decision"].astype(int), label=log["y"].where(log["decision"] == 1))
        return log.drop(columns=["y", *([] if self.recorded else ["propensity"])]), people.cost


def both(setting: str, name: str, draw: Draw, **more: Any) -> list[Case]:
    """The same kind of log with recorded propensities and without."""
    return [
        Case(setting, ", ".join(filter(None, (name, source))), draw, recorded=recorded, **more)
        for recorded, source in SOURCE.items()
    ]


def _basic() -> Iterator[Case]:
    constant, part = DummyClassifier(), functools.partial
    for name in ("synthetic", "credit"):
        draw, simulated = part(sampled, name=name), part(sampled, name=name, simulated=name == "synthetic")
        for n, share in ((500, 1.0), (2_000, 1.0), (20_000, 0.02)):
            basic = part(Case, f"Basic: {name}", sizes=(n,), share=share, asked=EVERY)
            yield basic(name="recorded propensities", draw=draw)
            yield basic(name="estimated propensities", draw=draw, recorded=False)
            wrong = part(basic, recorded=False, share=share / 5)
            yield wrong(name="wrong outcome model", draw=draw, options={"outcome_model": constant})
            options = {"propensity_model": constant}
            yield wrong(name="wrong propensity model", draw=simulated, options=options, wrong=True)


def _refusals() -> Iterator[Case]:
    part = functools.partial
    refused, of = part(Case, "Refusals", share=0.1), part(both, "Refusals", share=0.1)
    near = part(near_the_threshold, deterministic=True, rotated=False)
    scores = with_probability(
        lambda log: pd.Series(expit(0.6 * log["x0"] - 0.5 * log["x1"])).where(log["decision"])
    )
    name = "✗ probabilities of the accepted only, decided by a threshold"
    yield refused(name, near, change=scores, wrong=True)
    accepted = with_probability(lambda log: log["propensity"].where(log["decision"]))
    yield refused("✓ propensities of the accepted only", linear, change=accepted)
    opposite, ones = with_probability(lambda log: 1 - log["propensity"]), with_probability(lambda log: 1.0)
    yield refused("✗ 1 − π recorded", linear, change=opposite, wrong=True)
    yield refused("✗ all propensities 1", linear, change=ones, wrong=True)
    yield refused("✓ π recorded", linear)
    for words, rotated in (("2 % more accepted", False), ("rotated by 9 %", True)):
        for wrong, kind in ((True, "✗ threshold"), (False, "✓ random decisions")):
            draw = part(near_the_threshold, rotated=rotated, deterministic=wrong)
            compared = part(draw, compared=True)
            for source in SOURCE.values():
                own = part(refused, recorded=source == SOURCE[True], wrong=wrong)
                name = f"{kind}, {words}, {source}"
                yield own(name, draw)
                yield own(f"{name}, less the decisions", compared, policy="decision", asked=("differences",))
    yield from of("✓ policy = the decisions", part(knowing, officer=True, model=False), policy="decision")
    yield from of("✓ the model likes", part(knowing, officer=False, model=True))
    name, draw = "✗ officer accepts and the model likes, recorded", part(knowing, officer=True, model=True)
    yield refused(name, draw, change=both_like, wrong=True)


def _others() -> Iterator[Case]:
    part, rates = functools.partial, ("value", "gaps")
    for kind in ("product", "steps"):
        yield from both("Interactions", kind, part(interaction, kind=kind), share=0.5, asked=EVERY)
    asked: Sequence[str] = (*rates, "guarantee")
    yield from both("Missing cells", "missing numbers", with_missing, asked=rates)
    yield from both("Missing cells", "labels by group 100 % and 30 %", linear, change=by_group, asked=asked)
    yield from both("Missing cells", "labels by a feature", linear, change=by_feature, asked=asked)
    people, drop = part(both, "Repeated people", change=repeated, asked=rates), {"drop": ["who"]}
    yield from people("person=", linear, options={"person": "who"})
    yield from people("rows repeat", linear, options=drop)
    name, change = "rows differ a little, recorded", part(repeated, own=True)
    yield Case("Repeated people", name, linear, change=change, options=drop, asked=rates, wrong=True)
    amounts = {"gain": "gain", "loss": "loss"}
    yield from both("Amounts", "", with_amounts, options=amounts, asked=("value", "differences", "bounds"))
    gaps = part(both, "Differences of gaps", share=0.5, asked=("gaps", "differences"))
    for groups, name in ((2, "two groups"), (5, "five groups")):
        yield from gaps(name, part(linear, groups=groups))
    few, asked = part(rare, share=0.02, cost=0.02), (*rates, "groups")
    yield Case("Rare labels", "2 % positives, recorded", few, (2_000, 20_000), asked=asked)
    yield Case("Rare labels", "2 % positives, estimated", few, (2_000,), recorded=False, asked=asked)
    most, asked = part(rare, share=0.99, cost=0.5), (*rates, "guarantee", "bounds")
    yield Case("Rare labels", "1 % negatives, recorded", most, (500,), asked=asked)
    for name, odds in (("odds halved", 1 / ODDS), ("odds doubled", ODDS)):
        draw, asked = part(confounded, odds=odds), ("bounds", "sensitivity")
        yield from both("Unobserved confounding", name, draw, share=0.2, asked=asked)
    logistic = {"score": "score", "propensity_model": "logistic", "outcome_model": "logistic"}
    scored = part(Case, "Scores", recorded=False, asked=("score",))
    for by, name in (("itself", "the score itself"), ("another", "another score"), ("noise", "noise")):
        draw, sizes = part(with_score, by=by), (1_000, 2_000, 10_000)
        yield scored(f"selected by {name}", draw, sizes, share=0.5, options=logistic)
    draw, own = part(with_score, by="itself"), {"score": "score"}
    yield scored("selected by the score itself, default models", draw, (1_000, 2_000), share=0.1, options=own)
    draw, name = part(confounded, odds=0.0), "no rejected person would repay"
    yield from both("Unobserved confounding", name, draw, share=0.2, asked=("bounds",))


CASES = [*_basic(), *_refusals(), *_others()]
