"""Values of policies from logs that simple models do not fit: shared causes, time that swings, no overlap."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit

from fairall.evaluate import Evaluation
from reproduction.population import Events, People, Random, covered, logistic, truth

ROWS = 1000
PER_PERSON = 5  # rows, of several rows of a person
COVERED, MARKED, EITHER = "covered", "marked", "covered or marked"
# What is added to log odds, by features x, shape (N, D).
SHIFTS: dict[str, Callable[[Random, np.ndarray], Any]] = {
    "none": lambda _, x: 0.0,
    "product of three": lambda _, x: 1.2 * x[:, :3].prod(1),
    "parity of two": lambda _, x: 1.2 * np.sign(x[:, :2]).prod(1),
    "parity of three": lambda _, x: 1.2 * np.sign(x[:, :3]).prod(1),
    "corner": lambda _, x: 3.0 * ((x[:, 0] > 0.5) & (x[:, 1] > 0.5)),
    "drift": lambda _, x: np.linspace(-1.0, 1.0, len(x)),
    # In common to each twenty neighbours.
    "branches": lambda random, x: np.repeat(random.normal(size=len(x) // 20 + 1), 20)[: len(x)],
}


def shift(random: Random, x: np.ndarray, name: str) -> Any:
    """What is added to the log odds of features x, shape (N, D): one of `SHIFTS`, or swings, as `c = 4`."""
    if name in SHIFTS:
        return SHIFTS[name](random, x)
    return np.sin(np.linspace(0.0, 2.0 * np.pi * float(name.removeprefix("c = ")), len(x)))


def people(
    random: Random, rows: int, shared: str = "none", label: str | None = None, kind: str = ""
) -> People:
    """A log.

    Args:
        random: draws the people.
        rows: N.
        shared: the `shift` of the decision, and of the label by default.
        label: the one of the label.
        kind: "irrelevant" for thirty features more, "tails" for features of heavy tails, "persons" for
            `PER_PERSON` rows of a person, with features and labels in common.
    """
    x = random.standard_normal((rows, 34 if kind == "irrelevant" else 4))
    x = random.standard_t(1.5, x.shape) if kind == "tails" else x
    own = both = shift(random, x, shared)
    if label is not None:
        own = shift(random, x, label)
    person = np.arange(rows) // PER_PERSON
    if kind == "persons":
        person = random.permutation(person)
        x[:, :2] = x[person, :2]
        own = own + random.standard_normal(rows)[person]
    table = pd.DataFrame(x).add_prefix("x").assign(sex=np.where(random.random(rows) < 0.5, "m", "f"))
    of = np.tanh(table.drop(columns="sex")) if kind == "tails" else table
    of = of.assign(man=table["sex"] == "m", shared=both, own=own)
    return People.decided(
        random,
        table.assign(person=person) if kind == "persons" else table,
        logistic(table, x0=1.2, x3=0.5).to_numpy(),
        logistic(of, 0.2, x0=0.6, man=0.3, shared=1.0).clip(0.03, 0.97).to_numpy(),
        logistic(of, 0.3, x0=0.8, x1=-0.3, own=1.0).to_numpy(),
    )


def judged(random: Random, order: Sequence[str] = (), model: str = "auto", **world: str) -> Events:
    """What becomes of one log.

    Args:
        random: draws the people.
        order: columns that the file is sorted by, one after the other; "month" is a 24th of the rows.
        model: of decision and label, as for `evaluate`.
        world: further arguments of `people`.
    """
    log = people(random, ROWS, **world)
    keys = log.table.assign(month=np.arange(ROWS) * 24 // ROWS)
    rows = keys.sort_values([*order], kind="stable").index
    log = log._replace(table=log.table.loc[rows].reset_index(drop=True), target=log.target[rows])
    found = log.judged(model, **{"person": "person"} if "person" in keys else {})
    marked = found.misfit is not None
    events = covered({COVERED: (found.values["dr"], truth(people, 500_000, **world))})
    return events | {MARKED: marked, EITHER: events[COVERED] or marked}


def one_of(random: Random, worlds: Mapping[str, Mapping[str, Any]]) -> Events:
    """Whether a log of one of some worlds, chosen at random, is marked."""
    name = random.choice([*worlds])
    marked = judged(random, model="logistic", **worlds[name])[MARKED]
    return {MARKED: marked, f"marked, {name}": marked}


TOWNS = np.array([0.2, 0.15, 0.12, 0.1, 0.1, 0.08, 0.07, 0.05, 0.05, 0.03, 0.03, 0.02])  # shares of people
# In which nobody was accepted: lower limits of features, or their value.
CORNERS: dict[str, dict[str, Any]] = {
    "x1 > 1.3": {"x1": 1.3},  # 9.7 % of the people
    "x0 > 1.65": {"x0": 1.65},  # 5 %
    "x0, x1 > 0.5": {"x0": 0.5, "x1": 0.5},  # 9.5 %
    "x0, x1 > 0.76": {"x0": 0.76, "x1": 0.76},  # 5 %
    "x0, x1 > 0.13": {"x0": 0.13, "x1": 0.13},  # 20 %
    "x0, x1, x2 > 0.1": {"x0": 0.1, "x1": 0.1, "x2": 0.1},  # 9.7 %
    "a town of 10 %": {"town": "town 3"},
    "women with x1 > 0.84": {"sex": "f", "x1": 0.84},  # 10 %
}


def townspeople(random: Random, rows: int, features: int = 5) -> pd.DataFrame:
    """Independent features of N people."""
    x = random.standard_normal((rows, features))
    town = random.choice(len(TOWNS), size=rows, p=TOWNS)
    sex = np.where(random.random(rows) < 0.5, "m", "f")
    return pd.DataFrame(x).add_prefix("x").assign(town=np.char.mod("town %d", town), sex=sex)


def with_corner(random: Random, rows: int, kind: str, share: float, bad: bool) -> People:
    """A log without acceptances in a corner, with a policy of whose acceptances a share is inside."""
    table = townspeople(random, rows)
    limits = CORNERS[kind].items()
    corner = np.all([table[c] == of if isinstance(of, str) else table[c] > of for c, of in limits], axis=0)
    of = table.assign(man=table["sex"] == "m", corner=corner)
    propensity = np.where(corner, 0.0, logistic(of, 0.2, x0=0.6, x2=-0.5, man=0.3))
    policy = logistic(table, x0=1.2, x3=0.5)
    odds = share / (1.0 - share) * policy[~corner].sum() / policy[corner].sum()
    policy = np.where(corner, policy * min(odds, 1.0), policy / max(odds, 1.0))
    chance = logistic(of, 0.3, x0=0.8, x1=-0.3, corner=-3.0 * bad)
    return People.decided(random, table, policy, propensity, chance)


def lacks_overlap(found: Evaluation) -> bool:
    """Whether the value is refused for lack of overlap, not for lack of labels."""
    return (found.refused_value or "").startswith("no overlap")


def cornered(random: Random, kind: str, rows: int, share: float = 0.5, bad: bool = False) -> Events:
    """Whether a policy with a share of its acceptances in a corner is refused, or, with bad labels, told."""
    found = with_corner(random, rows, kind, share, bad).judged("auto" if bad else "logistic")
    refused = lacks_overlap(found)
    if not bad:
        return {"refused": refused}
    true = truth(with_corner, 400_000, kind=kind, share=share, bad=bad)
    holds = any(covered({"": (found.values["dr"], true)}).values())
    return {"refused": refused, "told": refused or bool(found.in_doubt) or holds}


def any_corner(random: Random, rows: Sequence[int], shares: Sequence[float], small: Sequence[str]) -> Events:
    """A corner of any kind; `small` ones in logs of 1,000 rows and more."""
    kind, drawn = random.choice([*CORNERS]), random.choice(rows)
    return cornered(random, kind, max(drawn, 1000) if kind in small else drawn, random.choice(shares))


def rare(
    random: Random, kinds: Sequence[dict[str, Any]], rows: Sequence[int], features: Sequence[int]
) -> Events:
    """Whether one of three policies is refused on a log with a chance of acceptance everywhere.

    Args:
        random: of the log.
        kinds: weights of a decision's log odds and limits of its probability, or steps; with the number of
            rows where few are accepted.
        rows: of which one is chosen.
        features: the same of their number.
    """
    chosen, some, many = kinds[int(random.integers(len(kinds)))], random.choice(rows), random.choice(features)
    kind = {"rows": some, "features": many, "limits": (0.0, 1.0), "model": "logistic"} | chosen
    table = townspeople(random, kind["rows"], kind["features"])
    x0, x1 = table["x0"], table["x1"]
    propensity = np.select([x0 > 0.5, x1 > 0.8], [np.where(x1 > 0.0, 0.9, 0.4), 0.15], 0.5)
    if "odds" in kind:
        of = table.assign(man=table["sex"] == "m", both=x0 * x1)
        propensity = logistic(of, **kind["odds"]).clip(*kind["limits"])
    policies = [logistic(table, x0=1.5, x1=0.5), (x0 + 0.5 * x1 > 0.3) * 1.0, expit(x1)]
    policy = policies[random.integers(len(policies))]
    log = People.decided(random, table, policy, propensity, logistic(table, 0.3, x0=0.8, x1=-0.3))
    return {"refused": lacks_overlap(log.judged(kind["model"]))}
