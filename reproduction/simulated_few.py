"""How often intervals of few outcomes, few labels and few people cover."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd

from fairall.evaluate import compare
from reproduction.simulated_impact import covered
from reproduction.simulated_swaps import COST, ESTIMATED
from reproduction.simulations import Case

TITLE = "Intervals of few outcomes, labels and people"
NOTE = (
    "Decisions of which all labels of accepted people are known. A second policy decides one in ten the "
    "other way round; the difference is between the two. A small group of different people stands beside one "
    "of 80. Persons with several rows have rows in both groups, and probabilities of their own to be "
    "accepted and good, with a standard deviation of 20 points. Of the group beside, or the second one, half "
    "are accepted, and 60 % of these good. Acceptance and precision: of the other group. Estimates without "
    "an interval do not count."
)
TESTED = ("fairall/evaluate/estimated/estimates.py",)

LARGE, OTHERS = 80, (0.5, 0.6)  # people of the group beside the small one; shares accepted and good
CLAIMS = dict.fromkeys(("value", "acceptance", "DPU", "difference of DPU"), ("≥", 0.92))


def replicate(
    persons: int, rows: int, accepts: float, good: float, random: np.random.Generator
) -> dict[str, bool]:
    """Which 95 % intervals contain the truth; those that do not exist are left out.

    Args:
        persons: of both groups together.
        rows: of each person; every other one is of the first group where there are several.
        accepts: share of the first group that is accepted.
        good: and share of good labels in it.
        random: of the log.
    """
    row = np.arange(persons * rows)
    group = row % 2 if rows > 1 else 1 * (row >= persons - LARGE)
    rates = np.transpose([(accepts, good), OTHERS])
    chances = rates[:, group] + np.repeat(random.normal(0.0, 0.2 * (rows > 1), (2, persons)), rows, 1)
    accepted, repays = random.random(chances.shape) < chances
    table = pd.DataFrame({"score": random.normal(size=len(row)), "group": group, "who": row // rows})
    table = table.assign(granted=accepted, repaid=np.where(accepted, repays, np.nan))
    other = 1.0 * (accepted ^ (random.random(len(row)) < 0.1))
    both = compare(None, other, table, sensitive="group", person="who", **ESTIMATED)
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


CASES = tuple(
    Case(name, partial(replicate, *log), 600, CLAIMS)  # type: ignore[arg-type]
    for name, *log in (
        ("a group of 10, 30 % accepted, 90 % good", 10 + LARGE, 1, 0.3, 0.9),
        ("a group of 20, 50 % accepted, 98 % good", 20 + LARGE, 1, 0.5, 0.98),
        ("a group of 80, 50 % accepted, 98 % good", 80 + LARGE, 1, 0.5, 0.98),
        ("5 persons with 24 rows each, half accepted, half good", 5, 24, 0.5, 0.5),
        ("30 persons with 4 rows each, half accepted, half good", 30, 4, 0.5, 0.5),
    )
)
