"""Values of a policy from logs in which decisions and labels swing along the file, without times."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np

from reproduction.simulated_models import EITHER, MARKED, SHARED, judged, none
from reproduction.simulations import Case

TITLE = "Time that swings"
NOTE = (
    "Logs of 1,000 rows whose order is that of time, without a column of times; log odds are higher by "
    "sin 2πct at the position t of a row, from 0 to 1, or by 2t − 1. Covered: the true value is in the "
    "95 % interval of the doubly robust value. Marked: a warning says that the value is in doubt."
)
TESTED = ("fairall/evaluate/checks.py", "reproduction/simulated_models.py")

FASTEST = 50  # cycles, from which on a window of the check holds a whole one


def sine(_: np.random.Generator, x: np.ndarray, cycles: int) -> np.ndarray:
    """Swings of the log odds along the rows x, shape (N, D)."""
    return np.sin(np.linspace(0.0, 2.0 * np.pi * cycles, len(x)))


def branches(random: np.random.Generator, x: np.ndarray) -> np.ndarray:
    """Log odds in common to each twenty neighbours of the rows x, shape (N, D)."""
    return np.repeat(random.normal(size=len(x) // 20 + 1), 20)[: len(x)]


def benign(random: np.random.Generator) -> Mapping[str, bool]:
    """Whether one of the logs of `BENIGN`, chosen at random, is marked."""
    name = random.choice(list(BENIGN))
    marked = BENIGN[name](random, models="logistic")[MARKED]
    return {MARKED: marked, f"marked, {name}": marked}


BENIGN = {
    "decisions only, c = 4": partial(judged, shared=partial(sine, cycles=4), label=none),
    "labels only, c = 4": partial(judged, label=partial(sine, cycles=4)),
    "decisions in common to twenty rows": partial(judged, shared=branches, label=none),
    "labels in common to twenty rows": partial(judged, label=branches),
    "sorted by a feature": partial(judged, order=("x0",)),
    "sorted by decision": partial(judged, order=("granted",)),
    "sorted by label": partial(judged, order=("repaid",)),
    "sorted by group, decision and label": partial(judged, order=("sex", "granted", "repaid")),
    "sorted by month, decision and label": partial(judged, order=("month", "granted", "repaid")),
}
CASES = (
    *(
        Case(
            f"decisions and labels together, c = {cycles}",
            partial(judged, shared=partial(sine, cycles=cycles)),
            50,
            {EITHER: ("≥", 0.9)} if cycles < FASTEST else {},
        )
        for cycles in (2, 4, 12, 24, 100)
    ),
    Case(
        "decisions and labels together, log odds from −1 to 1",
        partial(judged, shared=SHARED["drift"]),
        50,
        {EITHER: ("≥", 0.9)},
    ),
    Case("no change", judged, 50, {EITHER: ("≥", 0.9), MARKED: ("≤", 0.02)}),
    Case("one of nine without a common change, logistic models", benign, 500, {MARKED: ("≤", 0.02)}),
)
