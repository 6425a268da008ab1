"""Atomic writes, locks on folders, and checksums."""

from __future__ import annotations

import hashlib
import os
import stat
import uuid
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from fairall.errors import FairAllError
from fairall.runtime.process import this_process

Log = Callable[[str], None]
"""Shows a message to the user."""

# What a path can be instead of a file; reading most of these blocks or never ends.
NO_FILES = {
    stat.S_IFDIR: "is a folder",
    stat.S_IFIFO: "is a pipe, not a file",
    stat.S_IFCHR: "is a device, not a file",
    stat.S_IFBLK: "is a device, not a file",
    stat.S_IFSOCK: "is a socket, not a file",
}


def ignore(message: str) -> None:
    """Discard a message."""


@contextmanager
def atomic(path: Path) -> Iterator[Path]:
    """A temporary path that replaces `path` when the block ends, and is deleted when it raises.

    An existing file keeps its mode; that of a new one follows the umask.

    Raises:
        OSError: with the name of `path`, if it cannot be written.
    """
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}{path.suffix}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else None
        # Not tempfile.mkstemp, whose files have mode 0600 whatever the umask.
        create = os.O_CREAT | os.O_EXCL | os.O_WRONLY
        os.close(os.open(temporary, create, 0o666 if mode is None else 0o600))
        yield temporary
        if mode is not None:
            temporary.chmod(mode)
        _flush_to_disk(temporary)
        temporary.replace(path)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error
    finally:
        temporary.unlink(missing_ok=True)


def remove_leftovers(folder: Path, name: str = "*") -> None:
    """Delete temporary files of `atomic` that killed processes left; the caller must hold the lock."""
    for temporary in folder.glob(f".{name}.*"):
        temporary.unlink(missing_ok=True)


@contextmanager
def locked(folder: Path, lock: Path, *, log: Log = ignore) -> Iterator[None]:
    """Create `folder` and hold `lock` until the block ends; other processes wait for it.

    The system releases the lock of a process that has ended or was killed.

    Args:
        folder: folder to write to.
        lock: file beside it.
        log: called with the name of the process that holds the lock, if there is one.

    Raises:
        FairAllError: if they cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file_lock = FileLock(lock)
        try:
            file_lock.acquire(timeout=0)
        except Timeout:
            log(f"Waiting for {lock.read_text() or 'another process'}, which is at work on {folder}")
            file_lock.acquire()
        with suppress(OSError):  # shown to waiting processes only
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


def held(lock: Path) -> bool:
    """Whether a process is at work in the block of `locked`; False where that cannot be told."""
    if not lock.exists():
        return False
    try:
        with FileLock(lock, timeout=0):
            return False
    except Timeout:
        return True
    except OSError:
        return False


def why_no_file(path: Path) -> str | None:
    """Why `path` cannot be read as a file; None if it is one."""
    try:
        return NO_FILES.get(stat.S_IFMT(path.stat().st_mode))
    except (FileNotFoundError, NotADirectoryError):
        return "there is no such file"
    except OSError as error:
        return f"cannot be read ({error.strerror or error})"
    except ValueError as error:  # a NUL character in the name
        return f"cannot be read ({error})"


def sqlite_url(path: Path) -> str:
    """Address of a sqlite database, of SQLAlchemy's form, in which only `?` has a meaning.

    Raises:
        FairAllError: where the path has a `?`.
    """
    if "?" in str(path):
        raise FairAllError(
            f"{path.parent}: a database cannot be in a folder with ? in its name; choose another with "
            "outputs_dir=FOLDER"
        )
    return f"sqlite:///{path}"


def sha256(path: Path) -> str:
    """SHA-256 of a file, 64 hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_sums(listing: Path, names: Sequence[str]) -> None:
    """Write the checksums of files in the format of `sha256sum`.

    Args:
        listing: file to write.
        names: names of the files, relative to the folder of `listing`.
    """
    lines = [f"{sha256(listing.parent / name)}  {name}\n" for name in names]
    with atomic(listing) as temporary:
        temporary.write_text("".join(lines))


def damaged(listing: Path, among: Collection[str] | None = None) -> list[str]:
    """Names of files that are missing or differ from their checksum in `listing`; its own if unreadable.

    Args:
        listing: by `write_sums`.
        among: names to look at; None: all.
    """
    try:
        lines = listing.read_text().splitlines()
        sums = {name: known for known, name in (line.split("  ", 1) for line in lines)}
    except (OSError, ValueError):
        return [listing.name]
    if not sums:
        return [listing.name]
    paths = {name: listing.parent / name for name in sums if among is None or name in among}
    return [name for name, path in paths.items() if not path.is_file() or sha256(path) != sums[name]]


def _flush_to_disk(path: Path) -> None:
    """Flush a file before it replaces another: after a loss of power it could otherwise be empty."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
