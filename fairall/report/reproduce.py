"""Make the runs that the paper needs, several at once, skipping finished ones."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import IO

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

from fairall.config.schema import ScalerRows
from fairall.data.dataset import Dataset
from fairall.data.prepared import PreparedData
from fairall.errors import FairAllError, count
from fairall.report.durations import Durations
from fairall.report.plan import Planned, added, plan, sweeps_of
from fairall.results.time_left import in_words

GRACE = 20.0  # seconds for an interrupted run to close its MLflow run
LOOK_EVERY = 1.0  # seconds


@dataclass
class Child:
    """A run in a process of its own.

    Attributes:
        planned: the run.
        process: of the run.
        errors: standard error of the process.
        started: seconds on the monotonic clock.
    """

    planned: Planned
    process: subprocess.Popen[bytes]
    errors: IO[bytes]
    started: float


class Reproduction:
    """Runs to be made, and running ones.

    Args:
        to_do: runs in order.
        jobs: number of runs at once.
        durations: measured ones; those of finished runs are added.
    """

    def __init__(self, to_do: Sequence[Planned], jobs: int, durations: Durations) -> None:
        self._to_do = list(to_do)
        self._jobs = jobs
        self._durations = durations
        self._running: list[Child] = []
        self._total = len(to_do)
        self._console = Console(stderr=True, highlight=False, soft_wrap=True)
        self.failed: list[tuple[Planned, str]] = []

    def run(self) -> None:
        """Make all runs; failures are reported and do not stop the others."""
        with self._bar() as show:
            try:
                while self._to_do or self._running:
                    while self._to_do and len(self._running) < self._jobs:
                        self._running.append(_start(self._to_do.pop(0)))
                    time.sleep(LOOK_EVERY)
                    for child in list(self._running):
                        usage = _ended(child)
                        if usage is not None:
                            self._running.remove(child)
                            self._account(child, usage)
                    show()
            finally:
                _stop(self._running)

    def seconds_left(self) -> float:
        """Expected seconds until the last run ends."""
        now = time.monotonic()
        waiting = [self._expected(planned) for planned in self._to_do]
        ending = [max(0.0, self._expected(child.planned) - (now - child.started)) for child in self._running]
        everything = waiting + ending
        return max(sum(everything) / self._jobs, max(everything, default=0.0))

    def _expected(self, planned: Planned) -> float:
        return self._durations.expected(planned.name("model"), planned.name("dataset"))

    def _account(self, child: Child, cpu_seconds: float) -> None:
        wall = time.monotonic() - child.started
        planned, code = child.planned, child.process.returncode
        if code == 0:
            names = planned.name("model"), planned.name("dataset")
            self._durations.add(planned.words, *names, wall, cpu_seconds)
            outcome = f"{in_words(wall)}, {cpu_seconds:.0f} s of CPU"
        else:
            reason = _last_line(child.errors) or f"ended with code {code}"
            self.failed.append((planned, reason))
            outcome = f"FAILED: {reason}"
        child.errors.close()
        done = self._total - len(self._to_do) - len(self._running)
        left = "" if done == self._total else f"; about {in_words(self.seconds_left())} left"
        self._console.print(
            f"{done} of {self._total}: {' '.join(planned.words)}: {outcome}{left}", markup=False
        )

    @contextmanager
    def _bar(self) -> Iterator[Callable[[], None]]:
        """A bar over all runs by expected time, on a terminal only; yields a function that updates it."""
        progress = Progress(
            TextColumn("{task.fields[runs]}"),
            BarColumn(bar_width=None),
            TaskProgressColumn(),
            TextColumn("{task.fields[left]}"),
            console=self._console,
            disable=not self._console.is_terminal,
        )
        began = time.monotonic()
        task = progress.add_task("", total=1.0, runs="", left="")

        def show() -> None:
            left, past = self.seconds_left(), time.monotonic() - began
            done = self._total - len(self._to_do) - len(self._running)
            progress.update(
                task,
                completed=past / (past + left) if past + left else 1.0,
                runs=f"{done} of {self._total} runs",
                left=f"about {in_words(left)} left",
            )

        with progress:
            yield show


@contextmanager
def _terminated_as_interrupted() -> Iterator[None]:
    """Treat SIGTERM as Ctrl-C, so that no run is left without its parent."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@_terminated_as_interrupted()
