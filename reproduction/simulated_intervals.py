"""How often intervals of few outcomes, few labels and few people cover."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import pandas as pd

from fairall.evaluate import compare
from reproduction.simulated_impact import covered
from reproduction.simulated_swaps import COST, ESTIMATED
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

LARGE = 80  # people of the group beside the small one
SMALL = ((10, 0.3, 0.9), (20, 0.5, 0.98), (20, 0.9, 0.9), (80, 0.5, 0.98), (100, 0.9, 0.9))
ROWS = ([24] * 5, [12] * 10, [4] * 30, [60, 45, 30, 15, 10, 10, 10, 5, 5, 5])
CLAIMS = dict.fromkeys(("value", "acceptance", "DPU", "difference of DPU"), ("≥", 0.92))


def replicate(
    rows: Sequence[int], group: np.ndarray, rates: np.ndarray, random: np.random.Generator
) -> dict[str, bool]:
    """Which 95 % intervals contain the truth; those that do not exist are left out.

    Args:
        rows: of each person; where some have several, the rates of a person differ by a normal deviate.
        group: 0 or 1 of each row, shape (N,).
        rates: shares of accepted people and of good labels, in each group, shape (2, 2).
        random: of the log.
    """
    who, (accepts, good) = np.repeat(range(len(rows)), rows), rates
    deviates = random.normal(0.0, 0.2 * (max(rows) > 1), (2, len(rows)))
    chances = (rates[:, group] + deviates[:, who]).clip(0, 1)
    accepted, repays = random.random(chances.shape) < chances
    table = pd.DataFrame({"score": random.normal(size=len(who)), "group": group, "who": who})
    table["granted"], table["repaid"] = accepted, np.where(accepted, repays, np.nan)
    other = (accepted ^ (random.random(len(who)) < 0.1)).astype(float)
    both = compare(None, other, table, sensitive="group", person="who", **ESTIMATED)
    gap = np.ptp(accepts)
    return covered(
        {
            "value": (both.first.values["dr"], (accepts * (good - COST))[group].mean()),
            "acceptance": (both.first.rate("dpu", "dr", 0), accepts[0]),
            "DPU": (both.first.fairness["dpu"]["dr"], gap),
            "difference of DPU": (both.fairness["dpu"]["dr"], -0.2 * gap),
            "precision": (both.first.rate("predictive_parity", "dr", 0), good[0]),
        }
    )


CASES = (
    *(
        Case(
            f"a group of {people}, {100 * accepts:g} % accepted, {100 * good:g} % good",
            partial(
                replicate,
                [1] * (people + LARGE),
                np.repeat([0, 1], [people, LARGE]),
                np.array([[accepts, 0.5], [good, 0.6]]),
            ),
            500,
            CLAIMS | ({"precision": ("≥", 0.92)} if people >= LARGE else {}),
        )
        for people, accepts, good in SMALL
    ),
    *(
        Case(
            f"{len(rows)} people with {', '.join(map(str, dict.fromkeys(rows)))} rows",
            partial(replicate, rows, np.arange(sum(rows)) % 2, np.full((2, 2), 0.5)),
            500,
            CLAIMS,
        )
        for rows in ROWS
    ),
)
