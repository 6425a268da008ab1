"""Rows of a ledger in a chain of hashes, by which those that were edited, removed or added are noticed.

An entry of the chain is SHA-256 of the entry before and of the content of a row. The content has a salted
hash in place of the features of a person, so that these can be erased, and the hashes of the columns of a
version in place of these.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import sqlalchemy as sql

from fairall.live.store import (
    APPLICATIONS,
    BATCHES,
    CHAIN,
    CHAINED,
    ERASED,
    FORGOTTEN,
    GENERATOR,
    LEARNT,
    VERSIONS,
    DamagedError,
)

LARGE = ("weights", "state", "memory")  # columns of a version
LARGEST = 10**11  # whole number; of a time it is in the year 5138
AT_ONCE = 10_000  # rows or values of a query


def append(connection: sql.Connection, table: sql.Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert rows with the next ids of a table, and their entries of the chain, as the only writer."""
    last = connection.execute(sql.select(CHAIN).order_by(CHAIN.c.id.desc()).limit(1)).one_or_none()
    entry, link = (last.id, last.hash) if last else (0, b"")
    none = -1 if table is BATCHES else 0
    newest = connection.execute(sql.select(sql.func.coalesce(sql.func.max(table.c.id), none))).scalar_one()
    entries, written = [], []
    for number, row in enumerate(rows, 1):
        whole = {"id": newest + number, "entry": entry + number, **row}
        salt = secrets.token_bytes(16) if table is APPLICATIONS else None
        link = _link(link, _content(table, whole, salt))
        entries.append({"id": entry + number, "hash": link, "salt": salt})
        written.append(whole)
    if rows:
        connection.execute(sql.insert(CHAIN), entries)
        connection.execute(sql.insert(table), written)


def read(
    connection: sql.Connection,
    table: sql.Table,
    column: sql.ColumnElement[Any] | None = None,
    values: Sequence[Any] = (),
    *,
    newest: bool = False,
) -> list[sql.Row[Any]]:
    """Rows of a table as they were written, by their ids, without the `LARGE` columns of versions.

    Args:
        connection: in a transaction.
        table: of the ledger.
        column: the rows are those in which it has one of some `values`; None: all rows.
        values: of the column.
        newest: whether only the last row is asked for, of which there must be one.

    Raises:
        DamagedError: where a row is not as it was written, or there is no last row.
    """
    before = CHAIN.alias()
    query = _rows(table).add_columns(CHAIN.c.hash, before.c.hash.label("previous"))
    query = query.outerjoin(before, before.c.id == table.c.entry - 1)
    query = query.order_by(table.c.id.desc()).limit(1) if newest else query.order_by(table.c.id)
    if column is None:
        parts = [query]
    else:
        parts = [query.where(column.in_(values[k : k + AT_ONCE])) for k in range(0, len(values), AT_ONCE)]
    rows = [row for part in parts for row in connection.execute(part)]
    if not rows and (newest or column is None):
        raise DamagedError(f"the table {table.name} has no row")
    if column is None and not newest and rows[-1].id != len(rows):
        raise DamagedError(f"the table {table.name} lacks a row")
    for row in rows:
        if row.hash != _link(row.previous or b"", _content(table, row._mapping, row.salt)):
            raise _changed(table, row)
    return rows


def frame(
    connection: sql.Connection, table: sql.Table, column: sql.ColumnElement[Any], values: Sequence[Any]
) -> pd.DataFrame:
    """Rows as of `read`, with the columns of the table."""
    names = [column.name for column in table.c]
    rows = read(connection, table, column, values)
    return pd.DataFrame([row[: len(names)] for row in rows], columns=names)


def verify(connection: sql.Connection) -> list[str]:
    """Check all rows of a ledger, and what their hashes stand for.

    Returns:
        The entries of the chain, as hexadecimal digits; the last one is the head.

    Raises:
        DamagedError: naming the first row that is not as it was written, or is missing.
    """
    written: dict[int, tuple[bytes, sql.Table, sql.Row[Any]]] = {}
    for table in CHAINED:
        for row in connection.execute(_rows(table)).yield_per(AT_ONCE):
            if row.entry in written:
                raise _changed(table, row)
            written[row.entry] = _content(table, row._mapping, row.salt), table, row
    link, links = b"", []
    for number, entry in enumerate(connection.execute(sql.select(CHAIN).order_by(CHAIN.c.id)), 1):
        content, table, row = written.pop(number, (b"", CHAIN, entry))
        link = _link(link, content)
        if (entry.id, entry.hash) != (number, link):
            raise _changed(table, row)
        links.append(link.hex())
    for _, table, row in written.values():
        raise _changed(table, row)
    learnt = 0
    for number in connection.scalars(sql.select(VERSIONS.c.id)).all():
        version(connection, number)
        learnt += len(learnt_rows(connection, number))
    if learnt != connection.scalar(sql.select(sql.func.count()).select_from(LEARNT)):
        raise DamagedError(f"the table {LEARNT.name} has rows of no version")
    generator(connection)
    if connection.dialect.name == "sqlite":
        found = connection.exec_driver_sql("PRAGMA integrity_check").scalars().all()
        if found != ["ok"]:
            raise DamagedError(str(found[0]))
    return links


