"""Make the runs that the paper needs, several at once, skipping finished ones.

Hydra's joblib launcher is not used: it is an optional extra, neither starts the longest runs first nor says
how much time is left, and measures no processor time of a run.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path

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
LOOK_EVERY = 1.0  # seconds between two updates of the time left

Failures = list[tuple[Planned, str]]


class Reproduction:
    """Runs to be made in order, each in a process of its own, `jobs` at once; adds their durations."""

    def __init__(self, to_do: Sequence[Planned], jobs: int, durations: Durations) -> None:
        self._to_do, self._jobs, self._durations = to_do, jobs, durations
        self._expected = durations.expected(to_do)
        self._started: dict[str, float] = {}
        self._processes: set[subprocess.Popen[bytes]] = set()
        self._stopping = False

    def run(self) -> Failures:
        """Make all runs; return those that failed, which do not stop the others."""
        console = Console(stderr=True, highlight=False, soft_wrap=True)
        columns = (TextColumn("{task.description}"), BarColumn(bar_width=None), TaskProgressColumn())
        failures, total, began = Failures(), len(self._to_do), time.monotonic()
        with (
            ThreadPoolExecutor(self._jobs) as pool,
            Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar,
        ):
            task = bar.add_task("", total=1.0)
            pending: dict[Future[str], Planned] = {pool.submit(self._make, one): one for one in self._to_do}
            try:
                while pending:
                    left = self.seconds_left(list(pending.values()))
                    said = f"{total - len(pending)} of {count(total, 'run')}; about {in_words(left)} left"
                    past = time.monotonic() - began
                    bar.update(task, completed=past / (past + left or 1.0), description=said)
                    for future in wait(pending, LOOK_EVERY, FIRST_COMPLETED).done:
                        one = pending.pop(future)
                        if error := future.exception():
                            failures.append((one, str(error)))
                        outcome = f"FAILED: {error}" if error else future.result()
                        self._expected = self._durations.expected(pending.values())
                        left = self.seconds_left(list(pending.values()))
                        then = f"; about {in_words(left)} left" if pending else ""
                        done = f"{total - len(pending)} of {total}: {' '.join(one.words)}"
                        console.print(f"{done}: {outcome}{then}", markup=False)
            finally:
                self._stopping = True
                pool.shutdown(wait=False, cancel_futures=True)
                # Not SIGINT: a KeyboardInterrupt while a run imports its modules may be swallowed there.
                self._signal(signal.SIGTERM)
                wait(pending, GRACE if pending else 0.0)
                self._signal(signal.SIGKILL)
        return failures

    def seconds_left(self, pending: Sequence[Planned]) -> float:
        """Expected seconds until the last of some runs ends."""
        now = time.monotonic()
        left = [max(0.0, self._expected[one.key] - now + self._started.get(one.key, now)) for one in pending]
        return max(sum(left) / self._jobs, max(left, default=0.0))

    def _make(self, planned: Planned) -> str:
        """Make one run; return the time it took in words.

        Raises:
            FairAllError: with the last line that the run wrote to standard error, where it failed.
        """
        self._started[planned.key] = began = time.monotonic()
        with tempfile.TemporaryFile() as errors:
            process = subprocess.Popen(
                [sys.executable, "-m", "fairall", *planned.words, *(["threads=1"] if self._jobs > 1 else [])],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                start_new_session=True,  # so that Ctrl-C reaches it once, through this process
            )
            self._processes.add(process)
            if self._stopping:
                process.send_signal(signal.SIGTERM)
            # Popen.wait would not give the processor time of this process alone.
            _, status, usage = os.wait4(process.pid, 0)
            self._processes.discard(process)
            process.returncode = os.waitstatus_to_exitcode(status)
            if process.returncode != 0:
                errors.seek(0)
                lines = errors.read().decode(errors="replace").strip().splitlines()
                reason = lines[-1] if lines else f"ended with code {process.returncode}"
                raise FairAllError(reason.removeprefix("fairall: "))
        wall, cpu = time.monotonic() - began, usage.ru_utime + usage.ru_stime
        self._durations.add(planned, wall, cpu)
        return f"{in_words(wall)}, {cpu:.0f} s of CPU"

    def _signal(self, number: int) -> None:
        for process in list(self._processes):
            os.kill(process.pid, number)


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
    return not make(plan(sweeps_of(parts), overrides), overrides, jobs=jobs, dry_run=dry_run)


def make(
    planned: Sequence[Planned], overrides: Sequence[str], *, jobs: int | None, dry_run: bool = False
) -> Failures:
    """Make runs; return those that failed or cannot be made, with the reason. Arguments as `reproduce`."""
    durations = Durations(Path(planned[0].config["outputs_dir"]) / "reproduction.csv", added(overrides))
    to_do, failures = _to_do(planned)
    expected = durations.expected(to_do)
    sweeps = list(dict.fromkeys(one.sweep for one in planned))
    # Within a sweep the longest first, so that no core idles at the end.
    to_do.sort(key=lambda one: (sweeps.index(one.sweep), -expected[one.key]))
    jobs = jobs or _cores()
    reproduction = Reproduction(to_do, jobs, durations)
    finished = len(planned) - len(to_do) - len(failures)
    needed = f"about {in_words(reproduction.seconds_left(to_do))}, {jobs} at once"
    found = f"{count(len(planned), 'run')}: {finished} finished, {len(to_do)} to do"
    print(f"{found}; {needed if to_do else 'nothing to wait for'}", flush=True)
    if dry_run:
        for one in to_do:
            print(f"{in_words(expected[one.key]):>8}  {one.command}")
    elif to_do:
        failures += reproduction.run()
    for one, reason in failures:
        print(f"fairall: {one.command}: {reason}", file=sys.stderr)
    return failures


def _cores() -> int:
    """Number of cores that this process may use, or of all cores on systems that do not say."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _to_do(planned: Sequence[Planned]) -> tuple[list[Planned], Failures]:
    """Runs that are not finished, and runs that cannot be made with the reason."""
    from fairall.experiment import job, prepare

    met: dict[str, PreparedData | FairAllError] = {}

    def people(source: Dataset, scaler: ScalerRows) -> PreparedData:
        key = repr((source.config, scaler))
        try:
            found = met[key] if key in met else met.setdefault(key, prepare(source, scaler))
        except FairAllError as error:
            # Kept: a failing download should not be tried again for every run.
            found = met[key] = error
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
        if requested.config.force or not requested.folder.intact(print):
            to_do.append(one)
    return to_do, impossible
