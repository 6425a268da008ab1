"""Atomic writes, locks on folders, and checksums."""

from __future__ import annotations

import fcntl
import fnmatch
import hashlib
import os
import re
import shutil
import stat
import tempfile
import uuid
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from filelock import FileLock, Timeout

from fairall.errors import FairAllError
from fairall.runtime.process import this_process
from fairall.runtime.reading import DamagedFileError, opened, read_text, why_no_file

Log = Callable[[str], None]
"""Shows a message to the user."""

MOST_OF_NAME = 300  # characters of the name of a process

TEMPORARY = re.compile(r"\.(?P<name>.+)\.[a-z0-9_]{8}(?P<suffix>(\.[^.]+)?)")  # names of `atomic`


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
        temporary.touch(0o666 if mode is None else 0o600, exist_ok=False)
        yield temporary
        if mode is not None:
            temporary.chmod(mode)
        with temporary.open("rb") as file:
            os.fsync(file.fileno())  # after a loss of power the file could otherwise be empty
        temporary.replace(path)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error
    finally:
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
        with tidied(path.parent, path.name), tempfile.TemporaryFile(dir=path.parent) as file:
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
            for path in folder.iterdir():
                replaced = replaced_by(path.name)
                if replaced is not None and fnmatch.fnmatchcase(replaced, name):
                    path.unlink(missing_ok=True)
        with suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_SH)
        yield
    finally:
        os.close(handle)


def replaced_by(name: str) -> str | None:
    """The name of the file that a temporary file of `atomic` would replace; None for other files."""
    found = TEMPORARY.fullmatch(name)
    if found is None or Path(found["name"]).suffix != found["suffix"]:
        return None
    return found["name"]


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


def keep_modes(old: Path, new: Path) -> None:
    """Give a file, or the files in a folder, the modes of those that they are to replace."""
    for path in [new, *new.rglob("*")]:
        replaced = old / path.relative_to(new)
        if path.is_file() and replaced.is_file():
            path.chmod(stat.S_IMODE(replaced.stat().st_mode))


def remove_leftovers(folder: Path, name: str = "*") -> None:
    """Delete temporary files of `atomic` that killed processes left; the caller must hold the lock."""
    for temporary in folder.glob(f".{name}.*"):
        temporary.unlink(missing_ok=True)


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
        try:
            file_lock.acquire(timeout=0)
        except Timeout:
            log(f"Waiting for {holder(lock)}, which is at work on {folder}")
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
    """Whether a process is in the block of `locked`; False if unknown."""
    if not lock.exists():
        return False
    try:
        with FileLock(lock, timeout=0):
            return False
    except Timeout:
        return True
    except OSError:
        return False


def holder(lock: Path) -> str:
    """The process that holds a lock, as far as is known."""
    with suppress(OSError, DamagedFileError):
        return read_text(lock)[:MOST_OF_NAME] or "another process"
    return "another process"


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

    Names are relative to the folder of `listing`.
    """
    sums = "".join(f"{sha256(listing.parent / name)}  {name}\n" for name in names)
    write_text(listing, sums + _last_line(sums))


def damaged(listing: Path, among: Collection[str] | None = None) -> list[str]:
    """Names of files that are missing or differ from their checksum in `listing`.

    The name of `listing` alone, where it is unreadable, incomplete or edited, or lacks a name of `among`.

    Args:
        listing: by `write_sums`.
        among: names of files whose content is compared, the others must only be there; None: all.
    """
    try:
        content = read_text(listing)
        above, newline, _ = content[:-1].rpartition("\n")
        if content != above + newline + _last_line(above + newline):
            return [listing.name]
        sums = {name: known for known, name in (line.split("  ", 1) for line in above.split("\n"))}
    except (OSError, DamagedFileError, ValueError):
        return [listing.name]
    compared = sums.keys() if among is None else set(among)
    if not compared <= sums.keys():
        return [listing.name]
    wrong = []
    for name, known in sums.items():
        path, intact = listing.parent / name, False
        with suppress(OSError, DamagedFileError):
            intact = sha256(path) == known if name in compared else why_no_file(path) is None
        if not intact:
            wrong.append(name)
    return wrong


def _last_line(sums: str) -> str:
    """The last line of a list of checksums, its own checksum; `sha256sum -c` skips it."""
    n_files = sums.count("\n")
    return f"# {n_files} files; SHA-256 of the lines above: {sha256_of_text(sums)}\n"
