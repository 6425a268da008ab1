"""How often bounds of rates and of their ratio hold where only probabilities of groups are known."""

from __future__ import annotations

from functools import cache, partial

import numpy as np
import pandas as pd

from fairall.evaluate import evaluate
from reproduction.simulated_impact import covered
from reproduction.simulations import Case

TITLE = "Probabilities of groups"
NOTE = (
    "Three groups, of which only the probabilities of each person are known. Rate: the acceptance rate of "
    "the first group; AIR: the ratio of the last group's rate to it. Their bounds hold whatever decisions "
    "have to do with the group; the weighted rate holds where they have nothing to do with it given the "
    "probabilities. Where the first group is accepted first, or alone, the truth is at an end of the bounds."
)
TESTED = ("fairall/evaluate/analyses/impact.py",)

GROUPS = ["first", "second", "last"]
WEIGHTED, INDEPENDENT = "weighted rate", "independent of the group"
KINDS = (INDEPENDENT, "for the first group first", "for the first group only")


def people(kind: str, rows: int, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Probabilities of groups, shape (N, 3), the group of each person, and who is accepted, shape (N,)."""
    probabilities, (rank, luck) = random.dirichlet([0.5, 0.4, 1.1], rows), random.random((2, rows))
    group, chance = (rank[:, None] > probabilities.cumsum(1)).sum(1), 0.2 + 0.5 * probabilities[:, 2]
    accepted = dict(zip(KINDS, (luck < chance, rank < chance, group == 0), strict=True))
    return probabilities, group, accepted[kind]


@cache
def truth(kind: str) -> tuple[float, float]:
    """Acceptance rates of the first and the last group of a million people."""
    _, group, accepted = people(kind, 1_000_000, np.random.default_rng(0))
    return accepted[group == 0].mean(), accepted[group == 2].mean()


def replicate(kind: str, rows: int, random: np.random.Generator) -> dict[str, bool]:
    """Which intervals contain the truth in a log of some rows."""
    probabilities, _, accepted = people(kind, rows, random)
    table = pd.DataFrame(probabilities, columns=GROUPS).assign(granted=accepted, p=0.5)
    found = evaluate(None, table, sensitive=GROUPS, decision="granted", propensity="p", reference="first")
    shown = found.table("impact").fillna({"high": np.inf}).set_index(["group", "measure"]).loc
    first, last = truth(kind)
    return covered(
        {
            "rate": (shown["first", "rate"], first),
            "AIR": (shown["last", "ratio"], last / first),
            WEIGHTED: (shown["first", "weighted_rate"], first),
        }
    )


HOLDS = ("≥", 0.92)
CASES = tuple(
    Case(
        f"{rows:,} people, decisions {kind}",
        partial(replicate, kind, rows),
        500,
        {"rate": HOLDS, "AIR": HOLDS, WEIGHTED: HOLDS if kind == INDEPENDENT else ("≤", 0.05)},
    )
    for rows in (1_000, 10_000)
    for kind in KINDS
)
