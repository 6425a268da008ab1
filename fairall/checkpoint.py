"""The folder of a run: who may write to it, how far it got, and its result."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pandas as pd
import torch

from fairall.files import atomic, locked


class RunFolder:
    """What a run leaves: config.yaml, metrics.csv, summary.json, figures/, policy/, checkpoint.pt and DONE.

    Args:
        path: `outputs/runs/<model>/<dataset>/<id>`.
        checkpoint_seconds: the least time between two checkpoints.
    """

    def __init__(self, path: Path, *, checkpoint_seconds: float) -> None:
        self.path = path
        self._checkpoint_seconds = checkpoint_seconds
        self._last_save = time.monotonic()

    def claimed(self) -> AbstractContextManager[None]:
        """Holds the folder for this process; another that wants it waits, and then finds the result."""
        return locked(self.path, self.path.with_suffix(".lock"))

    @property
    def done(self) -> bool:
        """Whether the result is complete."""
        return (self.path / "DONE").exists()

    def clear(self) -> None:
        """Forgets everything in the folder."""
        (self.path / "DONE").unlink(missing_ok=True)
        shutil.rmtree(self.path)
        self.path.mkdir()

    def save_checkpoint(self, state: Callable[[], dict[str, Any]], *, now: bool = False) -> None:
        """Keeps what `state` gives if the last time is long enough ago, or `now`."""
        if now or time.monotonic() - self._last_save >= self._checkpoint_seconds:
            with atomic(self.path / "checkpoint.pt") as temporary:
                torch.save(state(), temporary)
            self._last_save = time.monotonic()

    def load_checkpoint(self) -> dict[str, Any] | None:
        """The last state kept, if any."""
        path = self.path / "checkpoint.pt"
        return torch.load(path, weights_only=True) if path.exists() else None

    def write_text(self, name: str, text: str) -> None:
        """A text file of the folder."""
        with atomic(self.path / name) as temporary:
            temporary.write_text(text)

    def write_table(self, table: pd.DataFrame) -> None:
        """metrics.csv."""
        self.write_text("metrics.csv", table.to_csv(index=False, float_format="%.7g"))

    def write_summary(self, summary: dict[str, Any]) -> None:
        """summary.json."""
        self.write_text("summary.json", json.dumps(summary, indent=1, allow_nan=False) + "\n")

    def read_summary(self) -> dict[str, Any]:
        """summary.json of a finished run."""
        return json.loads((self.path / "summary.json").read_text())

    def finish(self) -> None:
        """Marks the result complete."""
        (self.path / "DONE").touch()
