"""Rows of a ledger in a chain of hashes, by which those that were edited, removed or added are noticed.

An entry of the chain is SHA-256 of the entry before and of the content of a row. The content has a salted
hash in place of the features of a person, so that these can be erased, and one hash in place of weights and
state of a version.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

import sqlalchemy as sql

from fairall.live.store import (
    BATCHES,
    CHAIN,
    CHAINED,
    ERASED,
    GENERATOR,
    LEARNT,
    SUMS,
    VERSIONS,
    DamagedError,
    newest,
)

LARGE = ("weights", "state")  # columns of a version
AT_ONCE = 10_000  # values of a query
insert, update = cache(sql.insert), cache(sql.update)  # the same statement is compiled once
HEAD = sql.select(CHAIN).order_by(CHAIN.c.id.desc()).limit(1)


def append(connection: sql.Connection, table: sql.Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert rows with the next ids of a table, and their entries of the chain, as the only writer."""
    entry, link = connection.execute(HEAD).one_or_none() or (0, b"")
    (newest_id,) = newest(connection, table)
    written = [{"id": newest_id + k, **row, "entry": entry + k} for k, row in enumerate(rows, 1)]
    links = []
    for row in written:
        link = _link(link, table, [row[column.name] for column in small(table)])
        links.append({"id": row["entry"], "hash": link})
    if rows:
        connection.execute(insert(CHAIN), links)
        connection.execute(insert(table), written)


def read(
    connection: sql.Connection, table: sql.Table, name: str = "id", values: Sequence[Any] | None = None
) -> list[sql.Row[Any]]:
    """Rows of a table as they were written, without the `LARGE` columns of versions.

    Args:
        connection: in a transaction.
        table: of the ledger.
        name: of a column.
        values: of this column in the rows, which come in the order of these, of each by their ids; None: all
            rows.

    Raises:
        DamagedError: where a row is not as it was written, or is missing among all.
    """
    if values is None:
        rows = _checked(connection, table, _rows(table).order_by(table.c.id))
        if len(rows) != newest(connection, table)[0] + (table is BATCHES):
            raise DamagedError(f"the table {table.name} lacks a row")
        return rows
    order, rows = {value: k for k, value in enumerate(values)}, list[sql.Row[Any]]()
    for start in range(0, len(values), AT_ONCE):
        rows += _checked(connection, table, _with(table, name), some=values[start : start + AT_ONCE])
    return sorted(rows, key=lambda row: order[getattr(row, name)])


def last(connection: sql.Connection, table: sql.Table) -> Any:
    """The last row of a table; raises DamagedError as `read`, and where there is none."""
    for row in _checked(connection, table, _last(table)):
        return row
    raise DamagedError(f"the table {table.name} has no row")


@cache
def _with(table: sql.Table, name: str) -> sql.Select[Any]:
    """Rows with one of `some` values of a column."""
    some: sql.BindParameter[Any] = sql.bindparam("some", expanding=True)
    return _rows(table).where(table.c[name].in_(some)).order_by(table.c.id)


@cache
def _last(table: sql.Table) -> sql.Select[Any]:
    return _rows(table).order_by(table.c.id.desc()).limit(1)


@cache
def _rows(table: sql.Table) -> sql.Select[Any]:
    """Columns `small`, the entry of each row, and the entry before."""
    before = CHAIN.alias()
    query = sql.select(*small(table), CHAIN.c.hash.label("link"), before.c.hash.label("previous"))
    query = query.outerjoin_from(table, CHAIN, CHAIN.c.id == table.c.entry)
    return query.outerjoin(before, before.c.id == table.c.entry - 1)


def _checked(
    connection: sql.Connection, table: sql.Table, query: sql.Select[Any], **values: Any
) -> list[sql.Row[Any]]:
    """The result of a query of `_rows`, as it was written."""
    rows = list(connection.execute(query, values))
    for row in rows:
        try:
            right = row.link == _link(row.previous or b"", table, row[:-2])
        except TypeError:  # a value of another type, which a database may hold
            right = False
        if not right:
            raise _changed(table, row)
    return rows


