"""Files that are either whole or not there, and folders that one process at a time writes to."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock

from fairall.errors import FairAllError


@contextmanager
def atomic(path: Path) -> Iterator[Path]:
    """A temporary path beside `path`, which takes its place when the block ends well, else vanishes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=path.suffix)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        temporary.chmod(0o644)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def locked(folder: Path, lock: Path) -> Iterator[None]:
    """Makes `folder` and holds `lock` until the block ends; another process that wants it waits.

    Raises:
        FairAllError: where they cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        held = FileLock(lock).acquire()
    except OSError as error:
        raise FairAllError(
            f"cannot write to {folder}: {error.strerror or error}; "
            "choose another place with outputs_dir=FOLDER"
        ) from error
    with held:
        yield
