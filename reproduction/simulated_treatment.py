"""How often the intervals of equal treatment cover the true difference and odds ratio among equals."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, partial

import numpy as np
import pandas as pd
from scipy.special import expit

from fairall.evaluate import evaluate
from reproduction.simulated_impact import outside
from reproduction.simulations import Case

TITLE = "Equal treatment"
NOTE = (
    "Decisions on 40 % women and 60 % men, whose first feature is lower by one standard deviation for women. "
    "Acceptance depends on the features, and women of equal features are accepted less often by a direct "
    "effect. Without one the features explain the whole raw gap of 14 points."
)
TESTED = ("fairall/evaluate/analyses/treatment.py", "fairall/evaluate/estimated/nuisance.py")

WOMEN = 0.4
NULL = "interval of the difference without 0"
COVERED = {"difference covered": ("≥", 0.93), "odds ratio covered": ("≥", 0.93)}


def people(random: np.random.Generator, rows: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Who is a woman, two features, and the acceptance probability of men of these features."""
    woman = random.random(rows) < WOMEN
    x = random.normal(size=(rows, 2)) - np.outer(woman, (1.0, 0.0))
    return woman, x, 0.1 + 0.7 * expit(x[:, 0] + 0.5 * x[:, 1])


@cache
def truth(direct: float) -> tuple[float, float]:
    """The difference of women and men of equal features, and its odds ratio over all of them."""
    men = people(np.random.default_rng(0), 1_000_000)[2].mean()
    odds = [rate / (1 - rate) for rate in (men - direct, men)]
    return -direct, odds[0] / odds[1]


def replicate(
    random: np.random.Generator, rows: int, direct: float, model: str = "logistic", *, drawn: bool = True
) -> Mapping[str, bool]:
    """What happens in a log of some rows.

    Args:
        random: of the log.
        rows: their number.
        direct: effect, in acceptance probability.
        model: of group and acceptance.
        drawn: whether decisions are judged; else the acceptance probabilities are.
    """
    woman, x, chance = people(random, rows)
    table = pd.DataFrame({"sex": np.where(woman, "f", "m"), "x": x[:, 0], "z": x[:, 1], "p": 0.5})
    accepts = chance - direct * woman
    table["granted"] = (random.random(rows) < accepts).astype(int)
    roles = {"sensitive": "sex", "decision": "granted", "propensity": "p", "reference": "m"}
    evaluation = evaluate(None if drawn else accepts, table, propensity_model=model, **roles)
    shown = {row["measure"]: row for row in evaluation.table("treatment").to_dict("records")}
    difference, ratio = truth(direct)
    if np.isnan(shown["adjusted"]["low"]):
        return {"refused": True}
    return {
        "refused": False,
        "difference covered": not outside(shown["adjusted"], difference),
        "odds ratio covered": not outside(shown["odds_ratio"], ratio),
        NULL: outside(shown["adjusted"], 0.0),
    }


CASES = tuple(
    Case(
        f"{rows:,} people, {model} models, direct effect of {100 * direct:.0f} points{what}",
        partial(replicate, rows=rows, direct=direct, model=model, drawn=not what),
        logs,
        COVERED | ({} if direct else {NULL: ("≤", 0.07)}),
    )
    for model, what, sizes in (
        ("logistic", "", {500: 500, 2_000: 1_000, 10_000: 500}),
        ("auto", "", {1_000: 60}),
        ("logistic", ", by probabilities", {500: 200, 2_000: 200}),
        ("auto", ", by probabilities", {2_000: 60}),
    )
    for rows, logs in sizes.items()
    for direct in (0.0, 0.05)
)
