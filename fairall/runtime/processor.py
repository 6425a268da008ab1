"""Threads, denormal numbers and memory of this process, as far as they affect computation."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

# Parameters of glibc's mallopt(3) that control when freed memory returns to the system.
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
LARGEST_MMAP_THRESHOLD = 32 << 20  # bytes; the largest value that glibc accepts
MEMINFO, CONTAINER_LIMIT = Path("/proc/meminfo"), Path("/sys/fs/cgroup/memory.max")
NEVER = 2**31 - 1  # bytes of free memory above which some is returned


def numba_version() -> str | None:
    """Version of numba; None where it is not installed or switched off by NUMBA_DISABLE_JIT."""
    try:
        return version("numba") if os.environ.get("NUMBA_DISABLE_JIT", "0") == "0" else None
    except PackageNotFoundError:
        return None


def available_memory() -> int | None:
    """Bytes of memory that are left, within the limit of a container; None where that is unknown."""
    try:
        meminfo = dict(line.split(":") for line in MEMINFO.read_text().splitlines())
        available = int(meminfo["MemAvailable"].split()[0]) * 1024
    except (OSError, ValueError, KeyError):
        return None
    with suppress(OSError, ValueError):  # without a limit it says "max"
        available = min(available, int(CONTAINER_LIMIT.read_text()))
    return available


@contextmanager
def short_of_memory() -> Iterator[None]:
    """Raise MemoryError where torch raises RuntimeError because memory is exhausted."""
    try:
        yield
    except RuntimeError as error:
        if "allocate memory" in str(error):
            raise MemoryError from error
        raise


def prepare_processor() -> None:
    """Give torch one thread, flush denormal numbers to zero, and keep freed memory.

    Operations of this size gain nothing from several threads, which wait for each other at the end of each
    and lose much time where another process has one of the cores. Compiled code has threads of its own
    (`fairall.nn.native.calls`).

    Adam moments of weights without a gradient shrink towards zero, and a processor takes many times longer
    for denormal numbers than for others. A training step frees memory that the next one needs again; glibc's
    allocator is set to keep it.
    """
    import torch  # slow, and `--help` needs the versions alone

    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    if sys.platform == "linux":
        allocator = ctypes.CDLL(None)
        if hasattr(allocator, "mallopt"):
            allocator.mallopt(M_MMAP_THRESHOLD, LARGEST_MMAP_THRESHOLD)
            allocator.mallopt(M_TRIM_THRESHOLD, NEVER)
