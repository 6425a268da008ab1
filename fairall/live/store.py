"""The database of a ledger: append-only tables, one transaction for each command that writes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import sqlalchemy as sql
from sqlalchemy import BigInteger, Column, Float, ForeignKey, Integer, LargeBinary, Text
from sqlalchemy.exc import DatabaseError, OperationalError, SQLAlchemyError

from fairall.errors import FairAllError
from fairall.runtime.credentials import complete, hidden
from fairall.storage.files import sqlite_url

FORMAT = 7  # of the tables; increased when older ledgers would be read wrongly
WAIT = 30  # seconds for another process that writes
LOCK = 0x46414C4C  # of the writers of a PostgreSQL server
META = sql.MetaData()


def _rows(name: str, *columns: Column[Any]) -> sql.Table:
    """A table whose rows are in the chain: `id` counts them, and `entry` is that of the chain."""
    key, entry = Column("id", Integer, primary_key=True), Column("entry", BigInteger)
    return sql.Table(name, META, key, *columns, entry)


# The hash of each row that is written to a table with a column `entry`, in the order in which they were
# written (`chain`).
CHAIN = sql.Table("chain", META, Column("id", Integer, primary_key=True), Column("hash", LargeBinary))
# Times are in seconds since 1970, UTC; `at` is when a row was written. Ids have no gaps. What can be erased
# (`ERASED`) is hashed with the `salt`, the column after it; then there is that hash, and `salt` is NULL.
ABOUT = _rows("ledger", Column("key", Text), Column("value", Text))  # what the ledger was started with
# `report`, what changed, is JSON.
VERSIONS = _rows(
    "versions",
    Column("parent", ForeignKey("versions.id")),
    Column("at", BigInteger),
    Column("report", Text),
)
# Weights of a saved policy, and the state of training, without the people of `learnt` in the memory of the
# learner (`state`). The last row of a version counts: `forget` replaces the one before and erases it.
STATES = _rows(
    "states",
    Column("version", ForeignKey("versions.id"), index=True),
    Column("state", LargeBinary),
    Column("salt", LargeBinary),
)
# The version of the last row is on duty; `by` is who put it there.
DUTY = _rows(
    "duty",
    Column("version", ForeignKey("versions.id")),
    Column("at", BigInteger),
    Column("why", Text),
    Column("by", Text),
)
# People who were decided on together, none in the first. `timed` says whether they had times, `places` how
# many could be accepted, NULL without a limit; `state` is that of the random numbers after them, of the last
# batch alone.
BATCHES = _rows(
    "batches",
    Column("at", BigInteger),
    Column("timed", Integer),
    Column("places", Integer),
    Column("state", LargeBinary),
    Column("salt", LargeBinary),
)
# `features` are cells as JSON. `accepted` is the decision of the policy, which takes none on people
# who are referred to a person: theirs, and `propensity`, are NULL. Nothing is learnt from `held`.
APPLICATIONS = _rows(
    "applications",
    Column("person", Text, unique=True),
    Column("batch", ForeignKey("batches.id")),
    Column("version", ForeignKey("versions.id")),
    Column("time", BigInteger, index=True),
    Column("features", Text),
    Column("salt", LargeBinary),
    Column("s", Integer),
    Column("propensity", Float(53)),
    Column("uniform", Float(53)),
    Column("accepted", Integer),
    Column("held", Integer),
)
# Decisions of people, of which the last one of an application stands.
OVERRIDES = _rows(
    "overrides",
    Column("application", ForeignKey("applications.id"), index=True),
    Column("accepted", Integer),
    Column("by", Text),
    Column("why", Text),
    Column("salt", LargeBinary),
    Column("at", BigInteger),
)
# The last outcome of an application counts; earlier ones were corrected.
OUTCOMES = _rows(
    "outcomes",
    Column("application", ForeignKey("applications.id"), index=True),
    Column("label", Integer),
    Column("time", BigInteger, index=True),
    Column("at", BigInteger),
)
# Whom a version has learnt from that its parent had not, by which outcome and which decision of a person, in
# which of its updates.
LEARNT = _rows(
    "learnt",
    Column("application", ForeignKey("applications.id")),
    Column("version", ForeignKey("versions.id")),
    Column("outcome", ForeignKey("outcomes.id")),
    Column("override", ForeignKey("overrides.id")),
    Column("part", Integer),
)
# Applications of people who were `forgotten`, and those `withdrawn` as mistakes, which nothing counts.
REMOVED = _rows(
    "removed",
    Column("application", ForeignKey("applications.id"), index=True),
    Column("how", Text),
    Column("by", Text),
    Column("at", BigInteger),
)
# All that changes: what `forget` erases, and states that later rows replace.
ERASED = {
    APPLICATIONS: APPLICATIONS.c.features,
    OVERRIDES: OVERRIDES.c.why,
    BATCHES: BATCHES.c.state,
    STATES: STATES.c.state,
}
CHAINED = [table for table in META.sorted_tables if "entry" in table.c]


class DamagedError(FairAllError):
    """The rows of a ledger are not those that were written, or hold what no ledger does."""


class Store:
    """The database of a ledger: an SQLite file by its path, or any by its URL.

    Raises:
        FairAllError: where there is no such driver, or the place cannot be a file.
    """

    def __init__(self, place: str | Path) -> None:
        self.name = hidden(str(place))
        self.path = None if "://" in str(place) else Path(place)
        try:
            given = complete(str(place)) if self.path is None else sqlite_url(self.path.absolute())
            # By the driver that is installed with fairall[postgresql]: SQLAlchemy's own choice is another.
            url = re.sub("^postgres(ql)?://", "postgresql+psycopg://", given)
            options = {"timeout": WAIT} if self.path else {}
            self.engine = sql.create_engine(url, connect_args=options, poolclass=sql.NullPool)
        except (SQLAlchemyError, ImportError, ValueError) as error:
            told = f"cannot be used as a database ({_reason(error)}); PostgreSQL needs fairall[postgresql]"
            raise FairAllError(f"{self.name}: {told}") from error
        self.dialect = self.engine.dialect.name
        if self.dialect == "sqlite":
            sql.event.listen(self.engine, "connect", _connected)
            sql.event.listen(self.engine, "begin", _begun)

    def require_free(self) -> None:
        """Raise FairAllError where something is there already, but for what a killed start leaves behind."""
        if self.path is not None and not self.path.exists():
            return
        try:
            with self.reading(own=False) as connection:
                tables = sql.inspect(connection).get_table_names()
            taken = bool(tables) if self.path else ABOUT.name in tables
        except FairAllError:
            if self.path is None:
                raise
            taken = True
        if taken:
            raise FairAllError(f"{self.name}: a ledger or a file is there already; give a new place")

    @contextmanager
    def making(self) -> Iterator[sql.Connection]:
        """A transaction with empty tables, in a new file of mode 0600, which is removed when it fails.

        Raises:
            FairAllError: as `require_free`, and where the file cannot be made.
        """
        self.require_free()
        try:
            if self.path is not None:
                # Before SQLite opens it: its journal gets the mode of the file.
                self.path.touch(0o600)
                self.path.chmod(0o600)
        except OSError as error:
            raise FairAllError(f"{self.path}: cannot be made ({error.strerror}); give a new place") from error
        try:
            with self.writing(own=False) as connection:
                META.create_all(connection)
                for statement in _triggers(self.dialect):
                    connection.exec_driver_sql(statement)
                yield connection
        except BaseException:
            if self.path is not None:
                self.path.unlink(missing_ok=True)
            raise

    def writing(self, *, own: bool = True) -> AbstractContextManager[sql.Connection]:
        """A transaction of the only writer; it is undone when the block raises.

        Args:
            own: whether the rows of a ledger must be there.

        Raises:
            FairAllError: where there is no file, another process writes for longer than `WAIT`, or the
                database is damaged.
        """
        return self._transaction(own=own, writes=True)

    def reading(self, *, own: bool = True) -> AbstractContextManager[sql.Connection]:
        """A transaction that sees one state of the database; arguments and errors as of `writing`."""
        return self._transaction(own=own, writes=False)

    @contextmanager
    def _transaction(self, *, own: bool, writes: bool) -> Iterator[sql.Connection]:
        if self.path is not None and not self.path.is_file():  # SQLite would make it
            what = "is no file" if self.path.exists() else "no ledger there"
            raise FairAllError(f"{self.path}: {what}; fairall live start LEDGER RUN makes a ledger")
        postgresql, options = self.dialect == "postgresql", dict[str, Any](writes=writes)
        if postgresql and not writes:
            options["isolation_level"] = "REPEATABLE READ"
        try:
            with self.engine.execution_options(**options).begin() as connection:
                if writes and postgresql:
                    connection.execute(sql.text(f"SET LOCAL lock_timeout = '{WAIT}s'"))
                    connection.execute(sql.select(sql.func.pg_advisory_xact_lock(LOCK)))
                if own:
                    entries, *rows = newest(connection, CHAIN, *CHAINED)
                    if entries != sum(rows):
                        raise DamagedError("last rows are missing, or not of fairall")
                yield connection
        except OperationalError as error:
            reason = f"cannot be read or written ({_reason(error)})"
            if "locked" in reason or "lock timeout" in reason:
                reason = f"another process has been writing for {WAIT} seconds: try again when it has ended"
            raise FairAllError(f"{self.name}: {reason}") from error
        except (DamagedError, DatabaseError, UnicodeDecodeError) as error:
            reason = f"is damaged, was changed, or is no ledger ({_reason(error)}); take its last copy"
            raise FairAllError(f"{self.name}: {reason}") from error


def newest(connection: sql.Connection, *tables: sql.Table) -> tuple[int, ...]:
    """The last id of each of some tables; 0 without rows."""
    return tuple(connection.execute(_newest(tables)).one())


@cache
def _newest(tables: Sequence[sql.Table]) -> sql.Select[Any]:
    last = (sql.func.coalesce(sql.func.max(table.c.id), 0) for table in tables)
    return sql.select(*(sql.select(one).scalar_subquery() for one in last))


def _triggers(dialect: str) -> Iterator[str]:
    """Statements of triggers that refuse to update, but for `ERASED`, and to delete rows.

    They stop a mistake in a database's own program; that no trigger was dropped is not checked, since the
    chain shows what was changed then.
    """
    postgresql = dialect == "postgresql"
    if postgresql:
        what = "RAISE EXCEPTION USING MESSAGE = TG_TABLE_NAME || ' is append-only'"
        yield f"CREATE FUNCTION append_only() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN {what}; END$$"
    for table in META.sorted_tables:
        kept = [f'"{one.name}"' for one in table.c if one is not ERASED.get(table) and one.name != "salt"]
        body = f"BEGIN SELECT RAISE(ABORT, '{table.name} is append-only'); END"
        body = "EXECUTE FUNCTION append_only()" if postgresql else body
        for name, event in (("update", f"UPDATE OF {', '.join(kept)}"), ("delete", "DELETE")):
            yield f"CREATE TRIGGER {table.name}_{name} BEFORE {event} ON {table.name} {body}"


def _reason(error: Exception) -> str:
    """The first line of what a driver says, without statement and values."""
    return hidden(str(getattr(error, "orig", None) or error)).strip().split("\n")[0][:200]


def _connected(connection: Any, _: Any) -> None:
    """Leave transactions to `_begun`, check keys, overwrite what is erased, run no functions of a schema."""
    connection.isolation_level = None
    for pragma in ("foreign_keys = ON", "secure_delete = ON", "trusted_schema = OFF"):
        connection.execute(f"PRAGMA {pragma}")


def _begun(connection: sql.Connection) -> None:
    """Begin a transaction, that of a writer with the lock, so that two cannot read the same state first."""
    writes = connection.get_execution_options().get("writes")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
