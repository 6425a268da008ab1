"""SIGTERM, SIGHUP and Ctrl-C: the first one stops work where it can resume, a second one exits at once.

SIGHUP comes when a terminal is closed, often twice (from the shell and from the system) or together with
SIGTERM, so it neither is nor makes a second one.
"""

from __future__ import annotations

import os
import signal
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

RESUMES = "goes on from what was saved"
IMPORTING = "<frozen importlib._bootstrap>"  # file name of Python's frames of an import


class Stopped(KeyboardInterrupt):
    """Raised when a stop was requested by a signal, after everything worth keeping has been saved.

    Attributes:
        exit_code: for the process, 128 plus the number of the signal: 143 after SIGTERM, 130 after Ctrl-C,
            129 after SIGHUP.
        then: what the same command does when it is run again; completes "the same command ...".
    """

    def __init__(self, by: int) -> None:
        super().__init__(signal.Signals(by).name)
        self.exit_code = 128 + by
        self.then = RESUMES


class _State:
    """State that the signal handler shares with the functions below."""

    requested: int | None = None  # number of the signal that requested a stop
    deferred = False


def listen() -> None:
    """Install the handlers of SIGTERM, SIGINT and SIGHUP; does nothing outside the main thread.

    SIGHUP stays ignored where it is, as under nohup.
    """
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, _handle)


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


def stop_requested() -> Stopped | None:
    """What to raise if a signal has come; None if none has."""
    return None if _State.requested is None else Stopped(_State.requested)


def raise_if_requested() -> None:
    """Raise `Stopped` if a signal has come."""
    if stopped := stop_requested():
        raise stopped


def _handle(number: int, frame: FrameType | None) -> None:
    if number == signal.SIGHUP:
        _leave_terminal()
    earlier = _State.requested
    if earlier not in (None, signal.SIGHUP):
        if number != signal.SIGHUP:
            os._exit(128 + number)
        return
    _State.requested = number
    if earlier is None and not _State.deferred:
        while frame is not None:
            # Many extensions end the process with a traceback if an exception comes during their import.
            if frame.f_code.co_filename == IMPORTING:
                os.write(2, f"fairall: interrupted; the same command {RESUMES}\n".encode())
                os._exit(128 + number)
            frame = frame.f_back
        raise Stopped(number)


def _leave_terminal() -> None:
    """Discard further output to a terminal that is closed: writing to it raises OSError.

    A closed terminal is a character device that no longer answers as a terminal.
    """
    for stream in (1, 2):
        with suppress(OSError):  # closed by the parent process
            if stat.S_ISCHR(os.fstat(stream).st_mode) and not os.isatty(stream):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
