"""Settings of the whole process, made once by every entry point."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from fairall.runtime import signals, terminal


def prepare_process() -> None:
    """Set up encodings, log levels, environment, import path and signal handlers.

    Call first in every command, before numpy and torch are imported. Calling it again changes nothing.

    Raises:
        SystemExit: if the current folder has been deleted.
    """
    terminal.prepare()
    # Read once, when numpy and torch are imported.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    # Hydra then raises what it would otherwise print over many lines.
    os.environ["HYDRA_FULL_ERROR"] = "1"
    # Methods and data sets of one's own may lie in the current folder, however the command was started.
    current = str(Path.cwd())
    if current not in sys.path:
        sys.path.append(current)
    signals.listen()
