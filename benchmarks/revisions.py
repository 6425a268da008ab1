"""Revisions of this repository, and their files."""

from __future__ import annotations

import compileall
import io
import subprocess
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.errors import BenchmarkError

ROOT = Path(__file__).resolve().parents[1]
WORKING_TREE = "."


@contextmanager
def checkout(revision: str) -> Iterator[Path]:
    """A folder with the files of a revision, deleted in the end; for `WORKING_TREE` the checkout itself.

    Raises:
        BenchmarkError: where there is no such revision.
    """
    if revision == WORKING_TREE:
        yield ROOT
        return
    try:
        commit = _git("rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}").decode().strip()
    except (subprocess.CalledProcessError, FileNotFoundError):
        raise BenchmarkError(
            f"{revision}: no such revision; it may be a branch, a tag, a commit or {WORKING_TREE}, "
            "the working tree"
        ) from None
    with tempfile.TemporaryDirectory(prefix="fairall-benchmark-") as folder:
        with zipfile.ZipFile(io.BytesIO(_git("archive", "--format=zip", commit))) as archive:
            archive.extractall(folder)
        # Or its first run alone would pay for the compilation.
        for package in ("fairall", "benchmarks"):
            compileall.compile_dir(Path(folder) / package, quiet=1)
        yield Path(folder)


def name_of(revision: str) -> str:
    """Short name of a commit, of `WORKING_TREE` with `-dirty` where files were changed; else `unknown`."""
    which = "--dirty" if revision == WORKING_TREE else revision
    try:
        return _git("describe", "--always", "--exclude=*", which).decode().strip()
    except (subprocess.CalledProcessError, FileNotFoundError):
        return "unknown"


def _git(*words: str) -> bytes:
    return subprocess.run(["git", "-C", str(ROOT), *words], check=True, capture_output=True).stdout
