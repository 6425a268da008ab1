"""The database of a ledger: append-only tables, one transaction for each command that writes."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from json import JSONDecodeError
from pathlib import Path
from typing import Any

import pandas as pd
import sqlalchemy as sql
from sqlalchemy.exc import DatabaseError, OperationalError, SQLAlchemyError

from fairall.errors import FairAllError
from fairall.runtime.credentials import hidden
from fairall.storage.files import sqlite_url

FORMAT = 1  # of the tables; increased when older ledgers would be read wrongly
WAIT = 30  # seconds for another process that writes
LOCK = 0x46414C4C  # of the writers of a PostgreSQL server
IN_QUERY = 10_000  # values that a query names
TYPES: dict[str, Any] = {"int": sql.BigInteger, "float": sql.Float(53), "bool": sql.Boolean, "text": sql.Text}
TYPES |= {"bytes": sql.LargeBinary, "key": sql.Integer}
META = sql.MetaData()


def _table(name: str, columns: str, **options: Any) -> sql.Table:
    """A table by its columns, `NAME TYPE` each: `TABLE` refers to its key, `?` may be NULL, `!` is unique."""
    made: list[sql.Column[Any]] = []
    for one in columns.split(", "):
        column, _, kind = one.partition(" ")
        word = kind.rstrip("?!*")
        of = [TYPES[word]] if word in TYPES else [sql.ForeignKey(f"{word}.id")]
        key, unique = kind == "key" or kind.endswith("*"), kind.endswith("!") or None
        made.append(sql.Column(column, *of, primary_key=key, nullable=kind.endswith("?"), unique=unique))
    return sql.Table(name, META, *made, **options)


# Times are in seconds since 1970, UTC; `at` is when a row was written.
ABOUT = _table("ledger", "key text*, value text")  # what the ledger was started with
# `weights` are those of a saved policy; `memory` holds the people whom the learner remembers, but for those
# of `learnt` (`state.split`); `state` is the rest of the state of training; `report`, what changed, is JSON.
COLUMNS = "weights bytes, state bytes, memory bytes, sum text, report text"
VERSIONS = _table("versions", f"id key, parent versions?, at int, {COLUMNS}")
# The version of the last row is on duty; `newest` was the newest version then.
DUTY = _table("duty", "id key, version versions, newest versions, at int, why text")
# People who were decided on together, none in the first; `state` is that of the random numbers after them.
BATCHES = _table("batches", "id key, version versions, at int, words text, state bytes")
# `features` are cells as a row of CSV, NULL once the person is forgotten; nothing is learnt from `held`.
DECISION = "s int, propensity float, uniform float, accepted bool, held bool"
APPLICATIONS = _table(
    "applications", f"id key, person text!, batch batches, time int, features text?, {DECISION}"
)
# The last outcome of an application counts; earlier ones were corrected.
OUTCOMES = _table("outcomes", "id key, application applications, label int, time int, at int")
sql.Index("outcomes_by_application", OUTCOMES.c.application)
# Whom a version has learnt from that its parent had not, by which outcome, in which of its updates.
LEARNT = _table(
    "learnt",
    "application applications*, version versions*, outcome outcomes?, part int",
    sqlite_with_rowid=False,
)
FORGOTTEN = _table("forgotten", "application applications*, at int")
# Applications that were entered by mistake; from then on nothing counts them.
WITHDRAWN = _table("withdrawn", "id key, application applications!, at int")
# What `forget` changes: the features of a person, and copies of them in the memory of a learner.
CHANGED = {"applications": ("features",), "versions": ("state", "memory", "sum")}


class Store:
    """The database of a ledger: an SQLite file by its path, or any by its URL.

    Raises:
        FairAllError: where there is no such driver, or the place cannot be a file.
    """

    def __init__(self, place: str | Path) -> None:
        self.name = hidden(str(place))
        self.path = None if "://" in str(place) else Path(place)
        try:
            url = str(place) if self.path is None else sqlite_url(self.path.absolute())
            options = {"timeout": WAIT} if self.path else {}
            self.engine = sql.create_engine(url, connect_args=options, poolclass=sql.NullPool)
        except (SQLAlchemyError, ImportError) as error:
            raise FairAllError(f"{self.name}: cannot be used as a database ({_reason(error)})") from error
        self.dialect = self.engine.dialect.name
        if self.dialect == "sqlite":
            sql.event.listen(self.engine, "connect", _connected)
            sql.event.listen(self.engine, "begin", _begun)

    def require_free(self) -> None:
        """Raise FairAllError where something is there already, but for what a killed start leaves behind."""
        if self.path is not None and self.path.exists() and not self._is_empty():
            raise FairAllError(f"{self.path}: is there already; give a new place")

    def create(self) -> None:
        """Make an empty file of mode 0600; raises as `require_free`, and where it cannot be made."""
        if self.path is None:
            return
        self.require_free()
        try:
            # Before SQLite opens it: its journal gets the mode of the file.
            os.close(os.open(self.path, os.O_CREAT | os.O_WRONLY, 0o600))
            self.path.chmod(0o600)
        except OSError as error:
            raise FairAllError(f"{self.path}: cannot be made ({error.strerror}); give a new place") from error

    def _is_empty(self) -> bool:
        """Whether the file is a database without tables."""
        try:
            with self.reading() as connection:
                return not sql.inspect(connection).get_table_names()
        except FairAllError:
            return False

    def make_tables(self, connection: sql.Connection) -> None:
        """Make the tables, in a transaction of `writing`; raises FairAllError where there are some."""
        if sql.inspect(connection).has_table(ABOUT.name):
            raise FairAllError(f"{self.name}: a ledger is there already; give a new place")
        META.create_all(connection)
        for table in META.sorted_tables:
            free = CHANGED.get(table.name, ())
            kept = ", ".join(f'"{one.name}"' for one in table.columns if one.name not in free)
            for what in (f"UPDATE OF {kept}", "DELETE"):
                connection.execute(sql.DDL(_trigger(self.dialect, table.name, what)))

    @contextmanager
    def writing(self) -> Iterator[sql.Connection]:
        """A transaction of the only writer; it is undone when the block raises.

        Raises:
            FairAllError: where there is no file, another process writes for longer than `WAIT`, or the
                database is damaged.
        """
        with self._transaction(writes=True) as connection:
            if self.dialect == "postgresql":
                connection.execute(sql.text(f"SET LOCAL lock_timeout = '{WAIT}s'"))
                connection.execute(sql.select(sql.func.pg_advisory_xact_lock(LOCK)))
            yield connection

    @contextmanager
    def reading(self) -> Iterator[sql.Connection]:
        """A transaction that sees one state of the ledger; raises as `writing`."""
        level = {} if self.dialect == "sqlite" else {"isolation_level": "REPEATABLE READ"}
        with self._transaction(**level) as connection:
            yield connection

    @contextmanager
    def _transaction(self, **options: Any) -> Iterator[sql.Connection]:
        if self.path is not None and not self.path.is_file():  # SQLite would make it
            what = "is no file" if self.path.exists() else "no ledger there"
            raise FairAllError(f"{self.path}: {what}; fairall live start LEDGER RUN makes a ledger")
        try:
            with self.engine.connect() as connection:
                connection.execution_options(**options)
                with connection.begin():
                    yield connection
        except OperationalError as error:
            reason = f"cannot be read or written ({_reason(error)})"
            if "locked" in reason or "lock timeout" in reason:
                reason = f"another process has been writing for {WAIT} seconds: try again when it has ended"
            raise FairAllError(f"{self.name}: {reason}") from error
        except (DatabaseError, UnicodeDecodeError, JSONDecodeError) as error:
            reason = f"is damaged, or no ledger ({_reason(error)}); take its last copy"
            raise FairAllError(f"{self.name}: {reason}") from error


def rows_of(
    connection: sql.Connection, query: sql.Select[Any], column: sql.ColumnElement[Any], values: Sequence[Any]
) -> pd.DataFrame:
    """Rows of a query whose `column` has one of some values, in any order."""
    found: list[Any] = []
    for start in range(0, len(values), IN_QUERY):
        found += map(tuple, connection.execute(query.where(column.in_(values[start : start + IN_QUERY]))))
    return pd.DataFrame(found, columns=[one.name for one in query.selected_columns])


def _trigger(dialect: str, table: str, what: str) -> str:
    """The statement after which rows of a table cannot be updated, or deleted."""
    name = f"{table}_{what[:6].lower()}"
    head, message = f'CREATE TRIGGER "{name}" BEFORE {what} ON "{table}"', f"{table} is append-only"
    if dialect == "sqlite":
        return f"{head} BEGIN SELECT RAISE(ABORT, '{message}'); END"
    body = f"$$BEGIN RAISE EXCEPTION '{message}'; END$$"
    function = f'CREATE FUNCTION "{name}"() RETURNS trigger LANGUAGE plpgsql AS {body}'
    return f'{function}; {head} FOR EACH ROW EXECUTE FUNCTION "{name}"()'


def _reason(error: Exception) -> str:
    """The first line of what a driver says, without statement and values."""
    return hidden(str(getattr(error, "orig", None) or error)).strip().split("\n")[0][:200]


def _connected(connection: Any, _: Any) -> None:
    """Have transactions begin as `_begun` says, keys checked, and what is erased overwritten."""
    connection.isolation_level = None
    for pragma in ("foreign_keys = ON", "secure_delete = ON"):
        connection.execute(f"PRAGMA {pragma}")


def _begun(connection: sql.Connection) -> None:
    """Begin a transaction, that of a writer with the lock, so that two cannot read the same state first."""
    writes = connection.get_execution_options().get("writes")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
