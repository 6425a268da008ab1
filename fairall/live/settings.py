"""What a ledger is started with: names of columns, who is learnt from, and when a version is promoted."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from fairall.config.words import nearest_key
from fairall.errors import FairAllError

PREFIX = "live."
UNITS = {"s": 1, "h": 3600, "d": 86400}
PROMOTE = "by_hand", "if_better"


@dataclass(frozen=True)
class Settings:
    """Settings of a ledger, which never change.

    Attributes:
        horizon: age in seconds from which on an outcome is learnt from; outcomes that come early wait until
            then, since fast ones are unlike others. None: a batch is learnt from when all its outcomes are
            there.
        held_out: share of the people who are not learnt from, on whom versions are compared.
        explore: probability with which those are accepted whom the policy rejects.
        promote: whether a version that is better goes on duty by itself (`if_better`).
        gap: most that a gap between groups may grow then.
        id: column of the id of each person.
        time: column of times; a table without it is of now.
        label: column of outcomes.
        positive: word of a good outcome, as 1 is.
        negative: word of a bad one, as 0 is.
    """

    horizon: int | None = 0
    held_out: float = 0.05
    explore: float = 0.02
    promote: str = "by_hand"
    gap: float = 0.05
    id: str = "id"
    time: str = "time"
    label: str = "label"
    positive: str = "1"
    negative: str = "0"

    @classmethod
    def read(cls, words: Sequence[str], **defaults: Any) -> Settings:
        """Settings by words `live.KEY=VALUE`; others have `defaults`.

        Raises:
            FairAllError: where there is no such key, or its value is not possible.
        """
        known = [field.name for field in fields(cls)]
        given = dict(defaults)
        for word in words:
            key, _, value = word.removeprefix(PREFIX).partition("=")
            if key not in known:
                near = nearest_key(key, known) or f"; there are {', '.join(known)}"
                raise FairAllError(f"{word}: no such key{near}")
            given[key] = _value(key, value)
        made = replace(cls(), **given)
        names = [made.id, made.time, made.label]
        if len(set(names)) < len(names):
            raise FairAllError(f"live.id, live.time, live.label are {', '.join(names)}: give three columns")
        if made.positive == made.negative:
            raise FairAllError(
                f"live.positive and live.negative are both {made.positive}: give different words"
            )
        return made


def _value(key: str, value: str) -> Any:
    """The value of a key; raises as `Settings.read`."""
    if key == "horizon":
        return None if value == "null" else seconds(value)
    if key in ("held_out", "explore", "gap"):
        if not re.fullmatch(r"\d*\.?\d+", value) or not float(value) < 1:
            raise FairAllError(f"{PREFIX}{key}={value} is not possible: it must be a number from 0, below 1")
        return float(value)
    if key == "promote" and value not in PROMOTE:
        raise FairAllError(f"{PREFIX}{key}={value} is not possible: it must be {' or '.join(PROMOTE)}")
    if not value:
        raise FairAllError(f"{PREFIX}{key}= is not possible: give a name")
    return value


def seconds(text: str) -> int:
    """A duration such as 90d, 12h or 0, in seconds.

    Examples:
        >>> seconds("90d"), seconds("0")
        (7776000, 0)

    Raises:
        FairAllError: where it is none.
    """
    found = re.fullmatch(r"(\d{1,6})([shd])", "0s" if text == "0" else text)
    if found is None:
        raise FairAllError(f"live.horizon={text} is not possible: it must be as 90d, 12h, 0 or null")
    return int(found[1]) * UNITS[found[2]]
