"""How often adverse impact is found among groups of equal acceptance rates, and of unequal ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from fairall.evaluate import evaluate
from reproduction.simulations import Case

TITLE = "Adverse impact"
NOTE = (
    "Decisions on different people, without a given reference group. All groups have one acceptance rate, "
    "drawn between 10 and 90 % for each log; in the last case the first group has 50 %, the others 30 %."
)
TESTED = ("fairall/evaluate/analyses/impact.py", "fairall/evaluate/estimated/estimates.py")

LEVEL = 0.05
SIZES = {
    (150, 150): 800,
    (560, 40): 800,
    (100,) * 4: 500,
    (600, 250, 35, 12): 500,
    (100,) * 6: 500,
    (1000, 400, 120, 60, 35, 12): 500,
}
NONE = ("≤", 0.06)
CLAIMS = {
    "some p < .05": NONE,
    "some interval of AIR without 100": NONE,
    "some interval of SMD without 0": NONE,
    "a reference group of fewer than 30 people": ("≤", 0.0),
}


def adverse_impact(
    random: np.random.Generator,
    sizes: Sequence[int],
    chance: Any = 0.5,
    rows: int = 1,
    policy: np.ndarray | None = None,
    **options: Any,
) -> pd.DataFrame:
    """The table `impact` of a log without labels, by the decisions or by a policy, with measures as index.

    Args:
        random: of the decisions.
        sizes: number of people in each group, whose name is its place.
        chance: of an accepted row, one or of shape (N,).
        rows: of each person.
        policy: acceptance probabilities, shape (N,).
        options: of `evaluate`.
    """
    group = np.repeat(range(len(sizes)), np.multiply(sizes, rows))
    number = np.arange(len(group))
    table = pd.DataFrame({"group": group, "number": number, "who": number // rows, "propensity": 0.5})
    table["granted"] = random.random(len(group)) < chance
    options |= {"sensitive": "group", "decision": "granted", "propensity": "propensity", "person": "who"}
    return evaluate(policy, table, **options).table("impact").set_index("measure")


def outside(row: Any, value: float) -> Any:
    """Whether the interval of a row, or each of those of a table, is known and excludes a value."""
    return (row["low"] > value) | (row["high"] < value)


def covered(intervals: Mapping[str, tuple[Any, float]]) -> dict[str, bool]:
    """Whether intervals contain the truth, to rounding; those that do not exist are left out.

    Args:
        intervals: name → what has the attributes `low` and `high`, and the truth.
    """
    return {
        name: of.low - 1e-9 <= truth <= of.high + 1e-9
        for name, (of, truth) in intervals.items()
        if not np.isnan(of.low)
    }


def replicate(sizes: Sequence[int], rates: Sequence[float], random: np.random.Generator) -> dict[str, Any]:
    """What happens in a log of groups of some sizes, of rates that are drawn as one where none are given."""
    chances = rates or [random.uniform(0.1, 0.9)] * len(sizes)
    found = adverse_impact(random, sizes, np.repeat(chances, sizes))
    return {
        "some p < .05": found["p"].min() < LEVEL,
        "some interval of AIR without 100": outside(found.loc["ratio"], 1.0).any(),
        "some interval of SMD without 0": outside(found.loc["smd"], 0.0).any(),
        "a reference group of fewer than 30 people": sizes[int(found["reference"].iloc[0])] < 30,
    }


CASES = (
    *(
        Case(
            f"{len(sizes)} groups of {', '.join(map(str, sizes))}",
            partial(replicate, sizes, ()),
            replicates,
            CLAIMS,
        )
        for sizes, replicates in SIZES.items()
    ),
    Case(
        "4 groups of 200, rates of 50 and 30 %",
        partial(replicate, (200,) * 4, (0.5, 0.3, 0.3, 0.3)),
        200,
        {"some p < .05": ("≥", 0.8)},
    ),
)
