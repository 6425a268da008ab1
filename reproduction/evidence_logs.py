"""Logs of past decisions drawn from populations with known truth, for `reproduction.evidence`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
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


def truth_of(people: pd.DataFrame, cost: float = COST) -> dict[str, float]:
    """The truth of each quantity by name, of the second policy too, and second minus first.

    Args:
        people: N rows; columns: features, the group `s`, `chance`: P(y = 1) of a person who was accepted,
            `propensity` of the logged decisions, `first` and perhaps `second`: acceptance probabilities of
            the policies to judge, perhaps `rejected`: P(y = 1) of a person who was rejected, if another one.
        cost: c.
    """
    found = first = _truth_of(people, people["first"], cost)
    if "second" in people:
        for name, value in _truth_of(people, people["second"], cost).items():
            found = found | {
                f"{name} of the second policy": value,
                f"difference: {name}": value - first[name],
            }
    return found


def _truth_of(people: pd.DataFrame, a: pd.Series, cost: float) -> dict[str, float]:
    p = people.chance
    if "rejected" in people:
        p = people.propensity * p + (1 - people.propensity) * people.rejected
    gain, loss = people.get("gain", 1 - cost), people.get("loss", cost)
    sums = pd.DataFrame({"a": a, "y": p, "ay": a * p, "value": a * (p * gain - (1 - p) * loss)})
    by = sums.groupby(people.s).mean()
    rates = pd.DataFrame(
        {
            "dpu": by["a"],
            "equal_opportunity": by["ay"] / by["y"],
            "predictive_parity": by["ay"] / by["a"],
            "false_positive": (by["a"] - by["ay"]) / (1 - by["y"]),
        }
    )
    found = {"value": float(sums["value"].mean()), **(rates.max() - rates.min())}
    found |= rates["equal_opportunity"].add_prefix("TPR of group ").to_dict()
    return found | (score_truth(people.score.to_numpy(), p.to_numpy()) if "score" in people else {})


def score_truth(score: np.ndarray, chance: np.ndarray) -> dict[str, float]:
    """`SCORED` by quantity, of a score (N,) of people with the given P(y = 1), shape (N,)."""
    order = np.argsort(score)
    positive, negative = (of[order] / of.sum() for of in (chance, 1.0 - chance))
    apart = np.cumsum(negative) - np.cumsum(positive)
    auc = float((positive * (np.cumsum(negative) - negative / 2.0)).sum())
    brier = float((chance * (1.0 - score) ** 2 + (1.0 - chance) * score**2).mean())
    found = auc, 2.0 * auc - 1.0, float(np.abs(apart).max()), brier, float((chance - score).mean())
    return dict(zip((f"score: {name}" for name in SCORED), found, strict=True))


Draw: TypeAlias = Callable[[int, Random], pd.DataFrame]
# Changes a log of columns x, s, decision, y (the label of everybody), propensity, first and second.
Change: TypeAlias = Callable[[pd.DataFrame, Random], pd.DataFrame]


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


def sampled(n: int, random: Random, name: str, simulated: bool) -> pd.DataFrame:
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
    n: int, random: Random, deterministic: bool, rotated: bool, compared: bool = False
) -> pd.DataFrame:
    """Decisions above a threshold of a score or random; a policy that accepts others near the threshold.

    `compared` puts the policy that logged the decisions first.
    """
    people = linear(n, random)
    score = logit(people.propensity)
    moved = (score + (0.12 * people.x2 if rotated else 0.05) > 0).astype(float)
    propensity = (score > 0).astype(float) if deterministic else people.propensity
    return people.assign(propensity=propensity, first=propensity if compared else moved, second=moved)


def knowing(n: int, random: Random, officer: bool, model: bool) -> pd.DataFrame:
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


def labels_kept(chance: Callable[[pd.DataFrame], Any]) -> Change:
    """A log in which each label stays known with some probability."""
    return lambda log, random: log.assign(y=log["y"].where(random.random(len(log)) < chance(log)))


def repeated(log: pd.DataFrame, random: Random, own: bool = False) -> pd.DataFrame:
    """A fifth of the rows, five times each with own decisions; `own`: and with an own feature."""
    people = np.repeat(np.arange(len(log) // 5), 5)
    log = log.iloc[people].reset_index(drop=True).assign(who=people)
    if own:
        log["x4"] = random.standard_normal(len(log))
    return log.assign(decision=random.random(len(log)) < log["propensity"])


def assigned(**columns: Any) -> Change:
    """A log with other columns, of values or of functions of the log."""
    return lambda log, random: log.assign(**columns)


@dataclass(frozen=True)
class Case:
    """Logs of one kind.

    Attributes:
        setting: heading of its table.
        name: what is special about the log.
        draw: draws people.
        sizes: rows of a log.
        cost: c.
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
    cost: float = COST
    share: float = 0.25
    recorded: bool = True
    change: Change | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    policy: str = "first"
    asked: Sequence[str] = ("value",)
    wrong: bool = False

    def log(self, n: int, random: Random) -> pd.DataFrame:
        """One log of n rows."""
        people = self.draw(n, random)
        decision, y = (random.random(n) < people[name] for name in ("propensity", "chance"))
        log = people.assign(decision=decision, y=y.astype(float))
        log = log if self.change is None else self.change(log, random)
        log = log.assign(decision=log["decision"].astype(int), label=log["y"].where(log["decision"] == 1))
        unknown = {"propensity": self.recorded, "second": "differences" in self.asked}
        hidden = [name for name, known in unknown.items() if not known]
        return log.drop(columns=["y", "chance", "rejected", *hidden], errors="ignore")


