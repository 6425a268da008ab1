"""Runs that are damaged, crowded and starved, or lose their terminal or their folder, as users see them.

Runs that are killed and stopped are in test_kills.py.
"""

import contextlib
import fcntl
import itertools
import json
import os
import pty
import re
import resource
import select
import shutil
import signal
import sqlite3
import subprocess
import sys
import termios
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import mlflow
import pytest

from benchmarks.kills import ended, forked
from fairall.measuring import measure
from fairall.results.runs import load_results
from fairall.runtime.signals import Stopped
from fairall.storage.checkpoint import Checkpoint
from fairall.storage.files import holder
from fairall.storage.run_folder import RunFolder
from fairall.storage.stored import read_stored
from fairall.tracking.store import create_database
from tests.conftest import CHECKOUT, Ended, Put, files_of, logged_runs, refused, run_folder, succeeded, typed

pytestmark = pytest.mark.whole

TINY = "preset=quick schedule.phase1_epochs=1 schedule.warm_up_epochs=2 checkpoint_seconds=0".split()
UNTRACKED = [*TINY, "tracking.enabled=false"]
LONG = [*UNTRACKED, "model=fairlog", "schedule.time_steps=100000", "evaluation.window=[10,40]"]
DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "truncated": lambda whole: whole[: len(whole) // 2],
    "empty": lambda whole: b"",
    "flipped": lambda whole: bytes(byte ^ 4 * (at == len(whole) // 2) for at, byte in enumerate(whole)),
    "text": lambda whole: b"not a database",
}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where FairAll has been run, with all that it leaves."""
    folder = tmp_path_factory.mktemp("finished")
    succeeded(*UNTRACKED, cwd=folder)
    return folder


@pytest.fixture
def folder(finished: Path, tmp_path: Path) -> Path:
    """The folder of the run in a copy of `finished`."""
    return run_folder(shutil.copytree(finished / "outputs", tmp_path / "outputs"))


@pytest.mark.parametrize(
    "words",
    [
        ["fairall"],
        "reproduction runs paper_harsh model=fairlog dataset=credit --jobs 1".split(),
    ],
    ids=["fairall", "reproduce"],
)
def test_a_closed_terminal_stops_a_run_and_those_it_has_started(words: list[str], tmp_path: Path) -> None:
    terminal, its = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", *words, *LONG],
        cwd=tmp_path,
        stdin=its,
        stdout=its,
        stderr=subprocess.PIPE,
        start_new_session=True,
        env=os.environ | {"PYTHONPATH": str(CHECKOUT)},  # reproduction/ is not installed
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )
    os.close(its)
    # Progress is shown on standard error alone: a command may be silent on its terminal.
    while not (saved := [*tmp_path.glob("outputs/runs/*/*/*/checkpoint.pt")]):
        assert process.poll() is None, process.communicate()
        if select.select([terminal], [], [], 0.01)[0]:
            with contextlib.suppress(OSError):  # it ends
                os.read(terminal, 1 << 16)
    process.send_signal(signal.SIGSTOP)  # so that it writes to the terminal after it is closed
    os.close(terminal)
    process.send_signal(signal.SIGCONT)
    process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGHUP
    assert Checkpoint(saved[0], saved[0].parent.name, seconds=0).load() is not None
    assert not holder(saved[0].parent.with_suffix(".lock"))


def test_a_damaged_result_is_made_again_from_the_checkpoint(folder: Path, tmp_path: Path) -> None:
    before = files_of(folder)
    names = "DONE config.yaml metrics.csv summary.json figures/learning.png policy/weights.safetensors"
    for name, damaged in zip(names.split(), itertools.cycle(DAMAGES.values())):
        (folder / name).write_bytes(damaged(before[name]))
        assert re.search(r"Warning: .* is damaged", succeeded(*UNTRACKED, cwd=tmp_path).stdout)
        now = files_of(folder)
        assert all(now[same] == before[same] for same in (name, "metrics.csv", "summary.json")), name
    assert "Already done" in succeeded(*UNTRACKED, cwd=tmp_path).stdout


def test_a_run_whose_folder_was_deleted_meanwhile_is_not_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = measure.measure

    def deleted_before(*arguments: Any) -> Any:
        shutil.rmtree(tmp_path / "outputs" / "runs")
        return original(*arguments)

    with monkeypatch.context() as patched:
        patched.setattr(measure, "measure", deleted_before)
        assert "is missing: it was deleted during the run" in refused(*UNTRACKED, cwd=tmp_path)
    assert not [*tmp_path.rglob("DONE")]
    succeeded(*UNTRACKED, cwd=tmp_path)
    assert RunFolder(run_folder(tmp_path / "outputs")).intact()


def test_a_folder_of_another_run_is_left_alone(folder: Path, tmp_path: Path) -> None:
    config = read_stored(folder / "config.yaml")
    RunFolder(folder).write_config(replace(config, model=config.model | {"alpha": 4.0}))
    before = files_of(folder)
    for force in ("false", "true"):
        assert "holds another run; move it away" in refused(*UNTRACKED, f"force={force}", cwd=tmp_path)
    assert files_of(folder) == before


def test_a_result_stays_until_the_one_made_anew_is_complete(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "policy" / "of_mine.txt").write_text("from before")
    before = files_of(folder)

    def stopped(*_: Any) -> None:
        assert [one.path for one in load_results(tmp_path / "outputs" / "runs").results] == [folder]
        raise Stopped(signal.SIGTERM)

    with monkeypatch.context() as patched:
        patched.setattr(measure, "measure", stopped)
        done = typed(*UNTRACKED, "force=true", cwd=tmp_path)
    assert (done.returncode, "The result from before is unchanged" in done.stdout) == (143, True)
    assert files_of(folder).items() >= before.items()
    assert "Already done" in succeeded(*UNTRACKED, cwd=tmp_path).stdout
    assert files_of(folder) == before
    succeeded(*UNTRACKED, "force=true", cwd=tmp_path)
    now = files_of(folder)
    assert now.keys() == before.keys()
    assert RunFolder(folder).damage() is None
    assert all(now[name] == before[name] for name in ("metrics.csv", "summary.json"))


@pytest.mark.parametrize("damage", [*DAMAGES, "of something else"])
def test_a_damaged_mlflow_database_does_not_end_a_run(damage: str, tmp_path: Path, empty_store: Put) -> None:
    path = tmp_path / "outputs" / "mlflow.db"
    empty_store(path.parent)
    if damage == "of something else":
        path.unlink()
        with contextlib.closing(sqlite3.connect(path)) as connection:
            connection.execute("CREATE TABLE experiments (words TEXT)")
    else:
        path.write_bytes(DAMAGES[damage](path.read_bytes()))
    said = succeeded(*TINY, "model=fairlog", cwd=tmp_path).stdout
    assert damage in ("empty", "flipped") or "Warning: tracking.uri: cannot use sqlite:" in said
    assert (run_folder(tmp_path / "outputs") / "DONE").exists()


def test_a_full_disk_is_one_line_and_nothing_is_half_written(tmp_path: Path) -> None:
    words = [*UNTRACKED, "model=fairlog", "seeds=3", "schedule.time_steps=20"]
    done = subprocess.run(
        [sys.executable, "-m", "fairall", *words],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        # As a full disk, but for this process alone: no file may grow beyond that.
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4000, 4000)),
    )
    assert (done.returncode, done.stderr.count("\n"), "metrics.csv" in done.stderr) == (1, 1, True)
    assert "checkpoint.pt could not be saved: File too large" in done.stdout
    left = {path.name for path in run_folder(tmp_path / "outputs").iterdir()}
    assert left <= {"config.yaml", "tracking.json"}
    succeeded(*words, cwd=tmp_path)


def test_who_wants_what_another_is_at_work_on_is_told_and_waits(folder: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-u", "-m", "fairall", *UNTRACKED]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    with RunFolder(folder).locked():
        assert process.stdout is not None
        waiting = next(line for line in process.stdout if line.startswith("Waiting for "))
        told = rf"Waiting for \S+:{os.getpid()}, which is at work on outputs/runs/fairall_I_II/credit/"
        assert re.match(told, waiting)
        assert process.poll() is None
    said, _ = process.communicate(timeout=60)
    assert (process.returncode, said.startswith("Already done")) == (0, True)


def test_several_at_once_in_an_empty_folder_all_finish(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairall.tracking.store.create_database", create_database)  # not a copy of one
    words = ["cost.value=0.3", "cost.value=0.4", "model=fairlog", "model=unfairlog"]

    def work(word: str) -> Ended:
        return succeeded(*TINY, word, cwd=tmp_path)

    assert [*map(ended, [forked(partial(work, word)) for word in words])] == [0] * len(words)
    summaries = [*map(Path.read_text, tmp_path.glob("outputs/runs/*/*/*/summary.json"))]
    assert [len(json.loads(text)["per_seed"]) for text in summaries] == [2] * len(words)
    assert len([*tmp_path.glob("outputs/cache/phase1/*.pt")]) == 1
    found = logged_runs(mlflow.MlflowClient(f"sqlite:///{tmp_path / 'outputs' / 'mlflow.db'}"))
    assert [run.info.status for run in found] == ["FINISHED"] * len(words)
