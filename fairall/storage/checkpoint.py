"""Checkpoints from which a computation resumes, and results that runs share, in files of tensors."""

from __future__ import annotations

import copy
import io
import time
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from fairall.runtime import signals
from fairall.storage.files import Log, atomic, ignore, locked, remove_leftovers, sha256_of_text
from fairall.storage.identity import own_code
from fairall.storage.stored import DamagedFileError, opened

MAX_SHARE = 0.02  # of the time that saving may take
State = dict[str, Any]
"""Plain containers of tensors, by name."""


@dataclass(eq=False)
class Checkpoint:
    """A file with the last saved state of a computation.

    Attributes:
        path: of the file.
        identity: of the computation; the state of another one is not loaded.
        seconds: least time between two states; `1 / MAX_SHARE` times as long as the last one took to save,
            where that is more.
        log: called with a warning about a damaged file, or a state that could not be saved.
    """

    path: Path
    identity: str
    seconds: float
    log: Log = ignore

    def __post_init__(self) -> None:
        """Begin to wait for the time of the first state."""
        self._next = time.monotonic() + self.seconds

    def maybe_save(self, state: Callable[[], State]) -> None:
        """Save `state()` if it is time or a stop was requested.

        Within `signals.deferred()` this is the only place where a signal stops the work.

        Raises:
            Stopped: if a stop was requested, after saving.
        """
        if signals.stop_requested() or time.monotonic() >= self._next:
            self.save(state)
        signals.raise_if_requested()

    def save(self, state: Callable[[], State]) -> bool:
        """Replace the file by one with `state()`; whether that succeeded, as it does not on a full disk."""
        import torch  # slow, and not needed by those who only look whether a file is there

        began = time.monotonic()
        try:
            serialised = io.BytesIO()  # torch's own errors do not give the system's reason
            torch.save({"of": self.identity, "state": state()}, serialised)
            with atomic(self.path) as temporary:
                temporary.write_bytes(serialised.getbuffer())
            return True
        except OSError as error:
            self.log(f"Warning: {self.path} could not be saved: {error.strerror or error}.")
            return False
        finally:
            ended = time.monotonic()
            self._next = ended + max(self.seconds, (ended - began) / MAX_SHARE)

    def load(self) -> State | None:
        """The saved state; None without a file, or, with a warning, where it is damaged or of another one."""
        try:
            saved = load_tensors(self.path)
            if saved.get("of") != self.identity:
                raise DamagedFileError(self.path, "it is of another computation")
            return saved["state"]
        except FileNotFoundError:
            pass
        except DamagedFileError as error:
            self.log(f"Warning: {error}; it is computed again from the beginning.")
        return None


@dataclass(frozen=True)
class Cache:
    """A folder of results, each a plain container of tensors."""

    folder: Path  # created when needed
    checkpoint_seconds: float  # least time between two checkpoints of a result that is being computed
    log: Log = ignore  # called when another process computes the result, and about damaged files

    def part(self, name: str) -> Cache:
        """The cache of one kind of results, in a folder of their own."""
        return replace(self, folder=self.folder / name)

    def result(self, key: str, make: Callable[[Checkpoint], State]) -> State:
        """The stored result of a key, a hash of what determines it, or that of `make`, which is then stored.

        Of several processes that need the same result one computes it while the others wait. If that one is
        killed, the next resumes from its checkpoint, which `make` gets to resume from and to save to. Where
        `make` is code of the user's that has been edited since, the result is computed again.

        Raises:
            FairAllError: where the folder cannot be written.
        """
        hashes = own_code([make.__module__]).hashes
        identity = f"{key} {sha256_of_text(repr(hashes))}" if hashes else key
        stored, checkpoint = (
            Checkpoint(self.folder / f"{key}{end}.pt", f"{kind}{identity}", self.checkpoint_seconds, self.log)
            for kind, end in (("result ", ""), ("", ".checkpoint"))
        )
        with locked(self.folder, self.folder / f"{key}.lock", log=self.log):
            remove_leftovers(self.folder, f"{key}.*")
            result = stored.load()
            if result is None:
                result = make(checkpoint)
                if stored.save(lambda: result):
                    checkpoint.path.unlink(missing_ok=True)
            return result


class Stateful:
    """An object whose state is that of its attributes.

    Attributes that have a `state_dict`, such as generators, are part of it without being named.

    Attributes:
        kept: names of the other attributes that are, tensors or plain containers.
    """

    kept: ClassVar[tuple[str, ...]] = ()

    def state_dict(self) -> State:
        """All that later steps depend on, as plain containers of tensors."""
        parts = {name: part.state_dict() for name, part in vars(self).items() if hasattr(part, "state_dict")}
        return parts | {name: getattr(self, name) for name in self.kept}

    def load_state_dict(self, state: State) -> None:
        """Restore what `state_dict` returned."""
        for name, saved in state.items():
            if name in self.kept:
                setattr(self, name, copy.deepcopy(saved))  # what is saved may be that of another object
            else:
                getattr(self, name).load_state_dict(saved)


def load_tensors(path: Path) -> State:
    """Read what `Checkpoint.save` wrote: the `state`, and the identity that it is `of`.

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
