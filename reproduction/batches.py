"""Batches of a simulation, computed by several processes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits


def computed(
    function: Callable[..., str], batches: Sequence[tuple[Any, ...]], jobs: int = 1, hours: float = np.inf
) -> Iterator[tuple[tuple[Any, ...], str]]:
    """Each batch with its result, in their order.

    Args:
        function: of a module, called with the items of a batch.
        batches: begun in this order.
        jobs: number of processes, each with one thread; with 1 they are computed in this one.
        hours: after which no batch is begun.
    """
    from tqdm import tqdm

    end = time.time() + 3600 * hours
    limited: Any = (get_context("spawn"), threadpool_limits, (1,))
    pool = ThreadPoolExecutor(1) if jobs == 1 else ProcessPoolExecutor(jobs, *limited)
    try:
        running = {pool.submit(_until, end, function, batch): batch for batch in batches}
        for future, batch in tqdm(running.items(), disable=None):
            if (result := future.result()) is not None:
                yield batch, result
    finally:
        pool.shutdown(cancel_futures=True)


def _until(end: float, function: Callable[..., str], batch: tuple[Any, ...]) -> str | None:
    return function(*batch) if time.time() < end else None
