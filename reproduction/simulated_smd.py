"""How often the interval of a standardised mean difference covers the true one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from scipy.stats import beta

from reproduction.simulated_impact import adverse_impact
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


def truth(small: int, means: tuple[float, float], variances: tuple[float, float]) -> float:
    """Difference of means by the pooled standard deviation."""
    pooled = (small * variances[0] + LARGE * variances[1]) / (small + LARGE)
    return (means[0] - means[1]) / np.sqrt(pooled)


def covered(found: Mapping[str, Mapping[str, Any]], true: float) -> Mapping[str, bool]:
    """Whether the interval of the small group covers, where there is one."""
    own = found["a"]["smd"]
    known = not np.isnan(own["low"])
    return {"has an interval": known} | ({"covered": own["low"] <= true <= own["high"]} if known else {})


def accepted(
    random: np.random.Generator, small: int, rates: tuple[float, float], rows: int
) -> Mapping[str, bool]:
    """Of acceptance, by the rates of the small and of the large group."""
    side = np.arange(small + LARGE) < small
    policy = decisions(random, np.where(side, *rates), rows)
    found = adverse_impact(
        np.where(side, "a", "b").repeat(rows),
        random.random(policy.size) < 0.5,
        policy.ravel(),
        person=np.arange(len(side)).repeat(rows),
        reference="b",
    )
    return covered(found, truth(small, rates, (rates[0] * (1 - rates[0]), rates[1] * (1 - rates[1]))))


def scored(
    random: np.random.Generator, small: int, shapes: tuple[tuple[float, float], tuple[float, float]]
) -> Mapping[str, bool]:
    """Of a score, by the shapes of its beta distributions in the small and in the large group."""
    score = np.concatenate([random.beta(*shapes[0], small), random.beta(*shapes[1], LARGE)])
    group = np.repeat(["a", "b"], [small, LARGE])
    found = adverse_impact(group, random.random(len(group)) < 0.5, score=score, reference="b")
    means, variances = ((of(*shapes[0]), of(*shapes[1])) for of in (beta.mean, beta.var))
    return covered(found, truth(small, means, variances))


KINDS: dict[str, Callable[..., Mapping[str, bool]]] = {
    "acceptance, 80 and 80 %": partial(accepted, rates=(0.8, 0.8), rows=1),
    "acceptance, 95 and 95 %": partial(accepted, rates=(0.95, 0.95), rows=1),
    "acceptance, 90 and 60 %": partial(accepted, rates=(0.9, 0.6), rows=1),
    "acceptance, 30 and 50 %": partial(accepted, rates=(0.3, 0.5), rows=1),
    "acceptance, 30 and 50 %, three rows each": partial(accepted, rates=(0.3, 0.5), rows=ROWS),
    "score, B(2, 8) in both": partial(scored, shapes=((2.0, 8.0), (2.0, 8.0))),
    "score, B(5, 5) and B(2, 8)": partial(scored, shapes=((5.0, 5.0), (2.0, 8.0))),
    "score, B(2, 8) and B(5, 5)": partial(scored, shapes=((2.0, 8.0), (5.0, 5.0))),
}
CASES = tuple(
    Case(f"{name}; {small} people", partial(replicate, small=small), 400, {"covered": ("≥", 0.93)})
    for name, replicate in KINDS.items()
    for small in SMALL
)
