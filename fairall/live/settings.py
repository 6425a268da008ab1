"""What a ledger is started with: names of columns, who is learnt from, and when a version is promoted."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import partial
from typing import Any

from fairall.config.checks import check_values, limited, require
from fairall.config.words import nearest
from fairall.errors import FairAllError

PREFIX = "live."
PROMOTE = "by_hand", "if_better"
UNITS = {"s": 1, "h": 3600, "d": 86400}
name = partial(limited, "a name", bool)
share = partial(
    limited, "a number from 0, below 1", lambda value: isinstance(value, float) and 0 <= value < 1
)


@dataclass(frozen=True)
class Settings:
    """Settings of a ledger, which never change.

    Attributes:
        horizon: age in seconds from which on an outcome is learnt from; outcomes that come early wait until
            then, since fast ones are unlike others. None: a batch is learnt from when all its outcomes are
            there.
        held_out: share of the people who are not learnt from, on whom versions are compared.
        explore: probability with which those are accepted whom the policy rejects.
        promote: `if_better`: a version that is better goes on duty by itself; else `by_hand`.
        gap: most that a gap between groups may grow then.
        id: column of the id of each person.
        time: column of times; a table without it is of now.
        label: column of outcomes.
        positive: word of a good outcome, as 1 is.
        negative: word of a bad one, as 0 is.
    """

    horizon: int | None = limited("as 90d, 12h, 0 or null", lambda age: age in range(10**9), 0)
    held_out: float = share(0.05)
    explore: float = share(0.02)
    promote: str = limited("by_hand or if_better", PROMOTE.__contains__, "by_hand")
    gap: float = share(0.05)
    id: str = name("id")
    time: str = name("time")
    label: str = name("label")
    positive: str = name("1")
    negative: str = name("0")

    def __post_init__(self) -> None:
        check_values(self, "live")

    @classmethod
    def read(cls, words: Sequence[str], columns: Sequence[str] = (), **defaults: str) -> Settings:
        """Settings by words `live.KEY=VALUE`; others have `defaults`.

        Raises:
            FairAllError: where there is no such key, its value is not possible, two names are alike, or one
                is that of one of the `columns` that decisions depend on.
        """
        known, given = {field.name: field.default for field in fields(cls)}, dict[str, Any](defaults)
        for word in words:
            key, _, value = word.removeprefix(PREFIX).partition("=")
            if key not in known:
                near = nearest(key, known) or f"; there are {', '.join(known)}"
                raise FairAllError(f"{word}: no such key{near}")
            given[key] = READ[type(known[key])](value)
        made, taken = cls(**given), [*columns]
        for key in ("id", "time", "label"):
            column, allowed = getattr(made, key), f"none of {', '.join(taken)}, a column of its own"
            require(column not in taken, PREFIX + key, column, allowed)
            taken.append(column)
        require(made.positive != made.negative, "live.positive", made.positive, "unlike live.negative")
        return made


def seconds(text: str) -> Any:
    """A duration such as 90d, 12h or 0 in seconds, None for null; anything else as it is.

    Examples:
        >>> seconds("90d"), seconds("0"), seconds("null"), seconds("soon")
        (7776000, 0, None, 'soon')
    """
    found = re.fullmatch(r"(\d{1,6})([shd])", "0s" if text == "0" else text)
    return int(found[1]) * UNITS[found[2]] if found else None if text == "null" else text


def _number(text: str) -> Any:
    return float(text) if re.fullmatch(r"\d*\.?\d+", text) else text


READ: dict[type, Callable[[str], Any]] = {int: seconds, float: _number, str: str}  # by type of the default
