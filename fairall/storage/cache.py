"""What runs share, such as a trained Phase I: made once, and kept by the content of what determines it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairall.storage.checkpoint import Checkpoint
from fairall.storage.files import Log, ignore, locked, remove_leftovers
from fairall.storage.tensors import DamagedFileError, load_tensors, save_tensors


@dataclass(frozen=True)
class Cache:
    """A folder of results, plain containers of tensors each.

    Attributes:
        folder: made when needed.
        checkpoint_seconds: the least time between two checkpoints of what is being made.
        log: told whom we wait for, and what is damaged.
    """

    folder: Path
    checkpoint_seconds: float
    log: Log = ignore

    def result(self, key: str, make: Callable[[Checkpoint], dict[str, Any]]) -> dict[str, Any]:
        """The result of a key: the kept one, or else the one that `make` gives.

        Of several processes that want the same result one makes it, the others wait for it. One that is
        killed leaves its checkpoint to whoever wants the result next.

        Args:
            key: hash of everything that determines the result, a file's name.
            make: makes it; given where to keep its state, and to find that of a process that was ended.
        """
        path = self.folder / f"{key}.pt"
        with locked(self.folder, self.folder / f"{key}.lock", log=self.log):
            remove_leftovers(self.folder, key)
            kept = self._kept(path, key)
            if kept is not None:
                return kept
            under_way = self.folder / f"{key}.checkpoint.pt"
            checkpoint = Checkpoint(under_way, key, seconds=self.checkpoint_seconds, log=self.log)
            made = make(checkpoint)
            try:
                save_tensors({"of": _result(key), "result": made}, path)
                checkpoint.delete()
            except OSError as error:
                self.log(f"Warning: {path} could not be kept: {error.strerror or error}.")
            return made

    def _kept(self, path: Path, key: str) -> dict[str, Any] | None:
        try:
            kept = load_tensors(path)
        except FileNotFoundError:
            return None
        except DamagedFileError as error:
            self.log(f"Warning: {error}; it is made again.")
            return None
        if kept.get("of") != _result(key):
            self.log(f"Warning: {path} is the result of something else; it is made again.")
            return None
        return kept["result"]


def _result(key: str) -> str:
    """Whose a kept result is; a checkpoint of the same key is not one."""
    return f"result {key}"
