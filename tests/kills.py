"""Work that is killed before each of its writes in turn, and what it leaves when it is done again."""

import contextlib
import itertools
import os
import shutil
import signal
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.kills import ended, forked
from tests.conftest import files_of

Work = Callable[[Path], object]  # in a folder


def killed(work: Work, folder: Path, before: int = 0, by: int = signal.SIGKILL) -> bool:
    """Whether a signal before a write of that number ends `work`, done in a process of its own."""

    def done() -> object:
        os.chdir(folder)
        return work(folder)

    code = ended(forked(done, before, folder, by))
    assert code in (0, -by if by == signal.SIGKILL else 128 + by), f"the work ended with code {code}"
    return code != 0


def survives(
    work: Work,
    begin: Path,
    place: Path,
    *,
    step: int = 1,
    compared: tuple[str, ...] = ("*",),
    by: Sequence[int] = (signal.SIGKILL,),
) -> int:
    """End `work` before every `step`-th write, do it again, and compare its files with undisturbed ones.

    Args:
        work: what is done in a folder.
        begin: the folder's content before.
        place: an empty folder for copies of it.
        step: distance of the writes before which it is ended.
        compared: patterns of the paths of files that are the same after each signal.
        by: signals in turn.

    Returns:
        How often it was ended.
    """

    def left(folder: Path) -> dict[str, bytes]:
        patterns = (*compared, ".~*")
        return {name: of for name, of in files_of(folder).items() if any(map(Path(name).match, patterns))}

    calm = shutil.copytree(begin, place / "calm")
    with contextlib.chdir(calm):
        # In this process, whose imports the forked ones share.
        assert not getattr(work(calm), "returncode", 0)
    for kills, number in zip(itertools.count(), itertools.cycle(by)):
        hunted = shutil.copytree(begin, place / str(kills))
        done = not killed(work, hunted, 1 + kills * step, number)
        assert not killed(work, hunted)
        assert left(hunted) == left(calm), f"signal {number} before write {1 + kills * step}"
        if done:
            return kills
    raise AssertionError
