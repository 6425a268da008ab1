"""How often the intervals of those whom only the second of two policies accepts cover the truth."""

from __future__ import annotations

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
ESTIMATED: Any = {
    "decision": "granted",
    "label": "repaid",
    "cost": COST,
    "propensity_model": "logistic",
    "outcome_model": "logistic",
}
PROPENSITY: Any = {"recorded": {"propensity": "p"}, "estimated": {"drop": ["p"]}}


def applicants(random: np.random.Generator, rows: int) -> pd.DataFrame:
    """Features, probability of a good label, propensities `p`, and those of two policies."""
    people = pd.DataFrame({"score": random.normal(size=rows), "sex": random.choice(["f", "m"], rows)})
    log_odds = np.add(np.outer(people["score"], (0.8, 1.0, 1.7, 1.0)), (0.2, 1.0, -0.5, 0.3))
    log_odds[:, 0] -= 0.8 * (people["sex"] == "f")
    people[["p", "mild", "strict", "chance"]] = expit(log_odds)
    return people


@cache
def truth(first: str, second: str) -> dict[str, float]:
    """The share of positive labels, and the margin."""
    people = applicants(np.random.default_rng(0), 1_000_000)
    swapped_in = (1.0 - people[first]) * people[second]
    gained = (people[second] - people[first]) @ (people["chance"] - COST)
    return {"good": swapped_in @ people["chance"] / swapped_in.sum(), "margin": gained / swapped_in.sum()}


def replicate(
    first: str, second: str, propensity: str, rows: int, random: np.random.Generator
) -> dict[str, bool]:
    """What happens in a log of some rows."""
    people = applicants(random, rows)
    people["granted"] = random.random(rows) < people["p"]
    people["repaid"] = (random.random(rows) < people["chance"]).where(people["granted"])
    a, b = (None if name == "p" else people[name].to_numpy() for name in (first, second))
    log = people.drop(columns=["mild", "strict", "chance"])
    table = compare(a, b, log, sensitive="sex", **ESTIMATED, **PROPENSITY[propensity]).table("swaps")
    found = table.set_index(["set", "measure"]).loc["second"]
    return covered({name: (found.loc[name], true) for name, true in truth(first, second).items()})


CASES = tuple(
    Case(
        "A: {}, B: {}, {} propensities, {:,} rows".format(*log),
        partial(replicate, *log),
        250,
        dict.fromkeys(("good", "margin"), ("≥", 0.9)),
    )
    for log in (
        ("mild", "strict", "recorded", 500),
        ("mild", "strict", "estimated", 2000),
        ("p", "strict", "estimated", 500),
        ("strict", "p", "recorded", 500),
    )
)