def verify(connection: sql.Connection) -> tuple[dict[str, list[sql.Row[Any]]], list[str]]:
    """Check all rows of a ledger, and what their hashes stand for.

    Returns:
        The rows of each table by its name, as of `read` and `learnt`; and the entries of the chain, as
        hexadecimal digits, of which the last one is the head.

    Raises:
        DamagedError: naming the first row that is not as it was written, or the table that lacks one.
    """
    rows = {table.name: read(connection, table) for table in CHAINED}
    links = [link.hex() for link in connection.scalars(sql.select(CHAIN.c.hash).order_by(CHAIN.c.id))]
    if sorted(row.entry for of in rows.values() for row in of) != [*range(1, len(links) + 1)]:
        raise DamagedError("the chain lacks rows, or has more of them")
    numbers = [row.id for row in rows[VERSIONS.name]]
    for number in numbers:
        large(connection, number)
    rows[LEARNT.name] = learnt(connection, numbers)
    if len(rows[LEARNT.name]) != connection.scalar(sql.select(sql.func.count()).select_from(LEARNT)):
        raise DamagedError(f"the table {LEARNT.name} has rows of no version")
    generator(connection, last(connection, BATCHES))
    if connection.dialect.name == "sqlite":
        found = connection.exec_driver_sql("PRAGMA integrity_check").scalars().all()
        if found != ["ok"]:
            raise DamagedError(str(found[0]))
    return rows, links


def large(connection: sql.Connection, number: int) -> dict[str, bytes]:
    """The `LARGE` columns of a version; raises DamagedError where they are not as they were written."""
    sums = read(connection, SUMS, "version", [number])
    query = sql.select(*(VERSIONS.c[name] for name in LARGE)).where(VERSIONS.c.id == number)
    columns = connection.execute(query).one_or_none()
    whole = columns is not None and all(isinstance(part, bytes) for part in columns)
    if columns is None or not whole or [digest(*columns)] != [row.sum for row in sums[-1:]]:
        raise DamagedError(f"version {number} is not as it was written")
    return columns._asdict()


def learnt(connection: sql.Connection, numbers: Sequence[int]) -> list[sql.Row[Any]]:
    """The rows of `LEARNT` of versions, in the order of learning; raises DamagedError as `large`."""
    found = list[sql.Row[Any]]()
    for version in read(connection, VERSIONS, "id", numbers):
        query = sql.select(LEARNT).where(LEARNT.c.version == version.id)
        rows = connection.execute(query.order_by(LEARNT.c.part, LEARNT.c.application)).all()
        if learnt_digest(rows) != version.learnt:
            told = f"the people whom version {version.id} has learnt from"
            raise DamagedError(f"{told} are not as they were written")
        found += rows
    return found


def learnt_digest(rows: Iterable[Iterable[Any]]) -> str:
    """The `digest` of rows of `LEARNT` of a version."""
    return digest(json.dumps([[*row] for row in rows], default=repr).encode())


def generator(connection: sql.Connection, batch: Any) -> bytes:
    """State of the random numbers after the `last` batch; raises DamagedError as `large`."""
    state = connection.scalar(sql.select(GENERATOR.c.state))
    if not isinstance(state, bytes) or digest(state) != batch.state:
        raise DamagedError("the state of the random numbers is not as it was written")
    return state


def erase(connection: sql.Connection, table: sql.Table, name: str, value: Any) -> None:
    """Replace what is in the column `ERASED` of rows, by their value of another column, by its hash."""
    for row in read(connection, table, name, [value]):
        column = ERASED[table]
        hashed = {column.name: _salted(row.salt, row._mapping[column]), "salt": None}
        connection.execute(sql.update(table).where(table.c.id == row.id).values(hashed))


def digest(*parts: bytes) -> str:
    """SHA-256 of bytes."""
    return hashlib.sha256(b"".join(parts)).hexdigest()


@cache
def small(table: sql.Table) -> list[sql.Column[Any]]:
    """Columns without those that are `LARGE`."""
    return [column for column in table.c if column.name not in LARGE or table is not VERSIONS]


def _link(before: bytes, table: sql.Table, row: Sequence[Any]) -> bytes:
    """The entry of a row, by its values of the columns `small`, after the entry before."""
    values = list(row)
    if table in ERASED:
        place = [*table.c].index(ERASED[table])
        salt = values.pop(place + 1)
        if salt is not None:  # else the person was forgotten
            values[place] = _salted(salt, values[place])
    content = json.dumps([table.name, *values], default=bytes.hex).encode()
    return hashlib.sha256(before + content).digest()


def _salted(salt: bytes, text: object) -> str:
    return digest(salt, str(text).encode())


def _changed(table: sql.Table, row: Sequence[Any]) -> DamagedError:
    return DamagedError(f"row {row[0]} of the table {table.name} is not as it was written, or missing")
