"""The database of a ledger: append-only tables, one transaction for each command that writes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sql
from sqlalchemy import Column, ForeignKey
from sqlalchemy.exc import DatabaseError, NoSuchModuleError, OperationalError, SQLAlchemyError

from fairall.errors import FairAllError
from fairall.runtime.credentials import hidden
from fairall.storage.files import sqlite_url

FORMAT = 1  # of the tables; increased when older ledgers would be read wrongly
WAIT = 30  # seconds for another process that writes
LOCK = 0x46414C4C  # of the writers of a PostgreSQL server
META = sql.MetaData()
# What the ledger was started with, by key.
ABOUT = sql.Table(
    "ledger", META, Column("key", sql.String, primary_key=True), Column("value", sql.Text, nullable=False)
)
# A version of the policy, the version that it was made from, and what changed, as JSON. `weights` are those
# of a saved policy; `memory` holds the people whom the learner remembers, but for those of `learnt`
# (`state.split`); `state` is the rest of the state of training.
VERSIONS = sql.Table(
    "versions",
    META,
    Column("id", sql.Integer, primary_key=True),
    Column("parent", ForeignKey("versions.id")),
    Column("made", sql.BigInteger, nullable=False),
    Column("weights", sql.LargeBinary, nullable=False),
    Column("state", sql.LargeBinary, nullable=False),
    Column("memory", sql.LargeBinary, nullable=False),
    Column("sum", sql.String, nullable=False),
    Column("report", sql.Text, nullable=False),
)
# Who was on duty from when: the version of the last row is. `newest` is the newest version of then.
DUTY = sql.Table(
    "duty",
    META,
    Column("id", sql.Integer, primary_key=True),
    Column("version", ForeignKey("versions.id"), nullable=False),
    Column("newest", ForeignKey("versions.id"), nullable=False),
    Column("at", sql.BigInteger, nullable=False),
    Column("why", sql.Text, nullable=False),
)
# The people of a table who were decided on together. `state` is that of the random numbers after them.
BATCHES = sql.Table(
    "batches",
    META,
    Column("id", sql.Integer, primary_key=True),
    Column("version", ForeignKey("versions.id"), nullable=False),
    Column("at", sql.BigInteger, nullable=False),
    Column("words", sql.Text, nullable=False),
    Column("state", sql.LargeBinary, nullable=False),
)
# `features` are cells as a row of CSV; NULL once the person is forgotten. `time` in seconds since 1970, UTC.
APPLICATIONS = sql.Table(
    "applications",
    META,
    Column("id", sql.Integer, primary_key=True),
    Column("person", sql.String, nullable=False, unique=True),
    Column("batch", ForeignKey("batches.id"), nullable=False, index=True),
    Column("time", sql.BigInteger, nullable=False),
    Column("features", sql.Text),
    Column("s", sql.Integer, nullable=False),
    Column("propensity", sql.Float(53), nullable=False),
    Column("uniform", sql.Float(53), nullable=False),
    Column("accepted", sql.Boolean, nullable=False),
    Column("held", sql.Boolean, nullable=False),
)
# Of the outcomes of an application the last counts; earlier ones were corrected.
OUTCOMES = sql.Table(
    "outcomes",
    META,
    Column("id", sql.Integer, primary_key=True),
    Column("application", ForeignKey("applications.id"), nullable=False, index=True),
    Column("label", sql.Integer, nullable=False),
    Column("time", sql.BigInteger, nullable=False),
    Column("at", sql.BigInteger, nullable=False),
)
# Whom a version has learnt from that its parent had not, with which outcome, in which of its updates.
LEARNT = sql.Table(
    "learnt",
    META,
    Column("application", ForeignKey("applications.id"), primary_key=True),
    Column("version", ForeignKey("versions.id"), primary_key=True),
    Column("outcome", ForeignKey("outcomes.id")),
    Column("part", sql.Integer, nullable=False),
)
FORGOTTEN = sql.Table(
    "forgotten",
    META,
    Column("application", ForeignKey("applications.id"), primary_key=True),
    Column("at", sql.BigInteger, nullable=False),
)
# What `forget` changes: the features of a person, and copies of them in the memory of a learner.
CHANGED = {"applications": ("features",), "versions": ("state", "memory", "sum")}


class Store:
    """The database of a ledger.

    Args:
        place: path of an SQLite file, or the URL of a database.

    Raises:
        FairAllError: where there is no such driver, or the place cannot be a file.
    """

    def __init__(self, place: str | Path) -> None:
        self.name = hidden(str(place))
        self.path = None if "://" in str(place) else Path(place)
        try:
            url = str(place) if self.path is None else sqlite_url(self.path.absolute())
            options = {"timeout": WAIT} if self.path is not None else {}
            self.engine = sql.create_engine(url, connect_args=options)
        except (SQLAlchemyError, NoSuchModuleError, ImportError) as error:
            raise FairAllError(f"{self.name}: cannot be used as a database ({_reason(error)})") from error
        self.is_sqlite = self.engine.dialect.name == "sqlite"
        if self.is_sqlite:
            sql.event.listen(self.engine, "connect", _connected)
            sql.event.listen(self.engine, "begin", _begun)

    def create(self) -> None:
        """Make an empty database, of mode 0600 where it is a file.

        Raises:
            FairAllError: where something is there already, or it cannot be written.
        """
        if self.path is not None:
            try:
                # Before SQLite opens it: its journal gets the mode of the file.
                os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            except FileExistsError as error:
                raise self.there() from error
            except OSError as error:
                raise FairAllError(f"{self.path}: cannot be written ({error.strerror})") from error

    def make_tables(self, connection: sql.Connection) -> None:
        """Make the tables, in a transaction of `writing`; raises FairAllError where there are some."""
        if sql.inspect(connection).has_table(ABOUT.name):
            raise self.there()
        META.create_all(connection)
        for table in META.sorted_tables if self.is_sqlite else ():
            free = CHANGED.get(table.name, ())
            columns = ", ".join(f'"{one.name}"' for one in table.columns if one.name not in free)
            refuse = f"ON \"{table.name}\" BEGIN SELECT RAISE(ABORT, '{table.name} is append-only'); END"
            for what in (f"UPDATE OF {columns}", "DELETE"):
                name = f"{table.name}_{what[:6].lower()}"
                connection.execute(sql.DDL(f'CREATE TRIGGER "{name}" BEFORE {what} {refuse}'))

    def delete(self) -> None:
        """Delete the file that `create` has made, where nothing could be written to it."""
        self.engine.dispose()
        if self.path is not None:
            self.path.unlink(missing_ok=True)

    def there(self) -> FairAllError:
        """The error of a place that is not free."""
        return FairAllError(f"{self.name}: is there already; give the place of a new ledger")

    @contextmanager
    def writing(self) -> Iterator[sql.Connection]:
        """A transaction of the only writer; it is undone when the block raises.

        Raises:
            FairAllError: where another process writes for longer than `WAIT`, or the database is damaged.
        """
        self._require()
        with self._errors(), self.engine.connect() as connection:
            connection.execution_options(writes=True)
            with connection.begin():
                if self.engine.dialect.name == "postgresql":
                    connection.execute(sql.text(f"SET LOCAL lock_timeout = '{WAIT}s'"))
                    connection.execute(sql.select(sql.func.pg_advisory_xact_lock(LOCK)))
                yield connection

    @contextmanager
    def reading(self) -> Iterator[sql.Connection]:
        """A transaction that sees one state of the ledger; raises as `writing`."""
        self._require()
        level = {} if self.is_sqlite else {"isolation_level": "REPEATABLE READ"}
        with self._errors(), self.engine.connect() as connection:
            connection.execution_options(**level)
            with connection.begin():
                yield connection

    def _require(self) -> None:
        """Raise FairAllError where there is no file, which SQLite would make."""
        if self.path is not None and not self.path.is_file():
            raise FairAllError(f"{self.path}: no ledger there; fairall live start {self.path} RUN makes one")

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except OperationalError as error:
            reason = _reason(error)
            if "locked" in reason or "lock timeout" in reason:
                reason = f"another process has been writing for {WAIT} seconds: try again when it has ended"
            else:
                reason = f"cannot be read or written ({reason})"
            raise FairAllError(f"{self.name}: {reason}") from error
        except DatabaseError as error:
            raise FairAllError(
                f"{self.name}: is damaged, or no ledger ({_reason(error)}); take its last copy"
            ) from error


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
