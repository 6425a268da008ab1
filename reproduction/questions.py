"""What the paper leaves open: each question is a study of runs, and a page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fairall import FairAllError
from reproduction.study import Study

ASKED = {word: Study(f"questions_{word}") for word in ("truth", "hidden", "groups", "amounts")}


def questions(
    overrides: Sequence[str],
    folder: Path | None = None,
    into: Sequence[Path] = (),
    jobs: int | None = None,
    *,
    asked: Sequence[str],
) -> bool:
    """Make the runs that questions lack, and write a page of each; return whether all runs are there.

    Args:
        overrides: words that pick from the axes of the sweeps, or are added to every command.
        folder: of the page, for one question; None: `questions_WORD` in outputs_dir.
        into: pages of the documentation with blocks to fill, for one question.
        jobs: number of runs at once; None: one per core.
        asked: words of `ASKED`.

    Raises:
        FairAllError: where a word asks nothing, none or several are asked and a place for one is given, or a
            page cannot be filled.
    """
    if not asked or {*asked} - {*ASKED}:
        raise FairAllError(f"questions: {' '.join(asked) or 'none'}: choose of {', '.join(ASKED)}")
    if len(asked) > 1 and (folder or into):
        raise FairAllError("questions: --output and --into are for one question; ask one at a time")
    complete = [ASKED[word](overrides, folder, into, jobs) for word in dict.fromkeys(asked)]
    return all(complete)
