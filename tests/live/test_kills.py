"""Processes that are killed at any instant, and two that write at once."""

import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from fairall import FairAllError, Ledger
from fairall.live import store
from tests.live.test_ledger import METHOD, content, people, repaid

KILLS = int(os.environ.get("FAIRALL_KILLS", "12"))
# Does a word over and over, so that kills hit it at any instant and not its imports.
WORK = """
import sys, pandas as pd
from fairall import Ledger
from tests.live.test_ledger import people, repaid
own = Ledger(sys.argv[1])
print("ready", flush=True)
for step in range(int(sys.argv[2]), 40):
    decided = own.decide(people(10 * step, 10, step))
    own.outcomes(repaid(decided, step))
    made = own.learn()["version"]
    if made:
        own.promote(made)
    own.forget(decided["id"].iloc[0]) if step % 4 == 0 and decided["new"].all() else None
"""


def killed(place: Path, step: int, seconds: float) -> None:
    """Work from a step on, and be killed after some time."""
    process = subprocess.Popen(
        [sys.executable, "-c", WORK, str(place), str(step)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.readline() == b"ready\n", process.stderr.read().decode()
    time.sleep(seconds)
    process.send_signal(signal.SIGKILL)
    process.communicate()


@pytest.mark.whole
def test_kills_lose_nothing(kept: Callable[..., Path], tmp_path: Path) -> None:
    words = [*METHOD, "live.held_out=0"]
    place = Path(shutil.copy(kept(*words), tmp_path / "loans.db"))
    chance = random.Random(0)
    for _ in range(KILLS):
        with sqlite3.connect(place) as connection:
            done = connection.execute("select count(*) from batches").fetchone()[0]
        if done >= 40:
            place = Path(shutil.copy(kept(*words), tmp_path / "loans.db"))
            done = 0
        killed(place, max(0, done - 1), chance.uniform(0.0, 1.5))
        with sqlite3.connect(place) as connection:
            assert connection.execute("pragma integrity_check").fetchone() == ("ok",)
            assert not connection.execute("pragma foreign_key_check").fetchall()
            sizes = connection.execute("select count(*) from applications group by batch").fetchall()
            assert {n for (n,) in sizes} <= {10}
            versions = {n for (n,) in connection.execute("select id from versions where id > 1")}
            assert versions == {n for (n,) in connection.execute("select distinct version from learnt")}
        own = Ledger(place)
        for version in versions:
            own.promote(version)  # each can be read whole
        if versions:
            own.learn(dry_run=True)


def test_a_decision_that_is_killed_before_it_is_kept_is_the_same_again(
    kept: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = (Ledger(shutil.copy(kept(*METHOD), tmp_path / name)) for name in ("a.db", "b.db"))
    one.decide(people())
    with monkeypatch.context() as patched:
        patched.setattr(Ledger, "_applications", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            other.decide(people())
    other.decide(people())
    assert content(one) == content(other)


def test_one_of_two_writers_waits_or_is_told(
    kept: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = shutil.copy(kept(*METHOD), tmp_path / "loans.db")
    monkeypatch.setattr(store, "WAIT", 1)
    own, other = Ledger(place), Ledger(place)
    with (
        own.store.writing(),
        pytest.raises(FairAllError, match="another process has been writing for 1 seconds"),
    ):
        other.decide(people())
    decided = other.decide(people())
    with own.store.writing():
        assert not Ledger(place).settings.horizon  # who reads does not wait
    own.outcomes(repaid(decided, 1))


def test_who_has_learnt_meanwhile_is_told(
    kept: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = shutil.copy(kept(*METHOD), tmp_path / "loans.db")
    own = Ledger(place)
    own.outcomes(repaid(own.decide(people()), 1))
    changes = Ledger._changes

    def slow(self: Ledger, *given: object) -> object:
        monkeypatch.setattr(Ledger, "_changes", changes)
        Ledger(place).learn()
        return changes(self, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(Ledger, "_changes", slow)
    with pytest.raises(FairAllError, match="another process has changed it meanwhile"):
        own.learn()


@pytest.mark.whole
def test_two_processes_decide_on_everybody_once(kept: Callable[..., Path], tmp_path: Path) -> None:
    place = Path(shutil.copy(kept(*METHOD), tmp_path / "loans.db"))
    code = WORK.split("    decided")[0].replace("range(int(sys.argv[2]), 40)", "range(40)")
    code += "    own.decide(people(10 * step, 10))\n"
    both = [subprocess.Popen([sys.executable, "-c", code, str(place), "0"]) for _ in range(2)]
    assert [process.wait() for process in both] == [0, 0]
    with sqlite3.connect(place) as connection:
        assert connection.execute("select count(*), count(distinct person) from applications").fetchone() == (
            400,
            400,
        )
