"""A day of a ledger whose commands are killed: each has done all or nothing, and does it when typed again."""

from __future__ import annotations

import itertools
import os
import random
import signal
import sqlite3
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import sqlalchemy as sql

from benchmarks.errors import FaultError
from benchmarks.in_process import typed
from benchmarks.tables import MEANING, applicants
from fairall.live.store import Store

KILLED = -signal.SIGKILL  # exit code
CHANGES = ("os.rename", "os.remove", "os.rmdir", "os.truncate")  # audit events, beside opening to write
STARTED = "preset=quick seeds=1 tracking.enabled=false dataset=csv dataset.path=past.csv".split()
STARTED += [f"dataset.{key}={value}" for key, value in MEANING.items()]
STARTED += ["schedule.warm_up_epochs=2", "live.explore=0.3", "live.held_out=0.1"]
METHODS = ["fairlog", "ensemble", "explore_exploit", "stacked"]  # which remember different things
PAST, A_TABLE = 200, 50  # people from whom a ledger starts, and of a table
FIRST = ["decide", "outcomes", "learn"]
VERBS = (
    "decide override outcomes decide override outcomes learn promote withdraw forget status waiting".split()
)
OPTIONS = ["", "--capacity 20", "--refer 5", "--reasons 2"]
OF_CHANCE = ["at", "hash", "salt", "features", "why"]  # columns that depend on the clock or on chance


