"""Whether the guard of a ledger lets a worse version pass, and whether it finds a better one."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
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
    "Share of ledgers in which the guard has promoted the version, or one of its intervals of the difference "
    "in value was without the true one. bad: outcomes; c: cost of an acceptance; better, worse by: per 100 "
    "people."
)
TESTED = ("fairall/live/guard.py",)
EXPLORE = 0.1
GAP = 0.05  # most that a gap between groups may grow
MUST_HOLD = 0.08  # 16 of 200: as many or fewer happen with 97 % at the level of 5 %
JUDGED = 5000  # people by whom versions of whole ledgers are judged
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


def ledgers(world: World, new: int, versions: int, random: np.random.Generator) -> Mapping[str, bool]:
    """A ledger of a greedy learner that learns `versions` times, each time after `new` people, half held out.

    Version 1 has learnt from 1,000 decisions by a coin.

    Returns:
        Whether a version was promoted, and whether one was that is worse than the one before, by its
        acceptance probabilities of `JUDGED` people and their true probabilities of a good outcome.
    """
    with TemporaryDirectory() as folder:
        place = Path(folder) / "ledger.db"
        ledger = Ledger.start(place, *begun(world, Path(folder), random))
        judged = world.people(random, JUDGED)
        values = [value(place, world, judged)]
        for number in range(versions):
            people = applicants(world.people(random, new), f"{number}-")
            accepted = ledger.decide(people.drop(columns="good"))["decision"] == 1
            outcomes = people[accepted].rename(columns={"good": "label"})[["id", "label"]]
            ledger.outcomes(outcomes.astype({"label": str}))
            if ledger.learn()["promoted"]:
                values.append(value(place, world, judged))
    return {"promoted": len(values) > 1, "a worse version promoted": bool((np.diff(values) < 0).any())}


def begun(world: World, folder: Path, random: np.random.Generator) -> list[str]:
    """The words of `live start`, with a table of 1,000 past decisions by a coin."""
    past = held_out(random, world.people(random, 1000), np.full(1000, 0.5), world.cost).frame
    past.drop(columns=["version", "time", "id"]).to_csv(folder / "past.csv", index=False)
    table = ["label=label", "positive=1", "sensitive=sex", "advantaged=m", "decision=decision", "accepted=1"]
    table += [f"path={folder / 'past.csv'}", "propensity=propensity", "split.held_out=0.1", "split.pool=0.9"]
    live = ["held_out=0.5", f"explore={EXPLORE}", "horizon=null", "promote=if_better", "gap=0.5"]
    live += ["positive=1.0", "negative=0.0"]
    run = ["model=greedy", "preset=quick", "seeds=1", "tracking.enabled=false", f"cost.value={world.cost}"]
    run += ["dataset=csv", "schedule.warm_up_applicants=700", f"outputs_dir={folder}"]
    return [*run, *(f"dataset.{word}" for word in table), *(f"live.{word}" for word in live)]


def applicants(people: pd.DataFrame, name: str) -> pd.DataFrame:
    """People of a world as a table of a ledger."""
    return people.assign(income=people["income"].astype(str), id=[f"{name}{n}" for n in range(len(people))])


def value(place: Path, world: World, people: pd.DataFrame) -> float:
    """True value per person of the version on duty, by what a copy of the ledger decides on `people`."""
    copy = place.with_name("copy.db")
    shutil.copy(place, copy)
    decided = Ledger(copy).decide(applicants(people, "judged").drop(columns="good"))
    gain = 1.0 - world.bad(people["income"].to_numpy()) - world.cost
    return float((decided["propensity"].to_numpy() * gain).mean())


CASES = (
    Case(
        "2 to 10 % bad, c = 0.95, worse by 0.17: 5 comparisons, 1,000 new held-out people each",
        partial(comparisons, RARE, (0.0, 0.3), (0.0, 0.605), 1000, 5),
        200,
        {"promoted": ("≤", MUST_HOLD)},
    ),
    Case(
        "10 to 70 % bad, c = 0.6, worse by 0.17: 5 comparisons, 1,000 new held-out people each",
        partial(comparisons, USUAL, (0.0, 0.4), (0.0, 0.628), 1000, 5),
        200,
        {"promoted": ("≤", MUST_HOLD)},
    ),
    Case(
        "2 to 10 % bad, c = 0.95, everybody accepted, worse by 0.17: 1 comparison, 1,000 held-out people",
        partial(comparisons, RARE, EVERYBODY, (0.07, 1.0), 1000, 1),
        200,
        {"promoted": ("≤", MUST_HOLD)},
    ),
    Case(
        "10 to 70 % bad, c = 0.6, better by 2.6: 5 comparisons, 2,000 new held-out people each",
        partial(comparisons, USUAL, (0.0, 0.1895), (0.0, 0.5), 2000, 5),
        200,
        {"promoted": ("≥", 0.6)},
    ),
    Case(
        "2 to 10 % bad, c = 0.95: whole ledgers of 5 further versions, 1,000 new held-out people each",
        partial(ledgers, RARE, 2000, 5),
        20,
        {"a worse version promoted": ("≤", MUST_HOLD)},
    ),
)
