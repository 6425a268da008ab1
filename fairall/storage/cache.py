"""Results that runs share, such as a trained Phase I, stored by a hash of what determines them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from fairall.runtime.reading import DamagedFileError
from fairall.storage.checkpoint import Checkpoint, State, load_tensors, save_tensors
from fairall.storage.files import Log, ignore, locked, remove_leftovers, sha256_of_text
from fairall.storage.own_code import own_code


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
        """
        path, own = self.folder / f"{key}.pt", own_code([make.__module__]).hashes
        of = f"{key} {sha256_of_text(repr(own))}" if own else key
        tag = f"result {of}"  # of the result, different from that of its checkpoint
        with locked(self.folder, self.folder / f"{key}.lock", log=self.log):
            remove_leftovers(self.folder, key)
            with suppress(FileNotFoundError):
                try:
                    stored = load_tensors(path)
                    if stored.get("of") == tag:
                        return stored["result"]
                    why = f"{path} is the result of another computation"
                except DamagedFileError as error:
                    why = str(error)
                self.log(f"Warning: {why}; it is computed again.")
            checkpoint = Checkpoint(
                self.folder / f"{key}.checkpoint.pt", of, seconds=self.checkpoint_seconds, log=self.log
            )
            made = make(checkpoint)
            try:
                save_tensors({"of": tag, "result": made}, path)
                checkpoint.delete()
            except OSError as error:
                self.log(f"Warning: {path} could not be saved: {error.strerror or error}.")
            return made
