"""Files of plain containers of tensors, with checksums; nothing is unpickled."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

from fairall.runtime.reading import DamagedFileError, opened
from fairall.storage.files import atomic


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
        DamagedFileError: if it is no file of tensors, or a checksum (CRC-32, one per tensor) does not match.
    """
    import torch

    with opened(path) as file:
        try:
            with zipfile.ZipFile(file) as archive:
                broken = archive.testzip()
            if broken is None:
                file.seek(0)
                return torch.load(file, weights_only=True)
        except MemoryError:
            raise
        except Exception as error:  # zipfile and torch raise many types for damaged headers
            raise DamagedFileError(path, type(error).__name__) from error
    raise DamagedFileError(path, f"checksum of {broken}")
