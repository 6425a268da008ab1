"""Checkpoints of a computation, from which it resumes after an interruption or a kill."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fairall.runtime import signals
from fairall.runtime.reading import DamagedFileError
from fairall.storage.files import Log, ignore
from fairall.storage.tensors import load_tensors, save_tensors

MAX_SHARE = 0.02  # of the time that saving may take


class Checkpoint:
    """The last two saved states, the newer in `path`, the one before in `<stem>.previous<suffix>`.

    Args:
        of: identity of the computation; states of another one are not loaded.
        seconds: least time between two states; `1 / MAX_SHARE` times as long as the last one took to save,
            where that is more.

    Attributes:
        appended: a file for what only grows (`storage.spool`), of which states hold the length.
    """

    def __init__(self, path: Path, of: str, *, seconds: float, log: Log = ignore) -> None:
        self.path = path
        self.previous = path.with_name(f"{path.stem}.previous{path.suffix}")
        self.appended = path.with_name(f"{path.stem}.steps")
        self._of = of
        self._seconds = seconds
        self._log = log
        self._next = time.monotonic() + seconds
        self._whole = False  # whether the file at `path` is known to be undamaged

    def maybe_save(self, state: Callable[[], dict[str, Any]]) -> None:
        """Save `state()` if it is time or a stop was requested.

        Within `signals.deferred()` this is the only place where a signal stops the work.

        Raises:
            Stopped: if a stop was requested, after saving.
        """
        if signals.stop_requested() or time.monotonic() >= self._next:
            self.save(state)
        signals.raise_if_requested()

    def save(self, state: Callable[[], dict[str, Any]]) -> None:
        """Save `state()`; after a failure, for instance on a full disk, warn and continue."""
        began = time.monotonic()
        try:
            # One of the two files is undamaged at any moment: a damaged one must not replace it.
            if self._whole:
                self.path.replace(self.previous)
                self._whole = False
            save_tensors({"of": self._of, "state": state()}, self.path)
            self._whole = True
        except OSError as error:
            self._log(
                f"Warning: no checkpoint could be saved in {self.path.parent}: {error.strerror or error}."
            )
        ended = time.monotonic()
        self._next = ended + max(self._seconds, (ended - began) / MAX_SHARE)

    def load(self, restore: Callable[[dict[str, Any]], None] = lambda state: None) -> dict[str, Any] | None:
        """The newest undamaged state of this computation, None if there is none.

        `restore` is called with the state; a DamagedFileError says that what it refers to is damaged.
        """
        for path in (self.path, self.previous):
            try:
                saved = load_tensors(path)
                if saved.get("of") != self._of:
                    self._log(f"Warning: {path} is a checkpoint of another computation and is not used.")
                    continue
                restore(saved["state"])
            except FileNotFoundError:
                continue
            except DamagedFileError as error:
                self._log(f"Warning: {error}; the checkpoint before it is used, if there is one.")
                continue
            self._whole = path == self.path
            return saved["state"]
        return None

    def delete(self) -> None:
        """Delete both states and the appended records."""
        for path in (self.path, self.previous, self.appended):
            path.unlink(missing_ok=True)
