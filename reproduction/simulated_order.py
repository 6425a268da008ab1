"""Values of a policy from logs in which decisions and labels swing along the file, without times."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial

import numpy as np
import pandas as pd

from fairall.evaluate import evaluate
from reproduction.simulations import Case

TITLE = "Time that swings"
NOTE = (
    "Logs of 1,000 rows whose order is that of time, without a column of times; log odds are higher by "
    "sin 2πct at the position t of a row, from 0 to 1. Covered: the true value is in the 95 % interval of "
    "the doubly robust value, with logistic models. Marked: a warning says that the value is in doubt."
)
TESTED = ("fairall/evaluate/judged/checks.py",)

COST, ROWS, POPULATION = 0.4, 1000, 200_000
MODELS = {"propensity_model": "logistic", "outcome_model": "logistic"}
COLUMNS = {"decision": "granted", "label": "repaid", "sensitive": "sex", "cost": COST}
COVERED, MARKED = "covered or marked", "marked"
Shift = Callable[[np.random.Generator, np.ndarray], np.ndarray]


def sine(_: np.random.Generator, t: np.ndarray, cycles: int, size: float = 1.0) -> np.ndarray:
    """Swings of the log odds at positions t, shape (N,)."""
    return size * np.sin(2.0 * np.pi * cycles * t)


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
) -> Mapping[str, bool]:
    """What becomes of one log.

    Args:
        random: draws the people.
        of_decision: as for `people`.
        of_label: likewise.
        together: likewise.
        order: columns that the file is sorted by, one after the other; "month" is a 24th of the rows.
    """
    table, target, _ = people(random, ROWS, of_decision, of_label, together)
    keys = table.assign(month=np.arange(ROWS) * 24 // ROWS)
    rows = keys.sort_values(list(order), kind="stable").index.to_numpy() if order else np.arange(ROWS)
    found = evaluate(target[rows], table.iloc[rows].reset_index(drop=True), **COLUMNS, **MODELS)
    value, marked = found.values["dr"], found.misfit is not None
    covered = value.low <= truth(of_decision, of_label, together) <= value.high
    return {"covered": covered, MARKED: marked, COVERED: covered or marked}


SEEN = {COVERED: ("≥", 0.9)}
BENIGN = {MARKED: ("≤", 0.02), COVERED: ("≥", 0.9)}
CASES = (
    *(
        Case(
            f"decisions and labels together, c = {cycles}",
            partial(judged, of_decision=partial(sine, cycles=cycles), together=True),
            100,
            SEEN,
        )
        for cycles in (2, 4, 12, 24)
    ),
    Case("no change", judged, 100, BENIGN),
    Case("decisions only, c = 4", partial(judged, of_decision=partial(sine, cycles=4)), 100, BENIGN),
    Case("labels only, c = 4", partial(judged, of_label=partial(sine, cycles=4)), 100, BENIGN),
    Case("decisions in common to twenty rows", partial(judged, of_decision=branches), 100, BENIGN),
    Case(
        "labels in common to twenty rows", partial(judged, of_label=branches), 100, {MARKED: BENIGN[MARKED]}
    ),
    *(
        Case(f"sorted by {' and '.join(order)}", partial(judged, order=order), 100, BENIGN)
        for order in (
            ("a",),
            ("granted",),
            ("repaid",),
            ("sex", "granted", "repaid"),
            ("month", "granted", "repaid"),
        )
    ),
)
