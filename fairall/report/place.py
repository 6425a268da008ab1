"""The folder of a page about runs, which never replaces a page about others."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from fairall.errors import FairAllError
from fairall.storage.files import atomic

RUNS = "RUNS"  # file of a folder: the ids of the runs that its page is about, a line each
OTHER = "of an earlier version or your own"  # a page without that file


def place(given: str | None, default: Path, runs: Sequence[str]) -> Path:
    """The folder to write a page about some runs to, marked as theirs; the same for the same runs.

    Args:
        given: by `-o`, if it was.
        default: the folder without `-o`; where it has a page about other runs, one beside it, whose name ends
            in a hash of the ids, is returned.
        runs: their ids, in order.

    Raises:
        FairAllError: where the folder of `-o` has a page about other runs, or it cannot be written to.
    """
    folder = Path(given) if given else default
    known = None
    with suppress(OSError):
        known = (folder / RUNS).read_text(encoding="utf-8", errors="replace").split()
    # A page about these runs may have been cut off.
    if known != [*runs] and (known is not None or (folder / "index.html").exists()):
        about = f"about {', '.join(known[:4])}{', ...' * (len(known) > 4)}" if known is not None else OTHER
        if given:
            raise FairAllError(
                f"-o {given}: it has a page already, {about}; give another folder, or delete it"
            )
        digest = hashlib.sha256("\n".join(runs).encode()).hexdigest()[:8]
        print(f"{folder} has another page, {about}")
        folder = folder.with_name(f"{folder.name}_{digest}")
    try:
        with atomic(folder / RUNS) as temporary:
            temporary.write_text("".join(f"{run}\n" for run in runs))
    except OSError as error:
        reason = error.strerror or error
        raise FairAllError(
            f"cannot write to {folder}: {reason}; choose another place with -o FOLDER"
        ) from error
    return folder
