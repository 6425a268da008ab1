"""Settings of the process, made once by every entry point; its name, threads and memory."""

from __future__ import annotations

import argparse
import atexit
import functools
import gc
import logging
import os
import resource
import select
import socket
import sys
import sysconfig
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from io import TextIOWrapper
from pathlib import Path
from types import ModuleType
from typing import Any

from fairall.runtime import signals
from fairall.runtime.credentials import withheld

# Objects made, less those deleted, between two searches for garbage. Torch, MLflow and matplotlib make a
# million objects that stay: with Python's 700 a short command takes 10 % more CPU time (docs/benchmarks.md).
GARBAGE = 100_000
BROKEN_PIPE = 141  # exit code of shells for a program that SIGPIPE ends, 128 + 13
MEMINFO, CONTAINER_LIMIT = Path("/proc/meminfo"), Path("/sys/fs/cgroup/memory.max")
# What the loader of shared libraries, the system and torch, and Python say where there is no memory.
EXHAUSTED = ("failed to map segment", "allocate memory", "can't start new thread")
# Loggers that report every step of their own: migrations, the font cache of the first figure.
LOG_LEVELS = {"alembic": logging.WARNING, "matplotlib.font_manager": logging.ERROR}
# Libraries of which warnings are not shown, as a regular expression.
QUIET = r"(?:aif360|hydra|matplotlib|mlflow|numba|numpy|optuna|pandas|scipy|shap|sklearn|sqlalchemy|torch)\b"
# Folders of code that is not the user's: this package, installed ones, Python's own, their commands.
PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120
KINDS = ("stdlib", "platstdlib", "purelib", "platlib", "scripts")
INSTALLED = tuple(f"{folder}{os.sep}" for folder in (PACKAGE, *map(sysconfig.get_path, KINDS)))
NO_MEMORY = "there is not enough memory to load what this command needs"
ADDRESS_SPACE = 1536 << 20  # bytes that torch, pandas, MLflow and matplotlib ask for

_threads: ThreadPoolExecutor | None = None  # beside the main thread
_n_threads = 1
_training = False  # not where a program of the user's has loaded a policy


def run_command(command: Callable[[list[str]], int], words: Sequence[str] | None = None) -> int:
    """Prepare the process and run a command; report an interruption in one line on standard error.

    The command sees its words without user and password of the addresses in them (`credentials`). One whose
    output is read no further, as by `| head -1`, ends silently.

    Args:
        command: takes the words and returns the exit code. Slow imports belong inside it.
        words: of the command line; None: those of the process.
    """
    try:
        prepare_process()
        code = command(sys.argv[1:] if words is None else [withheld(word) for word in words])
        if sys.stdout is not None:
            sys.stdout.flush()
        return code
    except BaseException as error:
        if isinstance(error, BrokenPipeError) and _output_dropped():
            return BROKEN_PIPE
        # A library may have turned an interruption into an error of its own.
        stopped = error if isinstance(error, signals.Stopped) else signals.stop_requested()
        if stopped is None:
            raise
        print(f"fairall: interrupted; the same command {stopped.then}", file=sys.stderr)
        return stopped.exit_code


def out_of_memory(error: BaseException | None) -> bool:
    """Whether an error, or one that it comes from, says that memory or threads are exhausted.

    Libraries that cannot be loaded for want of memory raise ImportError.
    """
    while error is not None:
        if isinstance(error, MemoryError) or any(words in str(error) for words in EXHAUSTED):
            return True
        error = error.__cause__ or error.__context__
    return False


def require_address_space() -> None:
    """End the process with one line where its limit of memory is below what the libraries need.

    Some of them end the process, or compute for ever, where they cannot allocate memory as they are loaded.
    """
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit != resource.RLIM_INFINITY and limit < ADDRESS_SPACE:
        needed = f"{ADDRESS_SPACE >> 20} MiB, and the limit is {limit >> 20} MiB (ulimit -v)"
        sys.exit(f"fairall: {NO_MEMORY}: {needed}")


def whole_number(word: str) -> int:
    """Parse an argument of a command line, as 7 or 7.0, as an integer of at least 1; a `type` of argparse."""
    digits = word.removesuffix(".0")
    if not digits.isdecimal() or int(digits) < 1:
        raise argparse.ArgumentTypeError(f"it must be a whole number of at least 1, not {word}")
    return int(digits)


def _output_dropped() -> bool:
    """Discard what is still to be written to an output that nobody reads; whether there is one.

    Without this Python would try to write it at its end, and report that.
    """
    poll = select.poll()
    poll.register(1, 0)
    poll.register(2, 0)
    unread = poll.poll(0)
    for descriptor, _ in unread:
        os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)
    return bool(unread)


def prepare_process() -> None:
    """Set up encodings, log levels, environment, garbage collector and signal handlers.

    User and password of addresses are withheld from the words of the process, which Hydra reads too.

    Call first in every command, before numpy and torch are imported. Calling it again changes nothing.

    Raises:
        SystemExit: if the current folder has been deleted.
    """
    prepare_output()
    # Read once, when numpy and torch are imported.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    # Hydra then raises what it would otherwise print over many lines.
    os.environ["HYDRA_FULL_ERROR"] = "1"
    gc.set_threshold(GARBAGE)
    # Python searches for garbage once more at its end, which takes a second where all is freed anyway.
    atexit.register(gc.freeze)
    # `python -m` looks for modules in the current folder first. Unless this process does, none that it starts
    # should either.
    if sys.path[:1] not in ([""], [str(Path.cwd())]):
        os.environ.setdefault("PYTHONSAFEPATH", "1")
    withheld(os.environ.get("MLFLOW_TRACKING_URI", ""))
    sys.argv[1:] = map(withheld, sys.argv[1:])
    signals.listen()


