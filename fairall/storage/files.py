"""Files that are either whole or not there, and folders that one process at a time writes to."""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from fairall.errors import FairAllError
from fairall.runtime.process import this_process

Log = Callable[[str], None]

# What a path can lead to instead of a file; reading most of them blocks or never ends.
NO_FILES = {
    stat.S_IFDIR: "is a folder",
    stat.S_IFIFO: "is a pipe, not a file",
    stat.S_IFCHR: "is a device, not a file",
    stat.S_IFBLK: "is a device, not a file",
    stat.S_IFSOCK: "is a socket, not a file",
}


def ignore(text: str) -> None:
    """For who has nobody to tell."""


@contextmanager
def atomic(path: Path) -> Iterator[Path]:
    """A temporary path beside `path`, which takes its place when the block ends well, else vanishes.

    Raises:
        OSError: with `path` for its name, where the system refuses.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=path.suffix)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        temporary.chmod(0o644)
        _reach_the_disk(temporary)
        temporary.replace(path)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error
    finally:
        temporary.unlink(missing_ok=True)


def remove_leftovers(folder: Path, name: str = "*") -> None:
    """Deletes the temporaries of `atomic` that killed processes left; for who holds their lock."""
    for temporary in folder.glob(f".{name}.*"):
        temporary.unlink(missing_ok=True)


@contextmanager
def locked(folder: Path, lock: Path, *, log: Log = ignore) -> Iterator[None]:
    """Makes `folder` and holds `lock` until the block ends; another process that wants it waits.

    The system frees the lock of a process that has ended, however it did.

    Args:
        folder: what is written to.
        lock: a file beside it.
        log: told whom we wait for, if we do.

    Raises:
        FairAllError: where they cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file_lock = FileLock(lock)
        try:
            file_lock.acquire(timeout=0)
        except Timeout:
            log(f"Waiting for {lock.read_text() or 'another process'}, which is at work on {folder}")
            file_lock.acquire()
        with suppress(OSError):  # only to be told to others
            lock.write_text(this_process())
    except OSError as error:
        raise FairAllError(
            f"cannot write to {folder}: {error.strerror or error}; "
            "choose another place with outputs_dir=FOLDER"
        ) from error
    try:
        yield
    finally:
        file_lock.release()


def why_no_file(path: Path) -> str | None:
    """What is wrong with `path` where a file is needed; None where it leads to one."""
    try:
        return NO_FILES.get(stat.S_IFMT(path.stat().st_mode))
    except (FileNotFoundError, NotADirectoryError):
        return "there is no such file"
    except OSError as error:
        return f"cannot be read ({error.strerror or error})"
    except ValueError as error:  # a NUL character in the name
        return f"cannot be read ({error})"


def sha256(path: Path) -> str:
    """The checksum of a file, 64 hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_sums(listing: Path, names: Sequence[str]) -> None:
    """Lists the checksums of files, as `sha256sum -c` reads them.

    Args:
        listing: the file to write.
        names: of the files, relative to the folder of `listing`.
    """
    lines = [f"{sha256(listing.parent / name)}  {name}\n" for name in names]
    with atomic(listing) as temporary:
        temporary.write_text("".join(lines))


def damaged(listing: Path) -> list[str]:
    """Names of files that are missing or differ from what `write_sums` listed, or of `listing` itself."""
    try:
        lines = listing.read_text().splitlines()
        sums = {name: known for known, name in (line.split("  ", 1) for line in lines)}
    except (OSError, ValueError):
        return [listing.name]
    if not sums:
        return [listing.name]
    paths = {name: listing.parent / name for name in sums}
    return [name for name, path in paths.items() if not path.is_file() or sha256(path) != sums[name]]


def _reach_the_disk(path: Path) -> None:
    """Before a file takes another's place: after a loss of power it would be there and empty."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
