"""How this process computes: its threads, numbers next to zero, and memory that it keeps."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import torch

# Parameters of glibc's mallopt(3), by which it hands large blocks back to the system at once.
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
LARGEST_MMAP_THRESHOLD = 32 << 20  # bytes; glibc takes no more
NEVER = 2**31 - 1  # bytes of free memory from which on it is handed back


@contextmanager
def short_of_memory() -> Iterator[None]:
    """Raises MemoryError where torch, which has no exception of its own for it, cannot get what it needs."""
    try:
        yield
    except RuntimeError as error:
        if "allocate memory" in str(error):
            raise MemoryError from error
        raise


def prepare_processor(threads: int) -> None:
    """Sets the threads of torch, and spares a run what has nothing to do with its numbers.

    Weights of units that are dead leave Adam moments that shrink towards zero without end; a processor takes
    many times longer over such numbers, which are therefore taken for zero. And a training step frees what
    the next one needs again: freed memory is kept, where the system's allocator can be told so.

    Args:
        threads: 1 or more.
    """
    torch.set_num_threads(threads)
    torch.set_flush_denormal(True)
    if sys.platform == "linux":
        allocator = ctypes.CDLL(None)
        if hasattr(allocator, "mallopt"):
            allocator.mallopt(M_MMAP_THRESHOLD, LARGEST_MMAP_THRESHOLD)
            allocator.mallopt(M_TRIM_THRESHOLD, NEVER)
