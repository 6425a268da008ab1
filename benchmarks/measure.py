"""Measurement of one run of FairAll, part by part."""

from __future__ import annotations

import json
import math
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from operator import add
from pathlib import Path

from benchmarks.parts import EXIT, RATE, TOTAL
from benchmarks.process import run_alone
from benchmarks.revisions import ROOT
from benchmarks.usage import Usage


def measure(overrides: Sequence[str], tree: Path = ROOT) -> dict[str, Usage]:
    """Run `python -m fairall *overrides` in a process and a folder of its own.

    The folder is new, so nothing is cached and Phase I is trained.

    Args:
        overrides: the words of the command line.
        tree: a checkout; its own `benchmarks.probe` knows its parts.

    Returns:
        Usage by part, for the parts there were; TOTAL alone for a revision without a probe. What the run
        cannot know of itself comes from outside: TOTAL, and EXIT, the remainder, whose peak of memory nobody
        knows.

    Raises:
        RunFailed: with what the run said.
    """
    if not (tree / "benchmarks" / "probe.py").exists():
        return {TOTAL: Usage(*run_alone([sys.executable, "-m", "fairall", *overrides], tree), math.nan)}
    with tempfile.TemporaryDirectory(prefix="fairall-benchmark-") as folder:
        file = Path(folder) / "parts.json"
        cpu, wall = run_alone([sys.executable, "-m", "benchmarks.probe", str(file), *overrides], tree)
        parts = {name: Usage(**used) for name, used in json.loads(file.read_text()).items()}
    rate = parts.pop(RATE, Usage(0.0, 0.0, 0.0))
    cpu, wall = cpu - rate.cpu_seconds, wall - rate.wall_seconds
    run = reduce(add, parts.values())
    return parts | {
        EXIT: Usage(cpu - run.cpu_seconds, wall - run.wall_seconds, math.nan),
        TOTAL: replace(run, cpu_seconds=cpu, wall_seconds=wall),
    }
