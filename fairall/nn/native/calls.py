"""Calls of compiled functions: whether there are any, a message when they compile, and their threads."""

from __future__ import annotations

import functools
import gc
import os
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fairall.errors import FairAllError
from fairall.runtime.process import numba_version

_announced: set[str] = set()
_threads: ThreadPoolExecutor | None = None  # beside the main thread
_n_threads = 1
_training = False  # not where a program of the user's has loaded a policy


def takes(*tensors: Tensor) -> bool:
    """Whether there are compiled functions for these tensors: with numba, of float32 on the CPU."""
    return all(t.dtype == torch.float32 and t.device.type == "cpu" for t in tensors) and kernels() is not None


@functools.cache
def kernels() -> Any:
    """The module of compiled functions; None where numba is missing or switched off.

    Raises:
        FairAllError: if numba is there but cannot be imported.
    """
    if numba_version() is None:
        return None
    try:
        from numba.core import event

        from fairall.nn.native import kernels as compiled
    except ImportError as error:
        raise FairAllError(
            f"numba cannot be imported ({error}): install another version, or set NUMBA_DISABLE_JIT=1"
        ) from error

    dispatchers = [of for of in vars(compiled).values() if hasattr(of, "py_func")]
    functions = sum("inline" not in of.targetoptions for of in dispatchers)

    class Compilation(event.Listener):
        """Says so, and keeps the garbage collector, which takes a tenth of the time, from running."""

        def __init__(self) -> None:
            self.collects: list[bool] = []  # before each compilation that has not ended, inner ones last

        def on_start(self, event: Any) -> None:
            self.collects.append(gc.isenabled())
            gc.disable()
            function = event.data["dispatcher"].py_func
            if function.__module__ == compiled.__name__:
                announce(function.__name__, functions)

        def on_end(self, event: Any) -> None:
            if self.collects.pop():
                gc.enable()

    event.register("numba:compile", Compilation())
    limit_blas()
    return compiled


def announce(function: str, most: int) -> None:
    """Print that functions are being compiled, with the first one, and how far that is with every tenth.

    Args:
        function: name of the one that begins.
        most: number of all functions, of which a run may need fewer.
    """
    if function in _announced:
        return
    _announced.add(function)
    if len(_announced) == 1:
        told = "compiling, once for this installation ..."
    elif len(_announced) % 10 == 0:
        told = f"compiling function {len(_announced)} of at most {most} ..."
    else:
        return
    print(f"fairall: {told}", file=sys.stderr, flush=True)


@functools.cache
def processor() -> str:
    """The processor and the BLAS as far as rounding depends on them; `none` without compiled functions."""
    if kernels() is None:
        return "none"
    from llvmlite.binding import get_host_cpu_features, get_host_cpu_name

    return f"{get_host_cpu_name()} {get_host_cpu_features().flatten()} {blas()}"


def blas() -> str:
    """The BLAS of numpy and of scipy as far as rounding depends on it."""
    import scipy.special  # noqa: F401 - loads scipy's, as compiled functions do: the same in every process
    from threadpoolctl import threadpool_info

    libraries = [library for library in threadpool_info() if library["user_api"] == "blas"]
    return str(sorted({f"{library['version']} {library.get('architecture')}" for library in libraries}))


def use_threads(n: int | None) -> None:
    """Divide the replicates of every call over `n` threads, by default a thread per core of the process.

    No number depends on it.
    """
    global _threads, _n_threads, _training
    _training = True
    limit_blas()
    if n is None:
        n = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if _threads is not None:
        _threads.shutdown()
    # Denormal numbers are flushed to zero in each thread by itself.
    own_setting = functools.partial(torch.set_flush_denormal, True)
    _threads, _n_threads = ThreadPoolExecutor(n - 1, "native", own_setting) if n > 1 else None, n


def _after_fork() -> None:
    """Compute on one thread in a child process, which has none of the pool's."""
    global _threads, _n_threads
    _threads, _n_threads = None, 1


os.register_at_fork(after_in_child=_after_fork)


def over_replicates(
    call: Callable[[slice], None], n_replicates: int, left_out: Sequence[bool] | None = None
) -> None:
    """Apply `call` to all replicates, an equal share of them in each thread.

    A call takes as many replicates as possible: threads that wait for each other more often lose more where
    another process has one of the cores. The replicates in `left_out`, of length E, are not computed.
    """
    computed = np.arange(n_replicates)
    if left_out is not None:
        computed = computed[~np.array(left_out, dtype=bool)[:n_replicates]]
    own, *shares = np.array_split(computed, max(1, min(_n_threads, len(computed))))

    def compute(share: np.ndarray) -> None:
        for run in np.split(share, np.flatnonzero(np.diff(share) > 1) + 1):
            if len(run) > 0:
                call(slice(int(run[0]), int(run[-1]) + 1))

    others = [_threads.submit(compute, share) for share in shares] if _threads is not None else []
    compute(own)
    for other in others:
        other.result()  # raises what `call` has raised


def limit_blas() -> None:
    """Limit BLAS to one thread in a process that trains, since replicates are divided over threads."""
    if _training and "fairall.nn.native.kernels" in sys.modules:
        from threadpoolctl import threadpool_limits

        threadpool_limits(1, "blas")
