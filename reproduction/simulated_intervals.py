"""How often intervals of few outcomes, few labels and few people cover."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
import pandas as pd

from fairall.evaluate import compare
from reproduction.simulations import Case

TITLE = "Intervals of few outcomes, labels and people"
NOTE = (
    "How often 95 % intervals cover the truth, of decisions of which all labels of accepted people are "
    "known. A second policy decides one in ten the other way round; the difference is between the two. "
    "Different people: a small group beside one of 80 people, of whom half are accepted and 60 % of these "
    "good. Several rows: people who are accepted, and good, each with a probability of their own, on average "
    "50 %, with rows in both groups. Estimates without an interval do not count."
)
TESTED = ("fairall/evaluate/estimated/estimates.py",)

COST = 0.4
LARGE = 80  # people
SMALL = ((10, 0.3, 0.9), (20, 0.5, 0.98), (20, 0.9, 0.9), (80, 0.5, 0.98), (100, 0.9, 0.9))
ROWS = ([24] * 5, [12] * 10, [4] * 30, [60, 45, 30, 15, 10, 10, 10, 5, 5, 5])
ALWAYS = ("value", "acceptance", "DPU", "difference of DPU")


def small_group(random: np.random.Generator, people: int, accepts: float, good: float) -> Mapping[str, bool]:
    """Which intervals cover where the rates of a small group are `accepts` and `good`."""
    small = np.arange(people + LARGE) < people
    return covered(random, small, np.where(small, accepts, 0.5), np.where(small, good, 0.6))


def several_rows(random: np.random.Generator, rows: Sequence[int]) -> Mapping[str, bool]:
    """Which intervals cover where people, with a number of rows each, are alike in them."""
    person = np.repeat(np.arange(len(rows)), rows)
    accepts, good = random.normal(0.5, 0.2, (2, len(rows))).clip(0, 1)[:, person]
    return covered(random, np.arange(len(person)) % 2 == 0, accepts, good, person)


def covered(
    random: np.random.Generator,
    small: np.ndarray,
    accepts: np.ndarray,
    good: np.ndarray,
    person: np.ndarray | None = None,
) -> Mapping[str, bool]:
    """Which 95 % intervals contain the truth; those that do not exist are left out.

    Args:
        random: of the log.
        small: whether a row is of the first group, shape (N,), bool.
        accepts: probability of acceptance, shape (N,).
        good: probability of a good label, shape (N,).
        person: codes of the people of rows, who have these on average with 50 %; None for a row each.
    """
    accepted, repays = random.random((2, len(small))) < (accepts, good)
    table = pd.DataFrame({"score": random.normal(size=len(small)), "group": np.where(small, "a", "b")})
    table = table.assign(granted=accepted.astype(int), repaid=np.where(accepted, repays, np.nan))
    other = (accepted ^ (random.random(len(small)) < 0.1)).astype(float)
    roles = {"decision": "granted", "label": "repaid", "sensitive": "group"}
    if person is not None:
        table["who"], roles["person"] = person, "who"
        accepts = good = np.full(len(small), 0.5)
    models = {"propensity_model": "logistic", "outcome_model": "logistic"}
    both = compare(None, other, table, cost=COST, **roles, **models)
    gap = abs(accepts[small].mean() - accepts[~small].mean())
    intervals = {
        "value": (both.first.values["dr"], (accepts * (good - COST)).mean()),
        "acceptance": (both.first.rate("dpu", "dr", 0), accepts[small].mean()),
        "DPU": (both.first.fairness["dpu"]["dr"], gap),
        "difference of DPU": (both.fairness["dpu"]["dr"], -0.2 * gap),
        "precision": (both.first.rate("predictive_parity", "dr", 0), good[small].mean()),
    }
    known = {name: pair for name, pair in intervals.items() if not np.isnan(pair[0].low)}
    return {name: bool(it.low - 1e-9 <= truth <= it.high + 1e-9) for name, (it, truth) in known.items()}


CASES = (
    *(
        Case(
            f"a group of {people}, {100 * accepts:g} % accepted, {100 * good:g} % good",
            partial(small_group, people=people, accepts=accepts, good=good),
            500,
            dict.fromkeys(ALWAYS + ("precision",) * (people >= LARGE), ("≥", 0.92)),
        )
        for people, accepts, good in SMALL
    ),
    *(
        Case(
            f"{len(rows)} people with {', '.join(map(str, dict.fromkeys(rows)))} rows",
            partial(several_rows, rows=rows),
            500,
            dict.fromkeys(ALWAYS, ("≥", 0.92)),
        )
        for rows in ROWS
    ),
)
