"""How often the intervals and alarms over time are right at all moments of a log that goes on."""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit

from fairall.evaluate import compare, evaluate
from reproduction.simulated_impact import outside
from reproduction.simulated_swaps import COST, ESTIMATED, applicants
from reproduction.simulations import Case

TITLE = "Logs that are watched"
NOTE = (
    "Events about all moments of a log together. Learner: 2,000 rows of two groups with recorded "
    "propensities, which become stricter or more lenient with the labels of accepted people; a logistic "
    "model of the label. A is the decisions taken, whose mean changes, B a fixed policy. Other logs: 2,000 "
    "decisions on two groups, the first with 40 % of the rows; the alarm is that their gap is above ε."
)
TESTED = (
    "fairall/evaluate/analyses/monitor.py",
    "fairall/evaluate/estimated/past.py",
    "fairall/measuring/sequences.py",
)

KEYS: dict[str, Any] = {"decision": "granted", "propensity": "p", "time": "row"}
TRUTHS = ["utility", "gap of acceptance rates", "gap of true-positive rates"]
TAKEN, FIXED, GUARANTEED = "A: the logged decisions", "B: fixed", "guaranteed "


@cache
def ends() -> np.ndarray:
    """`TRUTHS` of the strictest and of the most lenient policy, gaps with their sign, shape (2, 3)."""
    people = applicants(np.random.default_rng(0), 1_000_000)
    chance, sign = people["chance"], np.where(people["sex"] == "f", 2.0, -2.0)
    parts = np.transpose([chance - COST, sign, sign * chance / chance.mean()])
    return people[["strict", "p"]].to_numpy().T @ parts / len(people)


def learner(rows: int, random: np.random.Generator) -> tuple[pd.DataFrame, np.ndarray]:
    """A log whose leniency, from 0 to 1, follows the labels of accepted people; and its mean until each row.

    Acceptance probabilities are a mixture of those of `ends`, so that all that is true of them is one too.
    """
    people = applicants(random, rows).assign(row=range(rows))
    strict, fixed, chance = people[["strict", "p", "chance"]].to_numpy().T
    label, uniform = random.random((2, rows))
    label, lenient, surplus = label < chance, np.empty(rows), 0.0
    for row in range(rows):
        lenient[row] = expit(surplus)
        p = strict[row] + lenient[row] * (fixed[row] - strict[row])
        surplus += 0.1 * (uniform[row] < p) * (label[row] - 0.6)
    people = people.assign(fixed=fixed, p=strict + lenient * (fixed - strict))
    people["granted"] = uniform < people["p"]
    people["repaid"] = np.where(people["granted"], label, np.nan)
    return people.drop(columns=["mild", "strict", "chance"]), lenient.cumsum() / np.arange(1, rows + 1)


def intervals(random: np.random.Generator) -> dict[str, bool]:
    """Which intervals contain the truth at all moments of a learner's log."""
    table, lenient = learner(2000, random)
    options = ESTIMATED | KEYS | {"sensitive": "sex"}
    found = compare(None, "fixed", table, **options).table("monitor").dropna(subset="rows")
    events = {}
    for (policy, what), own in found.groupby(["policy", "what"]):
        low, high = ends()[:, TRUTHS.index(what.removeprefix(GUARANTEED))]
        share = 1.0 if policy == FIXED else lenient[own["rows"].astype(int) - 1]
        events[f"{policy}, {what}"] = not outside(own, abs(low + share * (high - low))).any()
    return events


def alarms(first: float, second: float, largest: float, random: np.random.Generator) -> dict[str, bool]:
    """Whether there is an alarm, and all intervals contain the gap, with two acceptance rates and ε."""
    group = random.choice(2, 2000, p=[0.4, 0.6])
    accepted = random.random(2000) < np.where(group, second, first)
    table = pd.DataFrame({"group": group, "row": np.arange(2000), "p": 0.5, "granted": accepted})
    found = evaluate(None, table, largest_gap=largest, sensitive="group", **KEYS).table("monitor")
    alarm = found["rows"].isna().any()
    return {"alarm": alarm, "gap covered": not outside(found, second - first).any()}


FALSE, FOUND, COVERED = ("≤", 0.05), ("≥", 0.8), ("≥", 0.95)
INTERVALS = [f"{policy}, {what}" for policy in (TAKEN, FIXED) for what in TRUTHS]
CASES = (
    Case(
        "a learner",
        intervals,
        500,
        dict.fromkeys([*INTERVALS, f"{FIXED}, {GUARANTEED}utility"], COVERED),
    ),
    *(
        Case(name, partial(alarms, *log), 500, {"alarm": claim, "gap covered": COVERED})  # type: ignore[arg-type]
        for name, claim, *log in (
            ("50 and 50 % accepted, ε = 0", FALSE, 0.5, 0.5, 0.0),
            ("45 and 50 % accepted, ε = 5", FALSE, 0.45, 0.5, 0.05),
            ("0 and 5 % accepted, ε = 5", FALSE, 0.0, 0.05, 0.05),
            ("45 and 55 % accepted, ε = 0", FOUND, 0.45, 0.55, 0.0),
            ("45 and 65 % accepted, ε = 5", FOUND, 0.45, 0.65, 0.05),
        )
    ),
)
