"""Settings of the whole process, made once by every entry point."""

from __future__ import annotations

import atexit
import gc
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from fairall.runtime import signals, terminal
from fairall.runtime.credentials import withheld

# Objects made, less those deleted, between two searches for garbage. Torch, MLflow and matplotlib make a
# million objects that stay: with Python's 700 a short command searches them a dozen times.
GARBAGE = 20_000


def run_command(command: Callable[[list[str]], int], words: Sequence[str] | None = None) -> int:
    """Prepare the process and run a command; report an interruption in one line on standard error.

    The command sees its words without user and password of the addresses in them (`credentials`).

    Args:
        command: takes the words and returns the exit code. Slow imports belong inside it.
        words: of the command line; None: those of the process.

    Returns:
        The exit code.
    """
    prepare_process()
    try:
        return command(sys.argv[1:] if words is None else [withheld(word) for word in words])
    except KeyboardInterrupt as interruption:
        then = interruption.then if isinstance(interruption, signals.Stopped) else signals.RESUMES
        print(f"fairall: interrupted; the same command {then}", file=sys.stderr)
        return signals.exit_code(interruption)


def prepare_process() -> None:
    """Set up encodings, log levels, environment, garbage collector, import path and signal handlers.

    User and password of addresses are withheld from the words of the process, which Hydra reads too.

    Call first in every command, before numpy and torch are imported. Calling it again changes nothing.

    Raises:
        SystemExit: if the current folder has been deleted.
    """
    terminal.prepare()
    # Read once, when numpy and torch are imported.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    # Hydra then raises what it would otherwise print over many lines.
    os.environ["HYDRA_FULL_ERROR"] = "1"
    gc.set_threshold(GARBAGE)
    # Python searches for garbage once more at its end, which takes a second when all is freed anyway.
    atexit.register(gc.freeze)
    # Methods and data sets of one's own may lie in the current folder, however the command was started.
    current = str(Path.cwd())
    if current not in sys.path:
        sys.path.append(current)
    withheld(os.environ.get("MLFLOW_TRACKING_URI", ""))
    sys.argv[1:] = map(withheld, sys.argv[1:])
    signals.listen()
