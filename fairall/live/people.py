"""Tables of people and of outcomes for a ledger, with every mistake found before anything is written."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from torch import Tensor

from fairall.data.people import float32
from fairall.data.prepared import Scaler
from fairall.errors import FairAllError
from fairall.live.settings import Settings
from fairall.tables.cells import identifiers, refuse, shown, spelling, taken, words_of
from fairall.tables.infer import LARGEST
from fairall.tables.people import PeopleReader

DAY = 86400
AHEAD = DAY  # seconds that a time may be after that of this machine, which may be in another time zone
LATE = 2 * DAY  # that an application may be before the last one, which may be `AHEAD` and have an hour
FAR = 31 * DAY  # after all other times, from which on a time has to be confirmed
LONGEST, LONGEST_CELL = 200, 10_000  # characters of an id, and of another cell
UNSEEN = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")  # which a database or an encoding may refuse


class Applicants(NamedTuple):
    """N people of a table.

    Attributes:
        ids: of the people.
        time: in seconds since 1970, shape (N,).
        timed: whether the table has times.
        features: cells of the features as JSON, a list each.
        x: encoded and scaled, shape (N, D), float32.
        s: sensitive attribute, shape (N,), float32.
        notes: doubts about values, a sentence each.
    """

    ids: list[str]
    time: np.ndarray
    timed: bool
    features: list[str]
    x: Tensor
    s: Tensor
    notes: list[str]


def applicants(
    people: pd.DataFrame, ids: list[str], reader: PeopleReader, scaler: Scaler, settings: Settings
) -> Applicants:
    """Read a table of people to decide on.

    Args:
        people: a row for each, with the columns of `settings.id`, of the features and of the sensitive
            attribute, perhaps of `settings.time`, and no others.
        ids: by `ids_of`.
        reader: of people as the policy has learnt from.
        scaler: of their features.
        settings: of the ledger.

    Raises:
        FairAllError: where a column is missing or unknown, or a value is not possible.
    """
    for name in people:
        if name not in (settings.id, settings.time, *reader.columns):
            raise FairAllError(f"column {shown(str(name))!r} is new to the policy: leave it out of the table")
    texts = {name: _texts(people[name]) for name in reader.columns if name in people}
    x, s, notes = reader.read(pd.DataFrame(texts, people.index, dtype=object), refuse_unknown=True)
    beyond = np.abs(x) > LARGEST
    for k in np.flatnonzero(beyond.any(0)):
        refuse(people[reader.names[k]], beyond[:, k], f"is beyond {LARGEST:g}: use another unit")
    rows = zip(*(texts[name] for name in reader.names), strict=True)
    features = [json.dumps(row, ensure_ascii=False, separators=(",", ":")) for row in rows]
    times = _times(people, settings, int(time.time()))
    return Applicants(ids, times, settings.time in people, features, scaler.transform(x), float32(s), notes)


def require_near(table: pd.DataFrame, times: np.ndarray, latest: float, settings: Settings) -> None:
    """Raise RowsError where times (N,) in seconds are more than `FAR` after all others.

    The others are those of the table and the `latest` one in the ledger; where this is 0, the later
    half of the table is compared with the earlier one. A time of the last day is possible at any rate, since
    a ledger may rest.
    """
    latest = latest or float(np.median(times))
    for moment in sorted(times[times < time.time() - DAY]):
        if moment - latest > FAR:
            why = f"is far after all other times, of which the latest is {told(latest)}"
            how = "correct it, or confirm it with --confirm-times (confirm_times=True)"
            refuse(table[settings.time], times >= moment, f"{why}: {how}")
        latest = max(latest, moment)


def cells_of(features: Sequence[str], names: Sequence[str]) -> pd.DataFrame:
    """Cells of `Applicants.features` as texts, None where they are empty."""
    return pd.DataFrame([json.loads(row) for row in features], columns=[*names], dtype=object)


def outcomes(table: pd.DataFrame, settings: Settings, now: int) -> tuple[np.ndarray, np.ndarray]:
    """Read a table of outcomes: the columns of `settings.id` and `settings.label`, perhaps of times.

    Args:
        table: a row for each.
        settings: of the ledger.
        now: time in seconds of outcomes without one.

    Returns:
        Labels 0 or 1, and times in seconds, of each row, shape (M,) each.

    Raises:
        FairAllError: where a column is missing or unknown, or a value is not possible.
    """
    needed = f"it has {settings.id!r}, {settings.label!r} and perhaps {settings.time!r}"
    for name in table:
        if name not in (settings.id, settings.label, settings.time):
            raise FairAllError(f"the table has a column {shown(str(name))!r}; {needed}")
    if settings.label not in table:
        raise FairAllError(f"the table lacks the column {settings.label!r}; {needed}")
    own = {spelling(settings.negative): 0, spelling(settings.positive): 1}
    words = {0.0: 0, 1.0: 1} | own
    codes, texts = words_of(table[settings.label])
    label = taken([words.get(spelling(text), -1) for text in texts], codes, -1)
    why = f"is no outcome; it must be {settings.positive} or {settings.negative}, or 1 or 0"
    refuse(table[settings.label], label < 0, why)
    return label, _times(table, settings, now)


def text(name: str, given: object) -> str:
    """A text for the record; raises FairAllError where it is none, too long or has control characters."""
    if not isinstance(given, str) or len(given) > LONGEST_CELL or UNSEEN.search(given):
        wanted = f"a text of at most {LONGEST_CELL} characters on one line"
        raise FairAllError(f"{name}: give {wanted}, not {shown(str(given))!a}")
    return given


def told(seconds: float) -> str:
    """A time in words, to the second and without it at midnight.

    Examples:
        >>> told(86400)
        '1970-01-02'
    """
    return str(pd.Timestamp(int(seconds), unit="s")).removesuffix(" 00:00:00")


def ids_of(table: pd.DataFrame, settings: Settings) -> list[str]:
    """Ids of the rows as text (`tables.cells.identifiers`).

    Raises:
        FairAllError: where there is no row or no column of ids, or an id is missing, repeated, too long, or a
            number that is rounded or has a fraction.
    """
    if not isinstance(table, pd.DataFrame):
        raise FairAllError(f"it must be a DataFrame, a row per person, not {type(table).__name__}")
    if not len(table):
        raise FairAllError("the table has no row")
    twice = table.columns[table.columns.duplicated()]
    if len(twice):
        raise FairAllError(f"the table has more than one column {shown(str(twice[0]))!r}")
    if settings.id not in table:
        raise FairAllError(f"the table lacks the column {settings.id!r} of ids (live.id=COLUMN at the start)")
    column = table[settings.id]
    texts = identifiers(column).tolist()
    refuse(column, [text is None for text in texts], "is no id")
    fraction = [isinstance(cell, float) and cell % 1 != 0 for cell in column]
    refuse(column, fraction, "has a fraction, and is no id: write ids as whole numbers or as text")
    long = [len(text) > LONGEST for text in texts]
    refuse(column, long, f"is no id: at most {LONGEST} characters are possible")
    unseen = [UNSEEN.search(text) is not None for text in texts]
    refuse(column, unseen, "is no id: it has control characters")
    several = pd.Series(texts).duplicated(keep=False)
    refuse(column, several, "is in several rows; an id stands for one application")
    return texts


def _texts(column: pd.Series) -> np.ndarray:
    """Cells (N,) as texts that read as the same values, None where they are empty."""
    codes, words = words_of(column)
    texts = np.array([word.strip() or None for word in words], dtype=object)
    long = taken([len(word) > LONGEST_CELL for word in words], codes, False)
    refuse(column, long, f"is longer than {LONGEST_CELL} characters")
    return taken(texts, codes, None)


def _times(table: pd.DataFrame, settings: Settings, now: int) -> np.ndarray:
    """Times in seconds since 1970 as UTC, shape (N,); `now`, where the table has none."""
    if settings.time not in table:
        return np.full(len(table), now)
    column = table[settings.time]
    parsed = pd.to_datetime(_texts(column), errors="coerce", utc=True, format="ISO8601")
    refuse(column, parsed.isna(), "is no time; it must be as 2026-03-31 or 2026-03-31 17:05:00")
    seconds = parsed.as_unit("s").asi8
    refuse(column, seconds > time.time() + AHEAD, "is in the future")
    refuse(column, seconds < 0, "is before 1970")
    return seconds
