"""Estimates of policies from logs: few people, swap sets, a learner that is watched, several who decide."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.special import expit

from fairall.evaluate import compare, evaluate
from reproduction.population import (
    COLUMNS,
    COST,
    MODELS,
    Events,
    People,
    Random,
    applicants,
    covered,
    many,
    outside,
    truth,
)

LARGE, OTHERS = 80, (0.5, 0.6)  # people of the group beside the small one; shares accepted and good
ESTIMATED = COLUMNS | dict.fromkeys(MODELS, "logistic")
GROUPED = ESTIMATED | {"sensitive": "group"}
WATCHED = {"propensity": "p", "time": "row"}
TRUTHS = ["utility", "gap of acceptance rates", "gap of true-positive rates"]


def few(random: Random, persons: int, accepts: float, good: float, rows: int = 1) -> Events:
    """Which 95 % intervals of few people contain the truth.

    Args:
        random: of the log.
        persons: of both groups together.
        accepts: share of the first group that is accepted.
        good: and share of good labels in it.
        rows: of each person; every other one is of the first group where there are several.
    """
    row = np.arange(persons * rows)
    group = row % 2 if rows > 1 else 1 * (row >= persons - LARGE)
    rates = np.transpose([(accepts, good), OTHERS])
    chances = rates[:, group] + np.repeat(random.normal(0.0, 0.2 * (rows > 1), (2, persons)), rows, 1)
    table = People.decided(random, pd.DataFrame({"group": group, "who": row // rows}), None, *chances).table
    table["score"] = random.normal(size=len(row))
    other = 1.0 * (table["granted"] ^ (random.random(len(row)) < 0.1))
    both = compare(None, other, table, person="who", **GROUPED)
    taken, gap = both.first, abs(accepts - OTHERS[0])
    return covered(
        {
            "value": (taken.values["dr"], (rates[0] * (rates[1] - COST))[group].mean()),
            "acceptance": (taken.rate("dpu", "dr", 0), accepts),
            "DPU": (taken.fairness["dpu"]["dr"], gap),
            "difference of DPU": (both.fairness["dpu"]["dr"], -0.2 * gap),
            "precision": (taken.rate("predictive_parity", "dr", 0), good),
        }
    )


def swaps(random: Random, first: str, second: str, propensities: str, rows: int) -> Events:
    """Which intervals of those whom only the second policy accepts contain the truth; "p": the decisions."""
    people, everybody = applicants(random, rows), many(applicants)
    recorded = {"propensity": "p"} if propensities == "recorded" else {}
    shown = people[["score", "sex", *recorded.values()]]
    log = People.decided(random, shown, None, people["p"], people["chance"]).table
    a, b = (None if name == "p" else people[name] for name in (first, second))
    found = compare(a, b, log, **ESTIMATED, **recorded).table("swaps").set_index(["set", "measure"])
    swapped_in = (1.0 - everybody[first]) * everybody[second]
    gained = (everybody[second] - everybody[first]) @ (everybody["chance"] - COST)
    summed = {"good": swapped_in @ everybody["chance"], "margin": gained}
    return covered({name: (found.loc["second", name], of / swapped_in.sum()) for name, of in summed.items()})


def several(random: Random, rows: int, who: str) -> People:
    """A log of two policies after each other, or of officers who see more, by the column of who decides."""
    people, hidden = applicants(random, rows), random.normal(size=rows)
    score, chance = people["score"], people["chance"]
    if who == "policy_version":
        decider = np.arange(rows) * 2 // rows
        decision = (1 - 2 * decider) * (3.0 * score + 0.5)
    else:
        decider = random.integers(10, size=rows)
        decision = decider / 2.0 - 1.0 + 0.7 * score + hidden
        chance = expit(0.3 + score + hidden)
    table = people[["score", "sex"]].assign(**{who: decider})
    return People.decided(random, table, people["strict"], expit(decision), chance)


def loggers(random: Random, rows: int, who: str, model: str) -> Events:
    """Which intervals contain the value in a log of some rows."""
    found = several(random, rows, who).judged(model, **{who: who})
    limits = found.table("sensitivity").query("measure == 'utility'").set_index("view").T
    bounds = {view: limits[view] for view in ("no assumption", "decision makers") if view in limits}
    told = {"DR": found.values["dr"]} | bounds
    return covered({name: (own, truth(several, 1_000_000, who=who)) for name, own in told.items()})


def learner(random: Random, rows: int) -> tuple[pd.DataFrame, np.ndarray]:
    """A log whose leniency, from 0 to 1, follows the labels of accepted people; and its mean until each row.

    Acceptance probabilities are a mixture of `strict` and `p`, so that all that is true of them is one too.
    """
    people = applicants(random, rows)
    strict, fixed, chance = people[["strict", "p", "chance"]].to_numpy().T
    label, uniform = random.random((2, rows))
    label, lenient, surplus = label < chance, np.empty(rows), 0.0
    for row, (low, high, good, drawn) in enumerate(zip(strict, fixed, label, uniform, strict=True)):
        lenient[row] = expit(surplus)
        surplus += 0.1 * (drawn < low + lenient[row] * (high - low)) * (good - 0.6)
    p = strict + lenient * (fixed - strict)
    log = people[["score", "sex"]].assign(p=p, row=range(rows), fixed=fixed, granted=uniform < p)
    log["repaid"] = np.where(log["granted"], label, np.nan)
    return log, lenient.cumsum() / np.arange(1, rows + 1)


def watched(random: Random) -> Events:
    """Which intervals contain the truth at all moments of a learner's log."""
    table, lenient = learner(random, 2000)
    everybody, events = many(applicants), {}
    chance, sign = everybody["chance"], np.where(everybody["sex"] == "f", 2.0, -2.0)
    parts = np.transpose([chance - COST, sign, sign * chance / chance.mean()])
    ends = everybody[["strict", "p"]].to_numpy().T @ parts / len(parts)  # gaps with their sign
    found = compare(None, "fixed", table, **ESTIMATED, **WATCHED).table("monitor").dropna(subset="rows")
    for (policy, what), own in found.groupby(["policy", "what"]):
        low, high = ends[:, TRUTHS.index(what.removeprefix("guaranteed "))]
        share = 1.0 if policy == "B: fixed" else lenient[own["rows"].astype(int) - 1]
        events[f"{policy}, {what}"] = not outside(own, abs(low + share * (high - low))).any()
    return events


def alarms(random: Random, first: float, second: float, largest: float) -> Events:
    """Whether there is an alarm, and all intervals contain the gap, with two acceptance rates and ε."""
    group = random.choice(2, 2000, p=[0.4, 0.6])
    accepted = random.random(2000) < np.where(group, second, first)
    table = pd.DataFrame({"group": group, "row": np.arange(2000), "p": 0.5, "granted": accepted})
    watched = evaluate(None, table, largest_gap=largest, sensitive="group", decision="granted", **WATCHED)
    found = watched.table("monitor")
    alarm = found["rows"].isna().any()
    return {"alarm": alarm, "gap covered": not outside(found, second - first).any()}
