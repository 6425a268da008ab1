"""Make the runs of a plan, several at once, skipping finished ones; how long runs take.

Hydra's joblib launcher is not used: it is an optional extra, neither starts the longest runs first nor says
how much time is left, and measures no processor time of a run. Nor is ProcessPoolExecutor: a process that
dies ends all runs of its pool, and until Python 3.14 none can be asked to save its state.
"""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import ExitStack, closing
from pathlib import Path
from typing import IO, Any, cast

import pandas as pd
import yaml
from tqdm import tqdm

from fairall import FairAllError, is_finished
from reproduction.plan import Planned, added

GRACE = 20.0  # seconds for an interrupted run to save its state or log its result
LOOK_EVERY = 1.0  # seconds
COLUMNS = ["words", "overrides", "model", "dataset", "seeds", "wall_seconds", "cpu_seconds"]
REFERENCE_SEEDS = 10  # of run_seconds.yaml

Failures = list[tuple[Planned, str]]
Kind = tuple[str, str, int]
"""Method, data set and number of seeds of a run."""


class Durations:
    """Measured durations, kept in a file with a line per run, and expected ones.

    Args:
        path: CSV, created with the first measurement.
        overrides: those of the user's words that change every run; durations are compared within equal ones.
    """

    def __init__(self, path: Path, overrides: Sequence[str]) -> None:
        self._path = path
        self._overrides = " ".join(overrides)
        self._reference = yaml.safe_load(Path(__file__).with_name("run_seconds.yaml").read_text())

    def add(self, planned: Planned, wall: float, cpu: float) -> None:
        """Append one measurement to the file; begin the file anew where it has other columns."""
        line = [" ".join(planned.words), self._overrides, *_kind(planned), round(wall, 1), round(cpu, 1)]
        self._path.parent.mkdir(parents=True, exist_ok=True)
        goes_on = self._path.exists() and self._path.read_text().startswith(",".join(COLUMNS))
        one = pd.DataFrame([line], columns=COLUMNS)
        one.to_csv(self._path, mode="a" if goes_on else "w", header=not goes_on, index=False)

    def expected(self, planned: Iterable[Planned]) -> dict[str, float]:
        """Expected elapsed seconds by key: the mean of such runs, else the reference duration scaled.

        Such runs have the same method, data set and number of seeds. Reference durations are proportional to
        the number of seeds.
        """
        measured = read_durations(self._path)
        measured = measured[measured["overrides"] == self._overrides]
        seconds = measured.groupby(["model", "dataset", "seeds"])["wall_seconds"].agg(["mean", "size"])
        there = sum(self._reference_seconds(kind) * n for kind, n in seconds["size"].items())
        ratio = measured["wall_seconds"].sum() / there if there else 1.0
        kinds = {one.key: _kind(one) for one in planned}
        means = seconds["mean"].to_dict()
        return {key: means.get(kind, self._reference_seconds(kind) * ratio) for key, kind in kinds.items()}

    def _reference_seconds(self, kind: Any) -> float:
        """Reference duration; the longest one for an unknown method or data set."""
        model, dataset, seeds = kind
        longest = max(seconds for times in self._reference.values() for seconds in times.values())
        return self._reference.get(model, {}).get(dataset, longest) * seeds / REFERENCE_SEEDS


def _kind(planned: Planned) -> Kind:
    return planned.model, planned.dataset, planned.config.seeds


def read_durations(path: Path) -> pd.DataFrame:
    """All measurements of a file; none where it does not exist. Lines cut off by a crash are left out."""
    with path.open(newline="") if path.exists() else io.StringIO() as file:
        table = pd.DataFrame(csv.DictReader(file, restkey="more")).reindex(columns=[*COLUMNS, "more"])
    for column in ("seeds", "wall_seconds", "cpu_seconds"):
        table[column] = pd.to_numeric(table[column], errors="coerce")
    return table[table["more"].isna()].drop(columns="more").dropna()


class Making:
    """Runs made by `jobs` processes, each one after the other; adds their durations."""

    def __init__(self, jobs: int, durations: Durations) -> None:
        self._jobs, self._durations = jobs, durations
        self._started: dict[str, float] = {}
        self._idle: list[Worker] = []

    def run(self, to_do: Sequence[Planned]) -> Failures:
        """Make runs in their order; return those that failed, which do not stop the others."""
        failures, total = Failures(), len(to_do)
        with (
            ExitStack() as ending,
            ThreadPoolExecutor(self._jobs) as pool,
            tqdm(total=total, disable=None, leave=False) as bar,
        ):
            workers = [ending.enter_context(closing(Worker())) for _ in range(self._jobs)]
            self._idle = [*workers]
            pending = {pool.submit(self._make, one): one for one in to_do}
            try:
                while pending:
                    # A signal that reaches another thread is handled when this one wakes.
                    for future in wait(pending, LOOK_EVERY, FIRST_COMPLETED).done:
                        one = pending.pop(future)
                        if error := future.exception():
                            failures.append((one, str(error)))
                        outcome = f"FAILED: {error}" if error else future.result()
                        left = in_words(self.seconds_left([*pending.values()]))
                        done = f"{total - len(pending)} of {total}: {' '.join(one.words)}: {outcome}"
                        bar.write(f"{done}; about {left} left" if pending else done, sys.stderr)
                        bar.update()
            finally:
                pool.shutdown(wait=False, cancel_futures=True)
                for worker in workers if pending else ():
                    worker.stop()
                if wait([future for future in pending if not future.cancelled()], GRACE).not_done:
                    for worker in workers:
                        worker.stop(signal.SIGKILL)
        return failures

    def seconds_left(self, pending: Sequence[Planned]) -> float:
        """Expected seconds until the last of some runs ends."""
        now, expected = time.monotonic(), self._durations.expected(pending)
        left = [max(0.0, expected[one.key] - now + self._started.get(one.key, now)) for one in pending]
        return max(sum(left) / self._jobs, max(left, default=0.0))

    def _make(self, planned: Planned) -> str:
        """Make one run; return the time it took in words.

        Raises:
            FairAllError: with the last line that the run wrote to standard error, where it failed.
        """
        self._started[planned.key] = began = time.monotonic()
        worker = self._idle.pop()  # there is one for each thread
        try:
            cpu = worker.make([*planned.words, *(["threads=1"] if self._jobs > 1 else [])])
        finally:
            self._idle.append(worker)
        wall = time.monotonic() - began
        self._durations.add(planned, wall, cpu)
        return f"{in_words(wall)}, {cpu:.0f} s of CPU"


