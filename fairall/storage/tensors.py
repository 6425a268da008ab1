"""Files of plain containers of tensors, with checksums; nothing is unpickled."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

from fairall.errors import FairAllError
from fairall.storage.files import atomic


class DamagedFileError(FairAllError):
    """The content of a file differs from what was written to it."""


def save_tensors(state: dict[str, Any], path: Path) -> None:
    """Write `state` to `path` atomically."""
    import torch  # slow, and not needed by those who only look whether a file is there

    serialised = io.BytesIO()  # torch's own errors do not give the system's reason
    torch.save(state, serialised)
    with atomic(path) as temporary:
        temporary.write_bytes(serialised.getbuffer())


def load_tensors(path: Path) -> dict[str, Any]:
    """Read what `save_tensors` wrote.

    Raises:
        OSError: if the file cannot be read; FileNotFoundError if there is none.
        DamagedFileError: if a checksum (CRC-32, one per tensor) does not match.
    """
    import torch

    content = path.read_bytes()
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            broken = archive.testzip()
        if broken is None:
            return torch.load(io.BytesIO(content), weights_only=True)
    except MemoryError:
        raise
    except Exception as error:  # zipfile and torch raise many types for damaged headers
        raise DamagedFileError(f"{path} is damaged ({type(error).__name__})") from error
    raise DamagedFileError(f"{path} is damaged (checksum of {broken})")
