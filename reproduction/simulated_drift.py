"""How often the test of drift finds a change where there is none, and where there is one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from fairall import drift_by_column
from reproduction.simulations import Case

TITLE = "Drift"
NOTE = (
    "Share of simulated pairs of tables in which p < .05 for a column, by the numbers of earlier and of new "
    "people. Of thirty columns (ten each of normal numbers, of counts and of 200 words, 300 people "
    "a table) the event is that at least one differs, with p corrected for all of them."
)
TESTED = ("fairall/data/drift.py",)

LEVEL = 0.05
Draw = Callable[[np.random.Generator, int], pd.Series]
NONE = ("≤", 0.06)


def words(random: np.random.Generator, n: int, levels: int, power: float) -> pd.Series:
    """Words of which the k-th is as frequent as k to minus `power`."""
    share = np.arange(1.0, levels + 1) ** -power
    return pd.Series(np.char.mod("w%d", random.choice(levels, n, p=share / share.sum())))


NUMBERS: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "normal": lambda random, n: random.normal(size=n),
    "normal, a fifth at the least value": lambda random, n: random.normal(size=n).clip(-0.84),
    "normal, a fifth missing": lambda random, n: np.where(
        random.random(n) < 0.2, np.nan, random.normal(size=n)
    ),
    "Poisson of mean 3": lambda random, n: random.poisson(3, n),
    "five values": lambda random, n: random.choice([0, 10, 20, 30, 31], n),
    "whole numbers from 18 to 69": lambda random, n: random.integers(18, 70, n),
    "0 and 1": lambda random, n: random.integers(0, 2, n),
}


def numbers(random: np.random.Generator, n: int, kind: str) -> pd.Series:
    """Numbers of one of `NUMBERS`."""
    return pd.Series(NUMBERS[kind](random, n))


SIZES_OF_WORDS = ((50, 50), (500, 500), (5000, 5000), (5000, 50))
SIZES_OF_NUMBERS = ((30, 30), (50, 50), (100, 30), (1000, 1000))
SHIFTS = (
    "mean by 0.3 of a standard deviation, 500 and 500 people",
    "mean by a standard deviation, 30 and 30 people",
    "one of two words from 50 to 60 %, 500 and 500 people",
    "one of 100 words in another 5 %, 1,000 and 1,000 people",
    "half with one of 1,000 new words, 5,000 and 5,000 people",
    "missing cells in 10 %, 1,000 and 50 people",
)


def name(n: int, m: int) -> str:
    """Of the event of tables of n and m people."""
    return f"drift of {n:,} and {m:,} people"


def differs(old: pd.Series, new: pd.Series, *, number: bool) -> bool:
    """Whether a column is said to differ."""
    return drift_by_column({"column": (old, new, number)})["column"].p < LEVEL


def unchanged(
    random: np.random.Generator, draw: Draw, sizes: tuple[tuple[int, int], ...], *, number: bool
) -> Mapping[str, bool]:
    """What is found in pairs of tables of one population, by their sizes."""
    return {name(n, m): differs(draw(random, n), draw(random, m), number=number) for n, m in sizes}


def thirty(random: np.random.Generator) -> Mapping[str, bool]:
    """Whether anything is found in thirty columns of one population."""
    columns = {}
    for k in range(10):
        for number, draw in (
            (True, partial(numbers, kind="normal")),
            (True, partial(numbers, kind="Poisson of mean 3")),
            (False, partial(words, levels=200, power=1.0)),
        ):
            columns[k, draw] = (draw(random, 300), draw(random, 300), number)
    return {"drift of one or more": any(found.p < LEVEL for found in drift_by_column(columns).values())}


def shifted(random: np.random.Generator) -> Mapping[str, bool]:
    """Which of six shifts are found."""
    many, later = (words(random, 1000, 100, 1.0) for _ in range(2))
    towns, next_towns = (words(random, 5000, 1000, 0.0) for _ in range(2))
    two = pd.Series(np.where(random.random(500) < 0.6, "w0", "w1"))
    changes: dict[str, tuple[Any, Any, bool]] = {
        SHIFTS[0]: (random.normal(size=500), random.normal(0.3, size=500), True),
        SHIFTS[1]: (random.normal(size=30), random.normal(1.0, size=30), True),
        SHIFTS[2]: (words(random, 500, 2, 0.0), two, False),
        SHIFTS[3]: (many, later.mask(random.random(1000) < 0.05, "w99"), False),
        SHIFTS[4]: (towns, next_towns.mask(random.random(5000) < 0.5, "new " + towns), False),
        SHIFTS[5]: (many, words(random, 50, 100, 1.0).mask(random.random(50) < 0.1), False),
    }
    return {
        event: differs(pd.Series(old), pd.Series(new), number=number)
        for event, (old, new, number) in changes.items()
    }


CASES = (
    *(
        Case(
            f"{levels:,} words, {law}",
            partial(
                unchanged, draw=partial(words, levels=levels, power=power), sizes=SIZES_OF_WORDS, number=False
            ),
            2000,
            {name(*size): NONE for size in SIZES_OF_WORDS},
        )
        for levels in (2, 10, 100, 200, 1000)
        for law, power in (("equal", 0.0), ("Zipf", 1.0))
    ),
    *(
        Case(
            f"numbers: {kind}",
            partial(unchanged, draw=partial(numbers, kind=kind), sizes=SIZES_OF_NUMBERS, number=True),
            2000,
            {name(*size): NONE for size in SIZES_OF_NUMBERS},
        )
        for kind in NUMBERS
    ),
    Case("thirty columns", thirty, 1000, {"drift of one or more": NONE}),
    Case("a shift", shifted, 500, dict.fromkeys(SHIFTS, ("≥", 0.75))),
)
