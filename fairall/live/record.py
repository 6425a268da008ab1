"""Rows of a ledger as tables: applications with what became of them, and versions with their ancestors."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

import pandas as pd
import sqlalchemy as sql

from fairall.errors import FairAllError
from fairall.live import chain
from fairall.live.store import APPLICATIONS, DUTY, LEARNT, OUTCOMES, REMOVED, VERSIONS, DamagedError

FORGOTTEN, WITHDRAWN = "forgotten", "withdrawn"


class Record(NamedTuple):
    """All rows of a ledger, checked.

    Attributes:
        applications: those that were not withdrawn, by id: columns as of `people`, and `outcome`, the id of
            the one that counts, with its `label`; missing where there is none.
        outcomes: of these, corrected ones too.
        removed: applications of people who were forgotten, and those that were withdrawn.
        versions: without weights and state.
        learnt: whom each has learnt from that its parent had not.
        duty: who was on duty.
        clock: as of `clock`.
        links: entries of the chain, the head last.
    """

    applications: pd.DataFrame
    outcomes: pd.DataFrame
    removed: pd.DataFrame
    versions: pd.DataFrame
    learnt: pd.DataFrame
    duty: pd.DataFrame
    clock: int
    links: list[str]


def record(connection: sql.Connection) -> Record:
    """Read all rows of a ledger; raises DamagedError as `chain.verify`."""
    rows, links = chain.verify(connection)
    people = _applications(rows["applications"], rows["removed"]).set_index("id")
    people = people.astype(dict.fromkeys(["accepted", "held", FORGOTTEN, WITHDRAWN], bool))
    frames = {}
    for table in (OUTCOMES, REMOVED, VERSIONS, LEARNT, DUTY):
        names = [column.name for column in chain.small(table)]
        frames[table.name] = pd.DataFrame([row[: len(names)] for row in rows[table.name]], columns=names)
    latest = frames["outcomes"].drop_duplicates("application", keep="last").set_index("application")
    people = people.join(latest[["id", "label"]].rename(columns={"id": "outcome"}))
    people = people[~people[WITHDRAWN]]
    outcomes = frames.pop("outcomes")
    outcomes = outcomes[outcomes["application"].isin(people.index)]
    return Record(people, outcomes, **frames, clock=clock(connection), links=links)


def applications(connection: sql.Connection, name: str, values: Sequence[Any]) -> pd.DataFrame:
    """Applications by the values of a column.

    Columns are those of `APPLICATIONS`, without features of people who were forgotten; `forgotten` and
    `withdrawn` say which were.
    """
    rows = chain.read(connection, APPLICATIONS, name, values)
    return _applications(rows, chain.read(connection, REMOVED, "application", [row.id for row in rows]))


def _applications(rows: Sequence[Any], removed: Sequence[Any]) -> pd.DataFrame:
    """Applications, and which of them were removed."""
    hows = {(row.application, row.how) for row in removed}
    flags = [[(row.id, how) in hows for how in (FORGOTTEN, WITHDRAWN)] for row in rows]
    if any((row.salt is None) != forgotten for row, (forgotten, _) in zip(rows, flags, strict=True)):
        raise DamagedError("features are missing, or are there of somebody who was forgotten")
    names = [column.name for column in chain.small(APPLICATIONS)]
    cells = [[*row[: len(names)], *removed] for row, removed in zip(rows, flags, strict=True)]
    people = pd.DataFrame(cells, columns=[*names, FORGOTTEN, WITHDRAWN])
    if hows:
        people.loc[people[FORGOTTEN], "features"] = None
    return people


def latest_application(connection: sql.Connection) -> int:
    """The time of the latest application that was not withdrawn; 0 without any."""
    stands = ~_withdrawn(APPLICATIONS.c.id)
    query = sql.select(APPLICATIONS.c.time).where(stands).order_by(APPLICATIONS.c.time.desc())
    return connection.scalar(query.limit(1)) or 0


def clock(connection: sql.Connection) -> int:
    """The latest time of an application or an outcome that counts, which is now for all that is learnt.

    0 without any; what was withdrawn, or replaced by a correction, does not count.
    """
    newer, own = OUTCOMES.alias(), OUTCOMES.c
    corrected = sql.exists().where(newer.c.application == own.application, newer.c.id > own.id)
    query = sql.select(own.time).where(~corrected, ~_withdrawn(own.application)).order_by(own.time.desc())
    return max(latest_application(connection), connection.scalar(query.limit(1)) or 0)


def _withdrawn(application: sql.ColumnElement[int]) -> sql.Exists:
    return sql.exists().where(REMOVED.c.application == application, REMOVED.c.how == WITHDRAWN)


def lineage(connection: sql.Connection, number: int) -> list[int]:
    """The numbers of a version and of those that it was made from, the first one first.

    Raises:
        FairAllError: where there is no such version.
    """
    rows, found = chain.read(connection, VERSIONS), list[int]()
    if not 1 <= number <= len(rows):
        raise FairAllError(f"version {number}: no such version; there are 1 to {len(rows)}")
    for row in reversed(rows):
        if row.id == number:
            found.insert(0, number)
            number = row.parent
    return found


def with_descendants(versions: Iterable[Any], numbers: Collection[int]) -> list[int]:
    """Numbers of versions, and of those of the rows of `versions` that were made from them."""
    found = set(numbers)
    for row in versions:
        found |= {row.id} if row.parent in found else set()
    return sorted(found)