def import_own(name: str) -> ModuleType:
    """Import a module that the user names; it may be in the current folder, however the command was started.

    The folder is searched only from the first such module on that is nowhere else, and last: libraries try to
    import modules that need not be there, and would run files of these names in a folder of somebody else's.
    """
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        current = str(Path.cwd())
        if error.name != name.partition(".")[0] or current in sys.path:
            raise
        sys.path.append(current)
        return import_module(name)


def numba_version() -> str | None:
    """Version of numba; None where it is not installed or switched off by NUMBA_DISABLE_JIT."""
    try:
        return version("numba") if os.environ.get("NUMBA_DISABLE_JIT", "0") == "0" else None
    except PackageNotFoundError:
        return None


def available_memory() -> int | None:
    """Bytes of memory that are left, within the limit of a container; None where that is unknown."""
    try:
        meminfo = dict(line.split(":") for line in MEMINFO.read_text().splitlines())
        available = int(meminfo["MemAvailable"].split()[0]) * 1024
    except (OSError, ValueError, KeyError):
        return None
    with suppress(OSError, ValueError):  # without a limit it says "max"
        available = min(available, int(CONTAINER_LIMIT.read_text()))
    return available


@contextmanager
def short_of_memory() -> Iterator[None]:
    """Raise MemoryError where torch raises RuntimeError because memory is exhausted."""
    try:
        yield
    except RuntimeError as error:
        if "allocate memory" in str(error):
            raise MemoryError from error
        raise


def prepare_processor() -> None:
    """Give torch one thread, and flush denormal numbers to zero.

    Operations of this size gain nothing from several threads, which wait for each other at the end of each
    and lose much time where another process has one of the cores. Compiled code has those of `use_threads`.

    Adam moments of weights without a gradient shrink towards zero, and a processor takes many times longer
    for denormal numbers than for others.
    """
    import torch  # slow, and `--help` needs the versions alone

    torch.set_num_threads(1)
    torch.set_flush_denormal(True)


def use_threads(n: int | None) -> None:
    """Divide the replicates of every call over `n` threads, by default a thread per core of the process.

    No number depends on it.
    """
    import torch

    global _threads, _n_threads, _training
    _training = True
    limit_blas()
    if n is None:
        n = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if _threads is not None:
        _threads.shutdown()
    # Denormal numbers are flushed to zero in each thread by itself.
    own_setting = functools.partial(torch.set_flush_denormal, True)
    _threads, _n_threads = ThreadPoolExecutor(n - 1, "native", own_setting) if n > 1 else None, n


def _after_fork() -> None:
    """Compute on one thread in a child process, which has none of the pool's."""
    global _threads, _n_threads
    _threads, _n_threads = None, 1


os.register_at_fork(after_in_child=_after_fork)


def over_replicates(
    call: Callable[[slice], None], n_replicates: int, left_out: Sequence[bool] | None = None
) -> None:
    """Apply `call` to all replicates, an equal share of them in each thread.

    A call takes as many replicates as possible: threads that wait for each other more often lose more where
    another process has one of the cores. The replicates in `left_out`, of length E, are not computed.
    """
    import numpy as np  # `prepare_process` comes before

    computed = np.arange(n_replicates)
    if left_out is not None:
        computed = computed[~np.array(left_out, dtype=bool)[:n_replicates]]
    own, *shares = np.array_split(computed, max(1, min(_n_threads, len(computed))))

    def compute(share: Any) -> None:
        for run in np.split(share, np.flatnonzero(np.diff(share) > 1) + 1):
            if len(run) > 0:
                call(slice(int(run[0]), int(run[-1]) + 1))

    others = [_threads.submit(compute, share) for share in shares] if _threads is not None else []
    compute(own)
    for other in others:
        other.result()  # raises what `call` has raised


def limit_blas() -> None:
    """Limit BLAS, which compiled code calls, to one thread in a process that trains.

    Replicates are divided over threads.
    """
    if _training and "numba" in sys.modules:
        from threadpoolctl import threadpool_limits

        threadpool_limits(1, "blas")


def this_process() -> str:
    """The name of this process, host:pid."""
    return f"{socket.gethostname()}:{os.getpid()}"


def prepare_output() -> None:
    """Write characters that the encoding of the output lacks as escapes; silence other libraries.

    Their log levels are set, and warnings of their code, in which a user can mend nothing, are ignored. With
    Python's option -W, or PYTHONWARNINGS, all are shown that it says.

    Raises:
        SystemExit: with one line, if the current folder has been deleted.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    for name, level in LOG_LEVELS.items():
        logging.getLogger(name).setLevel(level)
    if not sys.warnoptions:
        warnings.filterwarnings("ignore", module=QUIET)
        warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"fairall\.")  # of numpy
    try:
        os.getcwd()  # noqa: PTH109 (avoids importing pathlib)
    except FileNotFoundError:
        sys.exit("fairall: the current folder has been deleted; change to another one with cd FOLDER")
