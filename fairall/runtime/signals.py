"""SIGTERM, SIGHUP and Ctrl-C: the first stops work where it can resume, a second one exits at once.

SIGHUP comes when a terminal is closed, often twice (from the shell and from the system) or together with
SIGTERM, so it is never taken for the second one.
"""

from __future__ import annotations

import os
import signal
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

RESUMES = "goes on from what was saved"


class Stopped(KeyboardInterrupt):
    """Raised when a stop was requested by a signal, after everything worth keeping has been saved.

    Attributes:
        exit_code: for the process, 128 plus the number of the signal.
        then: what the same command does when it is run again; completes "the same command ...".
    """

    def __init__(self, by: int) -> None:
        super().__init__(signal.Signals(by).name)
        self.exit_code = 128 + by
        self.then = RESUMES


class _State:
    """State that the signal handler shares with the functions below."""

    requested: int | None = None  # number of the first signal
    deferred = False


def listen() -> None:
    """Install the handlers of SIGTERM, SIGINT and SIGHUP; does nothing outside the main thread.

    SIGHUP stays ignored where it is, as under nohup.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _handle)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        signal.signal(signal.SIGHUP, _handle)


@contextmanager
def deferred() -> Iterator[None]:
    """Defer signals to the next `raise_if_requested`, or to the end of the block.

    Outside such a block a signal raises `Stopped` wherever the process is.
    """
    outer, _State.deferred = _State.deferred, True
    try:
        yield
    finally:
        _State.deferred = outer
    raise_if_requested()


def stop_requested() -> bool:
    """Whether a signal has come."""
    return _State.requested is not None


def raise_if_requested() -> None:
    """Raise `Stopped` if a signal has come."""
    if _State.requested is not None:
        raise Stopped(_State.requested)


def exit_code(interruption: KeyboardInterrupt) -> int:
    """143 after SIGTERM, 130 after Ctrl-C, 129 after SIGHUP."""
    return interruption.exit_code if isinstance(interruption, Stopped) else 128 + signal.SIGINT


def _handle(number: int, frame: FrameType | None) -> None:
    if number == signal.SIGHUP:
        _leave_terminal()
        if _State.requested is not None:
            return
    if number == signal.SIGTERM and _State.requested == signal.SIGHUP:
        # Sent together; Python handles the smaller number first.
        _State.requested = number
        return
    if _State.requested is not None:
        os._exit(128 + number)
    _State.requested = number
    if not _State.deferred:
        raise Stopped(number)


def _leave_terminal() -> None:
    """Discard further output to a terminal that is closed: writing to it raises OSError.

    A closed terminal is a character device that no longer answers as a terminal.
    """
    for stream in (1, 2):
        try:
            gone = stat.S_ISCHR(os.fstat(stream).st_mode) and not os.isatty(stream)
        except OSError:  # closed by the parent process
            continue
        if gone:
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, stream)
            os.close(null)
