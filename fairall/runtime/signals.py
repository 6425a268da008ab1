"""SIGTERM and Ctrl-C: work is brought to a point from which it can go on; a second one leaves at once."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Stopped(KeyboardInterrupt):
    """The process was asked to stop, and everything that is to be kept has been.

    Args:
        by: the signal that asked.
    """

    def __init__(self, by: int) -> None:
        super().__init__(signal.Signals(by).name)
        self.exit_code = 128 + by


class _Signals:
    """What has been heard, and whether it has to wait; a handler has nobody else to leave that with."""

    asked: int | None = None
    deferred = False


def listen() -> None:
    """Takes SIGTERM and SIGINT as said above, from here on; only a main thread can."""
    if threading.current_thread() is not threading.main_thread():
        return
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _hear)


@contextmanager
def deferred() -> Iterator[None]:
    """Within it a signal waits for `stop_if_asked`; elsewhere it ends what is under way where it is."""
    outer, _Signals.deferred = _Signals.deferred, True
    try:
        yield
    finally:
        _Signals.deferred = outer
    stop_if_asked()


def asked() -> bool:
    """Whether the process is to stop as soon as it can."""
    return _Signals.asked is not None


def stop_if_asked() -> None:
    """Raises Stopped where the process is to stop."""
    if _Signals.asked is not None:
        raise Stopped(_Signals.asked)


def exit_code(interruption: KeyboardInterrupt) -> int:
    """143 after SIGTERM, 130 after Ctrl-C."""
    return interruption.exit_code if isinstance(interruption, Stopped) else 128 + signal.SIGINT


def _hear(number: int, frame: FrameType | None) -> None:
    if _Signals.asked is not None:
        os._exit(128 + number)
    _Signals.asked = number
    if not _Signals.deferred:
        raise Stopped(number)
