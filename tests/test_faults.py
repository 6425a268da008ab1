"""Runs that are killed, stopped, crowded and starved, as users see them; the large suite is `-m slow`."""

import contextlib
import fcntl
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
from dataclasses import replace
from pathlib import Path
from typing import Any

import mlflow
import pytest

from fairall.measuring import measure
from fairall.results.runs import load_results
from fairall.storage.checkpoint import Checkpoint
from fairall.storage.files import holder
from fairall.storage.run_folder import RunFolder
from fairall.storage.stored import read_stored
from tests.conftest import Put, files_of, logged_runs, refused, run_folder, succeeded, typed

SMALL = """
    preset=quick seeds=3 schedule.phase1_epochs=30 schedule.warm_up_epochs=10 schedule.time_steps=20
    evaluation.window=[10,20] checkpoint_seconds=0
""".split()
TINY = ["preset=quick", "schedule.phase1_epochs=1", "schedule.warm_up_epochs=2", "checkpoint_seconds=0"]
UNTRACKED = [*TINY, "tracking.enabled=false"]
METHODS = ["fairall_I_II", "fairall_II", "fairlab_I_II", "fairlog", "unfairlog"]


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "fairall", *SMALL, *words]


def result(outputs: Path) -> dict[str, bytes]:
    return {name: (run_folder(outputs) / name).read_bytes() for name in ("metrics.csv", "summary.json")}


LONG = ["schedule.time_steps=100000", "evaluation.window=[10,40]"]
SAVED = "outputs/runs/*/*/*/checkpoint.pt"


def at_work(words: list[str], cwd: Path, saved: str = SAVED) -> tuple[subprocess.Popen[str], int]:
    """A command on a terminal of its own that has kept its first state, and the terminal."""
    terminal, its = pty.openpty()
    # reproduction/ is not installed.
    process = subprocess.Popen(
        [sys.executable, "-m", *words],
        cwd=cwd,
        stdin=its,
        stdout=its,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])},
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )
    os.close(its)
    # Progress is shown on standard error alone: a command may be silent on its terminal.
    while not [*cwd.glob(saved)]:
        assert process.poll() is None, process.communicate()
        if select.select([terminal], [], [], 0.01)[0]:
            with contextlib.suppress(OSError):  # it ends
                os.read(terminal, 1 << 16)
    return process, terminal


def rest(process: subprocess.Popen[str], terminal: int) -> tuple[str, str]:
    """What the terminal still shows, and the errors, when the command has ended."""
    shown = b""
    with contextlib.suppress(OSError):  # the terminal of a process that has ended
        while part := os.read(terminal, 1 << 16):
            shown += part
    os.close(terminal)
    _, said = process.communicate(timeout=60)
    return shown.decode(), said


@pytest.mark.whole
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGHUP, 129)]
)
def test_asked_to_stop_it_keeps_its_state_and_says_so(
    number: signal.Signals, code: int, tmp_path: Path, empty_store: Put
) -> None:
    client = mlflow.MlflowClient(empty_store(tmp_path / "outputs"))
    process, terminal = at_work(["fairall", *SMALL, "model=fairlog", *LONG], tmp_path)
    process.send_signal(number)
    _, said = rest(process, terminal)
    assert process.returncode == code
    assert said == "fairall: interrupted; the same command goes on from what was saved\n"
    assert client.get_experiment_by_name("fairall") is None  # a result is logged when it is there


