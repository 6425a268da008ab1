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
# The latest time of an application that counts, and of an outcome that does; 0 without any.
LATEST = sql.text(
    """
    SELECT coalesce((
        SELECT time FROM applications WHERE NOT EXISTS (
            SELECT * FROM removed WHERE application = applications.id AND how = 'withdrawn'
        ) ORDER BY time DESC LIMIT 1
    ), 0), coalesce((
        SELECT time FROM outcomes AS o WHERE NOT EXISTS (
            SELECT * FROM removed WHERE application = o.application AND how = 'withdrawn'
        ) AND NOT EXISTS (
            SELECT * FROM outcomes WHERE application = o.application AND id > o.id
        ) ORDER BY time DESC LIMIT 1
    ), 0)
    """
)


class Record(NamedTuple):
    """All rows of a ledger, checked.

    Attributes:
        applications: those that were not withdrawn, as of the function `applications`.
        outcomes: of these, corrected ones too.
        overrides: decisions of people on these, later replaced ones too.
        removed: applications of people who were forgotten, and those that were withdrawn.
        versions: without weights and state.
        learnt: whom each has learnt from that its parent had not.
        duty: who was on duty.
        clock: the latest time of an application or an outcome, which is now for all that is learnt.
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
    people = _applications(*(rows[table] for table in (APPLICATIONS, REMOVED, OVERRIDES, OUTCOMES)))
    people = people[~people[WITHDRAWN]]
    tables = OUTCOMES, OVERRIDES, REMOVED, VERSIONS, LEARNT, DUTY
    frames = {table.name: frame(table, rows[table]) for table in tables}
    for name in ("outcomes", "overrides"):
        frames[name] = frames[name][frames[name]["application"].isin(people.index)]
    return Record(people, **frames, clock=latest_times(connection)[1], links=links)


def applications(
    connection: sql.Connection, rows: Sequence[Any], learnt: pd.DataFrame | None = None
) -> pd.DataFrame:
    """Applications, and what became of them, by id.

    Args:
        connection: in a transaction.
        rows: of `APPLICATIONS`, as of `chain.read`.
        learnt: rows of `LEARNT`, whose `override` and `outcome` count; by default the last ones of each
            application do.

    Returns:
        The columns of `APPLICATIONS`, without features of people who were forgotten, and with `accepted` as
        it stands: as a person decided, else as the policy did. Besides `decision`, the policy's own, missing
        where the person was referred; `override`, the id of a decision of a person that differs from it;
        `undecided`, whether nobody has decided; `forgotten` and `withdrawn`; `outcome`, the id of the one
        that counts, with its `label` and time, `known_at`, missing where there is none.
    """
    ids = [row.id for row in rows]
    removed, *found = (
        chain.read(connection, table, "application", ids) for table in (REMOVED, OVERRIDES, OUTCOMES)
    )
    if learnt is not None:
        wanted = {OVERRIDES: "override", OUTCOMES: "outcome"}
        found = [
            chain.read(connection, table, "id", learnt[name].dropna().astype(int).tolist())
            for table, name in wanted.items()
        ]
    return _applications(rows, removed, *found)


def _applications(
    rows: Sequence[Any], removed: Sequence[Any], overrides: Sequence[Any], outcomes: Sequence[Any]
) -> pd.DataFrame:
    """As `applications`, of rows of four tables."""
    people = frame(APPLICATIONS, rows).set_index("id")
    override, outcome = (
        frame(table, some).drop_duplicates("application", keep="last").set_index("application")
        for table, some in ((OVERRIDES, overrides), (OUTCOMES, outcomes))
    )
    for how in (FORGOTTEN, WITHDRAWN):
        people[how] = people.index.isin([row.application for row in removed if row.how == how])
    for own, table in ((people, APPLICATIONS), (override, OVERRIDES)):
        if (own["salt"].isna() != people[FORGOTTEN].reindex(own.index)).any():
            told = ERASED[table].name
            raise DamagedError(f"{told} is missing, or is there of somebody who was forgotten")
    people["features"] = people["features"].mask(people[FORGOTTEN], None)
    decision = people["accepted"].astype(float)
    by_person = override["accepted"].reindex(people.index).astype(float)
    stands = by_person.fillna(decision)
    differs = by_person.notna() & (by_person != decision)
    columns = {
        "accepted": stands == 1,
        "held": people["held"] == 1,
        "propensity": people["propensity"].astype(float),
        "decision": decision,
        "override": override["id"].reindex(people.index).where(differs).astype(float),
        "undecided": stands.isna(),
    }
    outcome = outcome.rename(columns={"id": "outcome", "time": "known_at"})
    return people.assign(**columns).join(outcome[["outcome", "label", "known_at"]].astype(float))


def frame(table: sql.Table, rows: Sequence[Any]) -> pd.DataFrame:
    """Rows of a table, as of `chain.read`."""
    return pd.DataFrame([row[: len(table.c)] for row in rows], columns=[*table.c.keys()])


def latest_times(connection: sql.Connection) -> tuple[int, int]:
    """The latest time of an application that counts, and of an application or an outcome; 0 without any.

    The second one is now for all that is learnt. What was withdrawn, or replaced by a correction, does not
    count.
    """
    application, outcome = connection.execute(LATEST).one()
    return application, max(application, outcome)


def lineage(connection: sql.Connection, number: int) -> list[int]:
    """The numbers of a version and of those that it was made from, the first one first.

    Raises:
        FairAllError: where there is no such version.
    """
    parents = {row.id: row.parent for row in chain.read(connection, VERSIONS)}
    if number not in parents:
        raise FairAllError(f"version {number}: no such version; there are 1 to {len(parents)}")
    found = [number]
    while (parent := parents[found[0]]) is not None:
        found.insert(0, parent)
    return found


def with_descendants(versions: Iterable[Any], numbers: Collection[int]) -> list[int]:
    """Numbers of versions, and of those of the rows of `versions` that were made from them."""
    found = set(numbers)
    for row in versions:
        found |= {row.id} if row.parent in found else set()
    return sorted(found)
