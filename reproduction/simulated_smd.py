"""How often the interval of a standardised mean difference covers the true one."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from scipy.stats import bernoulli, beta

from reproduction.simulated_impact import adverse_impact, covered
from reproduction.simulated_persons import ROWS, decisions
from reproduction.simulations import Case

TITLE = "Standardised mean differences"
NOTE = (
    "A small group beside one of 200 people. There is no interval where all people of a group are alike; "
    "such logs do not count as covered or not. Scores are of beta distributions."
)
TESTED = ("fairall/evaluate/analyses/impact.py",)

LARGE = 200
SMALL = (10, 20, 40)


def replicate(small: int, own: Any, other: Any, rows: int, random: np.random.Generator) -> dict[str, bool]:
    """Whether the small group has an interval, and whether it covers.

    Args:
        small: number of people in the small group.
        own: distribution of acceptance or score in the small group.
        other: the same in the large group.
        rows: of each person, of acceptance; 0: of a score.
        random: of the log.
    """
    sizes, means = (small, LARGE), (own.mean(), other.mean())
    if rows:
        policy = decisions(random, np.repeat(means, sizes)[:, None], rows)
        log: dict[str, Any] = {"policy": policy.ravel(), "rows": rows}
    else:
        log = {"score": np.concatenate([own.rvs(small, random), other.rvs(LARGE, random)])}
    found = adverse_impact(random, sizes, reference="1", **log).loc["smd"]
    pooled = np.average([own.var(), other.var()], weights=sizes)
    events = covered({"covered": (found, (means[0] - means[1]) / np.sqrt(pooled))})
    return {"has an interval": bool(events)} | events


CASES = tuple(
    Case(
        f"{name}; {small} people",
        partial(replicate, small, *log),
        400,
        {"covered": ("≥", 0.93)},
    )
    for name, *log in (
        ("acceptance, 80 and 80 %", bernoulli(0.8), bernoulli(0.8), 1),
        ("acceptance, 95 and 95 %", bernoulli(0.95), bernoulli(0.95), 1),
        ("acceptance, 90 and 60 %", bernoulli(0.9), bernoulli(0.6), 1),
        ("acceptance, 30 and 50 %", bernoulli(0.3), bernoulli(0.5), 1),
        ("acceptance, 30 and 50 %, three rows each", bernoulli(0.3), bernoulli(0.5), ROWS),
        ("score, B(2, 8) in both", beta(2, 8), beta(2, 8), 0),
        ("score, B(5, 5) and B(2, 8)", beta(5, 5), beta(2, 8), 0),
        ("score, B(2, 8) and B(5, 5)", beta(2, 8), beta(5, 5), 0),
    )
    for small in SMALL
)
