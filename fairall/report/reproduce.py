"""Make the runs that the paper needs, several at once, skipping finished ones.

Hydra's joblib launcher is not used: it is an optional extra, and neither starts the longest runs first nor says
how much time is left, nor ends its processes together with the command.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
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
from fairall.runtime import signals

GRACE = 20.0  # seconds for an interrupted run to close its MLflow run
LOOK_EVERY = 1.0  # seconds

Failures = list[tuple[Planned, str]]


class Child:
    """A run in a process of its own, started at once."""

    def __init__(self, planned: Planned) -> None:
        self.planned = planned
        self.started = time.monotonic()
        self.errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - read when the process has ended
        self.process = subprocess.Popen(
            [sys.executable, "-m", "fairall", *planned.words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=self.errors,
            start_new_session=True,  # so that Ctrl-C reaches it once, through this process
        )

    def cpu_seconds(self) -> float | None:
        """CPU time of the process when it has ended; None while it runs."""
        # Popen.poll would not give the CPU time of this child alone.
        pid, status, usage = os.wait4(self.process.pid, os.WNOHANG)
        if pid == 0:
            return None
        self.process.returncode = os.waitstatus_to_exitcode(status)
        return usage.ru_utime + usage.ru_stime

    def reason(self) -> str:
        """Why it failed: the last line of its standard error."""
        self.errors.seek(0)
        lines = self.errors.read().decode(errors="replace").strip().splitlines()
        return lines[-1].removeprefix("fairall: ") if lines else f"ended with code {self.process.returncode}"


@dataclass
class Reproduction:
    """Runs to be made, and running ones.

    Attributes:
        waiting: runs in order.
        jobs: number of runs at once.
        durations: expected ones, to which those of finished runs are added.
        running: started runs.
    """

    waiting: list[Planned]
    jobs: int
    durations: Durations
    running: list[Child] = field(default_factory=list)

    def run(self) -> Failures:
        """Make all runs; return those that failed, which do not stop the others."""
        console = Console(stderr=True, highlight=False, soft_wrap=True)
        columns = (TextColumn("{task.description}"), BarColumn(bar_width=None), TaskProgressColumn())
        total, began, failures = len(self.waiting), time.monotonic(), Failures()
        with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
            task = bar.add_task("", total=1.0)
            try:
                while self.waiting or self.running:
                    with signals.deferred():
                        while self.waiting and len(self.running) < self.jobs:
                            self.running.append(Child(self.waiting.pop(0)))
                        ended = [(child, child.cpu_seconds()) for child in self.running]
                        self.running = [child for child, cpu in ended if cpu is None]
                    for child, cpu in ended:
                        if cpu is not None:
                            outcome = self._outcome(child, cpu, failures)
                            console.print(f"{self._done(total)}: {outcome}{self._left()}", markup=False)
                    left, past = self.seconds_left(), time.monotonic() - began
                    bar.update(task, completed=past / (past + left or 1.0))
                    bar.update(task, description=f"{self._done(total)}{self._left()}")
                    time.sleep(LOOK_EVERY if self.running else 0.0)
            finally:
                _stop(self.running)
        return failures

    def seconds_left(self) -> float:
        """Expected seconds until the last run ends."""
        now = time.monotonic()
        left = [self.durations.expected(planned) for planned in self.waiting]
        left += [max(0.0, self.durations.expected(one.planned) - now + one.started) for one in self.running]
        return max(sum(left) / self.jobs, max(left, default=0.0))

    def _outcome(self, child: Child, cpu_seconds: float, failures: Failures) -> str:
        wall, command = time.monotonic() - child.started, " ".join(child.planned.words)
        if child.process.returncode == 0:
            self.durations.add(child.planned, wall, cpu_seconds)
            return f"{command}: {in_words(wall)}, {cpu_seconds:.0f} s of CPU"
        failures.append((child.planned, child.reason()))
        return f"{command}: FAILED: {child.reason()}"

    def _done(self, total: int) -> str:
        return f"{total - len(self.waiting) - len(self.running)} of {count(total, 'run')}"

    def _left(self) -> str:
        everything = self.waiting or self.running
        return f"; about {in_words(self.seconds_left())} left" if everything else ""


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
    durations = Durations(Path(planned[0].config["outputs_dir"]) / "reproduction.csv", added(overrides))
    to_do, failures = _to_do(planned)
    expected = {one.key: durations.expected(one) for one in to_do}
    sweeps = list(dict.fromkeys(one.sweep for one in planned))
    # Within a sweep the longest first, so that no core idles at the end.
    to_do.sort(key=lambda one: (sweeps.index(one.sweep), -expected[one.key]))
    reproduction = Reproduction(list(to_do), jobs or _cores(), durations)
    finished = len(planned) - len(to_do) - len(failures)
    time_needed = f"about {in_words(reproduction.seconds_left())}, {reproduction.jobs} at once"
    print(
        f"{count(len(planned), 'run')}: {finished} finished, {len(to_do)} to do; "
        + (time_needed if to_do else "nothing to wait for"),
        flush=True,
    )
    if dry_run:
        for one in to_do:
            print(f"{in_words(expected[one.key]):>8}  {one.command}")
    else:
        failures += reproduction.run()
    for one, reason in failures:
        print(f"fairall: {one.command}: {reason}", file=sys.stderr)
    return not failures


def _cores() -> int:
    """Number of cores that this process may use, or of all cores on systems that do not say."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _to_do(planned: Sequence[Planned]) -> tuple[list[Planned], Failures]:
    """Runs that are not finished, and runs that cannot be made with the reason."""
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

    to_do, impossible = [], Failures()
    for one in planned:
        try:
            requested = job(one.composed, people)
        except FairAllError as error:
            impossible.append((one, str(error)))
            continue
        if requested.config.force or not requested.folder.done:
            to_do.append(one)
    return to_do, impossible


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
