"""Plain containers of tensors in files that are known to be undamaged; nothing is unpickled."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import torch

from fairall.errors import FairAllError
from fairall.storage.files import atomic


class DamagedFileError(FairAllError):
    """The content of a file is not what was written to it."""


def save_tensors(state: dict[str, Any], path: Path) -> None:
    """Keeps `state`, which takes the place of what was there only when all of it is on the disk."""
    serialised = io.BytesIO()  # torch itself does not say what the system has against a write
    torch.save(state, serialised)
    with atomic(path) as temporary:
        temporary.write_bytes(serialised.getbuffer())


def load_tensors(path: Path) -> dict[str, Any]:
    """What `save_tensors` kept.

    Raises:
        OSError: where the system does not give the file; FileNotFoundError where there is none.
        DamagedFileError: where its checksums (CRC-32, one per tensor) say that it is not what was written.
    """
    content = path.read_bytes()
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            broken = archive.testzip()
        if broken is None:
            return torch.load(io.BytesIO(content), weights_only=True)
    except MemoryError:
        raise
    except Exception as error:  # zipfile and torch raise a dozen kinds at headers that make no sense
        raise DamagedFileError(f"{path} is damaged ({type(error).__name__})") from error
    raise DamagedFileError(f"{path} is damaged (checksum of {broken})")
