"""Who does a piece of work, and whether they are still there to do it."""

from __future__ import annotations

import os
import socket


def this_process() -> str:
    """host:pid."""
    return f"{socket.gethostname()}:{os.getpid()}"


def is_gone(process: str) -> bool:
    """Whether a process (host:pid) was one of this machine and has ended; False where nobody knows."""
    host, _, pid = process.rpartition(":")
    if host != socket.gethostname():
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        pass  # somebody else's, but alive
    return False