def both(setting: str, name: str, draw: Draw, **more: Any) -> list[Case]:
    """The same kind of log with recorded propensities and without."""
    return [
        Case(setting, ", ".join(filter(None, (name, source))), draw, recorded=recorded, **more)
        for recorded, source in SOURCE.items()
    ]


def _basic() -> Iterator[Case]:
    constant, part = DummyClassifier(), functools.partial
    for name, cost in (("synthetic", COST), ("credit", 0.6)):
        simulated = part(sampled, name=name, simulated=True)
        draw = part(sampled, name=name, simulated=name == "credit")
        for n, share in ((500, 1.0), (2_000, 1.0), (20_000, 0.02)):
            basic = part(Case, f"Basic: {name}", sizes=(n,), cost=cost, share=share, asked=EVERY)
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
    name = "✗ probabilities of the accepted only, decided by a threshold"
    scores = assigned(propensity=lambda log: expit(0.6 * log.x0 - 0.5 * log.x1).where(log.decision))
    yield refused(name, near, change=scores, wrong=True)
    accepted = assigned(propensity=lambda log: log.propensity.where(log.decision))
    yield refused("✓ propensities of the accepted only", linear, change=accepted)
    opposite, ones = assigned(propensity=lambda log: 1 - log.propensity), assigned(propensity=1.0)
    yield refused("✗ 1 − π recorded", linear, change=opposite, wrong=True)
    yield refused("✗ all propensities 1", linear, change=ones, wrong=True)
    yield refused("✓ π recorded", linear)
    for words, rotated in (("2 % more accepted", False), ("rotated by 9 %", True)):
        for wrong, kind in ((True, "✗ threshold"), (False, "✓ random decisions")):
            draw = part(near_the_threshold, rotated=rotated, deterministic=wrong)
            for recorded, source in SOURCE.items():
                own = part(refused, recorded=recorded, wrong=wrong)
                name, compared = f"{kind}, {words}, {source}", part(draw, compared=True)
                yield own(name, draw)
                yield own(f"{name}, less the decisions", compared, policy="decision", asked=("differences",))
    yield from of("✓ policy = the decisions", part(knowing, officer=True, model=False), policy="decision")
    yield from of("✓ the model likes", part(knowing, officer=False, model=True))
    name, draw = "✗ officer accepts and the model likes, recorded", part(knowing, officer=True, model=True)
    both_like = assigned(first=lambda log: np.where(log.decision, log["first"] / log.propensity, 0.0))
    yield refused(name, draw, change=both_like, wrong=True)


def _others() -> Iterator[Case]:
    part, rates = functools.partial, ("value", "gaps")
    for kind in ("product", "steps"):
        yield from both("Interactions", kind, part(interaction, kind=kind), share=0.5, asked=EVERY)
    asked: Sequence[str] = (*rates, "guarantee")
    yield from both("Missing cells", "missing numbers", with_missing, asked=rates)
    for name, chance in (
        ("labels by group 100 % and 30 %", lambda log: np.where(log.s == "g0", 1.0, 0.3)),
        ("labels by a feature", lambda log: expit(0.5 + 1.5 * log.x0)),
    ):
        yield from both("Missing cells", name, linear, change=labels_kept(chance), asked=asked)
    people, drop = part(both, "Repeated people", change=repeated, asked=rates), {"drop": ["who"]}
    yield from people("person=", linear, options={"person": "who"})
    yield from people("rows repeat", linear, options=drop, wrong=True)
    name, change = "rows differ a little, recorded", part(repeated, own=True)
    yield Case("Repeated people", name, linear, change=change, options=drop, asked=rates, wrong=True)
    amounts = {"gain": "gain", "loss": "loss"}
    yield from both("Amounts", "", with_amounts, options=amounts, asked=("value", "differences", "bounds"))
    gaps = part(both, "Differences of gaps", share=0.5, asked=("gaps", "differences"))
    for groups, name in ((2, "two groups"), (5, "five groups")):
        yield from gaps(name, part(linear, groups=groups))
    few, asked = part(rare, share=0.02), (*rates, "groups")
    yield Case("Rare labels", "2 % positives, recorded", few, (2_000, 20_000), 0.02, asked=asked)
    yield Case("Rare labels", "2 % positives, estimated", few, (2_000,), 0.02, recorded=False, asked=asked)
    most, asked = part(rare, share=0.99), (*rates, "guarantee", "bounds")
    yield Case("Rare labels", "1 % negatives, recorded", most, (500,), asked=asked)
    worst = "no rejected person would repay"
    for name, odds in (("odds halved", 1 / ODDS), ("odds doubled", ODDS), (worst, 0.0)):
        draw, asked = part(confounded, odds=odds), ("bounds", *(["sensitivity"] if odds else []))
        yield from both("Unobserved confounding", name, draw, share=0.2, asked=asked)
    logistic = {"score": "score", "propensity_model": "logistic", "outcome_model": "logistic"}
    scored = part(Case, "Scores", recorded=False, asked=("score",))
    for by, name in (("itself", "the score itself"), ("another", "another score"), ("noise", "noise")):
        draw, sizes = part(with_score, by=by), (1_000, 2_000, 10_000)
        yield scored(f"selected by {name}", draw, sizes, share=0.5, options=logistic)


CASES = [*_basic(), *_refusals(), *_others()]
