"""Whether there are compiled functions, and a message when they compile."""

from __future__ import annotations

import functools
import sys
from typing import Any

import torch
from torch import Tensor

from fairall.errors import FairAllError
from fairall.nn.threads import limit_blas
from fairall.runtime.process import numba_version


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

    functions = sum(hasattr(of, "py_func") for of in vars(compiled).values())

    class Announcement(event.Listener):
        def on_start(self, event: Any) -> None:
            function = event.data["dispatcher"].py_func
            if function.__module__ == compiled.__name__:
                announce(function.__name__, functions)

        def on_end(self, event: Any) -> None:
            pass

    event.register("numba:compile", Announcement())
    limit_blas()
    return compiled


_announced: set[str] = set()


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
    from threadpoolctl import threadpool_info

    blas = {
        f"{library['version']} {library.get('architecture')}"
        for library in threadpool_info()
        if library["user_api"] == "blas"
    }
    return f"{get_host_cpu_name()} {get_host_cpu_features().flatten()} {sorted(blas)}"
