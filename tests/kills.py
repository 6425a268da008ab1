"""Work that is killed before each of its writes in turn, and what it leaves when it is done again."""

import itertools
import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from tests.conftest import files_of

Work = Callable[[Path], object]  # in a folder
CHANGES = ("os.rename", "os.remove", "os.rmdir", "os.truncate")  # audit events, beside opening to write


def killed(work: Work, folder: Path, before: int = 0) -> bool:
    """Do `work` in a process of its own, which is killed before its write of that number; whether it was."""
    child = os.fork()
    if child:
        status = os.waitpid(child, 0)[1]
        assert status in (0, signal.SIGKILL), f"the work ended with status {status}"
        return status == signal.SIGKILL
    writes = itertools.count(1)

    def count(event: str, arguments: tuple[object, ...]) -> None:
        opened = event == "open" and isinstance(arguments[2], int) and arguments[2] & os.O_ACCMODE
        if not (opened or event in CHANGES) or not isinstance(arguments[0], str | os.PathLike):
            return
        if folder in Path(arguments[0]).absolute().parents and next(writes) == before:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(count)
    code = 1
    try:
        os.chdir(folder)
        work(folder)
        code = 0
    finally:
        os._exit(code)


def survives(
    work: Work, begin: Path, place: Path, *, step: int = 1, compared: tuple[str, ...] = ("*",)
) -> int:
    """Kill `work` before every `step`-th write, do it again, and compare its files with undisturbed ones.

    Args:
        work: what is done in a folder.
        begin: the folder's content before.
        place: an empty folder for copies of it.
        step: distance of the writes before which it is killed.
        compared: patterns of the paths of files that are the same after each kill.

    Returns:
        How often it was killed.
    """

    def left(folder: Path) -> dict[str, bytes]:
        return {name: content for name, content in files_of(folder).items() if matches(name)}

    def matches(name: str) -> bool:
        return any(Path(name).match(pattern) for pattern in (*compared, ".~*"))

    calm = shutil.copytree(begin, place / "calm")
    assert not killed(work, calm)
    for kills in itertools.count():
        hunted = shutil.copytree(begin, place / str(kills))
        ended = not killed(work, hunted, 1 + kills * step)
        assert not killed(work, hunted)
        assert left(hunted) == left(calm), f"killed before write {1 + kills * step}"
        if ended:
            return kills
    raise AssertionError
