"""The folder of a page about runs, which never replaces a page about others."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fairall.errors import FairAllError
from fairall.storage.files import sha256_of_text


def place(given: Path | None, default: Path, runs: Sequence[str]) -> Path:
    """The folder to write a page about some runs to.

    Args:
        given: by `-o`, if it was.
        default: the folder without `-o`; a hash of the ids is appended to its name.
        runs: their ids, in order.

    Raises:
        FairAllError: where the folder of `-o` has a page.
    """
    if given is None:
        return default.with_name(f"{default.name}_{sha256_of_text(' '.join(runs))[:8]}")
    if (given / "index.html").exists():
        raise FairAllError(f"-o {given}: it has a page already; give another folder, or delete it")
    return given
