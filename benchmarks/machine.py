"""Commands in processes of their own, revisions of the code, and the machine that both run on."""

from __future__ import annotations

import io
import os
import platform
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from benchmarks.errors import BenchmarkError, RunFailed

ROOT = Path(__file__).resolve().parents[1]
WORKING_TREE = "."
# OpenBLAS chooses its kernels by the first and their blocks by the second: one alone would fit neither.
UNSET = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")
MAXRSS = 1024 if sys.platform == "linux" else 1  # bytes in a unit of ru_maxrss


@dataclass(frozen=True)
class Usage:
    """What a command used.

    Attributes:
        cpu_seconds: user and system time of all its threads, and of the processes that it waited for.
        wall_seconds: time on the clock.
        peak_mib: the most memory that was resident at once.
    """

    cpu_seconds: float
    wall_seconds: float
    peak_mib: float


def run_alone(command: Sequence[str], tree: Path = ROOT) -> Usage:
    """Run a command in a new folder, which is then deleted with everything in it.

    It has one thread, unless OMP_NUM_THREADS says otherwise, and no variable of `UNSET`.

    Args:
        command: program and arguments.
        tree: the checkout in which Python looks for packages first.

    Raises:
        RunFailed: if it ends with another exit code than 0.
    """
    search_path = os.pathsep.join(filter(None, [str(tree), os.environ.get("PYTHONPATH")]))
    kept = {name: value for name, value in os.environ.items() if name not in UNSET}
    environment = {"OMP_NUM_THREADS": "1"} | kept | {"PYTHONPATH": search_path}
    with (
        tempfile.TemporaryDirectory(prefix="fairall-benchmark-") as folder,
        tempfile.TemporaryFile() as errors,
    ):
        started = time.perf_counter()
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=errors
        )
        try:
            # Not process.wait(), which does not tell the usage of this one process.
            _, status, used = os.wait4(process.pid, 0)
        except BaseException:
            process.kill()
            process.wait()
            raise
        wall = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            errors.seek(0)
            lines = errors.read().decode(errors="replace").strip().splitlines()
            raise RunFailed(
                lines[-1].removeprefix("fairall: ") if lines else f"exit code {process.returncode}"
            )
    return Usage(used.ru_utime + used.ru_stime, wall, used.ru_maxrss * MAXRSS / 2**20)


def compile_code(tree: Path = ROOT) -> None:
    """Compile the code of a checkout by Python and numba in a run of a few seconds.

    Raises:
        RunFailed: if that run fails.
    """
    few = ("seeds=1", "schedule.phase1_epochs=1", "schedule.warm_up_epochs=1", "schedule.time_steps=1")
    words = ("preset=quick", *few, "evaluation.window=[0,1]", "tracking.enabled=false")
    run_alone([sys.executable, "-m", "fairall", *words], tree)


@contextmanager
def checkout(revision: str) -> Iterator[Path]:
    """A folder with the files of a revision, deleted in the end; for `WORKING_TREE` the checkout itself.

    Raises:
        BenchmarkError: if there is no such revision.
    """
    if revision == WORKING_TREE:
        yield ROOT
        return
    try:
        commit = _git("rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}").decode().strip()
    except (subprocess.CalledProcessError, FileNotFoundError):
        raise BenchmarkError(
            f"{revision}: no such revision; give a branch, a tag, a commit or . for the working tree"
        ) from None
    with tempfile.TemporaryDirectory(prefix="fairall-benchmark-") as folder:
        with zipfile.ZipFile(io.BytesIO(_git("archive", "--format=zip", commit))) as archive:
            archive.extractall(folder)
        yield Path(folder)


def name_of(revision: str) -> str:
    """Short name of a commit, of `WORKING_TREE` with `-dirty` where files were changed; else `unknown`."""
    which = "--dirty" if revision == WORKING_TREE else revision
    try:
        return _git("describe", "--always", "--exclude=*", which).decode().strip()
    except (subprocess.CalledProcessError, FileNotFoundError):
        return "unknown"


def describe() -> dict[str, str]:
    """Processor, cores, memory, versions, revision and variables unset for measurements, by name."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    # Fewer cores than there are under `taskset`.
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {
        "processor": _processor(),
        "cores": f"{usable} of {os.cpu_count()}",
        "memory": f"{memory / 2**30:.0f} GiB",
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "torch": version("torch"),
        "numba": version("numba"),
        "revision": name_of(WORKING_TREE),
        "unset": ", ".join(f"{name}={os.environ[name]}" for name in UNSET if name in os.environ) or "nothing",
    }


def _processor() -> str:
    """Model of the processor where Linux gives it, else its architecture."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.machine()


def _git(*words: str) -> bytes:
    return subprocess.run(["git", "-C", str(ROOT), *words], check=True, capture_output=True).stdout