@pytest.mark.whole
@pytest.mark.parametrize(
    "words",
    [
        ["fairall", *SMALL, "model=fairlog"],
        ["reproduction", "runs", "paper_harsh", "model=fairlog", "dataset=credit", "--jobs", "1", *SMALL],
    ],
    ids=["fairall", "reproduce"],
)
def test_a_closed_terminal_stops_a_run_and_those_it_has_started(words: list[str], tmp_path: Path) -> None:
    process, terminal = at_work([*words, *LONG, "tracking.enabled=false"], tmp_path)
    process.send_signal(signal.SIGSTOP)  # so that it writes to the terminal after it is closed
    os.close(terminal)
    process.send_signal(signal.SIGCONT)
    process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGHUP
    (checkpoint,) = tmp_path.glob(SAVED)
    assert Checkpoint(checkpoint, checkpoint.parent.name, seconds=0).load() is not None
    assert not holder(checkpoint.parent.with_suffix(".lock"))


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where FairAll has been run, with all that it leaves."""
    folder = tmp_path_factory.mktemp("finished")
    assert typed(*UNTRACKED, cwd=folder).returncode == 0
    return folder


DAMAGES = {
    "truncated": lambda whole: whole[: len(whole) // 2],
    "empty": lambda whole: b"",
    "flipped": lambda whole: (
        whole[: len(whole) // 2] + bytes([whole[len(whole) // 2] ^ 4]) + whole[len(whole) // 2 + 1 :]
    ),
}


NAMES = ["DONE", "config.yaml", "metrics.csv", "summary.json", "figures/learning.png"]
NAMES.append("policy/weights.safetensors")


def damage_file(path: Path, damage: str) -> None:
    if damage == "missing":
        path.unlink()
    else:
        path.write_bytes(DAMAGES[damage](path.read_bytes()))


@pytest.mark.whole
def test_a_damaged_result_is_made_again_from_the_checkpoint(finished: Path, tmp_path: Path) -> None:
    shutil.copytree(finished / "outputs", tmp_path / "outputs")
    folder = run_folder(tmp_path / "outputs")
    for name, damage in zip(
        NAMES, ["empty", "flipped", "missing", "truncated", "flipped", "empty"], strict=True
    ):
        whole = (folder / name).read_bytes()
        damage_file(folder / name, damage)
        ended = succeeded(*UNTRACKED, cwd=tmp_path)
        assert re.search(r"Warning: .* is damaged", ended.stdout)
        assert result(tmp_path / "outputs") == result(finished / "outputs")
        assert (folder / name).read_bytes() == whole
    assert "Already done" in typed(*UNTRACKED, cwd=tmp_path).stdout


@pytest.mark.whole
def test_a_run_whose_folder_was_deleted_meanwhile_is_not_finished(
    tmp_path: Path, empty_store: Put, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = mlflow.MlflowClient(empty_store(tmp_path / "outputs"))
    original = measure.measure

    def deleted_before(*arguments: Any) -> Any:
        shutil.rmtree(tmp_path / "outputs" / "runs")
        return original(*arguments)

    words = [*TINY, "model=unfairlog"]
    monkeypatch.setattr(measure, "measure", deleted_before)
    ended = typed(*words, cwd=tmp_path)
    monkeypatch.undo()
    assert (ended.returncode, ended.stderr.count("\n")) == (1, 1)
    assert "is missing: it was deleted during the run" in ended.stderr
    assert not [*(tmp_path / "outputs").rglob("DONE")]
    ended = typed(*words, cwd=tmp_path)
    folder = run_folder(tmp_path / "outputs")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert RunFolder(folder).intact()
    found = logged_runs(client)
    assert {run.info.status for run in found} == {"FINISHED"}
    assert len(found) == 1


def test_a_folder_of_another_run_is_left_alone(finished: Path, tmp_path: Path) -> None:
    shutil.copytree(finished / "outputs", tmp_path / "outputs")
    folder = run_folder(tmp_path / "outputs")
    config = read_stored(folder / "config.yaml")
    RunFolder(folder).write_config(replace(config, model=config.model | {"alpha": 4.0}))
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    for force in ("false", "true"):
        assert "holds another run; move it away" in refused(*UNTRACKED, f"force={force}", cwd=tmp_path)
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


@pytest.mark.whole
def test_a_result_stays_until_the_one_made_anew_is_complete(tmp_path: Path) -> None:
    words = [*SMALL, "model=fairlog", "schedule.time_steps=200", "tracking.enabled=false"]
    succeeded(*words, cwd=tmp_path)
    outputs = tmp_path / "outputs"
    folder = run_folder(outputs)
    before = files_of(folder)
    for stop in (signal.SIGKILL, signal.SIGTERM):
        anew = "outputs/runs/*/*/*/anew/*/checkpoint.pt"
        process, terminal = at_work(["fairall", *words, "force=true"], tmp_path, anew)
        assert [one.path for one in load_results(outputs / "runs").results] == [folder]
        process.send_signal(stop)
        shown, _ = rest(process, terminal)
        assert ("The result from before is unchanged" in shown) == (stop == signal.SIGTERM)
        assert files_of(folder).items() >= before.items()
        plain = succeeded(*words, cwd=tmp_path)
        assert "Already done" in plain.stdout
        assert files_of(folder) == before
    (folder / "policy" / "of_mine.txt").write_text("from before")
    succeeded(*words, "force=true", cwd=tmp_path)
    assert files_of(folder).keys() == {*before, "policy/of_mine.txt"}  # which no run has written
    assert RunFolder(folder).damage() is None
    assert result(outputs) == {name: before[name] for name in ("metrics.csv", "summary.json")}


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory, empty_store: Put) -> bytes:
    """An MLflow database with a run in it."""
    folder = tmp_path_factory.mktemp("recorded")
    empty_store(folder / "outputs")
    assert typed(*TINY, "model=unfairlog", cwd=folder).returncode == 0
    return (folder / "outputs" / "mlflow.db").read_bytes()


@pytest.mark.whole
@pytest.mark.parametrize("damage", [*DAMAGES, "text", "of something else"])
def test_a_damaged_mlflow_database_does_not_end_a_run(
    damage: str, database: bytes, tmp_path: Path, empty_store: Put
) -> None:
    (tmp_path / "outputs").mkdir()
    path = tmp_path / "outputs" / "mlflow.db"
    if damage == "of something else":
        with sqlite3.connect(path) as connection:
            connection.execute("CREATE TABLE experiments (words TEXT)")
    else:
        path.write_bytes(b"not a database" if damage == "text" else DAMAGES[damage](database))
    ended = succeeded(*TINY, "model=fairlog", cwd=tmp_path)
    assert damage in ("empty", "flipped") or "Warning: tracking.uri: cannot use sqlite:" in ended.stdout
    assert (run_folder(tmp_path / "outputs") / "DONE").exists()
    if damage == "text":
        # Elsewhere, since this process has met the damaged one.
        elsewhere = tmp_path / "elsewhere"
        shutil.copytree(tmp_path / "outputs" / "runs", elsewhere / "outputs" / "runs")
        empty_store(elsewhere / "outputs")
        told = typed("mlflow", "sync", cwd=elsewhere)
        assert (told.returncode, told.stdout) == (0, "Logged 1 run to MLflow; 0 were already there.\n")


@pytest.mark.whole
def test_a_full_disk_is_one_line_and_nothing_is_half_written(tmp_path: Path) -> None:
    def small_files() -> None:
        # As a full disk, but for this process alone: no file may grow beyond that.
        resource.setrlimit(resource.RLIMIT_FSIZE, (4000, 4000))

    ended = subprocess.run(
        command("tracking.enabled=false", "model=fairlog"),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        preexec_fn=small_files,
    )
    assert (ended.returncode, ended.stderr.count("\n")) == (1, 1), ended.stderr
    assert "metrics.csv" in ended.stderr
    assert "checkpoint.pt could not be saved: File too large" in ended.stdout
    left = {path.name for path in run_folder(tmp_path / "outputs").iterdir()}
    assert left <= {"config.yaml", "tracking.json"}
    succeeded(*SMALL, "tracking.enabled=false", "model=fairlog", cwd=tmp_path)


@pytest.mark.whole
def test_who_wants_what_another_is_at_work_on_is_told_and_waits(finished: Path, tmp_path: Path) -> None:
    outputs = shutil.copytree(finished / "outputs", tmp_path / "outputs")
    with RunFolder(run_folder(outputs)).locked():
        process = subprocess.Popen(
            [sys.executable, "-u", "-m", "fairall", *UNTRACKED],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        waiting = next(line for line in process.stdout if line.startswith("Waiting for "))
        owner = re.match(
            r"Waiting for \S+:(\d+), which is at work on outputs/runs/fairall_I_II/credit/", waiting
        )
        assert owner is not None
        assert int(owner[1]) == os.getpid()
        assert process.poll() is None
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert said.startswith("Already done")


@pytest.mark.slow
def test_eight_at_once_in_an_empty_folder_all_finish(tmp_path: Path) -> None:
    costs = [0.3, 0.4, 0.5, 0.6]
    eight = [
        subprocess.Popen(
            command(f"cost.value={cost}", f"model={model}"), cwd=tmp_path, stderr=subprocess.PIPE
        )
        for cost in costs
        for model in ("fairall_I_II", "fairlog")
    ]
    said = [process.communicate(timeout=600)[1] for process in eight]
    assert [process.returncode for process in eight] == [0] * 8, said
    assert len(list(tmp_path.glob("outputs/runs/*/*/*/DONE"))) == 8
    assert len(list(tmp_path.glob("outputs/cache/phase1/*.pt"))) == 1
    client = mlflow.MlflowClient(f"sqlite:///{tmp_path / 'outputs' / 'mlflow.db'}")
    found = logged_runs(client)
    assert len(found) == 8
    assert {run.info.status for run in found} == {"FINISHED"}
    for summary in tmp_path.glob("outputs/runs/*/*/*/summary.json"):
        assert len(json.loads(summary.read_text())["per_seed"]) == 3
