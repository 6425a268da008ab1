"""The database of a ledger: append-only tables, one transaction for each command that writes."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import sqlalchemy as sql
from sqlalchemy.exc import DatabaseError, OperationalError, SQLAlchemyError

from fairall.errors import FairAllError
from fairall.runtime.credentials import complete, hidden
from fairall.storage.files import sqlite_url
from fairall.storage.stored import of_plain

T = TypeVar("T")

FORMAT = 5  # of the tables; increased when older ledgers would be read wrongly
WAIT = 30  # seconds for another process that writes
LOCK = 0x46414C4C  # of the writers of a PostgreSQL server
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


# The hash of each row that is written to a table with a column `entry`, in the order in which they were
# written; with `salt` the features of an application were hashed, until the person is forgotten (`chain`).
CHAIN = _table("chain", "id key, hash bytes, salt bytes?")
# Times are in seconds since 1970, UTC; `at` is when a row was written. Ids have no gaps.
ABOUT = _table("ledger", "id key, key text!, value text, entry int")  # what the ledger was started with
# `weights` are those of a saved policy; `memory` holds the people whom the learner remembers, but for those
# of `learnt` (`state.split`); `state` is the rest of the state of training. `sum` is the hash of these three,
# `learnt` that of the version's rows of `learnt`; `report`, what changed, is JSON.
COLUMNS = "weights bytes, state bytes, memory bytes, sum text, learnt text, report text"
VERSIONS = _table("versions", f"id key, parent versions?, at int, {COLUMNS}, entry int")
# The version of the last row is on duty; `newest` was the newest version then.
DUTY = _table("duty", "id key, version versions, newest versions, at int, why text, entry int")
# People who were decided on together, none in the first, which has id 0. `state` is the hash of that of the
# random numbers after them, which of the last batch is in `generator`.
BATCHES = _table("batches", "id key, version versions, at int, words text, state text, entry int")
GENERATOR = _table("generator", "id key, state bytes")
# `features` are cells as a row of CSV, NULL once the person is forgotten; nothing is learnt from `held`.
DECISION = "s int, propensity float, uniform float, accepted bool, held bool, entry int"
APPLICATIONS = _table(
    "applications", f"id key, person text!, batch batches, time int, features text?, {DECISION}"
)
# The last outcome of an application counts; earlier ones were corrected.
OUTCOMES = _table("outcomes", "id key, application applications, label int, time int, at int, entry int")
sql.Index("outcomes_by_application", OUTCOMES.c.application)
# Whom a version has learnt from that its parent had not, by which outcome, in which of its updates.
LEARNT = _table(
    "learnt",
    "application applications*, version versions*, outcome outcomes?, part int",
    sqlite_with_rowid=False,
)
# Of a forgotten person `features` is the salted hash of the features, which are erased.
FORGOTTEN = _table("forgotten", "id key, application applications!, at int, features bytes, entry int")
# Applications that were entered by mistake; from then on nothing counts them.
WITHDRAWN = _table("withdrawn", "id key, application applications!, at int, entry int")
# The hash of the columns of a version after a person was erased from them.
ERASED = _table("erased", "id key, version versions, sum text, entry int")
# What changes: the last state of the random numbers; by `forget` the features of a person, their salt, and
# copies of them in the memory of a learner.
CHANGED = {
    "applications": ("features",),
    "chain": ("salt",),
    "generator": ("state",),
    "versions": ("state", "memory"),
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
            with self.reading(foreign=True) as connection:
                return not sql.inspect(connection).get_table_names()
        except FairAllError:
            return False

    def make_tables(self, connection: sql.Connection) -> None:
        """Make the tables, in a transaction of `writing`; raises FairAllError where there are some."""
        if sql.inspect(connection).has_table(ABOUT.name):
            raise FairAllError(f"{self.name}: a ledger is there already; give a new place")
        META.create_all(connection)
        for statement in _triggers(self.dialect).values():
            connection.execute(sql.DDL(statement))

    @contextmanager
    def writing(self, *, new: bool = False) -> Iterator[sql.Connection]:
        """A transaction of the only writer; it is undone when the block raises.

        Args:
            new: whether there is no ledger yet.

        Raises:
            FairAllError: where there is no file, another process writes for longer than `WAIT`, or the
                database is damaged.
        """
        with self._transaction(writes=True) as connection:
            if self.dialect == "postgresql":
                connection.execute(sql.text(f"SET LOCAL lock_timeout = '{WAIT}s'"))
                connection.execute(sql.select(sql.func.pg_advisory_xact_lock(LOCK)))
            if not new:
                _require_own(connection)
            yield connection

    @contextmanager
    def reading(self, *, foreign: bool = False) -> Iterator[sql.Connection]:
        """A transaction that sees one state of the database; raises as `writing`.

        Args:
            foreign: whether it may be no ledger.
        """
        level = {} if self.dialect == "sqlite" else {"isolation_level": "REPEATABLE READ"}
        with self._transaction(**level) as connection:
            if not foreign:
                _require_own(connection)
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
        except (DamagedError, DatabaseError, UnicodeDecodeError) as error:
            reason = f"is damaged, was changed, or is no ledger ({_reason(error)}); take its last copy"
            raise FairAllError(f"{self.name}: {reason}") from error


def stored(kind: type[T], text: str) -> T:
    """A value of a type, as of `of_plain`, out of JSON; raises DamagedError where it is none."""
    try:
        value: T = of_plain(kind, json.loads(text))
    except (ValueError, RecursionError, FairAllError) as error:
        raise DamagedError(str(error)) from error
    return value


def _require_own(connection: sql.Connection) -> None:
    """Raise DamagedError where a trigger or view is foreign or missing, or last rows are."""
    expected = _triggers(connection.dialect.name)
    if connection.dialect.name == "sqlite":
        query = "SELECT name, sql FROM sqlite_master WHERE type IN ('trigger', 'view')"
        found = {row.name: row.sql for row in connection.exec_driver_sql(query)}
    else:
        query = f"""
            SELECT tgname, prosrc, tgenabled = 'O' AND tgtype IN (10, 18, 34) FROM pg_trigger
            JOIN pg_class ON pg_class.oid = tgrelid JOIN pg_proc ON pg_proc.oid = tgfoid
            WHERE NOT tgisinternal AND relname IN {tuple(META.tables)} AND pg_table_is_visible(pg_class.oid)
            UNION SELECT rulename, '', false FROM pg_rules WHERE tablename IN {tuple(META.tables)}
        """
        found = {
            name: expected.get(name) if right and f"$${body}$$" in expected.get(name, "") else body
            for name, body, right in connection.exec_driver_sql(query)
        }
    for name in sorted(expected.keys() | found.keys()):
        if found.get(name) != expected.get(name):
            why = "not of fairall, or switched off" if name in found else "missing"
            raise DamagedError(f"the trigger, rule or view {name} is {why}")
    newest = (sql.select(sql.func.max(table.c.id)).scalar_subquery() for table in (CHAIN, *CHAINED))
    entries, *rows = connection.execute(sql.select(*newest)).one()
    if entries != sum(number or 0 for number in rows) + 1:  # ids of batches begin at 0
        raise DamagedError("last rows are missing, or not of fairall")


def _triggers(dialect: str) -> dict[str, str]:
    """Statements by which rows are neither updated nor deleted, but for `CHANGED`, by trigger."""
    statements = {}
    for table in META.sorted_tables:
        free = CHANGED.get(table.name, ())
        kept = ", ".join(f'"{column.name}"' for column in table.columns if column.name not in free)
        message = f"{table.name} is append-only"
        for what in ("UPDATE", "DELETE", *["TRUNCATE"] * (dialect == "postgresql")):
            name = f"{table.name}_{what.lower()}"
            event = f"UPDATE OF {kept}" if what == "UPDATE" else what
            head = f'CREATE TRIGGER "{name}" BEFORE {event} ON "{table.name}"'
            statements[name] = f"{head} BEGIN SELECT RAISE(ABORT, '{message}'); END"
            if dialect == "postgresql":
                body = f"$$BEGIN RAISE EXCEPTION '{message}'; END$$"
                statements[name] = (
                    f'CREATE FUNCTION "{name}"() RETURNS trigger LANGUAGE plpgsql AS {body}; '
                    f'{head} FOR EACH STATEMENT EXECUTE FUNCTION "{name}"()'
                )
    return statements


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
