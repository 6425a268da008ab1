"""Rows of a ledger in a chain of hashes, by which those that were edited, removed or added are noticed.

An entry of the chain is SHA-256 of the entry before and of the content of a row. The content has a salted
hash in place of what may be erased: features of a person, for instance.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import time
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

import sqlalchemy as sql

from fairall.live.store import CHAIN, CHAINED, ERASED, STATES, DamagedError, newest

AT_ONCE = 10_000  # values of a query
HEAD = sql.select(CHAIN).order_by(CHAIN.c.id.desc()).limit(1)
_as_json = json.JSONEncoder(default=bytes.hex).encode  # json.dumps would make an encoder for each row


def append(connection: sql.Connection, table: sql.Table, rows: Iterable[Mapping[str, Any]]) -> None:
    """Insert rows with the next ids of a table, and their entries of the chain, as the only writer.

    Columns `at` and `salt` are the time and a random number; others that a row lacks are NULL.
    """
    entry, link = connection.execute(HEAD).one_or_none() or (0, b"")
    (number,) = newest(connection, table)
    now, names, links, written = int(time.time()), table.c.keys(), [], []
    for k, row in enumerate(rows, 1):
        own = {"id": number + k, "entry": entry + k, "at": now, "salt": secrets.token_bytes(16), **row}
        written.append({name: own.get(name) for name in names})
        link = _link(link, table, written[-1].values())
        links.append({"id": entry + k, "hash": link})
    if written:
        connection.execute(sql.insert(CHAIN), links)
        connection.execute(sql.insert(table), written)


def read(
    connection: sql.Connection, table: sql.Table, name: str = "id", values: Sequence[Any] | None = None
) -> list[sql.Row[Any]]:
    """Rows of a table as they were written.

    Args:
        connection: in a transaction.
        table: of the ledger.
        name: of a column.
        values: of this column in the rows, of which those of a value come by their ids; None: all rows, by
            their ids.

    Raises:
        DamagedError: where a row is not as it was written, or is missing among all.
    """
    wanted = range(1, newest(connection, table)[0] + 1) if values is None else values
    rows = list[sql.Row[Any]]()
    for start in range(0, len(wanted), AT_ONCE):
        rows += _checked(connection, table, name, wanted[start : start + AT_ONCE])
    if values is None and len(rows) != len(wanted):
        raise DamagedError(f"the table {table.name} lacks a row")
    return rows


def last(connection: sql.Connection, table: sql.Table, name: str | None = None, value: Any = None) -> Any:
    """The last row of a table, or the last one with a value of the column `name`.

    Raises:
        DamagedError: as `read`, and where there is none.
    """
    for row in _checked(connection, table, name, [value])[-1:]:
        return row
    raise DamagedError(f"the table {table.name} lacks a row")


@cache
def _query(table: sql.Table, name: str | None) -> sql.Select[Any]:
    """Rows with one of `some` values of a column, or the last one; its entry, and the entry before."""
    before = CHAIN.alias()
    query = sql.select(table, CHAIN.c.hash.label("link"), before.c.hash.label("previous"))
    query = query.outerjoin_from(table, CHAIN, CHAIN.c.id == table.c.entry)
    query = query.outerjoin(before, before.c.id == table.c.entry - 1)
    if name is None:
        return query.order_by(table.c.id.desc()).limit(1)
    some: sql.BindParameter[Any] = sql.bindparam("some", expanding=True)
    return query.where(table.c[name].in_(some)).order_by(table.c.id)


def _checked(
    connection: sql.Connection, table: sql.Table, name: str | None, some: Sequence[Any]
) -> list[sql.Row[Any]]:
    """The result of `_query`, as it was written."""
    rows = list(connection.execute(_query(table, name), {"some": some}))
    for row in rows:
        try:
            right = row.link == _link(row.previous or b"", table, row[:-2])
        except TypeError:  # a value of another type, which a database may hold
            right = False
        if not right:
            raise DamagedError(f"row {row[0]} of the table {table.name} is not as it was written, or missing")
    return rows


def verify(connection: sql.Connection) -> tuple[dict[sql.Table, list[sql.Row[Any]]], list[str]]:
    """Check all rows of a ledger.

    Returns:
        The rows of each table but `STATES`, as of `read`; and the entries of the chain, as
        hexadecimal digits, of which the last one is the head.

    Raises:
        DamagedError: naming the first row that is not as it was written, or the table that lacks one.
    """
    rows = {table: read(connection, table) for table in CHAINED if table is not STATES}
    entries = [row.entry for of in rows.values() for row in of]
    for number in range(newest(connection, STATES)[0]):  # one at a time, as they are large
        entries.append(last(connection, STATES, "id", number + 1).entry)
    links = [link.hex() for link in connection.scalars(sql.select(CHAIN.c.hash).order_by(CHAIN.c.id))]
    if sorted(entries) != [*range(1, len(links) + 1)]:
        raise DamagedError("the chain lacks rows, or has more of them")
    if connection.dialect.name == "sqlite":
        found = connection.exec_driver_sql("PRAGMA integrity_check").scalars().all()
        if found != ["ok"]:
            raise DamagedError(str(found[0]))
    return rows, links


def erase(connection: sql.Connection, table: sql.Table, rows: Iterable[Any]) -> None:
    """Replace the column `ERASED` of rows by its hash."""
    name = ERASED[table].name
    for row in rows:
        hashed = {name: _salted(row.salt, row._mapping[name]), "salt": None}
        connection.execute(sql.update(table).where(table.c.id == row.id), hashed)


def _link(before: bytes, table: sql.Table, row: Iterable[Any]) -> bytes:
    """The entry of a row, by its values, after the entry before."""
    values = list(row)
    if table in ERASED:
        place = table.c.keys().index(ERASED[table].name)  # comparing columns would make SQL
        salt = values.pop(place + 1)
        if salt is not None:  # else erased
            values[place] = _salted(salt, values[place])
    content = _as_json([table.name, *values]).encode()
    return hashlib.sha256(before + content).digest()


def _salted(salt: bytes, content: Any) -> Any:
    """The hash of what may be erased: bytes of bytes, else hexadecimal digits."""
    if isinstance(content, bytes):
        return hashlib.sha256(salt + content).digest()
    return hashlib.sha256(salt + str(content).encode()).hexdigest()
