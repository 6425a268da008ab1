"""How often the test by person, and of probabilities, rejects equal acceptance rates, and unequal ones."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from reproduction.simulated_impact import LEVEL, adverse_impact
from reproduction.simulations import Case

TITLE = "Tests by person and of probabilities"
NOTE = (
    "A small and a large group of 200 people together. Both have one rate, drawn between 10 and 90 % for "
    "each log; in the last two cases they have 30 and 60 %. Decisions on the three rows of a person are "
    "mostly alike. Unlike spreads: of the beta distributions (.5, .5) in the small group and (20, 20) in the "
    "large one."
)
TESTED = ("fairall/evaluate/analyses/impact.py",)

PEOPLE, ROWS = 200, 3
ALIKE = 0.8  # share of a person's decisions that are the same one
SMALL = (10, 20, 40)


def decisions(random: np.random.Generator, rate: np.ndarray, rows: int) -> np.ndarray:
    """Decisions on P people by their rate (P, 1), shape (P, rows)."""
    first, others = random.random(rate.shape) < rate, random.random((len(rate), rows)) < rate
    return np.where(random.random(others.shape) < ALIKE, first, others).astype(float)


def probabilities(random: np.random.Generator, rate: np.ndarray, rows: int) -> np.ndarray:
    """Acceptance probabilities of P people by their rate (P, 1), shape (P, rows)."""
    shape = 3.0 * rate, 3.0 * (1.0 - rate)
    return ALIKE * random.beta(*shape) + (1.0 - ALIKE) * random.beta(*shape, (len(rate), rows))


def replicate(
    small: int,
    draw: Any,
    rows: int,
    rates: Sequence[float],
    spreads: Sequence[float],
    random: np.random.Generator,
) -> dict[str, bool]:
    """What happens in a log of a small group, of one rate that is drawn where none are given."""
    sizes = (small, PEOPLE - small)
    rate = np.repeat(rates or [random.uniform(0.1, 0.9)] * 2, sizes)
    policy = draw(random, rate[:, None], rows)
    if spreads:
        policy = random.beta(*[np.repeat(spreads, sizes)] * 2)
    return {"p < .05": adverse_impact(random, sizes, rows=rows, policy=policy.ravel())["p"].min() < LEVEL}


EQUAL = ("", SMALL, 500, {"p < .05": ("≤", 0.06)})
UNEQUAL = (", unequal rates", (40,), 200, {"p < .05": ("≥", 0.8)})
CASES = tuple(
    Case(
        f"{name}, {small} people in the small group{rest}",
        partial(replicate, small, *log),
        replicates,
        claims,
    )
    for name, log, (rest, sizes, replicates, claims) in (
        ("decisions, three rows each", (decisions, ROWS, (), ()), EQUAL),
        ("probabilities, different people", (probabilities, 1, (), ()), EQUAL),
        ("probabilities, three rows each", (probabilities, ROWS, (), ()), EQUAL),
        ("probabilities of unlike spreads", (probabilities, 1, (), (0.5, 20.0)), (*EQUAL[:3], {})),
        ("decisions, three rows each", (decisions, ROWS, (0.3, 0.6), ()), UNEQUAL),
        ("probabilities, different people", (probabilities, 1, (0.3, 0.6), ()), UNEQUAL),
    )
    for small in sizes
)
