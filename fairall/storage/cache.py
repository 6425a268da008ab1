"""Results that runs share, such as a trained Phase I, stored by a hash of what determines them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from fairall.storage.checkpoint import Checkpoint, State
from fairall.storage.files import Log, ignore, locked, remove_leftovers, sha256_of_text
from fairall.storage.identity import own_code


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
