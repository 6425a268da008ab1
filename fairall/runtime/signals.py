"""SIGTERM, SIGHUP and Ctrl-C: the first stops work where it can resume, a second one exits at once.

SIGHUP comes when a terminal is closed, often twice (from the shell and from the system) or together with
SIGTERM, so it is never taken for the second one.

`Stopped` is not raised while a module is imported: extensions end the process by an exception there, and
what they import stays half made. Where code between catches it and goes on, it is raised again.
"""

from __future__ import annotations

import atexit
import os
import signal
import stat
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

RESUMES = "goes on from what was saved"
AGAIN = 0.1  # seconds until a stop that could not be raised, or was caught, is raised again
LONGEST_IMPORT = 60.0  # seconds for which a stop waits for the end of an import
IMPORTING = "<frozen importlib._bootstrap>"  # the file of Python's frames of an import


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

    requested: int | None = None  # number of the first signal
    deferred = False
    since = 0.0  # time of the first signal, by time.monotonic


def at_once() -> None:
    """Install handlers that end the process with one line, for the time before `listen`.

    Nothing has been done then, and a traceback of the imports would tell nothing.
    """
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, _leave)


def _leave(number: int, frame: FrameType | None) -> None:
    os.write(2, f"fairall: interrupted; the same command {RESUMES}\n".encode())
    os._exit(128 + number)


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
        _try_again()
        raise Stopped(_State.requested)


def interruption(error: BaseException | None) -> Stopped | None:
    """The `Stopped` that an error is or has come from; a new one if there is none and a signal has come."""
    return _from_stop(error) or (None if _State.requested is None else Stopped(_State.requested))


def told() -> None:
    """Raise `Stopped` no more: the command has ended."""
    if _State.requested is not None:
        signal.setitimer(signal.ITIMER_REAL, 0.0)


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
    _State.requested, _State.since = number, time.monotonic()
    atexit.register(told)  # at its end Python removes the handler, without which SIGALRM kills
    if not _State.deferred:
        _raise(frame)


def _raise(frame: FrameType | None) -> None:
    """Raise `Stopped`, or try again later where it must not be raised, or is under way."""
    _try_again()
    while frame is not None and frame.f_code.co_filename != IMPORTING:
        frame = frame.f_back
    imports = frame is not None and time.monotonic() - _State.since < LONGEST_IMPORT
    if _State.requested is not None and not imports and not _from_stop(sys.exc_info()[1]):
        raise Stopped(_State.requested)


def _from_stop(error: BaseException | None) -> Stopped | None:
    """The `Stopped` that an error is, or during whose handling it was raised."""
    while error is not None and not isinstance(error, Stopped):
        error = error.__context__
    return error


def _try_again() -> None:
    """Have the handler of SIGALRM called in a while, if this is the main thread, which gets signals."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGALRM, lambda _, frame: _try_again() if _State.deferred else _raise(frame))
        signal.setitimer(signal.ITIMER_REAL, AGAIN)


def _leave_terminal() -> None:
    """Discard further output to a terminal that is closed: writing to it raises OSError.

    A closed terminal is a character device that no longer answers as a terminal.
    """
    for stream in (1, 2):
        with suppress(OSError):  # closed by the parent process
            if stat.S_ISCHR(os.fstat(stream).st_mode) and not os.isatty(stream):
                null = os.open(os.devnull, os.O_WRONLY)
                os.dup2(null, stream)
                os.close(null)
