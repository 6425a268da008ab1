"""Read files that runs have written, whatever has become of them."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path

from fairall.errors import FairAllError

# What a path can be instead of a file; reading most of these blocks or never ends.
NO_FILES = {
    stat.S_IFDIR: "is a folder",
    stat.S_IFIFO: "is a pipe, not a file",
    stat.S_IFCHR: "is a device, not a file",
    stat.S_IFBLK: "is a device, not a file",
    stat.S_IFSOCK: "is a socket, not a file",
}

# Most bytes of a file that runs write, by its suffix, and of any other. A larger one is damage.
MOST_BYTES = {
    ".yaml": 2**18,  # a configuration has 4 KiB, and names of columns in addition
    ".csv": 2**34,
    ".safetensors": 2**32,
    ".pt": 2**34,
}
MOST_BYTES_OF_OTHERS = 2**26
# Whether there is a folder at a path; False too where its name is too long, or it may not be seen.
is_folder = os.path.isdir


class DamagedFileError(FairAllError):
    """The content of a file differs from what was written to it, or it is no file."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path} is damaged ({reason})")
        self.path = path
        self.reason = reason


@contextmanager
def opened(path: Path) -> Iterator[BufferedReader]:
    """A file that a run has written, to read it: a regular one, or a link to one, within `MOST_BYTES`.

    Raises:
        OSError: with the path, where the system does not give it; FileNotFoundError where there is none.
        DamagedFileError: where it is no such file.
    """
    try:
        status = path.stat()
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.ENOTDIR):
            raise
        raise DamagedFileError(path, str(error.strerror)) from error
    most = MOST_BYTES.get(path.suffix, MOST_BYTES_OF_OTHERS)
    if wrong := NO_FILES.get(stat.S_IFMT(status.st_mode)):
        raise DamagedFileError(path, wrong)
    if status.st_size > most:
        raise DamagedFileError(path, f"{status.st_size} bytes, of at most {most}")
    with path.open("rb") as file:
        yield file


def read_bytes(path: Path) -> bytes:
    """The content of a file that a run has written, of the size that it has now; raises as `opened`."""
    with opened(path) as file:
        return file.read(os.fstat(file.fileno()).st_size)


def read_text(path: Path) -> str:
    """The content of a text file that a run has written, UTF-8; raises as `opened`."""
    try:
        return read_bytes(path).decode()
    except UnicodeDecodeError as error:
        raise DamagedFileError(path, "no UTF-8") from error


def why_no_file(path: Path) -> str | None:
    """Why `path` cannot be read as a file; None if it is one."""
    try:
        return NO_FILES.get(stat.S_IFMT(path.stat().st_mode))
    except (FileNotFoundError, NotADirectoryError):
        return "there is no such file"
    except (OSError, ValueError) as error:  # ValueError: a NUL character in the name
        return f"cannot be read ({getattr(error, 'strerror', None) or error})"