def reproduce(parts: Sequence[str], overrides: Sequence[str], *, jobs: int | None, dry_run: bool) -> bool:
    """Make the runs of some parts; return whether all of them are finished in the end.

    Args:
        parts: of `plan.PARTS`, or names of sweeps, or `all`.
        overrides: words added to every command.
        jobs: number of runs at once; None: one per core that this process may use.
        dry_run: list the runs with their expected durations, without making them.

    Raises:
        FairAllError: where there is no such part.
    """
    planned = plan(sweeps_of(parts), overrides)
    jobs = jobs or _cores()
    outputs = Path(planned[0].config["outputs_dir"])
    durations = Durations(outputs / "reproduction.csv", added(overrides))
    to_do, finished, impossible = _split(planned)
    to_do = _longest_first(to_do, durations)
    reproduction = Reproduction(to_do, jobs, durations)
    expected = in_words(reproduction.seconds_left())
    print(
        f"{count(len(planned), 'run')}: {finished} finished, {len(to_do)} to do; "
        + (f"about {expected}, {jobs} at once" if to_do else "nothing to wait for"),
        flush=True,
    )
    if dry_run:
        for one in to_do:
            print(f"{in_words(durations.expected(one.name('model'), one.name('dataset'))):>8}  {one.command}")
    else:
        reproduction.run()
    failed = impossible + reproduction.failed
    for one, reason in failed:
        print(f"fairall: {one.command}: {reason}", file=sys.stderr)
    return not failed


def _cores() -> int:
    """Number of cores that this process may use, or of all cores on systems that do not say."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _split(planned: Sequence[Planned]) -> tuple[list[Planned], int, list[tuple[Planned, str]]]:
    """Runs to do, number of finished ones, and runs that cannot be made with the reason."""
    from fairall.experiment import job, prepare

    met: dict[str, PreparedData | FairAllError] = {}

    def people(source: Dataset, scaler: ScalerRows) -> PreparedData:
        key = repr((source.config, scaler))
        if key not in met:
            try:
                met[key] = prepare(source, scaler)
            except FairAllError as error:
                # Kept: a failing download should not be tried again for every run.
                met[key] = error
        found = met[key]
        if isinstance(found, FairAllError):
            raise found
        return found

    to_do, finished = [], 0
    impossible: list[tuple[Planned, str]] = []
    for one in planned:
        try:
            requested = job(one.composed, people)
        except FairAllError as error:
            impossible.append((one, str(error)))
            continue
        if requested.folder.done and not requested.config.force:
            finished += 1
        else:
            to_do.append(one)
    return to_do, finished, impossible


def _longest_first(to_do: Sequence[Planned], durations: Durations) -> list[Planned]:
    """Sweeps in order, and within each the longest runs first, so that no core idles at the end."""
    sweeps = list(dict.fromkeys(one.sweep for one in to_do))
    return sorted(
        to_do,
        key=lambda one: (
            sweeps.index(one.sweep),
            -durations.expected(one.name("model"), one.name("dataset")),
        ),
    )


def _start(planned: Planned) -> Child:
    errors = tempfile.TemporaryFile()  # noqa: SIM115 - read when the child has ended
    command = [sys.executable, "-m", "fairall", *planned.words]
    # In a session of its own, so that Ctrl-C reaches it once, through this process.
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors, start_new_session=True
    )
    return Child(planned, process, errors, time.monotonic())


def _ended(child: Child) -> float | None:
    """CPU seconds of a child that has ended; None while it runs."""
    # process.poll() would not give the CPU time of this child alone.
    pid, status, usage = os.wait4(child.process.pid, os.WNOHANG)
    if pid == 0:
        return None
    child.process.returncode = os.waitstatus_to_exitcode(status)
    return usage.ru_utime + usage.ru_stime


def _stop(children: Sequence[Child]) -> None:
    """Interrupt running children, and kill those that have not ended after `GRACE`."""
    for child in children:
        child.process.send_signal(signal.SIGINT)
    deadline = time.monotonic() + GRACE
    for child in children:
        try:
            child.process.wait(max(0.1, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            child.process.kill()
            child.process.wait()
        child.errors.close()


def _last_line(errors: IO[bytes]) -> str:
    errors.seek(0)
    lines = errors.read().decode(errors="replace").strip().splitlines()
    return lines[-1].removeprefix("fairall: ") if lines else ""
