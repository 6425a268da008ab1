"""Database of the studies, and the lock under which trials are claimed."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sqlalchemy
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from fairall.errors import FairAllError
from fairall.runtime.credentials import complete, hidden
from fairall.storage.files import locked, sqlite_url

if TYPE_CHECKING:
    from optuna.storages import RDBStorage

PATIENCE = 60  # seconds that a process waits for another one's write to sqlite

LOCK_KEY = 0x4641  # of the lock on a server; an arbitrary number

# Locks that the server releases when the connection ends, even if the process was killed.
SERVER_LOCKS = {
    "postgresql": ("SELECT pg_advisory_lock(:key)", "SELECT pg_advisory_unlock(:key)"),
    "mysql": ("SELECT GET_LOCK(:key, -1)", "SELECT RELEASE_LOCK(:key)"),
}


def storage_url(given: str | None, outputs_dir: str) -> str:
    """The address given, with its user and password, or sqlite inside `outputs_dir`."""
    return complete(given) if given else sqlite_url(Path(outputs_dir).resolve() / "sweeps" / "studies.db")


def open_storage(url: str) -> RDBStorage:
    """The database at `url`, made where there is none yet.

    Raises:
        FairAllError: where the database cannot be reached.
    """
    import optuna

    # Optuna logs every trial and warns of every experimental method.
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    logging.getLogger("alembic").setLevel(logging.WARNING)
    warnings.filterwarnings("ignore", category=optuna.exceptions.ExperimentalWarning)
    location = address(url)
    options: dict[str, Any] = {}
    if location.get_backend_name() == "sqlite":
        options["connect_args"] = {"timeout": PATIENCE}
    try:
        # Two processes that create the tables at the same time would both fail.
        with exclusive(url):
            # Optuna 2 does not commit the tables that it makes. All else must be in transactions: a process
            # that is killed while it adds a trial would leave one without a number.
            optuna.storages.RDBStorage(url, engine_kwargs={**options, "isolation_level": "AUTOCOMMIT"})
            return optuna.storages.RDBStorage(url, engine_kwargs=options)
    except (SQLAlchemyError, ImportError, RuntimeError) as error:
        raise _out_of_reach(url, error) from error


def release(storage: RDBStorage, trial_id: int, *, failed: bool) -> None:
    """Set the state of a running trial to failed, or else to waiting."""
    from optuna.trial import TrialState

    storage.set_trial_state(trial_id, TrialState.FAIL if failed else TrialState.WAITING)


@contextmanager
def exclusive(url: str) -> Iterator[None]:
    """Hold the database's lock of studies until the block ends; other processes wait for it.

    Raises:
        FairAllError: where the database cannot be reached or has no such locks.
    """
    location = address(url)
    backend = location.get_backend_name()
    if backend == "sqlite":
        path = Path(str(location.database))
        with locked(path.parent, path.with_name(f"{path.name}.lock")):
            yield
        return
    if backend not in SERVER_LOCKS:
        raise FairAllError(
            f"hydra.sweeper.storage: a {backend} database cannot be shared; use sqlite, postgresql or mysql"
        )
    take, give_back = SERVER_LOCKS[backend]
    try:
        connection = sqlalchemy.create_engine(location, poolclass=NullPool).connect()
    except (SQLAlchemyError, ImportError) as error:
        raise _out_of_reach(url, error) from error
    with connection:
        connection.execute(sqlalchemy.text(take), {"key": LOCK_KEY})
        try:
            yield
        finally:
            connection.execute(sqlalchemy.text(give_back), {"key": LOCK_KEY})


def address(url: str) -> URL:
    """The parts of the address of a database; raises FairAllError where it is none."""
    try:
        location = make_url(url)
    except ArgumentError as error:
        raise FairAllError(
            "hydra.sweeper.storage: not the address of a database; it looks like postgresql://user@host/name "
            "or sqlite:////folder/studies.db"
        ) from error
    if location.get_backend_name() == "sqlite" and location.database in (None, "", ":memory:"):
        raise FairAllError(
            f"hydra.sweeper.storage={hidden(url)}: a sweep is kept in a file, as sqlite:////folder/studies.db"
        )
    return location


def _out_of_reach(url: str, error: Exception) -> FairAllError:
    reason = hidden(str(error)).strip().split("\n")[0][:200]
    return FairAllError(f"hydra.sweeper.storage: cannot use {hidden(url)} ({reason})")
