"""Measurement of many cases, one after the other."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.errors import BenchmarkError, RunFailed
from benchmarks.measure import measure
from benchmarks.parts import TOTAL
from benchmarks.process import run_alone
from benchmarks.records import Records
from benchmarks.revisions import ROOT


@dataclass(frozen=True)
class Case:
    """A command to measure.

    Attributes:
        labels: values that identify it, by column of the records.
        overrides: the words of its command line.
        tree: the checkout that runs it.
    """

    labels: Mapping[str, Any]
    overrides: Sequence[str]
    tree: Path = ROOT

    def __str__(self) -> str:
        return " ".join(f"{name}={value}" for name, value in self.labels.items())


def refuse_mistyped(cases: Sequence[Case]) -> None:
    """Raise BenchmarkError, with the message of the product, where a case has an unknown name or value."""
    from fairall.config.compose import compose_config
    from fairall.config.messages import USER_ERRORS, message

    for case in cases:
        try:
            compose_config(*case.overrides)
        except USER_ERRORS as error:
            raise BenchmarkError(message(error, case.overrides)) from error


def compile_code(tree: Path) -> None:
    """Let numba compile the code of a checkout in a run of a few seconds, not in the first one measured.

    Raises:
        RunFailed: if it ends with another exit code than 0.
    """
    few = ("seeds=1", "schedule.phase1_epochs=1", "schedule.warm_up_epochs=1", "schedule.time_steps=1")
    words = ("preset=quick", *few, "evaluation.window=[0,1]", "tracking.enabled=false")
    run_alone([sys.executable, "-m", "fairall", *words], tree)


def measure_all(cases: Sequence[Case], repeats: int, records: Records) -> None:
    """Measure the cases that the records lack; report and leave out those that fail.

    All cases are measured once before any is repeated: an interruption leaves fewer repeats, not fewer cases.

    Raises:
        BenchmarkError: where nothing could be measured.
    """
    for tree in {case.tree for case in cases}:
        with suppress(RunFailed):  # a revision that cannot run says so below
            compile_code(tree)
    failed: set[str] = set()
    for repeat in range(1, repeats + 1):
        for case in cases:
            if str(case) in failed or records.has(case.labels, repeat):
                continue
            try:
                parts = measure(case.overrides, case.tree)
            except RunFailed as error:
                failed.add(str(case))
                print(f"left out: {case}: {error}", file=sys.stderr)
                continue
            records.append(case.labels, repeat, parts)
            total = parts[TOTAL]
            print(
                f"{case}, {repeat} of {repeats}: CPU {total.cpu_seconds:.1f} s, "
                f"wall {total.wall_seconds:.1f} s, peak {total.peak_mib:.0f} MiB",
                flush=True,
            )
    if len(failed) == len(cases):
        raise BenchmarkError("nothing could be measured")
