"""Whether estimates from a ledger in which people decide, too, contain the truth, in whatever order."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd

from fairall import FairAllError, Ledger, Refer
from fairall.evaluate import evaluate
from fairall.live import compared
from reproduction.simulated_guard import GAP, USUAL, acceptance, applicants, begun
from reproduction.simulated_impact import covered
from reproduction.simulations import Case

TITLE = "Ledgers in which people decide, too"
NOTE = (
    "Share of ledgers whose intervals contain the truth. Five tables of 400 people are decided on; of some, "
    "20 people are referred to a person; a person overrides the policy; outcomes come in parts, some wrong "
    "and corrected later; people are withdrawn and forgotten, versions learn and are promoted, in random "
    "order. everybody: value of accepting all on whom policies decided, also whatever the outcomes of those "
    "are whom people rejected; difference: between two policies, as the guard of the ledger has it (97.5 %); "
    "rejections: value of those of whom a policy had accepted."
)
TESTED = ("fairall/live/guard.py", "fairall/live/overrides.py")
TABLES, PEOPLE, REFERRED = 5, 400, 20
REJECTS, ACCEPTS = 0.25, 0.15  # greatest shares of the accepted and of the rejected that are overridden
SAFE = ("difference", "everybody, whatever")  # intervals that hold whatever people know
WRONG = 0.1  # share of outcomes that are corrected later
DUTY, CHALLENGER = (0.0, 0.8), (0.0, 0.5)  # ranks accepted by the two policies that are compared


def year(ledger: Ledger, people: pd.DataFrame, *, knows: bool, random: np.random.Generator) -> None:
    """Type verbs about people in random order; at the end all outcomes are known, and right."""
    accepted = list[str]()
    for start in range(0, len(people), PEOPLE):
        own = people.iloc[start : start + PEOPLE]
        refer = Refer(most=REFERRED) if random.random() < 0.5 else None
        decided = ledger.decide(own.drop(columns="good"), refer=refer)
        chances, luck = overridden(own, decided, knows=knows), random.random(len(own))
        stands = decided["decision"].eq(1).fillna(False).to_numpy(dtype=bool)
        for n in np.flatnonzero(luck < chances):
            stands[n] = not stands[n]
            ledger.override(own["id"].iloc[n], bool(stands[n]), by="Abel", why="file")
        accepted += own["id"][stands].tolist()
        for verb in random.permutation(["outcomes", "outcomes", "learn", "withdraw", "forget"]):
            if verb == "outcomes":
                some = people[people["id"].isin(random.choice(accepted, len(accepted) // 2))]
                wrong = random.random(len(some)) < WRONG
                ledger.outcomes(labelled(some.assign(good=some["good"].where(~wrong, 1.0 - some["good"]))))
            elif verb == "learn" and (version := ledger.learn()["version"]):
                ledger.promote(version)
            elif verb != "learn":
                with suppress(FairAllError):  # a person who was withdrawn already
                    getattr(ledger, verb)(random.choice(own["id"]))
    ledger.outcomes(labelled(people[people["id"].isin(accepted)]))


def overridden(people: pd.DataFrame, decided: pd.DataFrame, *, knows: bool) -> np.ndarray:
    """Probabilities, shape (N,), that a person decides otherwise; half of those who are referred is accepted.

    Args:
        people: N of them.
        decided: on them.
        knows: whether by the outcomes themselves, not by the rank.
    """
    bad = 1.0 - people["good"] if knows else people["income"].astype(float)
    own = np.where(decided["decision"].eq(1).fillna(False), REJECTS * bad, ACCEPTS * (1.0 - bad))
    return np.where(decided["referred"], 0.5, own)


def labelled(people: pd.DataFrame) -> pd.DataFrame:
    """Outcomes as a table of a ledger."""
    return people[["id", "good"]].rename(columns={"good": "label"}).astype({"label": str})


def replicate(knows: bool, random: np.random.Generator) -> Mapping[str, bool]:
    """Which intervals contain the truth; those that do not exist are left out."""
    with TemporaryDirectory() as folder:
        ledger = Ledger.start(Path(folder) / "ledger.db", *begun(USUAL, Path(folder), random))
        people = applicants(USUAL.people(random, TABLES * PEOPLE), "")
        year(ledger, people, knows=knows, random=random)
        log, status = ledger.log(), ledger.status()
        standing = ledger.decide(people.drop(columns="good"), skip=True)
    bad = USUAL.bad(people["income"].astype(float).to_numpy())
    worth = pd.Series(1.0 - bad - USUAL.cost, index=people["id"])
    rank = log.frame["income"].astype(float).to_numpy()
    first, second = (acceptance(rank, accepted) for accepted in (DUTY, CHALLENGER))
    of_log = worth[log.frame["id"]].to_numpy()
    difference = compared(log, first, second, GAP)["value"]
    intervals: dict[str, Any] = {
        "difference": (SimpleNamespace(**difference), float(((second - first) * of_log).mean()))
    }
    lowest, *_, highest = (
        evaluate(np.ones(len(of_log)), frame, **log.keywords(propensity="propensity")).values["dr"]
        for frame in (log.possible or [log.frame])
    )
    intervals["everybody, whatever"] = lowest._replace(high=highest.high), of_log.mean()
    if not knows:
        everybody = evaluate(np.ones(len(of_log)), log.frame, **log.keywords(propensity="propensity"))
        intervals["everybody"] = everybody.values["dr"], of_log.mean()
        changed = standing["decision"].eq(0) & standing["propensity"].isna() & ~standing["referred"]
        of_rejected = -worth[standing["id"][changed]].mean()
        for row in status["overrides"]:
            if (row["group"], row["of"], row["to"]) == ("all", "accepted", "reject") and row["value"]:
                _, low, high = row["value"]
                intervals["rejections"] = SimpleNamespace(low=low, high=high), of_rejected
    return covered(intervals)


CASES = (
    Case(
        "a person knows the features",
        partial(replicate, False),
        60,
        dict.fromkeys((*SAFE, "everybody", "rejections"), ("≥", 0.9)),
    ),
    Case("a person knows the outcomes", partial(replicate, True), 60, dict.fromkeys(SAFE, ("≥", 0.95))),
)