def day(place: str, folder: Path, chance: random.Random) -> Iterator[list[str]]:
    """Words of commands of all verbs in a random order, whose files are there when a command is asked for.

    The same random numbers give the same commands, as long as the ledger decides alike.

    Args:
        place: of the ledger, which is not there yet.
        folder: an empty one, where they are typed.
        chance: chooses verbs, options and people.
    """
    people = applicants(PAST + A_TABLE * len(VERBS), 8).round(4)
    people["repaid"] = people["repaid"].mask((people["real 0"] < 0) & people["granted"], "bad")
    people[:PAST].to_csv(folder / "past.csv", index=False)
    people = people.drop(columns=["granted", "repaid", "propensity"]).rename_axis("id").reset_index()
    people["time"] = pd.Timestamp("2025-01-01") + pd.to_timedelta(people["id"] // A_TABLE, unit="D")
    yield ["live", "start", place, *STARTED, f"model={chance.choice(METHODS)}"]
    decision, told = pd.Series(dtype=float), set[int]()
    for verb in [*FIRST, *chance.sample(VERBS, len(VERBS))]:
        words: list[str] = []
        if verb == "decide":
            last = PAST + len(decision)
            table = people[last - 10 * (last > PAST) : last + A_TABLE]
            table.to_csv(folder / "people.csv", index=False)
            words = ["people.csv", "-o", "decided.csv", *chance.choice(OPTIONS).split()]
        elif verb == "outcomes":
            accepted = decision.index[decision == 1]
            some = chance.sample([*accepted], 2 * len(accepted) // 3)
            labels = chance.choices(["good", "bad"], [2, 1], k=len(some))
            pd.DataFrame({"id": some, "repaid": labels}).to_csv(folder / "outcomes.csv", index=False)
            words, told = ["outcomes.csv"], told.union(some)
        elif verb == "promote":
            words = [chance.choice("12")]
        elif verb in ("forget", "withdraw"):
            words = [str(chance.choice([*decision.index]))]
        elif verb == "override":
            someone = chance.choice([person for person in decision.index if person not in told])
            decision[someone] = float(decision[someone] != 1)
            words = [str(someone), ["reject", "accept"][int(decision[someone])], "--why", "a guarantor"]
        elif verb == "waiting":
            verb, words = "outcomes", ["--waiting", "-o", "waiting.csv"]
        yield ["live", verb, place, *words]
        if verb == "decide":
            decided = pd.read_csv(folder / "decided.csv").set_index("id")["decision"]
            decision = decided.combine_first(decision)


def killed_day(places: Sequence[str], folder: Path, chance: random.Random, *, step: int) -> Iterator[str]:
    """Type the same day on two ledgers, and kill the commands on the second.

    Args:
        places: of the ledgers, URLs or names of files.
        folder: an empty one.
        chance: chooses the day.
        step: distance of the writes before which a command is killed, one after the other.

    Yields:
        The verb of each kill.

    Raises:
        FaultError: where a command that was killed has done a part of its work, or the ledgers or the files
            that were written differ when it was typed again.
    """
    folders = calm, hunted = folder / "calm", folder / "hunted"
    for each in folders:
        each.mkdir()
    own, other = (
        place if "://" in place else each / place for place, each in zip(places, folders, strict=True)
    )
    seed = chance.random()
    days = (day(place, each, random.Random(seed)) for place, each in zip(places, folders, strict=True))
    for expected, words in zip(*days, strict=True):
        before = there = content(other)
        code, after = typed(*expected, cwd=calm).returncode, content(own)
        for write in itertools.count(1, step):
            if (found := ended(forked(partial(typed, *words, cwd=hunted), write))) != KILLED:
                break
            there = content(other)
            if there not in (before, after):
                raise FaultError("what was killed has done a part of its work", words)
            if there and typed("live", "status", words[2], cwd=hunted).returncode:
                raise FaultError("is damaged by a kill", words)
            yield words[1]
        # What was done already may be refused, such as a ledger that is there.
        if found != code and there != after:
            raise FaultError(f"exit code {found} after a kill, {code} without", words)
        if content(other) != after or files(calm) != files(hunted):
            raise FaultError("differs from what was not killed", words)


def forked(
    command: Callable[[], object], before: int = 0, folder: Path | None = None, by: int = signal.SIGKILL
) -> int:
    """Fork a process that types a command, and gets a signal before its write of that number; its id.

    Pages of SQLite are written when they are changed: a kill leaves half of a transaction in the file.

    Args:
        command: returns an `Ended`, or nothing where it ends well.
        before: number of the write.
        folder: where changes of files are writes, beside statements of a database.
        by: the signal.
    """
    if child := os.fork():
        return child
    writes, code = itertools.count(1), 1

    def write() -> None:
        if next(writes) == before:
            os.kill(os.getpid(), by)

    def state(connection: object, cursor: object = None, statement: str = "COMMIT", *_: object) -> None:
        if not statement.startswith(("SELECT", "PRAGMA", "BEGIN")):
            write()

    def audit(event: str, arguments: tuple[Any, ...]) -> None:
        opened = event == "open" and isinstance(arguments[2], int) and arguments[2] & os.O_ACCMODE
        named = (opened or event in CHANGES) and isinstance(arguments[0], str | os.PathLike)
        if named and folder in Path(arguments[0]).absolute().parents:
            write()

    for name in ("before_cursor_execute", "commit"):
        sql.event.listen(sql.Engine, name, state)
    sql.event.listen(sql.Engine, "connect", _small_cache)
    sys.addaudithook(audit)
    try:
        code = getattr(command(), "returncode", 0)
    finally:
        os._exit(code)


def _small_cache(connection: Any, _: object) -> None:
    if isinstance(connection, sqlite3.Connection):
        connection.execute("pragma cache_size = 1")


def ended(child: int) -> int:
    """Exit code of a process."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def tables(place: str | Path) -> dict[str, pd.DataFrame]:
    """All rows of a ledger by table; none where it was not made."""
    store = Store(place)
    if store.path and not store.path.exists():
        return {}
    with store.reading(own=False) as connection:
        names = sql.inspect(connection).get_table_names()
        query = "select * from {} order by 1, 2"
        return {name: pd.read_sql(query.format(name), connection, dtype=object) for name in names}


def content(place: str | Path) -> dict[str, str]:
    """All rows, without what depends on the clock or on chance."""
    found = tables(place)
    for frame in found.values():
        if "state" in frame:  # erased ones are random
            frame.loc[frame["salt"].isna(), "state"] = None
    return {name: frame.drop(columns=OF_CHANCE, errors="ignore").to_csv() for name, frame in found.items()}


def files(folder: Path) -> dict[str, bytes]:
    """The content of the tables in a folder, and the names of other files but ledgers."""
    names = (path for path in folder.iterdir() if path.suffix != ".db")
    return {path.name: path.read_bytes() if path.suffix == ".csv" else b"" for path in names}