def version(connection: sql.Connection, number: int) -> dict[str, Any]:
    """All columns of a version; raises DamagedError where they are not as they were written."""
    row = _version(connection, number)
    erased = read(connection, ERASED, ERASED.c.version, [number])
    large = connection.execute(
        sql.select(*(VERSIONS.c[name] for name in LARGE)).where(VERSIONS.c.id == number)
    )
    columns = large.one()._asdict()
    if checksum(columns) != (erased or [row])[-1].sum:
        raise DamagedError(f"version {number} is not as it was written")
    return row._asdict() | columns


def checksum(columns: Mapping[str, Any]) -> str:
    """SHA-256 of the `LARGE` columns of a version."""
    return hashlib.sha256(b"".join(columns[name] for name in LARGE)).hexdigest()


def learnt_rows(connection: sql.Connection, number: int) -> pd.DataFrame:
    """The rows of `LEARNT` of a version, in the order of learning; raises DamagedError as `version`."""
    query = sql.select(LEARNT).where(LEARNT.c.version == number).order_by(LEARNT.c.part, LEARNT.c.application)
    rows = [row._asdict() for row in connection.execute(query)]
    if learnt_hash(rows) != _version(connection, number).learnt:
        raise DamagedError(f"the people whom version {number} has learnt from are not as they were written")
    return pd.DataFrame(rows, columns=[column.name for column in LEARNT.c])


def learnt_hash(rows: Sequence[Mapping[str, Any]]) -> str:
    """SHA-256 of rows of `LEARNT` of a version."""
    content = [[row[name] for name in ("part", "application", "outcome")] for row in rows]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


def _version(connection: sql.Connection, number: int) -> sql.Row[Any]:
    for row in read(connection, VERSIONS, VERSIONS.c.id, [number]):
        return row
    raise DamagedError(f"there is no version {number}")


def generator(connection: sql.Connection) -> bytes:
    """State of the random numbers after the last batch; raises DamagedError as `version`."""
    (last,) = read(connection, BATCHES, newest=True)
    state = connection.scalar(sql.select(GENERATOR.c.state))
    if state is None or hashlib.sha256(state).hexdigest() != last.state:
        raise DamagedError("the state of the random numbers is not as it was written")
    return state


def features_hash(salt: bytes, features: str) -> bytes:
    """The salted hash of the features of a person."""
    return hashlib.sha256(salt + features.encode()).digest()


def _rows(table: sql.Table) -> sql.Select[Any]:
    """All rows, with what the hash of an application needs."""
    columns = [
        sql.type_coerce(column, sql.Integer).label(column.name) if column.type.python_type is bool else column
        for column in table.c
        if column.name not in LARGE or table is not VERSIONS
    ]
    query = sql.select(*columns, CHAIN.c.salt).outerjoin_from(table, CHAIN, CHAIN.c.id == table.c.entry)
    if table is APPLICATIONS:
        query = query.add_columns(FORGOTTEN.c.features.label("erased"))
        query = query.outerjoin(FORGOTTEN, FORGOTTEN.c.application == table.c.id)
    return query


def _content(table: sql.Table, row: Mapping[Any, Any], salt: bytes | None) -> bytes:
    """What the entry of a row is a hash of, beside the entry before."""
    values: list[Any] = [table.name]
    for column in table.c:
        if column.name in LARGE and table is VERSIONS:
            continue
        value, kind = row[column.name], column.type.python_type
        whole = kind in (bool, int)  # not all databases have bool
        typed = isinstance(value, int if whole else kind) and not (whole and abs(value) > LARGEST)
        if not typed and not (value is None and column.nullable):
            raise DamagedError(f"{column.name} of row {row['id']} of the table {table.name} is {value!r:.50}")
        if column is APPLICATIONS.c.features:
            if None not in (value, row.get("erased")):
                raise DamagedError(f"row {row['id']} of the table {table.name} is there, and was forgotten")
            value = row["erased"] if value is None else features_hash(salt or b"", value)
        values.append(value.hex() if isinstance(value, bytes) else int(value) if whole and typed else value)
    return json.dumps(values).encode()


def _link(before: bytes, content: bytes) -> bytes:
    return hashlib.sha256(before + hashlib.sha256(content).digest()).digest()


def _changed(table: sql.Table, row: sql.Row[Any]) -> DamagedError:
    return DamagedError(f"row {row.id} of the table {table.name} is not as it was written, or missing")
