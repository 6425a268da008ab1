"""Atomic writes, locks on folders, and checksums."""

from __future__ import annotations

import fcntl
import glob
import hashlib
import os
import shutil
import tempfile
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from filelock import FileLock, Timeout

from fairall.errors import FairAllError
from fairall.runtime.process import this_process
from fairall.storage.stored import DamagedFileError, opened, read_text, why_no_file

Log = Callable[[str], None]
"""Shows a message to the user."""
TEMPORARY = ".~"  # how names of temporary files of `atomic` begin


def ignore(message: str) -> None:
    """Discard a message."""


@contextmanager
def atomic(path: Path) -> Iterator[Path]:
    """A temporary path that replaces `path` when the block ends, and is deleted when it raises.

    An existing file keeps its mode; that of a new one follows the umask.

    Raises:
        OSError: with the name of `path`, if it cannot be written.
    """
    temporary = path.with_name(f"{TEMPORARY}{uuid.uuid4().hex[:8]}~{path.name}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Not tempfile.mkstemp, whose files have mode 0600 whatever the umask.
        temporary.touch(0o600 if path.exists() else 0o666, exist_ok=False)
        yield temporary
        if path.exists():
            shutil.copymode(path, temporary)
        with temporary.open("rb") as file:
            os.fsync(file.fileno())  # after a loss of power the file could otherwise be empty
        temporary.replace(path)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error
    finally:
        with suppress(OSError):  # of which the folder is a file
            temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write a text file as UTF-8 by `atomic`."""
    with atomic(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


@contextmanager
def unnamed(path: Path) -> Iterator[IO[bytes]]:
    """An unnamed file, whose content replaces `path` when the block ends.

    For data of people: the system deletes it with the process, however that ends. Only while the content is
    copied to the file of `atomic`, at the end, can a kill leave something, which the next call for `path`
    deletes.

    Raises:
        OSError: with the name of `path`, if it cannot be written.
    """
    try:
        with tidied(path.parent, glob.escape(path.name)), tempfile.TemporaryFile(dir=path.parent) as file:
            yield file
            file.seek(0)
            with atomic(path) as temporary, temporary.open("wb") as copied:
                shutil.copyfileobj(file, copied)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error


@contextmanager
def tidied(folder: Path, name: str = "*") -> Iterator[None]:
    """Delete temporary files of `atomic` that killed processes left in a user's folder.

    Processes in the block share a lock on the folder, and only one that has it alone deletes. `name` is a
    pattern of the files that they would have replaced.
    """
    folder.mkdir(parents=True, exist_ok=True)
    handle = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # others are at work, or the file system has no locks
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            remove_leftovers(folder, name)
        with suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_SH)
        yield
    finally:
        os.close(handle)


def remove_leftovers(folder: Path, name: str = "*") -> None:
    """Delete temporary files of `atomic` that killed processes left; the caller must hold the lock.

    `name` is a pattern of the files that they would have replaced.
    """
    for temporary in folder.glob(f"{TEMPORARY}????????~{name}"):
        temporary.unlink(missing_ok=True)


def cache_folder(name: str) -> Path:
    """Folder of what all runs of a user share, in `$XDG_CACHE_HOME` or ~/.cache; it need not exist.

    Raises:
        FairAllError: where neither the variable nor a home folder is set.
    """
    cache = os.environ.get("XDG_CACHE_HOME")
    try:
        root = Path(cache) if cache else Path.home() / ".cache"
    except RuntimeError as error:
        raise FairAllError("there is no home folder to cache in; set XDG_CACHE_HOME=FOLDER") from error
    return root / "fairall" / name


@contextmanager
def locked(folder: Path, lock: Path, *, log: Log = ignore) -> Iterator[None]:
    """Create `folder` and hold `lock` until the block ends; other processes wait for it.

    The system releases the lock of a process that has ended or was killed. `log` is called with the name of
    the process that holds it, if there is one.

    Raises:
        FairAllError: if they cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file_lock = FileLock(lock)
        if process := holder(lock):
            log(f"Waiting for {process}, which is at work on {folder}")
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


def holder(lock: Path) -> str | None:
    """The process that is in the block of `locked`; None if there is none, or where that is unknown."""
    with suppress(OSError, DamagedFileError):
        try:
            if lock.exists():
                with FileLock(lock, timeout=0):
                    return None
        except Timeout:
            return read_text(lock) or "another process"
    return None


def sqlite_url(path: Path) -> str:
    """SQLAlchemy's address of a sqlite database, in which `?` cannot be escaped.

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
    """SHA-256 of a file, 64 hexadecimal digits; raises as `opened`."""
    with opened(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sha256_of_text(text: str) -> str:
    """SHA-256 of a text as UTF-8, 64 hexadecimal digits."""
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()


def write_sums(listing: Path, names: Sequence[str]) -> None:
    """Write the checksums of files in the format of `sha256sum`, and below them one of the list itself.

    Names are relative to the folder of `listing`. Raises as `opened` and `atomic`.
    """
    write_text(listing, _listed({name: sha256(listing.parent / name) for name in names}))


def damaged(listing: Path, among: Collection[str] | None = None) -> list[str]:
    """Names of files that are missing or differ from their checksum in `listing`.

    The name of `listing` alone, where it is unreadable, incomplete or edited, or lacks a name of `among`.

    Args:
        listing: by `write_sums`.
        among: names of files whose content is compared, the others must only be there; None: all.
    """
    try:
        content = read_text(listing)
    except (OSError, DamagedFileError):
        content = ""
    sums = {line[66:]: line[:64] for line in content.split("\n")[:-2]}
    compared = sums if among is None else among
    if content != _listed(sums) or not sums.keys() >= {*compared}:
        return [listing.name]
    return [name for name in sums if not _is_intact(listing.parent / name, sums[name], name in compared)]


def _is_intact(path: Path, known: str, compared: bool) -> bool:
    with suppress(OSError, DamagedFileError):
        return sha256(path) == known if compared else why_no_file(path) is None
    return False


def _listed(sums: Mapping[str, str]) -> str:
    """Lines of checksums by name, and one of their own, which `sha256sum -c` skips."""
    lines = "".join(f"{known}  {name}\n" for name, known in sums.items())
    return f"{lines}# {len(sums)} files; SHA-256 of the lines above: {sha256_of_text(lines)}\n"
