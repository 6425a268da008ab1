"""Make the runs of a plan, several at once, skipping finished ones; how long runs take.

Hydra's joblib launcher is not used: it is an optional extra, neither starts the longest runs first nor says
how much time is left, and measures no processor time of a run. Nor is ProcessPoolExecutor: a process that
dies ends all runs of its pool, and until Python 3.14 none can be asked to save its state.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from itertools import zip_longest
from pathlib import Path
from typing import IO, Any, cast

import pandas as pd

from fairall import FairAllError, is_finished
from reproduction.plan import Planned, added, plan, sweeps_of
from reproduction.words import words_of

GRACE = 20.0  # seconds for an interrupted run to save its state or log its result
COLUMNS = ["words", "overrides", "model", "dataset", "seeds", "wall_seconds", "cpu_seconds"]
# Seconds of runs on another machine by method and data set, with so many seeds; those of others.
REFERENCE = words_of("run_seconds")
REFERENCE_SEEDS, UNKNOWN = 10, 120.0

Failures = list[tuple[Planned, str]]


@dataclass(frozen=True)
class Durations:
    """Measured durations, kept in a file with a line per run, and expected ones.

    Attributes:
        path: CSV, created with the first measurement.
        overrides: those of the user's words that change every run; durations are compared within equal ones.
    """

    path: Path
    overrides: Sequence[str]

    def add(self, planned: Planned, wall: float, cpu: float) -> None:
        """Append one measurement to the file."""
        words, kind = (" ".join(planned.words), " ".join(self.overrides)), _kind(planned)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        line = pd.DataFrame([(*words, *kind, round(wall, 1), round(cpu, 1))], columns=COLUMNS)
        line.to_csv(self.path, mode="a", header=not _begun(self.path), index=False)

    def expected(self, planned: Iterable[Planned]) -> list[float]:
        """Expected elapsed seconds: reference durations, scaled by what has been measured here."""
        measured = read_durations(self.path)
        measured = measured[measured["overrides"] == " ".join(self.overrides)]
        usual = sum(map(_usual, *(measured[key] for key in COLUMNS[2:5])))
        ratio = measured["wall_seconds"].sum() / usual if usual else 1.0
        return [ratio * _usual(*_kind(one)) for one in planned]

    def left(self, planned: Iterable[Planned], jobs: int) -> str:
        """Expected time that some runs take together, in words."""
        seconds = self.expected(planned)
        return in_words(max([sum(seconds) / jobs, *seconds]))


def _kind(planned: Planned) -> tuple[str, str, int]:
    return planned.model, planned.dataset, planned.config.seeds


def _usual(model: str, dataset: str, seeds: int) -> float:
    """Reference duration, in proportion to the seeds."""
    return REFERENCE.get(model, {}).get(dataset, UNKNOWN) * seeds / REFERENCE_SEEDS


def _begun(path: Path) -> bool:
    return path.exists() and path.stat().st_size > 0


def read_durations(path: Path) -> pd.DataFrame:
    """All measurements of a file; none where it does not exist. Lines cut off by a crash are left out."""
    # The engine that reads a quoted word without its end.
    read = pd.read_csv(path, engine="python", on_bad_lines="skip") if _begun(path) else pd.DataFrame()
    return read.reindex(columns=COLUMNS).fillna({"overrides": ""}).dropna()


class Worker:
    """A process that makes runs one after the other, until one fails."""

    planned: Planned
    began: float

    def __init__(self) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115
        self.process = subprocess.Popen(
            [sys.executable, Path(__file__).with_name("worker.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            start_new_session=True,  # so that Ctrl-C reaches it once, through this process
        )
        self._answers = cast(IO[str], self.process.stdout)

    def fileno(self) -> int:
        """Of what can be read when a run has ended."""
        return self._answers.fileno()

    def begin(self, planned: Planned, *further: str) -> None:
        """Begin a run, with further words."""
        self.planned, self.began = planned, time.monotonic()
        self._errors.seek(0)  # the process writes from there too
        self._errors.truncate()
        with suppress(BrokenPipeError):  # of a process that was killed, which `outcome` says
            print(json.dumps([*planned.words, *further]), file=self.process.stdin, flush=True)

    def outcome(self) -> tuple[float, str]:
        """Seconds of processor time that the run took, after its end; why it failed, if it did.

        The reason is the last line that the run wrote to standard error.
        """
        if answer := self._answers.readline():
            return float(answer), ""
        self.process.communicate()
        with self._errors:
            self._errors.seek(0)
            *_, reason = b"", *self._errors.read().strip().splitlines()
        said = reason.decode(errors="replace") or f"ended with code {self.process.returncode}"
        return 0.0, said.removeprefix("fairall: ")

    def close(self) -> None:
        """Let the process end, which it does when there is nothing more to read."""
        with self._errors, self.process:
            try:
                self.process.communicate(timeout=GRACE)
            except subprocess.TimeoutExpired:
                self.process.kill()


def runs(
    overrides: Sequence[str], asked: Sequence[str], jobs: int | None = None, dry_run: bool = False
) -> bool:
    """Make the runs of parts of the paper or sweeps, `asked`; return whether all are there; see `make`."""
    planned = plan(sweeps_of(asked or ["all"]), overrides)
    return not make(planned, overrides, jobs=jobs, dry_run=dry_run)


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
    # Of cores that this process may use, or of all on systems that do not say.
    jobs = jobs or (len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)
    durations = Durations(Path(planned[0].config.outputs_dir) / "reproduction.csv", added(overrides))
    to_do, failures = _to_do(planned)
    finished = len(planned) - len(to_do) - len(failures)
    needed = f"about {durations.left(to_do, jobs)}, {jobs} at once"
    print(f"Runs: {finished} finished, {len(to_do)} to do; {needed}", flush=True)
    if dry_run:
        for one in to_do:
            print(f"{durations.left([one], 1):>8}  {one.command}")
    else:
        failures += _make(to_do, jobs, durations)
    for one, reason in failures:
        print(f"reproduction: {one.command}: {reason}", file=sys.stderr)
    return failures


def _to_do(planned: Sequence[Planned]) -> tuple[list[Planned], Failures]:
    """Runs that are not finished, in the order to make them, and runs that cannot be made with the reason.

    The longest are first, so that no core idles at the end. Runs of a method on the same data, such as those
    of two initial policies, are apart: one would wait for the Phase I of the other.
    """
    kinds, impossible = dict[tuple[str, str], list[Planned]](), Failures()
    people = dict[str, Any]()
    for one in planned:
        try:
            if not is_finished(one.composed, people):
                kinds.setdefault((one.model, one.dataset), []).append(one)
        except FairAllError as error:
            impossible.append((one, str(error)))
    longest = sorted(kinds.values(), key=lambda some: -_usual(*_kind(some[0])))
    return [one for some in zip_longest(*longest) for one in some if one], impossible


def _make(to_do: Sequence[Planned], jobs: int, durations: Durations) -> Failures:
    """Make runs in their order; return those that failed, which do not stop the others."""
    failures, waiting = Failures(), [*to_do]
    idle, busy = list[Worker](), list[Worker]()
    try:
        while waiting or busy:
            while waiting and len(busy) < jobs:
                busy.append(idle.pop() if idle else Worker())
                busy[-1].begin(waiting.pop(0), *["threads=1"] * (jobs > 1))
            # Waking every second, since a signal that reaches another thread ends no wait.
            for worker in select.select(busy, [], [], 1)[0]:
                wall, (cpu, reason) = time.monotonic() - worker.began, worker.outcome()
                busy.remove(worker)
                took = f"{in_words(wall)}, {cpu:.0f} s of CPU"
                if reason:
                    failures.append((worker.planned, reason))
                    took = f"FAILED: {reason}"
                else:
                    idle.append(worker)
                    durations.add(worker.planned, wall, cpu)
                left = [*(one.planned for one in busy), *waiting]
                done = f"{len(to_do) - len(left)} of {len(to_do)}: {' '.join(worker.planned.words)}: {took}"
                print(f"{done}; about {durations.left(left, jobs)} left", file=sys.stderr)
    finally:
        for worker in busy:
            worker.process.terminate()
        for worker in [*busy, *idle]:
            worker.close()
    return failures


def in_words(seconds: float) -> str:
    """A duration as hours, minutes and seconds.

    Examples:
        >>> in_words(75.4), in_words(4000)
        ('0:01:15', '1:06:40')
    """
    return str(timedelta(seconds=round(seconds)))
