"""Whether the guard of a ledger lets a worse version pass, and whether it finds a better one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np
import pandas as pd

from fairall import Ledger
from fairall.live import Log, compared
from reproduction.simulations import Case

TITLE = "The guard of a ledger"
NOTE = (
    "Worse versions promoted in at most 5 % of ledgers, here in at most 16 of 200; a version better by 2.6 per "
    "100 people in at least 60 % by the fifth comparison."
)
TESTED = ("fairall/live/guard.py", "fairall/evaluate/estimated/gaps.py")
EXPLORE = 0.1
GAP = 0.05
COLUMNS = {name: name for name in ("decision", "label", "propensity", "version", "time", "id")}


class World(NamedTuple):
    """People whose income has a uniform rank u, with P(bad | u) = `least` + `slope`·u, at the cost `cost`."""

    least: float
    slope: float
    cost: float

    def people(self, random: np.random.Generator, n: int) -> pd.DataFrame:
        """`income`, `sex` and `good`, the outcome that would be seen, of n people."""
        rank = random.random(n).round(4)
        good = random.random(n) >= self.bad(rank)
        return pd.DataFrame({"income": rank, "sex": random.choice(["f", "m"], n), "good": good.astype(float)})

    def bad(self, rank: np.ndarray) -> np.ndarray:
        """P(bad | u), shape (N,)."""
        return self.least + self.slope * rank


RARE, USUAL = World(0.02, 0.08, 0.95), World(0.1, 0.6, 0.6)
Accepted = tuple[float, float]  # lowest and highest rank that a policy accepts
EVERYBODY = (0.0, 1.0)


def acceptance(rank: np.ndarray, accepted: Accepted) -> np.ndarray:
    """Acceptance probabilities with the share for exploration, shape (N,)."""
    low, high = accepted
    return np.where((rank >= low) & (rank <= high), 1.0, EXPLORE)


def held_out(random: np.random.Generator, people: pd.DataFrame, propensity: np.ndarray, cost: float) -> Log:
    """The log of a ledger of people who were accepted with these probabilities (N,)."""
    accepted = random.random(len(people)) < propensity
    log = pd.DataFrame({"income": people["income"].astype(str), "sex": people["sex"]})
    log = log.assign(
        decision=accepted.astype(int), label=people["good"].where(accepted), propensity=propensity
    )
    log = log.assign(version=1, time=pd.Timestamp("2025-01-01"), id=[f"P{n}" for n in range(len(log))])
    return Log(log, COLUMNS | {"group": "sex"}, pd.DataFrame(), cost)


def comparisons(
    world: World, duty: Accepted, challenger: Accepted, new: int, most: int, random: np.random.Generator
) -> Mapping[str, bool]:
    """A ledger that compares the same two policies with `new` more held-out people before each comparison.

    Returns:
        Whether the challenger was promoted by the comparison of the number `most`, and whether one of the
        intervals until then was without the true difference.
    """
    people = world.people(random, new * most)
    first, second = (acceptance(people["income"].to_numpy(), accepted) for accepted in (duty, challenger))
    log = held_out(random, people, first, world.cost)
    rank = (np.arange(100_000) + 0.5) / 100_000
    change = acceptance(rank, challenger) - acceptance(rank, duty)
    truth = float((change * (1.0 - world.bad(rank) - world.cost)).mean())
    events = {"promoted": False, "interval without the truth": False}
    for number in range(1, most + 1):
        n = new * number
        shown = compared(log._replace(frame=log.frame[:n]), first[:n], second[:n], GAP, number)
        if (value := shown["value"]) is not None:
            events["interval without the truth"] |= not value["low"] <= truth <= value["high"]
        if shown["better"]:
            return events | {"promoted": True}
    return events
