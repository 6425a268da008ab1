"""Runs are made several at once, and again where they are damaged; how long they take."""

import itertools
import json
import signal
import subprocess
import sys
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from fairall import FairAllError
from fairall.storage.run_folder import RunFolder
from reproduction.__main__ import main
from reproduction.plan import LEADERBOARD, SPLITS, plan
from reproduction.runs import Durations, Worker, in_words, make, read_durations
from tests.conftest import run_folder, typed

pytestmark = pytest.mark.whole

WORDS = """
    paper_harsh model=fairlog,unfairlog dataset=credit preset=quick tracking.enabled=false
""".split()


def test_goes_on_after_an_interruption_and_skips_what_is_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    command = [sys.executable, "-m", "reproduction", "runs", "--jobs", "1", *WORDS]
    started = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    record = tmp_path / "outputs" / "reproduction.csv"
    deadline = time.monotonic() + 600
    while not record.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    started.send_signal(signal.SIGTERM)
    _, said = started.communicate(timeout=60)
    assert started.returncode == 128 + signal.SIGTERM
    assert said.endswith("reproduction: interrupted; the same command goes on from what was saved\n")
    assert len(list(tmp_path.glob("outputs/runs/*/*/*/DONE"))) == 1

    assert main(["runs", "--dry-run", *WORDS]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("2 runs: 1 finished, 1 to do; about ")
    assert printed.count("python -m fairall model=") == 1
    assert main(["runs", *WORDS]) == 0
    assert len(list(tmp_path.glob("outputs/runs/*/*/*/DONE"))) == 2
    measured = read_durations(record)
    assert list(measured["dataset"]) == ["credit", "credit"]
    assert (measured[["wall_seconds", "cpu_seconds"]] > 0).all(axis=None)
    capsys.readouterr()
    assert main(["runs", *WORDS]) == 0
    assert capsys.readouterr().out.startswith("2 runs: 2 finished, 0 to do; nothing to wait for")


@pytest.mark.parametrize("command", ["runs", "leaderboard"])
def test_damaged_runs_are_made_again(
    command: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["model=unfairlog", "dataset=credit", "seeds=1", *WORDS[3:]]
    words += ["paper_harsh"] if command == "runs" else ["initial_policy=harsh"]
    (planned,) = plan(["paper_harsh"] if command == "runs" else LEADERBOARD, [w for w in words if "=" in w])
    assert typed(*planned.words, cwd=tmp_path).returncode == 0
    path = run_folder(tmp_path / "outputs") / "metrics.csv"
    whole = path.read_bytes()
    # As of a copy that ended early: DONE has one line left, and metrics.csv is not there.
    done = path.with_name("DONE")
    done.write_text(done.read_text().splitlines(keepends=True)[0])
    path.unlink()
    assert main([command, *words]) == 0
    printed = capsys.readouterr().out
    assert f"Warning: {path.parent.relative_to(tmp_path)}: " in printed
    assert "; the result is made again." in printed
    assert "1 run: 0 finished, 1 to do" in printed
    assert path.read_bytes() == whole
    assert RunFolder(path.parent).intact()


def test_runs_that_wait_for_the_same_phase1_are_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["model=fairall_I_II,fairlog", "dataset=credit,synthetic", "preset=quick"]
    planned = plan(SPLITS, words)
    make(planned, words, jobs=2, dry_run=True)
    listed = [
        line.split("python -m fairall ")[1].split()[:3] for line in capsys.readouterr().out.splitlines()[1:]
    ]
    # Each method and data set once, the longest first, before any comes again.
    for half, policy in ((listed[:4], "harsh"), (listed[4:], "lenient")):
        assert [run[2] for run in half] == [f"initial_policy={policy}"] * 4
        assert half[0][:2] == ["model=fairall_I_II", "dataset=synthetic"]
        assert len({tuple(run) for run in half}) == 4


def test_what_cannot_be_run_is_reported_and_does_not_end_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    # UnfairLog has no λ, FairLog none below 0.
    words = ["paper_harsh", "model=fairlog", "dataset=credit", "preset=quick", "model.lambda_=-1"]
    assert main(["runs", *words]) == 1
    streams = capsys.readouterr()
    assert "0 to do" in streams.out
    assert "dataset=credit initial_policy=harsh" in streams.err
    assert "model.lambda_" in streams.err
    # A child that ends badly: its last line is reported.
    (tmp_path / "outputs" / "runs" / "fairlog").mkdir(parents=True)
    (tmp_path / "outputs" / "runs" / "fairlog" / "credit").write_text("no folder")
    assert main(["runs", *words[:-1], "tracking.enabled=false"]) == 1
    assert "cannot write to" in capsys.readouterr().err


FAKE = """
import os, signal, sys
from pathlib import Path
word, = sys.argv[1:]
with Path("pids").open("a") as file:
    print(os.getpid(), file=file)
print("dropped" * 100_000)
if word == "fails":
    print("fairall: first", "fairall: last", sep="\\n", file=sys.stderr)
    sys.exit(3)
if word == "is killed":
    os.kill(os.getpid(), signal.SIGKILL)
assert word != "raises", sys.stdin.read()
"""


def test_a_process_makes_runs_until_one_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "fairall").mkdir()
    (tmp_path / "fairall" / "__init__.py").touch()
    (tmp_path / "fairall" / "__main__.py").write_text(FAKE)
    with closing(Worker()) as worker:
        assert 0 <= worker.make(["ends"]) < 60
        worker.make(["ends"])
        for word, reason in {
            "fails": "last",
            "is killed": "ended with code -9",
            "raises": "AssertionError",
        }.items():
            worker.make(["ends"])
            with pytest.raises(FairAllError, match=f"^{reason}$"):
                worker.make([word])
        worker.stop()
        with pytest.raises((FairAllError, BrokenPipeError)):
            worker.make(["ends"])
    pids = (tmp_path / "pids").read_text().split()
    assert [len([*same]) for _, same in itertools.groupby(pids)] == [4, 2, 2]


def test_a_run_after_others_is_as_in_a_process_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    last = ["model=fairlog", *WORDS[2:]]
    with closing(Worker()) as worker:
        for words in (["model=fairall_II", *WORDS[2:]], last):
            worker.make([*words, "outputs_dir=warm", "threads=1"])
    subprocess.run([sys.executable, "-m", "fairall", *last, "outputs_dir=fresh"], check=True)
    (fresh,) = tmp_path.glob("fresh/runs/*/*/*/metrics.csv")
    warm = tmp_path / "warm" / fresh.relative_to(tmp_path / "fresh")
    assert warm.read_bytes() == fresh.read_bytes()
    cpu = [
        json.loads((run / "tracking.json").read_text())["cpu_seconds"] for run in (warm.parent, fresh.parent)
    ]
    assert cpu[0] < 2 * cpu[1]


def test_expectations_come_from_measurement(tmp_path: Path) -> None:
    path = tmp_path / "reproduction.csv"
    # As versions before wrote it: of an unknown number of seeds.
    path.write_text("words,overrides,model,dataset,wall_seconds,cpu_seconds\nx,,fairlog,credit,1000,900\n")
    durations = Durations(path, ["seeds=10"])
    credit, meps = plan(["paper_harsh"], ["model=fairlog", "dataset=credit,meps", "seeds=10"])
    fifty = replace(credit, config=replace(credit.config, seeds=50))

    def expected(durations: Durations) -> list[float]:
        return [*durations.expected([credit, meps, fifty]).values()]

    once, *others = expected(durations)
    assert once < 1000
    assert others[1] == pytest.approx(5 * once)  # in proportion
    # Thrice as slow as elsewhere: so will be what has not been measured here.
    durations.add(credit, 3 * once, 1.0)
    assert expected(durations) == pytest.approx([3 * of for of in (once, *others)], rel=0.02)
    durations.add(credit, once, 1.0)
    durations.add(fifty, 4 * once, 1.0)
    assert expected(durations)[::2] == pytest.approx([2 * once, 4 * once], abs=0.1)
    # Of another schedule: they say nothing here.
    assert expected(Durations(path, [])) == pytest.approx([once, *others])
    unknown = replace(credit, config=replace(credit.config, model={"name": "my_method"}))
    assert durations.expected([unknown])[unknown.key] > 0
    # A crash may cut the last line.
    for kept in (-4, -12):
        path.write_text(path.read_text()[:kept])
        assert len(read_durations(path)) in (2, 3)
        assert min(expected(durations)) > 0


def test_durations_in_words() -> None:
    words = [in_words(seconds) for seconds in (0.2, 42, 89, 100, 3000, 6000)]
    assert words == ["1 s", "42 s", "89 s", "2 min", "50 min", "1 h 40 min"]
