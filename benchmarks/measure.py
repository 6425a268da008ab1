"""Measurement of one run of FairAll, part by part."""

from __future__ import annotations

import json
import math
import sys
import tempfile
from collections.abc import Sequence
from functools import reduce
from operator import add
from pathlib import Path

from benchmarks.parts import EXIT, TOTAL
from benchmarks.process import run_alone
from benchmarks.revisions import ROOT
from benchmarks.usage import Usage


def measure(overrides: Sequence[str]) -> dict[str, Usage]:
    """Runs `python -m fairall *overrides` of this checkout in a process and a folder of its own.

    The folder is new, so nothing is cached and Phase I is trained.

    Returns:
        Usage by part, for the parts there were. What the run cannot know of itself comes from outside: TOTAL,
        and EXIT, the remainder, whose peak of memory nobody knows.

    Raises:
        RunFailed: with what the run said.
    """
    with tempfile.TemporaryDirectory(prefix="fairall-benchmark-") as folder:
        file = Path(folder) / "parts.json"
        cpu, wall = run_alone([sys.executable, "-m", "benchmarks.probe", str(file), *overrides], ROOT)
        parts = {name: Usage(**used) for name, used in json.loads(file.read_text()).items()}
    run = reduce(add, parts.values())
    return parts | {
        EXIT: Usage(cpu - run.cpu_seconds, wall - run.wall_seconds, math.nan),
        TOTAL: Usage(cpu, wall, run.peak_mib),
    }
