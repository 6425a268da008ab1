"""Decisions on groups without labels: differences between groups are found, and only where there are some."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats
from scipy.special import logit

from fairall.evaluate import evaluate
from reproduction.population import Events, Random, covered, logistic, many, outside

LEVEL = 0.05
ALIKE = 0.8  # share of a person's decisions that are the same one
GROUPS = ["first", "second", "last"]
ROLES = {"decision": "granted", "propensity": "p"}


def adverse_impact(
    random: Random,
    sizes: Sequence[int],
    chance: Any = 0.5,
    rows: int = 1,
    policy: np.ndarray | None = None,
    **options: Any,
) -> pd.DataFrame:
    """The table `impact` of a log without labels, by the decisions or by a policy, with measures as index.

    Args:
        random: of the decisions.
        sizes: number of people in each group, whose name is its place.
        chance: of an accepted row, one or of shape (N,).
        rows: of each person.
        policy: acceptance probabilities, shape (N,).
        options: of `evaluate`.
    """
    table = pd.DataFrame({"group": np.repeat(range(len(sizes)), np.multiply(sizes, rows)), "p": 0.5})
    table = table.assign(who=table.index // rows, granted=random.random(len(table)) < chance)
    found = evaluate(policy, table, sensitive="group", person="who", **ROLES, **options)
    return found.table("impact").set_index("measure")


def rates_of(random: Random, sizes: Sequence[int], rates: Sequence[float] = ()) -> np.ndarray:
    """The acceptance rate of each person of groups, shape (N,): one that is drawn where none are given."""
    return np.repeat(rates or [random.uniform(0.1, 0.9)] * len(sizes), sizes)


def decided(random: Random, sizes: Sequence[int], **rates: Any) -> Events:
    """What happens in a log of groups of some sizes and `rates`, without a given reference group."""
    found = adverse_impact(random, sizes, rates_of(random, sizes, **rates))
    return {
        "some p < .05": found["p"].min() < LEVEL,
        "some interval of AIR without 100": outside(found.loc["ratio"], 1.0).any(),
        "some interval of SMD without 0": outside(found.loc["smd"], 0.0).any(),
        "a reference group of fewer than 30 people": sizes[int(found["reference"].iloc[0])] < 30,
    }


def by_person(random: Random, sizes: Sequence[int], kind: str, rows: int = 1, **rates: Any) -> Events:
    """Whether two groups of people with some rows each are said to differ.

    Args:
        random: of the log.
        sizes: of the groups.
        kind: "decisions", mostly alike for each person, "probabilities", or "spreads": `rates` are then of
            beta distributions (rate, rate).
        rows: of each person.
        rates: of the groups, equal ones that are drawn by default.
    """
    rate = rates_of(random, sizes, **rates)
    policy = random.beta(rate, rate) if kind == "spreads" else own_of(random, kind, rate, rows)
    return {"p < .05": adverse_impact(random, sizes, rows=rows, policy=policy)["p"].min() < LEVEL}


def own_of(random: Random, kind: str, rate: np.ndarray, rows: int) -> np.ndarray:
    """Decisions or probabilities of P people of some rates, mostly alike, shape (P · rows,)."""
    rate, shape = rate[:, None], (len(rate), rows)
    if kind == "decisions":
        first, others = random.random(rate.shape) < rate, random.random(shape) < rate
        return np.where(random.random(shape) < ALIKE, first, others).ravel().astype(float)
    law = 3.0 * rate, 3.0 * (1.0 - rate)
    return (ALIKE * random.beta(*law) + (1.0 - ALIKE) * random.beta(*law, shape)).ravel()


def standardised(
    random: Random, sizes: Sequence[int], law: str, of: Sequence[Sequence[float]], rows: int = 1
) -> Events:
    """Whether a small group has an interval beside a large one, and whether it covers.

    Args:
        random: of the log.
        sizes: of the groups.
        law: of acceptance ("bernoulli") or of a score ("beta").
        of: parameters of the law, each of the small group and of the large one.
        rows: of each person, of acceptance.
    """
    parameters, known = np.repeat(of, sizes, axis=1), getattr(stats, law)(*np.array(of))
    policy = None if law == "beta" else own_of(random, "decisions", parameters[0], rows)
    score = {} if policy is not None else {"score": random.beta(*parameters)}
    found = adverse_impact(random, sizes, rows=rows, policy=policy, reference="1", **score).loc["smd"]
    truth = np.subtract(*known.mean()) / np.sqrt(np.average(known.var(), weights=sizes))
    events = covered({"covered": (found, truth)})
    return {"has an interval": bool(events)} | events


def grouped(random: Random, rows: int, kind: str) -> pd.DataFrame:
    """Probabilities of groups, the number of the true `group`, and who is accepted."""
    table, (rank, luck) = random.dirichlet([0.5, 0.4, 1.1], rows), random.random((2, rows))
    group, chance = (rank[:, None] > table.cumsum(1)).sum(1), 0.2 + 0.5 * table[:, 2]
    accepted = {
        "independent of the group": luck < chance,
        "for the first group first": rank < chance,
        "for the first group only": group == 0,
    }[kind]
    return pd.DataFrame(table, columns=GROUPS).assign(granted=accepted, p=0.5, group=group)


def probable(random: Random, rows: int, kind: str) -> Events:
    """Which intervals contain the truth in a log of some rows, with probabilities of groups only."""
    table, everybody = grouped(random, rows, kind).drop(columns="group"), many(grouped, kind=kind)
    truth = everybody.groupby("group")["granted"].mean()
    found = evaluate(None, table, sensitive=GROUPS, reference="first", **ROLES)
    shown = found.table("impact").fillna({"high": np.inf}).set_index(["group", "measure"]).loc
    return covered(
        {
            "rate": (shown["first", "rate"], truth[0]),
            "AIR": (shown["last", "ratio"], truth[2] / truth[0]),
            "weighted rate": (shown["first", "weighted_rate"], truth[0]),
        }
    )


def unlike(random: Random, rows: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Two features of women and men, and the acceptance probability of men of these features."""
    woman = random.random(rows) < 0.4
    x = random.normal(size=(rows, 2)) - np.outer(woman, (1.0, 0.0))
    table = pd.DataFrame({"sex": np.where(woman, "f", "m"), "x": x[:, 0], "z": x[:, 1], "p": 0.5})
    return table, 0.1 + 0.7 * logistic(table, x=1.0, z=0.5)


def treatment(random: Random, rows: int, points: float, model: str, what: str = "") -> Events:
    """Which intervals of equal treatment contain the truth.

    Args:
        random: of the log.
        rows: their number.
        points: by which women of equal features are accepted less often, in percent.
        model: of group and acceptance.
        what: what is judged; "": the decisions, else the acceptance probabilities.
    """
    table, chance = unlike(random, rows)
    accepts = chance - points / 100 * (table["sex"] == "f")
    table["granted"] = random.random(rows) < accepts
    policy = accepts.to_numpy() if what else None
    found = evaluate(policy, table, sensitive="sex", reference="m", propensity_model=model, **ROLES)
    shown, men = found.table("treatment").set_index("measure").loc, many(unlike)[1].mean()
    women = men - points / 100
    events = covered(
        {
            "difference covered": (shown["adjusted"], women - men),
            "odds ratio covered": (shown["odds_ratio"], np.exp(logit(women) - logit(men))),
        }
    )
    if events:
        events["interval of the difference without 0"] = outside(shown["adjusted"], 0.0)
    return {"refused": not events} | events
