"""Batches of a simulation, computed by several processes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, ThreadPoolExecutor, wait
from multiprocessing import get_context
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits


def _one_thread() -> None:
    """Keep processes that share the cores from having threads for each of them."""
    threadpool_limits(1)


def computed(
    function: Callable[..., str], batches: Sequence[tuple[Any, ...]], jobs: int = 1, hours: float = np.inf
) -> Iterator[tuple[tuple[Any, ...], str]]:
    """Each batch with its result, in the order in which they end.

    Args:
        function: of a module, called with the items of a batch.
        batches: begun in this order.
        jobs: number of processes; with 1 they are computed in this one.
        hours: after which no batch is begun.
    """
    from tqdm import tqdm

    waiting, end = list(batches), time.monotonic() + 3600 * hours
    pool = (
        ThreadPoolExecutor(1) if jobs == 1 else ProcessPoolExecutor(jobs, get_context("spawn"), _one_thread)
    )
    with pool, tqdm(total=len(batches), disable=None) as progress:
        running: dict[Future[str], tuple[Any, ...]] = {}
        while running or (waiting and time.monotonic() < end):
            while waiting and len(running) < 2 * jobs and time.monotonic() < end:
                batch = waiting.pop(0)
                running[pool.submit(function, *batch)] = batch
            ended = wait(running, return_when=FIRST_COMPLETED).done
            for future in [future for future in running if future in ended]:
                yield running.pop(future), future.result()
                progress.update()
