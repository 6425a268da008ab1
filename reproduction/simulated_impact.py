"""How often adverse impact is found among groups of equal acceptance rates, and of unequal ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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
SIZES = (
    (150, 150),
    (560, 40),
    (100, 100, 100, 100),
    (600, 250, 35, 12),
    (100, 100, 100, 100, 100, 100),
    (1000, 400, 120, 60, 35, 12),
)
NONE = ("≤", 0.06)
CLAIMS = {
    "some p < .05": NONE,
    "some interval of AIR without 100": NONE,
    "some interval of SMD without 0": NONE,
    "a reference group of fewer than 30 people": ("≤", 0.0),
}


def adverse_impact(
    group: np.ndarray, decision: np.ndarray, policy: Any = None, **options: Any
) -> dict[str, dict[str, Any]]:
    """The table `impact` of a log without labels, by the decisions or by a policy.

    Args:
        group: of each row, shape (N,).
        decision: whether it was accepted, shape (N,), bool.
        policy: acceptance probabilities, shape (N,).
        options: of `evaluate`; `person` as codes, shape (N,).

    Returns:
        Group → measure → row of the table.
    """
    table = pd.DataFrame({"group": group, "granted": decision.astype(int), "propensity": 0.5})
    table["number"] = np.arange(len(table), dtype=float)
    if "person" in options:
        table["who"], options["person"] = options["person"], "who"
    roles = {"sensitive": "group", "decision": "granted", "propensity": "propensity"}
    groups: dict[str, dict[str, Any]] = {}
    for row in evaluate(policy, table, **roles, **options).table("impact").to_dict("records"):
        groups.setdefault(row["group"], {})[row["measure"]] = row
    return groups


def compared(groups: Mapping[str, Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """The groups beside the reference group, which has no p-value."""
    return (measures for measures in groups.values() if "p" in measures)


def outside(row: Mapping[str, Any], value: float) -> bool:
    """Whether the interval of a row is known and excludes a value."""
    return bool(row["low"] > value or row["high"] < value)


def replicate(
    random: np.random.Generator, sizes: Sequence[int], rates: Sequence[float] | None = None
) -> Mapping[str, bool]:
    """What happens in a log of groups of some sizes, of rates that are drawn as one by default."""
    chances = [random.uniform(0.1, 0.9)] * len(sizes) if rates is None else rates
    group = np.repeat([f"g{number}" for number in range(len(sizes))], sizes)
    groups = adverse_impact(group, random.random(len(group)) < np.repeat(chances, sizes))
    (reference,) = (measures for measures in groups.values() if "p" not in measures)
    return {
        "some p < .05": any(one["p"]["p"] < LEVEL for one in compared(groups)),
        "some interval of AIR without 100": any(outside(one["ratio"], 1.0) for one in compared(groups)),
        "some interval of SMD without 0": any(outside(one["smd"], 0.0) for one in compared(groups)),
        "a reference group of fewer than 30 people": reference["people"]["value"] < 30,
    }


CASES = (
    *(
        Case(
            f"{len(sizes)} groups of {', '.join(map(str, sizes))}",
            partial(replicate, sizes=sizes),
            800 if len(sizes) == 2 else 500,
            CLAIMS,
        )
        for sizes in SIZES
    ),
    Case(
        "4 groups of 200, rates of 50 and 30 %",
        partial(replicate, sizes=(200, 200, 200, 200), rates=(0.5, 0.3, 0.3, 0.3)),
        200,
        {"some p < .05": ("≥", 0.8)},
    ),
)
