"""Records of tensors that a computation appends to a file and reads as if they were in memory."""

from __future__ import annotations

import os
import zlib
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fairall.errors import FairAllError
from fairall.runtime.reading import DamagedFileError, opened
from fairall.storage.checkpoint import State

MOST_WAITING = 16 << 20  # bytes of records that wait in memory to be written
BLOCK = 1 << 20  # bytes that are read at once for a checksum


class Spool:
    """Records of the same names, types and shapes of tensors, in the order in which they were appended.

    Records wait in memory until `state_dict` writes them to the file, or until they are many. A state holds
    the length and the CRC-32 of what was written, not the records: the file is cut back to that length when
    the state is loaded. Without a file, or where it cannot be written, the records stay in memory and are
    part of the state.

    Attributes:
        path: the file, which may be set before the first record is written; None to keep all in memory.

    Examples:
        >>> spool = Spool()
        >>> for step in range(2):
        ...     spool.append({"accepted": torch.tensor([step > 0]), "utility": torch.tensor(0.5 * step)})
        >>> {name: values.tolist() for name, values in spool.read().items()}
        {'accepted': [[False], [True]], 'utility': [0.0, 0.5]}
    """

    def __init__(self) -> None:
        self.path: Path | None = None
        self._record: np.dtype[Any] | None = None
        self._waiting: list[np.ndarray] = []
        self._written = self._checksum = 0  # bytes in the file, and their CRC-32
        self._read: dict[str, Tensor] | None = None

    def __len__(self) -> int:
        """Number of records."""
        if self._record is None:
            return 0
        return self._written // self._record.itemsize + len(self._waiting)

    def append(self, values: Mapping[str, Tensor]) -> None:
        """Append a record; raises FairAllError if names, types or shapes differ from those of the first."""
        arrays = {name: value.detach().numpy() for name, value in values.items()}
        own = _type_of([[name, array.dtype.str, list(array.shape)] for name, array in arrays.items()])
        if self._record is None:
            self._record = own
        elif self._record != own:
            raise FairAllError(
                f"time step {len(self) + 1} has other values than the steps before: {own}, not {self._record}"
            )
        record = np.zeros(1, own)  # the bytes between fields are zero too
        for name, array in arrays.items():
            record[0][name] = array
        self._waiting.append(record)
        self._read = None
        if self.path is not None and len(self._waiting) % max(1, MOST_WAITING // own.itemsize) == 0:
            self._write()

    def read(self) -> dict[str, Tensor]:
        """All records by name, shapes (n, ...), mapped into memory rather than loaded; empty without records.

        Raises:
            FairAllError: if something else has changed the file.
        """
        if self._read is None and self._record is not None:
            parts = [*self._waiting]
            if self._written:
                assert self.path is not None
                try:
                    self._verify()
                except DamagedFileError as error:
                    raise _changed(self.path) from error
                n = self._written // self._record.itemsize
                # Private pages: torch has no tensors that cannot be written to.
                parts.insert(0, np.memmap(self.path, self._record, "c", shape=(n,)))
            records = parts[0] if len(parts) == 1 else np.concatenate(parts)
            self._read = {name: torch.from_numpy(records[name]) for name in self._record.names or ()}
        return self._read or {}

    def state_dict(self) -> State:
        """Position in the file, after writing the waiting records; raises as `read`."""
        if self.path is not None:
            self._write()
        waiting = b"".join(record.tobytes() for record in self._waiting)
        return {
            "record": None if self._record is None else _fields(self._record),
            "written": self._written,
            "checksum": self._checksum,
            "waiting": torch.from_numpy(np.frombuffer(waiting, np.uint8).copy()),
        }

    def load_state_dict(self, state: State) -> None:
        """Go back to a state: the file is cut back to its length then.

        Raises:
            DamagedFileError: if the file lacks records of that state or has others; nothing is changed then.
        """
        loaded = Spool()
        loaded.path = self.path
        if state["record"] is not None:
            loaded._record = _type_of(state["record"])
            waiting = np.frombuffer(state["waiting"].numpy().tobytes(), loaded._record)
            loaded._waiting = [record.copy() for record in waiting.reshape(-1, 1)]
        loaded._written, loaded._checksum = state["written"], state["checksum"]
        if loaded._written:
            loaded._verify()
            assert self.path is not None
            os.truncate(self.path, loaded._written)
        vars(self).update(vars(loaded))

    def _write(self) -> None:
        """Write the waiting records; after a failure, as on a full disk, they wait for the next try."""
        assert self.path is not None
        if not self._waiting:
            return
        if self._written and (not self.path.is_file() or self.path.stat().st_size < self._written):
            raise _changed(self.path)
        content = b"".join(record.tobytes() for record in self._waiting)
        try:
            with self.path.open("r+b" if self._written else "wb") as file:
                file.seek(self._written)
                file.write(content)
                file.truncate()
                file.flush()
                os.fsync(file.fileno())  # before the checkpoint that counts on it
        except OSError:
            with suppress(OSError):
                if self._written:
                    os.truncate(self.path, self._written)
                else:
                    self.path.unlink()
            return
        self._checksum = zlib.crc32(content, self._checksum)
        self._written += len(content)
        self._waiting = []
        self._read = None

    def _verify(self) -> None:
        """Raise DamagedFileError unless the file begins with what was written."""
        checksum, left = 0, self._written
        try:
            if self.path is None:
                raise FileNotFoundError
            with opened(self.path) as file:
                while left and (block := file.read(min(left, BLOCK))):
                    checksum, left = zlib.crc32(block, checksum), left - len(block)
        except FileNotFoundError as error:
            raise DamagedFileError(self.path or Path(), "missing") from error
        if left or checksum != self._checksum:
            raise DamagedFileError(self.path, "too short" if left else "checksum")


def _type_of(fields: list[list[Any]]) -> np.dtype[Any]:
    """The type of a record of fields [name, type, shape], each where torch can use it."""
    names, types, shapes = zip(*fields, strict=True) if fields else ((), (), ())
    formats = [(kind, tuple(shape)) for kind, shape in zip(types, shapes, strict=True)]
    return np.dtype({"names": list(names), "formats": formats}, align=True)


def _fields(record: np.dtype[Any]) -> list[list[Any]]:
    """Inverse of `_type_of`."""
    of = dict(record.fields or {})
    return [[name, of[name][0].base.str, list(of[name][0].shape)] for name in record.names or ()]


def _changed(path: Path) -> FairAllError:
    return FairAllError(
        f"{path} was deleted or changed during the run; the same command continues from the rest"
    )
