"""The folder of a run: its configuration, checkpoints and result."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from fairall.config.choices import flattened
from fairall.config.schema import Config
from fairall.errors import FairAllError
from fairall.runtime.reading import DamagedFileError, read_text
from fairall.runtime.signals import Stopped
from fairall.storage.checkpoint import Checkpoint
from fairall.storage.files import (
    Log,
    atomic,
    damaged,
    ignore,
    keep_modes,
    locked,
    remove_leftovers,
    sha256_of_text,
    write_sums,
    write_text,
)
from fairall.storage.identity import determining
from fairall.storage.stored import read_stored

if TYPE_CHECKING:
    import pandas as pd

ANEW = "anew"  # subfolder for the folder of a new result while there is an old one
# Files and folders of a result.
CARD = "model_card.md"
FILES, PARTS = ("config.yaml", "metrics.csv", "summary.json", CARD), ("figures", "policy")
DECISIONS = "decisions.csv"  # of runs with evaluation.decisions
HEADING = "# Configuration of a run of fairall, format 2; sha256 of what follows: "


class RunFolder:
    """Folder with the files and folders of a result, checkpoint.pt and DONE; on request decisions.csv too.

    Args:
        path: `outputs/runs/<model>/<dataset>/<id>`.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._written: list[Path] = []  # files of the result, without which `finish` refuses

    @contextmanager
    def locked(self, *, log: Log = ignore) -> Iterator[None]:
        """Lock the folder for this process; other processes wait, and then find the result."""
        with locked(self.path, self.path.with_suffix(".lock"), log=log):
            self._flush()
            for folder in (self.path, *(self.path / part for part in PARTS)):
                remove_leftovers(folder)
            yield

    def refuse_others(self, config: Config) -> None:
        """Raise FairAllError if the configuration in the folder determines another result than this run's."""
        known = self.read_config()
        if known is None:
            return
        there, here = (
            {key: str(value) for key, value in flattened(determining(of.to_plain())).items()}
            for of in (known, config)
        )
        differing = sorted(key for key in there.keys() | here.keys() if there.get(key) != here.get(key))
        if differing:
            key = differing[0]
            raise FairAllError(
                f"{self.path} holds another run ({key} is {there.get(key)} there and {here.get(key)} here); "
                "move it away, or choose another place with outputs_dir=FOLDER"
            )

    def write_config(self, config: Config) -> None:
        """Write config.yaml, headed by its checksum, so that damage is not mistaken for another run."""
        from omegaconf import OmegaConf  # slow, and most users of this module write nothing

        content = OmegaConf.to_yaml(OmegaConf.create(config.to_plain()))
        self.write_text("config.yaml", f"{HEADING}{sha256_of_text(content)}\n{content}")

    def read_config(self) -> Config | None:
        """The configuration in config.yaml; None if it is missing, damaged or of an earlier format.

        Raises:
            FairAllError: as `read_stored`.
        """
        path = self.path / "config.yaml"
        try:
            heading, _, content = read_text(path).partition("\n")
        except (FileNotFoundError, DamagedFileError):
            return None
        return read_stored(path) if heading == f"{HEADING}{sha256_of_text(content)}" else None

    @property
    def done(self) -> bool:
        """Whether the result is complete."""
        return (self.path / "DONE").exists()

    def damage(self, among: Collection[str] | None = None) -> str | None:
        """Damage of a complete result, in words; None without any. `among` as for `files.damaged`."""
        wrong = damaged(self.path / "DONE", among)
        if wrong == ["DONE"]:
            return "DONE is damaged"
        return f"{wrong[0]} is damaged or missing" if wrong else None

    def intact(self, log: Log = ignore) -> bool:
        """Whether the result is complete and undamaged; `log` is called if it is complete and damaged."""
        damage = self.damage() if self.done else None
        if damage is not None:
            log(f"Warning: {self.path}: {damage}; the result is made again.")
        return self.done and damage is None

    def reopen(self) -> None:
        """Mark the result as incomplete; checkpoints stay."""
        (self.path / "DONE").unlink(missing_ok=True)

    @contextmanager
    def recording(self, *, anew: bool, log: Log = ignore) -> Iterator[RunFolder]:
        """The folder to write the result to; a result is complete once `finish` was called on it.

        With `anew` it starts without checkpoints, and a complete result is replaced when the new one is
        complete, or stays, of which `log` tells.
        """
        if not anew:
            yield self
            return
        folder = self._anew if self.done else self
        try:
            if folder is self:
                shutil.rmtree(self.path)
            folder.path.mkdir(parents=True)
            yield folder
        except BaseException as error:
            if isinstance(error, Stopped):
                error.then = "starts anew"
            if folder is not self and not folder.done:
                log(f"The result from before is unchanged: {self.path}")
            raise
        finally:
            self._flush()

    @property
    def _anew(self) -> RunFolder:
        """Folder of the new result, of the same name; inside this one, so that it is not taken for a run."""
        return RunFolder(self.path / ANEW / self.path.name)

    def _flush(self) -> None:
        """Move a new result in place of the old one if it is complete, else delete it.

        Safe to kill and repeat: DONE is moved last, so that until then there is a complete new result.
        """
        made = self._anew
        if made.done:
            self.checkpoint(seconds=0.0).previous.unlink(missing_ok=True)
            for path in sorted(made.path.iterdir(), key=lambda path: path.name == "DONE"):
                target = self.path / path.name
                keep_modes(target, path)
                if target.is_dir():
                    shutil.rmtree(target)
                path.replace(target)
        if (self.path / ANEW).exists():
            shutil.rmtree(self.path / ANEW)

    def checkpoint(self, *, seconds: float, log: Log = ignore) -> Checkpoint:
        """The run's `Checkpoint`; the folder's name is the run's identity."""
        return Checkpoint(self.path / "checkpoint.pt", self.path.name, seconds=seconds, log=log)

    def file(self, name: str) -> Path:
        """The path of a file of the result, to write it; `finish` refuses a result without it."""
        path = self.path / name
        self._written.append(path)
        return path

    def write_text(self, name: str, text: str) -> None:
        """Write a text file of the result, as UTF-8."""
        write_text(self.file(name), text)

    def write_table(self, table: pd.DataFrame) -> None:
        """Write metrics.csv."""
        self.write_text("metrics.csv", table.to_csv(index=False, float_format="%.7g"))

    def write_decisions(self, tables: Iterable[pd.DataFrame]) -> None:
        """Write decisions.csv, tables below each other; numbers have the fewest digits that restore them."""
        with atomic(self.file(DECISIONS)) as temporary, temporary.open("w", newline="") as file:
            for i, table in enumerate(tables):
                table.to_csv(file, index=False, header=i == 0)

    def finish(self) -> None:
        """Mark the result as complete: write DONE, the checksums of its files as `sha256sum` lists them.

        Raises:
            FairAllError: where a file that was written to this folder is no longer there.
        """
        lacking = [path for path in self._written if not path.is_file()]
        if lacking:
            raise FairAllError(
                f"{lacking[0]} is missing: it was deleted during the run; the same command makes it again"
            )
        inside = sorted(path for part in PARTS for path in (self.path / part).rglob("*"))
        paths = (*(self.path / name for name in (*FILES, DECISIONS)), *inside)
        names = [path.relative_to(self.path).as_posix() for path in paths if path.is_file()]
        write_sums(self.path / "DONE", names)
