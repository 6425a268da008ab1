"""Calls of compiled functions: whether there are any, in which threads, and a line when they compile."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch
from torch import Tensor

from fairall.runtime.processor import numba_version

_threads: ThreadPoolExecutor | None = None


def use_threads(n: int) -> None:
    """Divide the replicates of every call over `n` threads; no number depends on it."""
    global _threads
    if _threads is not None:
        _threads.shutdown()
    # Denormal numbers are flushed to zero in each thread by itself.
    own_setting = functools.partial(torch.set_flush_denormal, True)
    _threads = ThreadPoolExecutor(n, "native", own_setting) if n > 1 else None


def over_replicates(call: Callable[[slice], None], n_replicates: int) -> None:
    """Apply `call` to all replicates at once, or to one after the other in each of the threads."""
    if _threads is None or n_replicates == 1:
        call(slice(0, n_replicates))
    else:
        for _ in _threads.map(call, [slice(e, e + 1) for e in range(n_replicates)]):
            pass  # which raises what `call` has raised


@functools.cache
def kernels() -> Any | None:
    """The module of compiled functions; None where numba is missing or switched off."""
    if numba_version() is None:
        return None
    from numba.core import event

    from fairall.nn.native import kernels as compiled

    class Announcement(event.Listener):
        told = False

        def on_start(self, event: Any) -> None:
            if not self.told:
                print("fairall: compiling, once for this installation ...", file=sys.stderr, flush=True)
            self.told = True

        def on_end(self, event: Any) -> None:
            pass

    event.register("numba:compile", Announcement())
    return compiled


def takes(*tensors: Tensor) -> bool:
    """Whether there are compiled functions for these tensors."""
    return all(t.dtype == torch.float32 and t.device.type == "cpu" for t in tensors) and kernels() is not None
