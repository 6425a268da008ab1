"""Ledgers: whether their guard lets a worse version pass, and what people who decide do to intervals."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from fairall import FairAllError, Ledger, Refer
from fairall.evaluate import evaluate
from fairall.live import Log, compared
from reproduction.population import Events, Random, covered

EXPLORE = 0.1
GAP = 0.05  # most that a gap between groups may grow
JUDGED = 5000  # people by whom versions of whole ledgers are judged
COLUMNS = {name: name for name in ("decision", "label", "propensity", "version", "time", "id")}
KNOWN = ["id", "label"]  # columns of an outcome
TABLES, PEOPLE, REFERRED = 5, 400, 20
REJECTS, ACCEPTS = 0.25, 0.15  # greatest shares of the accepted and of the rejected that are overridden
WRONG = 0.1  # share of outcomes that are corrected later
DUTY, CHALLENGER = (0.0, 0.8), (0.0, 0.5)  # ranks accepted by the two policies that are compared


class World(NamedTuple):
    """People whose income has a uniform rank u, with P(bad | u) = `least` + `slope`·u, at the cost `cost`."""

    least: float
    slope: float
    cost: float

    def people(self, random: Random, n: int) -> pd.DataFrame:
        """`income`, `sex` and `label`, the outcome that would be seen, of n people."""
        rank = random.random(n).round(4)
        good = random.random(n) >= self.least + self.slope * rank
        return pd.DataFrame(
            {"income": rank, "sex": random.choice(["f", "m"], n), "label": good.astype(float)}
        )

    def gain(self, rank: Any) -> Any:
        """Expected value of accepting people of these ranks, shape (N,)."""
        return 1.0 - (self.least + self.slope * rank) - self.cost


Accepted = Sequence[float]  # lowest and highest rank that a policy accepts


def acceptance(rank: Any, accepted: Accepted) -> np.ndarray:
    """Acceptance probabilities with the share for exploration, shape (N,)."""
    low, high = accepted
    return np.where((rank >= low) & (rank <= high), 1.0, EXPLORE)


def held_out(random: Random, people: pd.DataFrame, propensity: np.ndarray, cost: float) -> Log:
    """The log of a ledger of people who were accepted with these probabilities (N,)."""
    accepted = random.random(len(people)) < propensity
    log = applicants(people[["income", "sex"]], "P").assign(
        decision=accepted.astype(int),
        label=people["label"].where(accepted),
        propensity=propensity,
        version=1,
        time=pd.Timestamp("2025-01-01"),
    )
    return Log(log, COLUMNS | {"group": "sex"}, pd.DataFrame(), cost)


def comparisons(
    random: Random,
    world: Sequence[float],
    duty: Accepted,
    challenger: Accepted,
    new: int,
    most: int = 5,
) -> Events:
    """A ledger that compares the same two policies with `new` more held-out people before each comparison.

    Returns:
        Whether the challenger was promoted by the comparison of the number `most`, and whether one of the
        intervals until then was without the true difference.
    """
    own = World(*world)
    people = own.people(random, new * most)
    first, second = (acceptance(people["income"].to_numpy(), accepted) for accepted in (duty, challenger))
    log = held_out(random, people, first, own.cost)
    rank = (np.arange(100_000) + 0.5) / 100_000
    truth = ((acceptance(rank, challenger) - acceptance(rank, duty)) * own.gain(rank)).mean()
    missed = False
    for number in range(1, most + 1):
        n = new * number
        shown = compared(log._replace(frame=log.frame[:n]), first[:n], second[:n], GAP, number)
        if value := shown["value"]:
            missed |= not value["low"] <= truth <= value["high"]
        if shown["better"]:
            break
    return {"promoted": shown["better"], "interval without the truth": missed}


def begun(world: World, folder: Path, words: Sequence[str], random: Random) -> Ledger:
    """A ledger, by the words of `live start`, that has learnt from 1,000 past decisions by a coin."""
    past = held_out(random, world.people(random, 1000), np.full(1000, 0.5), world.cost).frame
    past.drop(columns=["version", "time", "id"]).to_csv(folder / "past.csv", index=False)
    own = [word.format(folder=folder, cost=world.cost) for word in words]
    return Ledger.start(folder / "ledger.db", *own)


def applicants(people: pd.DataFrame, name: str) -> pd.DataFrame:
    """People of a world as a table of a ledger."""
    return people.assign(income=people["income"].astype(str), id=[f"{name}{n}" for n in range(len(people))])


def ledgers(random: Random, world: Sequence[float], new: int, versions: int, words: Sequence[str]) -> Events:
    """A ledger of a greedy learner that learns `versions` times, each time after `new` people, half held out.

    Returns:
        Whether a version was promoted, and whether one was that is worse than the one before, by its
        acceptance probabilities of `JUDGED` people and their true probabilities of a good outcome.
    """
    own, values = World(*world), []
    with TemporaryDirectory() as name:
        ledger = begun(own, folder := Path(name), words, random)
        judged = own.people(random, JUDGED)
        for number in range(versions + 1):
            if number:
                people = applicants(own.people(random, new), f"{number - 1}-")
                accepted = ledger.decide(people.drop(columns="label"))["decision"] == 1
                ledger.outcomes(people.loc[accepted, KNOWN].astype(str))
            if not number or ledger.learn()["promoted"]:
                copy = Ledger(shutil.copy(folder / "ledger.db", folder / "copy.db"))
                decided = copy.decide(applicants(judged, "judged").drop(columns="label"))
                values.append((decided["propensity"] * own.gain(judged["income"])).mean())
    return {"promoted": len(values) > 1, "a worse version promoted": bool((np.diff(values) < 0).any())}


def year(ledger: Ledger, people: pd.DataFrame, knows: bool, random: Random) -> None:
    """Type verbs about people in random order; at the end all outcomes are known, and right."""
    accepted = list[str]()
    for start in range(0, len(people), PEOPLE):
        own = people.iloc[start : start + PEOPLE]
        refer = Refer(most=REFERRED) if random.random() < 0.5 else None
        decided = ledger.decide(own.drop(columns="label"), refer=refer)
        stands = decided["decision"].fillna(0).to_numpy(dtype=int) == 1
        # A person accepts half of those who are referred, and goes by the outcomes themselves or by the rank.
        bad = 1.0 - own["label"] if knows else own["income"].astype(float)
        chance = np.where(stands, REJECTS * bad, ACCEPTS * (1.0 - bad))
        changed = random.random(len(own)) < np.where(decided["referred"], 0.5, chance)
        stands ^= changed
        for n in np.flatnonzero(changed):
            ledger.override(own["id"].iloc[n], bool(stands[n]), by="Abel", why="file")
        accepted += own["id"][stands].tolist()
        for verb in random.permutation(["outcomes", "outcomes", "learn", "withdraw", "forget"]):
            if verb == "outcomes":
                some = people[people["id"].isin(random.choice(accepted, len(accepted) // 2))]
                label = abs(some["label"] - (random.random(len(some)) < WRONG))
                ledger.outcomes(some.assign(label=label)[KNOWN].astype(str))
            elif verb == "learn":
                if version := ledger.learn()["version"]:
                    ledger.promote(version)
            else:
                with suppress(FairAllError):  # a person who was withdrawn already
                    getattr(ledger, verb)(random.choice(own["id"]))
    ledger.outcomes(people.loc[people["id"].isin(accepted), KNOWN].astype(str))


def overrides(random: Random, world: Sequence[float], knows: bool, words: Sequence[str]) -> Events:
    """Which intervals contain the truth, where a person knows the outcomes or the features."""
    own = World(*world)
    with TemporaryDirectory() as folder:
        ledger = begun(own, Path(folder), words, random)
        people = applicants(own.people(random, TABLES * PEOPLE), "")
        year(ledger, people, knows, random)
        log, status = ledger.log(), ledger.status()
        standing = ledger.decide(people.drop(columns="label"), skip=True)
    worth, of_log = (own.gain(of["income"].astype(float)) for of in (people, log.frame))
    first, second = (
        acceptance(log.frame["income"].astype(float), accepted) for accepted in (DUTY, CHALLENGER)
    )

    def everybody(frame: pd.DataFrame) -> Any:
        return evaluate(np.ones(len(frame)), frame, **log.keywords(propensity="propensity")).values["dr"]

    lowest, highest = map(everybody, log.possible)
    difference = pd.Series(compared(log, first, second, GAP)["value"])
    intervals: dict[str, Any] = {
        "difference": (difference, ((second - first) * of_log).mean()),
        "everybody, whatever": (lowest._replace(high=highest.high), of_log.mean()),
    }
    if not knows:
        intervals["everybody"] = everybody(log.frame), of_log.mean()
        changed = standing["decision"].eq(0) & standing["propensity"].isna() & ~standing["referred"]
        told = {(row["group"], row["of"], row["to"]): row["value"] for row in status["overrides"]}
        if value := told.get(("all", "accepted", "reject")):
            rejections = pd.Series(value, ["estimate", "low", "high"])
            intervals["rejections"] = rejections, -worth[standing.index[changed]].mean()
    return covered(intervals)
