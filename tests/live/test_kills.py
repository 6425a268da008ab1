"""Commands that are killed at any of their writes, and two that write at once."""

import itertools
import os
import shutil
import signal
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sql

from fairall import Ledger
from fairall.online.process import Process
from tests.live.conftest import MEMORY, METHOD, SMALL, Make, content, noticed, people, refusing, repaid, rows

Work = Callable[[Path], object]
VERBS: dict[str, list[Any]] = {
    "decide": [people(120, 40, 5)],
    "outcomes": [],
    "learn": [],
    "promote": [1],
    "forget": ["L0001"],
    "withdraw": ["L0001"],
}


def in_a_child(work: Work, place: Path, before: int = 0) -> int:
    """Fork a process that does `work`, and is killed before its write of that number; its id.

    Pages are written when they are changed, so that a kill leaves half of a transaction in the file.
    """
    if child := os.fork():
        return child
    writes, code = itertools.count(1), 1

    def count(connection: object, cursor: object = None, statement: str = "COMMIT", *_: object) -> None:
        if not statement.startswith(("SELECT", "PRAGMA", "BEGIN")) and next(writes) == before:
            os.kill(os.getpid(), signal.SIGKILL)

    for event in ("before_cursor_execute", "commit"):
        sql.event.listen(sql.Engine, event, count)
    sql.event.listen(sql.Engine, "connect", lambda connection, _: connection.execute("pragma cache_size = 1"))
    try:
        work(place)
        code = 0
    finally:
        os._exit(code)


def killed(child: int) -> bool:
    """Wait for a process; whether it was killed, where it did not end well."""
    status = os.waitpid(child, 0)[1]
    assert status in (0, signal.SIGKILL), f"the work ended with status {status}"
    return status == signal.SIGKILL


@pytest.mark.whole
@pytest.mark.parametrize("verb", VERBS)
def test_a_killed_command_has_done_nothing_and_does_the_same_again(
    verb: str, kept: Callable[..., Path], tmp_path: Path
) -> None:
    begin, calm, place = (tmp_path / name for name in ("begin.db", "calm.db", "loans.db"))
    own = Ledger(shutil.copy(kept(*MEMORY), begin))
    own.outcomes(repaid(own.decide(people(0, 60)), 1))
    own.promote(own.learn()["version"])
    decided = own.decide(people(60, 60, 1))
    own.outcomes(repaid(decided, 2, share=0.5))
    given = VERBS[verb] if verb != "outcomes" else [repaid(decided, 3)]

    def work(place: Path) -> None:
        getattr(Ledger(place), verb)(*given)

    work(Path(shutil.copy(begin, calm)))
    for before in itertools.count(1):
        shutil.copy(begin, place)
        if not killed(in_a_child(work, place, before)):
            break
        assert content(place) == content(begin)
        work(place)
        assert content(place) == content(calm)
        assert not noticed(place)
    assert before > 2


@pytest.mark.whole
def test_a_killed_start_is_no_obstacle(tmp_path: Path) -> None:
    def work(place: Path) -> None:
        Ledger.start(place, *SMALL, *METHOD, f"outputs_dir={tmp_path}")

    assert killed(in_a_child(work, tmp_path / "loans.db", 20))
    work(tmp_path / "loans.db")
    assert (tmp_path / "loans.db").stat().st_mode & 0o777 == 0o600


@pytest.mark.whole
def test_processes_decide_on_everybody_once(ledger: Make, tmp_path: Path) -> None:
    ledger()

    def work(place: Path) -> None:
        for first in range(0, 100, 10):
            Ledger(place).decide(people(first, 10))

    children = [in_a_child(work, tmp_path / "loans.db") for _ in range(3)]
    assert [killed(child) for child in children] == [False] * 3
    assert not noticed(tmp_path / "loans.db")
    query = "select count(*), count(distinct batch) from applications"
    assert rows(tmp_path / "loans.db", query) == [(100, 10)]


def test_one_of_two_writers_waits_or_is_told(
    ledger: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairall.live.store.WAIT", 1)
    own = ledger()
    with closing(sqlite3.connect(tmp_path / "loans.db", isolation_level=None)) as other:
        other.execute("begin immediate")
        with refusing("another process has been writing for 1 seconds"):
            own.decide(people())
        assert own.status()["people"] == 0  # who reads does not wait
    assert own.decide(people())["new"].all()


@pytest.mark.parametrize("verb", ["forget", "withdraw", "learn"])
def test_what_another_process_does_while_one_learns_is_not_lost(
    verb: str, ledger: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, learn = ledger("live.held_out=0"), Process.learn
    own.outcomes(repaid(own.decide(people()), 1))

    def slow(self: Process, due: Any) -> None:
        monkeypatch.undo()
        getattr(Ledger(tmp_path / "loans.db"), verb)(*VERBS[verb])
        learn(self, due)

    monkeypatch.setattr(Process, "learn", slow)
    with refusing("has changed it meanwhile"):
        own.learn()
    assert own.learn()["people"] == (0 if verb == "learn" else 49)
