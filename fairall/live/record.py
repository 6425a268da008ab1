"""Rows of a ledger as tables: applications with what became of them, and versions with their ancestors."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

import pandas as pd
import sqlalchemy as sql

from fairall.errors import FairAllError
from fairall.live import chain
from fairall.live.store import (
    APPLICATIONS,
    DUTY,
    ERASED,
    LEARNT,
    OUTCOMES,
    OVERRIDES,
    REMOVED,
    VERSIONS,
    DamagedError,
)

FORGOTTEN, WITHDRAWN = "forgotten", "withdrawn"


class Record(NamedTuple):
    """All rows of a ledger, checked.

    Attributes:
        applications: those that were not withdrawn, by id: columns as of the function, and `outcome`, the id
            of the one that counts, with its `label`; missing where there is none.
        outcomes: of these, corrected ones too.
        overrides: decisions of people on these, later replaced ones too.
        removed: applications of people who were forgotten, and those that were withdrawn.
        versions: without weights and state.
        learnt: whom each has learnt from that its parent had not.
        duty: who was on duty.
        clock: the second time of `latest_times`.
        links: entries of the chain, the head last.
    """

    applications: pd.DataFrame
    outcomes: pd.DataFrame
    overrides: pd.DataFrame
    removed: pd.DataFrame
    versions: pd.DataFrame
    learnt: pd.DataFrame
    duty: pd.DataFrame
    clock: int
    links: list[str]


def record(connection: sql.Connection) -> Record:
    """Read all rows of a ledger; raises DamagedError as `chain.verify`."""
    rows, links = chain.verify(connection)
    people = _applications(rows["applications"], rows["removed"], rows["overrides"]).set_index("id")
    people = people.astype(dict.fromkeys(["accepted", "undecided", "held", FORGOTTEN, WITHDRAWN], bool))
    frames = {}
    for table in (OUTCOMES, OVERRIDES, REMOVED, VERSIONS, LEARNT, DUTY):
        names = [column.name for column in chain.small(table)]
        frames[table.name] = pd.DataFrame([row[: len(names)] for row in rows[table.name]], columns=names)
    latest = frames["outcomes"].drop_duplicates("application", keep="last").set_index("application")
    people = people.join(latest[["id", "label"]].rename(columns={"id": "outcome"}))
    people = people[~people[WITHDRAWN]]
    for name in ("outcomes", "overrides"):
        frames[name] = frames[name][frames[name]["application"].isin(people.index)]
    return Record(people, **frames, clock=latest_times(connection)[1], links=links)


def applications(
    connection: sql.Connection, rows: Sequence[Any], overrides: Sequence[int] | None = None
) -> pd.DataFrame:
    """Applications, and what became of them.

    Args:
        connection: in a transaction.
        rows: of `APPLICATIONS`, as of `chain.read`.
        overrides: ids of the decisions of people that count; by default the last one of each application.

    Returns:
        The columns of `APPLICATIONS`, without features of people who were forgotten, and with `accepted` as
        it stands: as a person decided, else as the policy did. Besides `decision`, the policy's own, missing
        where the person was referred; `override`, the id of a decision of a person that differs from it;
        `undecided`, whether nobody has decided; `forgotten` and `withdrawn`.
    """
    ids = [row.id for row in rows]
    by, wanted = ("application", ids) if overrides is None else ("id", overrides)
    decided = chain.read(connection, OVERRIDES, by, wanted)
    return _applications(rows, chain.read(connection, REMOVED, "application", ids), decided)


def _applications(rows: Sequence[Any], removed: Sequence[Any], overrides: Sequence[Any]) -> pd.DataFrame:
    """As `applications`, of rows of three tables."""
    hows = {(row.application, row.how) for row in removed}
    last, cells = {row.application: row for row in overrides}, []
    names = [column.name for column in chain.small(APPLICATIONS)]
    accepted, features = names.index("accepted"), names.index("features")
    for row in rows:
        gone, override = [(row.id, how) in hows for how in (FORGOTTEN, WITHDRAWN)], last.get(row.id)
        for one, table in ((row, APPLICATIONS), (override, OVERRIDES)):
            if one is not None and (one.salt is None) != gone[0]:
                told = ERASED[table].name
                raise DamagedError(f"{told} is missing, or is there of somebody who was forgotten")
        if override is not None and override.accepted == row.accepted:
            override = None
        stands = row.accepted if override is None else override.accepted
        own = list(row[: len(names)])
        own[accepted], own[features] = int(stands or 0), None if gone[0] else row.features
        cells.append([*own, *gone, row.accepted, override and override.id, stands is None])
    people = pd.DataFrame(cells, columns=[*names, FORGOTTEN, WITHDRAWN, "decision", "override", "undecided"])
    return people.astype({"decision": float, "propensity": float, "override": float})


def latest_times(connection: sql.Connection) -> tuple[int, int]:
    """The latest time of an application that counts, and of an application or an outcome; 0 without any.

    The second one is now for all that is learnt. What was withdrawn, or replaced by a correction, does not
    count.
    """
    application, outcome = connection.execute(LATEST).one()
    return application or 0, max(application or 0, outcome or 0)


def _latest(table: sql.Table, application: sql.Column[int], *counts: Any) -> sql.ScalarSelect[int]:
    """The latest time in a table, of applications that were not withdrawn."""
    withdrawn = sql.exists().where(REMOVED.c.application == application, REMOVED.c.how == WITHDRAWN)
    query = sql.select(table.c.time).where(~withdrawn, *counts).order_by(table.c.time.desc())
    return query.limit(1).scalar_subquery()


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


NEWER = OUTCOMES.alias()
CORRECTED = sql.exists().where(NEWER.c.application == OUTCOMES.c.application, NEWER.c.id > OUTCOMES.c.id)
LATEST = sql.select(
    _latest(APPLICATIONS, APPLICATIONS.c.id), _latest(OUTCOMES, OUTCOMES.c.application, ~CORRECTED)
)
