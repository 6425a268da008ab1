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

# What the system says of a folder, a circle of links, a socket, and a path inside a file.
NO_FILE_EITHER = (errno.EISDIR, errno.ELOOP, errno.ENXIO, errno.ENOTDIR)

KIB = 1024
# Most bytes of a file that runs write, by its name or suffix, and of any other. A larger one is damage.
MOST_BYTES = {
    "config.yaml": 256 * KIB,  # a configuration has 4 KiB, and names of columns in addition
    "features.json": 8 * KIB**2,
    "tracking.json": KIB**2,
    "DONE": KIB**2,
    "SUMS": KIB**2,
    "metrics.csv": KIB**3,
    "decisions.csv": 16 * KIB**3,
    ".safetensors": 4 * KIB**3,
    ".pt": 16 * KIB**3,
}
MOST_BYTES_OF_OTHERS = 64 * KIB**2


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
    most = MOST_BYTES.get(path.name, MOST_BYTES.get(path.suffix, MOST_BYTES_OF_OTHERS))
    try:
        # Without waiting for somebody to write to a pipe.
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(handle, "rb") as file:
            status = os.fstat(handle)
            if wrong := NO_FILES.get(stat.S_IFMT(status.st_mode)):
                raise DamagedFileError(path, wrong)
            if status.st_size > most:
                raise DamagedFileError(path, f"{status.st_size} bytes, of at most {most}")
            yield file
    except OSError as error:
        if error.errno in NO_FILE_EITHER:
            raise DamagedFileError(path, str(error.strerror)) from error
        raise OSError(error.errno, error.strerror, str(path)) from error


def read_bytes(path: Path) -> bytes:
    """The content of a file that a run has written; raises as `opened`."""
    with opened(path) as file:
        most = os.fstat(file.fileno()).st_size
        content = file.read(most + 1)
        if len(content) > most:
            raise DamagedFileError(path, "it grows while it is read")
        return content


def read_text(path: Path) -> str:
    """The content of a text file that a run has written, UTF-8; raises as `opened`."""
    try:
        return read_bytes(path).decode()
    except UnicodeDecodeError as error:
        raise DamagedFileError(path, "no UTF-8") from error


def is_folder(path: Path) -> bool:
    """Whether there is a folder; False too where its name is too long, or it may not be seen."""
    return why_no_file(path) == NO_FILES[stat.S_IFDIR]


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
