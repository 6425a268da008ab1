"""How often the intervals of those whom only the second of two policies accepts cover the truth."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, partial
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit

from fairall.evaluate import compare
from reproduction.simulated_impact import covered
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
# Columns and models of a log whose labels are known of accepted people.
ESTIMATED: dict[str, Any] = {
    "decision": "granted",
    "label": "repaid",
    "cost": COST,
    "propensity_model": "logistic",
    "outcome_model": "logistic",
}
PROPENSITY = {"recorded": {"propensity": "p"}, "estimated": {"drop": ["p"]}}


def applicants(random: np.random.Generator, rows: int) -> pd.DataFrame:
    """Features, probability of a good label, propensities `p`, and those of two policies."""
    people = pd.DataFrame({"score": random.normal(size=rows), "sex": random.choice(["f", "m"], rows)})
    log_odds = {
        "p": 0.2 + 0.8 * people["score"] - 0.8 * (people["sex"] == "f"),
        "mild": 1.0 + people["score"],
        "strict": 1.7 * people["score"] - 0.5,
        "chance": 0.3 + people["score"],
    }
    return people.assign(**{name: expit(of) for name, of in log_odds.items()})


@cache
def truth(first: str, second: str) -> dict[str, float]:
    """The share of positive labels, and the margin."""
    people = applicants(np.random.default_rng(0), 1_000_000)
    swapped_in = (1.0 - people[first]) * people[second]
    gained = (people[second] - people[first]) @ (people["chance"] - COST)
    return {"good": swapped_in @ people["chance"] / swapped_in.sum(), "margin": gained / swapped_in.sum()}


def replicate(
    random: np.random.Generator, rows: int, first: str, second: str, propensity: str
) -> Mapping[str, bool]:
    """What happens in a log of some rows."""
    people = applicants(random, rows)
    granted = random.random(rows) < people["p"]
    repaid = (random.random(rows) < people["chance"]).where(granted)
    log = people[["score", "sex", "p"]].assign(granted=granted, repaid=repaid)
    policies = (None if name == "p" else people[name].to_numpy() for name in (first, second))
    table = compare(*policies, log, sensitive="sex", **ESTIMATED, **PROPENSITY[propensity]).table("swaps")
    found = table[table["set"] == "second"].set_index("measure")
    return covered({name: (found.loc[name], true) for name, true in truth(first, second).items()})


CASES = tuple(
    Case(
        f"A: {first}, B: {second}, {propensity} propensities, {rows:,} rows",
        partial(replicate, rows=rows, first=first, second=second, propensity=propensity),
        250,
        dict.fromkeys(("good", "margin"), ("≥", 0.9)),
    )
    for first, second, propensity, rows in (
        ("mild", "strict", "recorded", 500),
        ("mild", "strict", "estimated", 2000),
        ("p", "strict", "estimated", 500),
        ("strict", "p", "recorded", 500),
    )
)
