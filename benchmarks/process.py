"""One command in a process and a folder of its own."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from benchmarks.errors import RunFailed

# OpenBLAS chooses its kernels by the first and their blocks by the second: one alone would fit neither.
UNSET = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")


def run_alone(command: Sequence[str], tree: Path) -> tuple[float, float]:
    """Runs a command to its end in a new folder, which is then deleted with all that the command left.

    One thread, unless OMP_NUM_THREADS says otherwise, and without `UNSET` in its environment.

    Args:
        command: program and arguments.
        tree: the checkout whose packages Python finds first.

    Returns:
        Processor seconds of the process and of those it waited for, and seconds on the clock.

    Raises:
        RunFailed: where it ends with another exit code than 0.
    """
    search_path = os.pathsep.join(filter(None, [str(tree), os.environ.get("PYTHONPATH")]))
    kept = {name: value for name, value in os.environ.items() if name not in UNSET}
    environment = {"OMP_NUM_THREADS": "1"} | kept | {"PYTHONPATH": search_path}
    with tempfile.TemporaryDirectory(prefix="fairall-benchmark-") as folder, tempfile.TemporaryFile() as said:
        started = time.perf_counter()
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=said
        )
        try:
            # Not process.wait(), which does not tell what this one child used.
            _, status, used = os.wait4(process.pid, 0)
        except BaseException:
            process.kill()
            process.wait()
            raise
        wall = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            raise RunFailed(_last_line(said) or f"ended with code {process.returncode} and said nothing")
    return used.ru_utime + used.ru_stime, wall


def _last_line(said: IO[bytes]) -> str:
    said.seek(0)
    lines = said.read().decode(errors="replace").strip().splitlines()
    return lines[-1].removeprefix("fairall: ") if lines else ""
