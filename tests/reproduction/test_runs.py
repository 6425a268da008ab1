"""Runs are made several at once, and again where they are damaged; how long they take."""

import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from reproduction.__main__ import main
from reproduction.plan import SPLITS, plan
from reproduction.runs import Durations, make, read_durations

pytestmark = pytest.mark.whole

QUICK = ["dataset=credit", "preset=quick", "tracking.enabled=false"]
WORDS = ["paper_harsh", "model=fairlog,unfairlog", *QUICK]


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))


def test_goes_on_after_an_interruption_and_skips_what_is_finished(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = [sys.executable, "-m", "reproduction", "runs", "--jobs", "1", *WORDS]
    started = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    record = tmp_path / "outputs" / "reproduction.csv"
    deadline = time.monotonic() + 600
    while not len(read_durations(record)) and time.monotonic() < deadline:
        time.sleep(0.05)
    started.send_signal(signal.SIGTERM)
    _, said = started.communicate(timeout=60)
    assert started.returncode == 128 + signal.SIGTERM
    assert said.endswith("reproduction: interrupted; the same command goes on from what was saved\n")
    assert main(["runs", "--dry-run", *WORDS]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("Runs: 1 finished, 1 to do; about 0:0")
    assert printed.count("python -m fairall model=") == 1
    assert main(["runs", *WORDS]) == 0
    assert len(list(tmp_path.glob("outputs/runs/*/*/*/DONE"))) == 2
    measured = read_durations(record)
    assert list(measured["dataset"]) == ["credit", "credit"]
    assert (measured[["wall_seconds", "cpu_seconds"]] > 0).all(axis=None)


def test_runs_that_wait_for_the_same_phase1_are_apart(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["model=fairall_I_II,fairlog", "dataset=credit,synthetic", "preset=quick"]
    make(plan(SPLITS, words), words, jobs=2, dry_run=True)
    listed = [
        line.split("python -m fairall ")[1].split()[:3] for line in capsys.readouterr().out.splitlines()[1:]
    ]
    # Each method and data set once, the longest first, before any comes again.
    for half, policy in ((listed[:4], "harsh"), (listed[4:], "lenient")):
        assert [run[2] for run in half] == [f"initial_policy={policy}"] * 4
        assert half[0][:2] == ["model=fairall_I_II", "dataset=synthetic"]
        assert len({tuple(run) for run in half}) == 4


FAKE = """
import os, signal, sys
from pathlib import Path
with Path("pids").open("a") as file:
    print(os.getpid(), file=file)
print("dropped" * 100_000)
if {"model=fairlog", "dataset=compas"} < {*sys.argv}:
    print("fairall: first", "fairall: last", sep="\\n", file=sys.stderr)
    sys.exit(3)
if {"model=fairlog", "dataset=credit"} < {*sys.argv}:
    os.kill(os.getpid(), signal.SIGKILL)
assert not {"model=fairlog", "dataset=meps"} < {*sys.argv}, sys.stdin.read()
"""


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_process_makes_runs_until_one_fails_which_does_not_end_the_others(
    jobs: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "fairall").mkdir()
    (tmp_path / "fairall" / "__init__.py").touch()
    (tmp_path / "fairall" / "__main__.py").write_text(FAKE)
    planned = plan(["paper_harsh"], [WORDS[1], "preset=quick"])
    failures = make(planned, [], jobs=jobs)
    assert {one.dataset: reason for one, reason in failures} == {
        "compas": "last",
        "credit": "ended with code -9",
        "meps": "AssertionError",
    }
    assert [*read_durations(Path("outputs/reproduction.csv"))["model"]] == ["unfairlog"] * 3
    assert capsys.readouterr().err.count(" left\n") == 6
    pids = (tmp_path / "pids").read_text().split()
    assert 3 < len({*pids}) < 4 + jobs


def test_what_cannot_be_run_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["runs", "paper_harsh", "model=fairlog", *QUICK, "model.lambda_=-1"]) == 1
    streams = capsys.readouterr()
    assert "Runs: 0 finished, 0 to do" in streams.out
    assert "dataset=credit initial_policy=harsh" in streams.err
    assert "model.lambda_" in streams.err


def test_a_run_after_others_is_as_in_a_process_of_its_own(tmp_path: Path) -> None:
    words = ["model=fairall_II,fairlog", *QUICK, "outputs_dir=warm"]
    assert main(["runs", "--jobs", "1", "paper_harsh", *words]) == 0
    (planned,) = plan(["paper_harsh"], ["model=fairlog", *QUICK, "outputs_dir=fresh"])
    subprocess.run([sys.executable, "-m", "fairall", *planned.words], check=True)
    (fresh,) = tmp_path.glob("fresh/runs/*/*/*/metrics.csv")
    warm = tmp_path / "warm" / fresh.relative_to(tmp_path / "fresh")
    assert warm.read_bytes() == fresh.read_bytes()


def test_expectations_come_from_measurement(tmp_path: Path) -> None:
    path = tmp_path / "reproduction.csv"
    durations = Durations(path, ["seeds=10"])
    credit, meps = plan(["paper_harsh"], ["model=fairlog", "dataset=credit,meps", "seeds=10"])
    fifty = replace(credit, config=replace(credit.config, seeds=50))
    planned = [credit, meps, fifty]
    usual = durations.expected(planned)
    assert usual[2] == 5 * usual[0]
    # Thrice as slow as elsewhere; measurements of another schedule say nothing here.
    durations.add(credit, 3 * usual[0], 1.0)
    Durations(path, []).add(meps, 1.0, 1.0)
    assert durations.expected(planned) == pytest.approx([3 * one for one in usual])
    path.write_text(path.read_text()[:-12])  # cut by a crash
    assert len(read_durations(path)) == 1
