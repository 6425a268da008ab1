"""The folder of a run: whose it is, how far the run got, and its result."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import pandas as pd
from omegaconf import OmegaConf

from fairall.errors import FairAllError
from fairall.storage.checkpoint import Checkpoint
from fairall.storage.files import Log, atomic, damaged, ignore, locked, remove_leftovers, write_sums
from fairall.storage.identity import determining, flattened

ANEW = "anew"  # holds, while a result is made once more, the folder of the new one
FILES, PARTS = ("config.yaml", "metrics.csv", "summary.json"), ("figures", "policy")  # of a result
SUM = "# sha256 of what follows: "


class RunFolder:
    """What a run leaves: config.yaml, metrics.csv, summary.json, figures/, policy/, checkpoint.pt and DONE.

    Args:
        path: `outputs/runs/<model>/<dataset>/<id>`.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @contextmanager
    def locked(self, *, log: Log = ignore) -> Iterator[None]:
        """Holds the folder for this process; another that wants it waits, and then finds the result."""
        with locked(self.path, self.path.with_suffix(".lock"), log=log):
            self._settle()
            for folder in (self.path, *(self.path / part for part in PARTS)):
                remove_leftovers(folder)
            yield

    def refuse_others(self, config: dict[str, Any]) -> None:
        """Leaves a folder alone that is another run's.

        Args:
            config: of this run, plain containers.

        Raises:
            FairAllError: where the configuration kept there would give another result.
        """
        known = self._config()
        if known is None:
            return
        there, here = (
            {key: str(value) for key, value in flattened(determining(of)).items()} for of in (known, config)
        )
        differing = sorted(key for key in there.keys() | here.keys() if there.get(key) != here.get(key))
        if differing:
            key = differing[0]
            raise FairAllError(
                f"{self.path} holds another run ({key} is {there.get(key)} there and {here.get(key)} here); "
                "move it away, or choose another place with outputs_dir=FOLDER"
            )

    def write_config(self, config: dict[str, Any]) -> None:
        """config.yaml, headed by the sum of what follows: a damaged one must not look like another run's."""
        content = OmegaConf.to_yaml(OmegaConf.create(config))
        self.write_text("config.yaml", f"{SUM}{_sha256(content)}\n{content}")

    def _config(self) -> dict[str, Any] | None:
        """config.yaml as plain containers; None where there is none, or not as it was written."""
        path = self.path / "config.yaml"
        text = path.read_text(errors="replace") if path.exists() else ""
        heading, _, content = text.partition("\n")
        if heading != f"{SUM}{_sha256(content)}":
            return None
        return cast(dict[str, Any], OmegaConf.to_container(OmegaConf.create(content)))

    @property
    def done(self) -> bool:
        """Whether the run has ended."""
        return (self.path / "DONE").exists()

    def damaged(self) -> list[str]:
        """Files of a result that are not what DONE says they were, or not there any more."""
        return damaged(self.path / "DONE")

    def reopen(self) -> None:
        """The result is to be made again; checkpoints stay."""
        (self.path / "DONE").unlink(missing_ok=True)

    @contextmanager
    def recording(self, *, anew: bool, log: Log = ignore) -> Iterator[RunFolder]:
        """The folder to make the result in, which is complete (`finish`) when the block ends.

        Args:
            anew: forgets checkpoints; a result that is there stays as it is until the new one is complete.
            log: told that it has stayed, where the new one is not made.
        """
        if not anew:
            yield self
        elif not self.done:
            shutil.rmtree(self.path)
            self.path.mkdir()
            yield self
        else:
            try:
                self._anew.path.mkdir(parents=True)
                yield self._anew
            except BaseException:
                if not self._anew.done:
                    log(f"The result from before is as it was: {self.path}")
                raise
            finally:
                self._settle()

    @property
    def _anew(self) -> RunFolder:
        """A folder inside this one, so that nobody takes it for a run, of the same identity."""
        return RunFolder(self.path / ANEW / self.path.name)

    def _settle(self) -> None:
        """Puts a result made anew in its place if it is complete, else deletes it.

        It can be killed and repeated: DONE is moved last, and says until then that there is more to move.
        """
        made = self._anew
        if made.done:
            self.checkpoint(seconds=0.0).previous.unlink(missing_ok=True)
            for path in sorted(made.path.iterdir(), key=lambda path: path.name == "DONE"):
                target = self.path / path.name
                if target.is_dir():
                    shutil.rmtree(target)
                path.replace(target)
        if (self.path / ANEW).exists():
            shutil.rmtree(self.path / ANEW)

    def checkpoint(self, *, seconds: float, log: Log = ignore) -> Checkpoint:
        """Where the run's state is kept, see `Checkpoint`; the folder's name is the run's identity."""
        return Checkpoint(self.path / "checkpoint.pt", self.path.name, seconds=seconds, log=log)

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
        """Marks the result complete: DONE lists its files with their sums, for `sha256sum -c DONE` too."""
        inside = (path for part in PARTS for path in (self.path / part).rglob("*") if path.is_file())
        files = [path for path in (self.path / name for name in FILES) if path.is_file()]
        names = [path.relative_to(self.path).as_posix() for path in (*files, *sorted(inside))]
        write_sums(self.path / "DONE", names)


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()
