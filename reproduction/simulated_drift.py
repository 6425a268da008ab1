"""How often the test of drift finds a change where there is none, and where there is one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from fairall import drift_by_column
from reproduction.population import Events, Random

Pair = Sequence[pd.Series]


def column(
    random: Random,
    n: int,
    *,
    levels: int = 0,
    law: str = "Zipf",
    draw: str = "normal",
    least: float | None = None,
    missing: float = 0.0,
    **of: Any,
) -> pd.Series:
    """A column of n words or numbers.

    Args:
        random: draws them.
        n: their number.
        levels: of words; 0: numbers.
        law: of words: "equal" or "Zipf", by which the k-th is as frequent as 1/k.
        draw: of numbers: a method of `random`.
        least: lowest number, for lower ones too.
        missing: share without a number.
        of: parameters of `draw`.
    """
    if levels:
        share = np.arange(1.0, levels + 1) ** -(law == "Zipf")
        return pd.Series(np.char.mod("w%d", random.choice(levels, n, p=share / share.sum())))
    absent = random.random(n) < missing if missing else np.zeros(n, dtype=bool)
    return pd.Series(getattr(random, draw)(size=n, **of)).clip(least).mask(absent)


def pair(random: Random, n: int, m: int, **law: Any) -> Pair:
    """Two columns of one population."""
    return [column(random, number, **law) for number in (n, m)]


def differ(pairs: Iterable[Pair]) -> bool:
    """Whether one or more columns are said to differ, with p corrected for all of them."""
    columns = {place: (old, new, old.dtype.kind != "O") for place, (old, new) in enumerate(pairs)}
    return any(found.p < 0.05 for found in drift_by_column(columns).values())


def unchanged(random: Random, sizes: Sequence[Sequence[int]], **law: Any) -> Events:
    """What is found in pairs of tables of one population, by their sizes."""
    return {f"drift of {n:,} and {m:,} people": differ([pair(random, n, m, **law)]) for n, m in sizes}


def columns(random: Random, laws: Sequence[Mapping[str, Any]], often: int) -> Events:
    """Whether anything is found in columns of one population, so many of each of some laws."""
    return {"drift of one or more": differ([pair(random, 300, 300, **law) for law in [*laws] * often])}


def shifted(random: Random) -> Events:
    """Which of six shifts are found."""
    many, later = pair(random, 1000, 1000, levels=100)
    towns, next_towns = pair(random, 5000, 5000, levels=1000, law="equal")
    two = pd.Series(np.where(random.random(500) < 0.6, "w0", "w1"))
    pairs = {
        "mean by 0.3 of a standard deviation, 500 and 500 people": (
            column(random, 500),
            column(random, 500, loc=0.3),
        ),
        "mean by a standard deviation, 30 and 30 people": (column(random, 30), column(random, 30, loc=1.0)),
        "one of two words from 50 to 60 %, 500 and 500 people": (
            column(random, 500, levels=2, law="equal"),
            two,
        ),
        "one of 100 words in another 5 %, 1,000 and 1,000 people": (
            many,
            later.mask(random.random(1000) < 0.05, "w99"),
        ),
        "half with one of 1,000 new words, 5,000 and 5,000 people": (
            towns,
            next_towns.mask(random.random(5000) < 0.5, "new " + towns),
        ),
        "missing cells in 10 %, 1,000 and 50 people": (
            many,
            column(random, 50, levels=100).mask(random.random(50) < 0.1),
        ),
    }
    return {event: differ([tables]) for event, tables in pairs.items()}
