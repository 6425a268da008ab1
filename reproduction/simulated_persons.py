"""How often the test by person, and of probabilities, rejects equal acceptance rates, and unequal ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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
    """Decisions on P people by their rate (P,), shape (P, rows)."""
    first, others = random.random(rate.shape) < rate, random.random((len(rate), rows)) < rate[:, None]
    return np.where(random.random(others.shape) < ALIKE, first[:, None], others).astype(float)


def probabilities(random: np.random.Generator, rate: np.ndarray, rows: int) -> np.ndarray:
    """Acceptance probabilities of P people by their rate (P,), shape (P, rows)."""
    first, others = (random.beta(3.0 * of, 3.0 - 3.0 * of) for of in (rate, rate[:, None].repeat(rows, 1)))
    return ALIKE * first[:, None] + (1.0 - ALIKE) * others


def replicate(
    random: np.random.Generator,
    small: int,
    draw: Callable[..., np.ndarray],
    rows: int,
    rates: Sequence[float],
    spreads: Sequence[float],
) -> Mapping[str, bool]:
    """What happens in a log of a small group, of one rate that is drawn where none are given."""
    sizes = (small, PEOPLE - small)
    policy = draw(random, np.repeat(rates or [random.uniform(0.1, 0.9)] * 2, sizes), rows)
    if spreads:
        policy = random.beta(*[np.repeat(spreads, sizes)] * 2)
    found = adverse_impact(random, sizes, rows=rows, policy=policy.ravel())
    return {"p < .05": found["p"].min() < LEVEL}


EQUAL: tuple[Any, ...] = (SMALL, 500, {"p < .05": ("≤", 0.06)}, ())
UNEQUAL = ((40,), 200, {"p < .05": ("≥", 0.8)}, (0.3, 0.6))
CASES = tuple(
    Case(
        name.format(small),
        partial(replicate, small=small, draw=draw, rows=rows, rates=rates, spreads=spreads),
        replicates,
        claims,
    )
    for name, draw, rows, spreads, (sizes, replicates, claims, rates) in (
        ("decisions, three rows each, {} people in the small group", decisions, ROWS, (), EQUAL),
        ("probabilities, different people, {} people in the small group", probabilities, 1, (), EQUAL),
        ("probabilities, three rows each, {} people in the small group", probabilities, ROWS, (), EQUAL),
        (
            "probabilities of unlike spreads, {} people in the small group",
            probabilities,
            1,
            (0.5, 20.0),
            (SMALL, 500, {}, ()),
        ),
        (
            "decisions, three rows each, {} people in the small group, unequal rates",
            decisions,
            ROWS,
            (),
            UNEQUAL,
        ),
        (
            "probabilities, different people, {} people in the small group, unequal rates",
            probabilities,
            1,
            (),
            UNEQUAL,
        ),
    )
    for small in sizes
)
