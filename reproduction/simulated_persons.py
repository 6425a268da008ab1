"""How often the test by person, and of probabilities, rejects equal acceptance rates, and unequal ones."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np

from reproduction.simulated_impact import LEVEL, adverse_impact, compared
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
    first, others = (random.beta(3.0 * of, 3.0 * (1.0 - of)) for of in (rate, rate[:, None].repeat(rows, 1)))
    return ALIKE * first[:, None] + (1.0 - ALIKE) * others


def replicate(
    random: np.random.Generator,
    small: int,
    kind: str,
    rows: int = ROWS,
    rates: tuple[float, float] | None = None,
) -> Mapping[str, bool]:
    """What happens in a log of a small group, of one rate that is drawn by default."""
    own, other = (random.uniform(0.1, 0.9),) * 2 if rates is None else rates
    side = np.arange(PEOPLE) < small
    policy = (decisions if kind == "decisions" else probabilities)(random, np.where(side, own, other), rows)
    if kind == "unlike spreads":
        shape = np.where(side, 0.5, 20.0)
        policy = random.beta(shape, shape)
    person, group = np.arange(PEOPLE).repeat(rows), np.where(side, "a", "b").repeat(rows)
    logged = random.random(policy.size) < 0.5
    found = adverse_impact(group, logged, policy.ravel(), person=person)
    return {"p < .05": any(one["p"]["p"] < LEVEL for one in compared(found))}


KINDS = (
    ("decisions, three rows each", "decisions", ROWS),
    ("probabilities, different people", "probabilities", 1),
    ("probabilities, three rows each", "probabilities", ROWS),
)
CASES = (
    *(
        Case(
            f"{name}, {small} people in the small group",
            partial(replicate, small=small, kind=kind, rows=rows),
            500,
            {"p < .05": ("≤", 0.06)},
        )
        for name, kind, rows in KINDS
        for small in SMALL
    ),
    *(
        Case(
            f"probabilities of unlike spreads, {small} people in the small group",
            partial(replicate, small=small, kind="unlike spreads", rows=1),
            500,
            {},
        )
        for small in SMALL
    ),
    *(
        Case(
            f"{name}, 40 people in the small group, unequal rates",
            partial(replicate, small=40, kind=kind, rows=rows, rates=(0.3, 0.6)),
            200,
            {"p < .05": ("≥", 0.8)},
        )
        for name, kind, rows in KINDS[:2]
    ),
)
