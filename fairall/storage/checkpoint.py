"""Checkpoints of a computation, from which it resumes after an interruption, in files of tensors."""

from __future__ import annotations

import copy
import io
import time
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from fairall.runtime import signals
from fairall.runtime.reading import DamagedFileError, opened
from fairall.storage.files import Log, atomic, ignore

MAX_SHARE = 0.02  # of the time that saving may take


State = dict[str, Any]  # plain containers of tensors, by name


@dataclass(eq=False)
class Checkpoint:
    """The last two saved states, the newer in `path`, the one before in `<stem>.previous<suffix>`.

    Attributes:
        path: of the newer state.
        of: identity of the computation; states of another one are not loaded.
        seconds: least time between two states; `1 / MAX_SHARE` times as long as the last one took to save,
            where that is more.
        log: called about damaged files and failures.
        appended: a file for what only grows (`storage.spool`), of which states hold the length.
    """

    path: Path
    of: str
    seconds: float
    log: Log = ignore

    def __post_init__(self) -> None:
        """Begin to wait for the time of the first state."""
        self.previous = self.path.with_name(f"{self.path.stem}.previous{self.path.suffix}")
        self.appended = self.path.with_name(f"{self.path.stem}.steps")
        self._next = time.monotonic() + self.seconds
        self._whole = False  # whether the file at `path` is known to be undamaged

    def maybe_save(self, state: Callable[[], State]) -> None:
        """Save `state()` if it is time or a stop was requested.

        Within `signals.deferred()` this is the only place where a signal stops the work.

        Raises:
            Stopped: if a stop was requested, after saving.
        """
        if signals.stop_requested() or time.monotonic() >= self._next:
            self.save(state)
        signals.raise_if_requested()

    def save(self, state: Callable[[], State]) -> None:
        """Save `state()`; after a failure, for instance on a full disk, warn and continue."""
        began = time.monotonic()
        try:
            # One of the two files is undamaged at any moment: a damaged one must not replace it.
            if self._whole:
                self.path.replace(self.previous)
                self._whole = False
            save_tensors({"of": self.of, "state": state()}, self.path)
            self._whole = True
        except OSError as error:
            self.log(
                f"Warning: no checkpoint could be saved in {self.path.parent}: {error.strerror or error}."
            )
        ended = time.monotonic()
        self._next = ended + max(self.seconds, (ended - began) / MAX_SHARE)

    def load(self, restore: Callable[[State], None] = lambda state: None) -> State | None:
        """The newest undamaged state of this computation, None if there is none.

        `restore` is called with the state; a DamagedFileError says that what it refers to is damaged.
        """
        for path in (self.path, self.previous):
            try:
                saved = load_tensors(path)
                if saved.get("of") != self.of:
                    self.log(f"Warning: {path} is a checkpoint of another computation and is not used.")
                    continue
                restore(saved["state"])
            except FileNotFoundError:
                continue
            except DamagedFileError as error:
                self.log(f"Warning: {error}; the checkpoint before it is used, if there is one.")
                continue
            self._whole = path == self.path
            return saved["state"]
        return None

    def delete(self) -> None:
        """Delete both states and the appended records."""
        for path in (self.path, self.previous, self.appended):
            path.unlink(missing_ok=True)


class Stateful:
    """An object whose state is that of its attributes.

    Attributes that have a `state_dict`, such as generators, are part of it without being named.

    Attributes:
        kept: names of the other attributes that are, tensors or plain containers.
    """

    kept: ClassVar[tuple[str, ...]] = ()

    def state_dict(self) -> State:
        """All that later steps depend on, as plain containers of tensors."""
        stateful = {name: own.state_dict() for name, own in vars(self).items() if hasattr(own, "state_dict")}
        return stateful | {name: getattr(self, name) for name in self.kept}

    def load_state_dict(self, state: State) -> None:
        """Restore what `state_dict` returned."""
        for name, saved in state.items():
            if name in self.kept:
                setattr(self, name, copy.deepcopy(saved))  # what is saved may be that of another object
            else:
                getattr(self, name).load_state_dict(saved)


def save_tensors(state: State, path: Path) -> None:
    """Write `state` to `path` atomically."""
    import torch  # slow, and not needed by those who only look whether a file is there

    serialised = io.BytesIO()  # torch's own errors do not give the system's reason
    torch.save(state, serialised)
    with atomic(path) as temporary:
        temporary.write_bytes(serialised.getbuffer())


def load_tensors(path: Path) -> State:
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
