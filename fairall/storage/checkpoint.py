"""The state of a computation, kept from time to time so that it can go on after any end."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fairall.runtime import signals
from fairall.storage.files import Log, ignore
from fairall.storage.tensors import DamagedFileError, load_tensors, save_tensors

AT_MOST = 0.02  # share of the time that keeping states may take


class Checkpoint:
    """The last two states kept, the newer in `path`, the one before in `<stem>.previous<suffix>`.

    Args:
        path: where.
        of: whose states they are; those of others are not taken.
        seconds: the least time between two; more where saving is slow.
        log: told when something is wrong with them.
    """

    def __init__(self, path: Path, of: str, *, seconds: float, log: Log = ignore) -> None:
        self.path = path
        self.previous = path.with_name(f"{path.stem}.previous{path.suffix}")
        self._of = of
        self._seconds = seconds
        self._log = log
        self._next = time.monotonic() + seconds
        self._whole = False  # whether what is in `path` is known to be

    def maybe_save(self, state: Callable[[], dict[str, Any]]) -> None:
        """Keeps what `state` gives if it is time, and if the process is to stop, whose end this then is.

        Where work is only to be stopped here, it belongs into a `signals.deferred()`.

        Raises:
            Stopped: where it is to stop.
        """
        if signals.asked() or time.monotonic() >= self._next:
            self.save(state)
        signals.stop_if_asked()

    def save(self, state: Callable[[], dict[str, Any]]) -> None:
        """Keeps what `state` gives; where that fails, on a full disk, work goes on without."""
        began = time.monotonic()
        try:
            # At any moment one of the two is whole: a damaged one must not take the place of that.
            if self._whole:
                self.path.replace(self.previous)
                self._whole = False
            save_tensors({"of": self._of, "state": state()}, self.path)
            self._whole = True
        except OSError as error:
            self._log(
                f"Warning: no checkpoint could be kept in {self.path.parent}: {error.strerror or error}."
            )
        ended = time.monotonic()
        self._next = ended + max(self._seconds, (ended - began) / AT_MOST)

    def load(self) -> dict[str, Any] | None:
        """The last state that is undamaged and ours, if any."""
        for path in (self.path, self.previous):
            try:
                kept = load_tensors(path)
            except FileNotFoundError:
                continue
            except DamagedFileError as error:
                self._log(f"Warning: {error}; the checkpoint before it is taken, if there is one.")
                continue
            if kept.get("of") == self._of:
                self._whole = path == self.path
                return kept["state"]
            self._log(f"Warning: {path} is a checkpoint of something else and is not taken.")
        return None

    def delete(self) -> None:
        """Deletes what was kept."""
        self.path.unlink(missing_ok=True)
        self.previous.unlink(missing_ok=True)
