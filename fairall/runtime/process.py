"""Names of processes across machines, and whether a process is still running."""

from __future__ import annotations

import os
import socket


def this_process() -> str:
    """The name of this process, host:pid."""
    return f"{socket.gethostname()}:{os.getpid()}"


def is_gone(process: str) -> bool:
    """Whether a process (host:pid) of this machine has ended; False for other machines and other words."""
    host, _, pid = process.rpartition(":")
    if host != socket.gethostname() or not (pid.isascii() and pid.isdecimal()):
        return False
    try:
        os.kill(int(pid), 0)
    except (ProcessLookupError, OverflowError):  # of a number larger than any process has
        return True
    except PermissionError:
        pass  # another user's, and running
    return False
