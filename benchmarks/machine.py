"""Description of the machine that measurements were made on."""

from __future__ import annotations

import os
import platform
from importlib.metadata import version
from pathlib import Path

from benchmarks.process import UNSET
from benchmarks.revisions import WORKING_TREE, name_of


def describe() -> dict[str, str]:
    """Processor, cores, memory, versions, revision and variables unset for measurements, by name."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "processor": _processor(),
        "cores": f"{_usable_cores()} of {os.cpu_count()}",
        "memory": f"{memory / 2**30:.0f} GiB",
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "torch": version("torch"),
        "numba": version("numba"),
        "revision": name_of(WORKING_TREE),
        "unset": ", ".join(f"{name}={os.environ[name]}" for name in UNSET if name in os.environ) or "nothing",
    }


def _usable_cores() -> int:
    """Cores that this process and its children may use, fewer than there are under `taskset`."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _processor() -> str:
    """Model of the processor where Linux gives it, else its architecture."""
    told = Path("/proc/cpuinfo")
    lines = told.read_text().splitlines() if told.exists() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.machine()
