"""How often the intervals of those whom only the second of two policies accepts cover the truth."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, partial
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit

from fairall.evaluate import compare
from reproduction.simulations import Case

TITLE = "Swap sets"
NOTE = (
    "Policies whose probabilities rise with a score, or one of them and the decisions taken (p). good: share "
    "of positive labels of those whom only B accepts; margin: by how much it may be lower until B is worth "
    "no more than A. Propensities are recorded, or estimated by logistic regression, as labels are. The "
    "truth is of a million people; a log in which an interval is refused does not count for it."
)
TESTED = (
    "fairall/evaluate/analyses/swaps.py",
    "fairall/evaluate/estimated/fairness.py",
    "fairall/evaluate/estimated/estimates.py",
)

COST = 0.4
ROLES: dict[str, Any] = {"decision": "granted", "label": "repaid", "sensitive": "sex", "cost": COST}
MODELS: dict[str, Any] = {"propensity_model": "logistic", "outcome_model": "logistic"}
PROPENSITY: dict[str, dict[str, Any]] = {"recorded": {"propensity": "p"}, "estimated": {"drop": ["p"]}}


def applicants(random: np.random.Generator, rows: int) -> pd.DataFrame:
    """Features, probability of a good label, propensities `p`, and those of two policies."""
    people = pd.DataFrame({"score": random.normal(size=rows), "sex": random.choice(["f", "m"], rows)})
    people["p"] = expit(0.2 + 0.8 * people["score"] - 0.8 * (people["sex"] == "f"))
    people["mild"], people["strict"] = expit(1.0 + people["score"]), expit(1.7 * people["score"] - 0.5)
    return people.assign(chance=expit(0.3 + people["score"]))


@cache
def truth(first: str, second: str) -> pd.Series:
    """The share of positive labels, and the margin."""
    people = applicants(np.random.default_rng(0), 1_000_000)
    swapped_in = (1.0 - people[first]) * people[second]
    gained = (people[second] - people[first]) @ (people["chance"] - COST)
    return pd.Series({"good": swapped_in @ people["chance"], "margin": gained}) / swapped_in.sum()


def replicate(
    random: np.random.Generator, rows: int, first: str, second: str, propensity: str
) -> Mapping[str, bool]:
    """What happens in a log of some rows."""
    people = applicants(random, rows)
    granted = random.random(rows) < people["p"]
    repaid = (random.random(rows) < people["chance"]).where(granted)
    log = people[["score", "sex", "p"]].assign(granted=granted.astype(int), repaid=repaid)
    a, b = (None if name == "p" else people[name].to_numpy() for name in (first, second))
    table = compare(a, b, log, **ROLES, **MODELS, **PROPENSITY[propensity]).table("swaps")
    known = table[table["set"] == "second"].set_index("measure")[["low", "high"]].dropna()
    true = truth(first, second)
    return {
        name: known["low"][name] <= true[name] <= known["high"][name]
        for name in true.index.intersection(known.index)
    }


CASES = tuple(
    Case(
        f"A: {first}, B: {second}, {propensity} propensities, {rows:,} rows",
        partial(replicate, rows=rows, first=first, second=second, propensity=propensity),
        250,
        {"good": ("≥", 0.9), "margin": ("≥", 0.9)},
    )
    for first, second, propensity, rows in (
        ("mild", "strict", "recorded", 500),
        ("mild", "strict", "estimated", 2000),
        ("p", "strict", "estimated", 500),
        ("strict", "p", "recorded", 500),
    )
)
