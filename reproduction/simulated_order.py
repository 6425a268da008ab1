"""Values of a policy from logs in which decisions and labels swing along the file, without times."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any

import numpy as np
import pandas as pd

from fairall.evaluate import evaluate
from reproduction.simulations import Case

TITLE = "Time that swings"
NOTE = (
    "Logs of 1,000 rows whose order is that of time, without a column of times; log odds are higher by "
    "sin 2πct at the position t of a row, from 0 to 1, or by 2t − 1. Covered: the true value is in the "
    "95 % interval of the doubly robust value. Marked: a warning says that the value is in doubt."
)
TESTED = ("fairall/evaluate/checks.py",)

COST, ROWS, POPULATION = 0.4, 1000, 200_000
FASTEST = 50  # cycles, from which on a window of the check holds a whole one
COLUMNS: dict[str, Any] = {"decision": "granted", "label": "repaid", "sensitive": "sex", "cost": COST}
COVERED, MARKED = "covered or marked", "marked"
Shift = Callable[[np.random.Generator, np.ndarray], np.ndarray]


def sine(_: np.random.Generator, t: np.ndarray, cycles: int, size: float = 1.0) -> np.ndarray:
    """Swings of the log odds at positions t, shape (N,)."""
    return size * np.sin(2.0 * np.pi * cycles * t)


def line(_: np.random.Generator, t: np.ndarray) -> np.ndarray:
    """Log odds from −1 to 1 at positions t, shape (N,)."""
    return 2.0 * t - 1.0


def none(_: np.random.Generator, t: np.ndarray) -> np.ndarray:
    """No change of the log odds at positions t, shape (N,)."""
    return np.zeros(len(t))


def branches(random: np.random.Generator, t: np.ndarray) -> np.ndarray:
    """Log odds in common to each twenty neighbours."""
    return np.repeat(random.normal(size=len(t) // 20), 20)


def logistic(log_odds: np.ndarray) -> np.ndarray:
    """Probabilities of log odds."""
    return 1.0 / (1.0 + np.exp(-log_odds))


def people(
    random: np.random.Generator, rows: int, of_decision: Shift, of_label: Shift, together: bool
) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """A log, acceptance probabilities of the policy to judge, and P(y = 1), shapes (N,).

    Args:
        random: draws the people.
        rows: N.
        of_decision: what is added to the log odds of decisions, by positions.
        of_label: likewise of labels, if not `together`.
        together: whether the same is added to both.
    """
    x, sex = random.standard_normal((rows, 4)), random.random(rows) < 0.5
    t = np.arange(rows) / rows
    shift = of_decision(random, t)
    propensity = logistic(0.2 + 0.6 * x[:, 0] + 0.3 * sex + shift)
    chance = logistic(0.3 + 0.8 * x[:, 0] - 0.3 * x[:, 1] + (shift if together else of_label(random, t)))
    granted, repaid = random.random(rows) < propensity, random.random(rows) < chance
    table = pd.DataFrame(x, columns=list("abcd")).assign(
        sex=np.where(sex, "m", "f"), granted=granted.astype(int), repaid=np.where(granted, repaid, np.nan)
    )
    return table, logistic(1.2 * x[:, 0] + 0.5 * x[:, 3]), chance


@cache
def truth(of_decision: Shift, of_label: Shift, together: bool) -> float:
    """The value of the policy for a large population."""
    _, target, chance = people(np.random.default_rng(0), POPULATION, of_decision, of_label, together)
    return float((target * (chance - COST)).mean())


def judged(
    random: np.random.Generator,
    of_decision: Shift = none,
    of_label: Shift = none,
    together: bool = False,
    order: tuple[str, ...] = (),
    models: str = "auto",
) -> Mapping[str, bool]:
    """What becomes of one log.

    Args:
        random: draws the people.
        of_decision: as for `people`.
        of_label: likewise.
        together: likewise.
        order: columns that the file is sorted by, one after the other; "month" is a 24th of the rows.
        models: of decision and label, as for `evaluate`.
    """
    table, target, _ = people(random, ROWS, of_decision, of_label, together)
    keys = table.assign(month=np.arange(ROWS) * 24 // ROWS)
    rows = keys.sort_values(list(order), kind="stable").index.to_numpy() if order else np.arange(ROWS)
    sorted_table = table.iloc[rows].reset_index(drop=True)
    found = evaluate(target[rows], sorted_table, propensity_model=models, outcome_model=models, **COLUMNS)
    value, marked = found.values["dr"], found.misfit is not None
    covered = value.low <= truth(of_decision, of_label, together) <= value.high
    return {"covered": covered, MARKED: marked, COVERED: covered or marked}


def benign(random: np.random.Generator) -> Mapping[str, bool]:
    """Whether one of the logs of `BENIGN`, chosen at random, is marked."""
    name = random.choice(list(BENIGN))
    marked = BENIGN[name](random, models="logistic")[MARKED]
    return {MARKED: marked, f"marked, {name}": marked}


BENIGN = {
    "decisions only, c = 4": partial(judged, of_decision=partial(sine, cycles=4)),
    "labels only, c = 4": partial(judged, of_label=partial(sine, cycles=4)),
    "decisions in common to twenty rows": partial(judged, of_decision=branches),
    "labels in common to twenty rows": partial(judged, of_label=branches),
    "sorted by a feature": partial(judged, order=("a",)),
    "sorted by decision": partial(judged, order=("granted",)),
    "sorted by label": partial(judged, order=("repaid",)),
    "sorted by group, decision and label": partial(judged, order=("sex", "granted", "repaid")),
    "sorted by month, decision and label": partial(judged, order=("month", "granted", "repaid")),
}
CASES = (
    *(
        Case(
            f"decisions and labels together, c = {cycles}",
            partial(judged, of_decision=partial(sine, cycles=cycles), together=True),
            50,
            {COVERED: ("≥", 0.9)} if cycles < FASTEST else {},
        )
        for cycles in (2, 4, 12, 24, 100)
    ),
    Case(
        "decisions and labels together, log odds from −1 to 1",
        partial(judged, of_decision=line, together=True),
        50,
        {COVERED: ("≥", 0.9)},
    ),
    Case("no change", judged, 50, {COVERED: ("≥", 0.9), MARKED: ("≤", 0.02)}),
    Case("one of nine without a common change, logistic models", benign, 500, {MARKED: ("≤", 0.02)}),
)