class Worker:
    """A process that makes runs one after the other; started by the first, and anew after one that failed."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115
        self._stopping = False

    def make(self, words: Sequence[str]) -> float:
        """Make one run; return the seconds of processor time it took.

        Raises:
            FairAllError: with the last line that the run wrote to standard error, where it failed.
        """
        if self._process is None or self._process.poll() is not None:
            self._process = subprocess.Popen(
                [sys.executable, Path(__file__).with_name("worker.py")],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                text=True,
                start_new_session=True,  # so that Ctrl-C reaches it once, through this process
            )
        if self._stopping:
            self.stop()
        orders, answers = cast(IO[str], self._process.stdin), cast(IO[str], self._process.stdout)
        self._errors.seek(0)  # the process writes from there too
        self._errors.truncate()
        print(json.dumps(words), file=orders, flush=True)
        if answer := answers.readline():
            return float(answer)
        self._process.communicate()
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        reason = lines[-1] if lines else f"ended with code {self._process.returncode}"
        raise FairAllError(reason.removeprefix("fairall: "))

    def close(self) -> None:
        """Let the process end, which it does when there is nothing more to read."""
        if self._process is not None:
            self._process.communicate()
        self._errors.close()

    def stop(self, how: int = signal.SIGTERM) -> None:
        """Ask the process to save the state of its run and end, also one that is about to be started.

        Not by SIGINT: a KeyboardInterrupt while a run imports its modules may be swallowed there.
        """
        self._stopping = True
        if self._process is not None:
            self._process.send_signal(how)


def make(
    planned: Sequence[Planned], overrides: Sequence[str], *, jobs: int | None = None, dry_run: bool = False
) -> Failures:
    """Make the runs of a plan; return those that failed or cannot be made, with the reason.

    Args:
        planned: of `plan.plan`.
        overrides: words added to every command.
        jobs: number of runs at once; None: one per core that this process may use.
        dry_run: list the runs with their expected durations, without making them.
    """
    durations = Durations(Path(planned[0].config.outputs_dir) / "reproduction.csv", added(overrides))
    to_do, failures = _to_do(planned)
    expected = durations.expected(to_do)
    sweeps = list(dict.fromkeys(one.sweep for one in planned))
    # Within a sweep the longest first, so that no core idles at the end. Runs of a method on the same data,
    # such as those of two initial policies, are apart: one would wait for the Phase I of the other.
    turn = pd.Series([*map(_kind, to_do)], [one.key for one in to_do], dtype=object)
    turn = turn.groupby(turn).cumcount()
    to_do.sort(key=lambda one: (sweeps.index(one.sweep), turn[one.key], -expected[one.key]))
    jobs = jobs or _cores()
    making = Making(jobs, durations)
    finished = len(planned) - len(to_do) - len(failures)
    needed = f"about {in_words(making.seconds_left(to_do))}, {jobs} at once"
    runs = "1 run" if len(planned) == 1 else f"{len(planned)} runs"
    then = needed if to_do else "nothing to wait for"
    print(f"{runs}: {finished} finished, {len(to_do)} to do; {then}", flush=True)
    if dry_run:
        for one in to_do:
            print(f"{in_words(expected[one.key]):>8}  {one.command}")
    elif to_do:
        failures += making.run(to_do)
    for one, reason in failures:
        print(f"reproduction: {one.command}: {reason}", file=sys.stderr)
    return failures


def _cores() -> int:
    """Number of cores that this process may use, or of all cores on systems that do not say."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _to_do(planned: Sequence[Planned]) -> tuple[list[Planned], Failures]:
    """Runs that are not finished, and runs that cannot be made with the reason."""
    to_do, impossible = [], Failures()
    people: dict[str, Any] = {}
    for one in planned:
        try:
            if not is_finished(one.composed, people):
                to_do.append(one)
        except FairAllError as error:
            impossible.append((one, str(error)))
    return to_do, impossible


def in_words(seconds: float) -> str:
    """A duration as text, rounded.

    Examples:
        >>> in_words(75.4), in_words(4000)
        ('75 s', '67 min')
    """
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60:02d} min"
