"""The folder of a run: its configuration, checkpoint and result, and what its process alone knew."""

from __future__ import annotations

import getpass
import json
import shutil
import subprocess
import sys
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from fairall.config.schema import Config
from fairall.errors import FairAllError
from fairall.runtime.signals import Stopped
from fairall.storage.files import (
    Log,
    atomic,
    damaged,
    ignore,
    locked,
    remove_leftovers,
    sha256_of_text,
    write_sums,
    write_text,
)
from fairall.storage.identity import configuration_key
from fairall.storage.stored import DamagedFileError, read_json, read_stored, read_text

if TYPE_CHECKING:
    import pandas as pd

ANEW = "anew"  # subfolder for the folder of a new result while there is an old one
# Files and folders of a result.
CARD = "model_card.md"
FILES, PARTS = ("config.yaml", "metrics.csv", "summary.json", CARD), ("figures", "policy")
DECISIONS = "decisions.csv"  # of runs with evaluation.decisions
ORIGIN, CHECKPOINT = "tracking.json", "checkpoint.pt"
HEADING = "# Configuration of a run of fairall, format 2; sha256 of what follows: "
PATIENCE = 10.0  # seconds for git to answer


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
            self._replace_result()
            for part in ("", *PARTS):
                remove_leftovers(self.path / part)
            yield

    def refuse_others(self, config: Config) -> None:
        """Raise FairAllError if the configuration in the folder determines another result than this run's."""
        stored = self.read_config()
        if stored is not None and configuration_key(stored) != configuration_key(config):
            raise FairAllError(
                f"{self.path} holds another run; move it away, or choose another place with "
                "outputs_dir=FOLDER"
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
        for name in damaged(self.path / "DONE", among):
            return f"{name} is damaged or missing"
        return None

    def intact(self, log: Log = ignore) -> bool:
        """Whether the result is complete and undamaged; `log` is called if it is complete and damaged."""
        damage = self.damage()
        if damage is not None and self.done:
            log(f"Warning: {self.path}: {damage}; the result is made again.")
        return damage is None

    @contextmanager
    def recording(self, *, anew: bool, log: Log = ignore) -> Iterator[RunFolder]:
        """The folder to write the result to; a result is complete once `finish` was called on it.

        With `anew` it starts without a checkpoint. A complete result is replaced when the new one is
        complete; if the new one fails, the complete result stays, and `log` is called.
        """
        folder = self._anew if anew and self.done else self
        if anew:
            (folder.path / CHECKPOINT).unlink(missing_ok=True)
        try:
            yield folder
        except Stopped as error:
            if anew:
                error.then = "starts anew"
            raise
        finally:
            if folder is not self and not folder.done:
                log(f"The result from before is unchanged: {self.path}")
            self._replace_result()

    @property
    def _anew(self) -> RunFolder:
        """Folder of the new result, of the same name; inside this one, so that it is not taken for a run."""
        return RunFolder(self.path / ANEW / self.path.name)

    def _replace_result(self) -> None:
        """Move a new result in place of the old one if it is complete, else delete it.

        Safe to kill and repeat: DONE is moved last, so that until then there is a complete new result.
        """
        made = self._anew
        if made.done:
            files = filter(Path.is_file, made.path.rglob("*"))
            for path in sorted(files, key=lambda path: path.name == "DONE"):
                target = self.path / path.relative_to(made.path)
                target.parent.mkdir(exist_ok=True)
                if target.exists():
                    shutil.copymode(target, path)
                path.replace(target)
        if made.path.parent.exists():
            shutil.rmtree(made.path.parent)

    def file(self, name: str) -> Path:
        """The path of a file of the result, to write it; `finish` refuses a result without it."""
        path = self.path / name
        self._written.append(path)
        return path

    def write_text(self, name: str, text: str) -> None:
        """Write a text file of the result, as UTF-8."""
        write_text(self.file(name), text)

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
        for path in self._written:
            if not path.is_file():
                raise FairAllError(
                    f"{path} is missing: it was deleted during the run; the same command makes it again"
                )
        paths = [self.path / name for name in (*FILES, DECISIONS)]
        for part in PARTS:
            paths += sorted((self.path / part).rglob("*"))
        names = [path.relative_to(self.path).as_posix() for path in filter(Path.is_file, paths)]
        write_sums(self.path / "DONE", names)


@dataclass(frozen=True)
class Origin:
    """Content of tracking.json, for MLflow and `show`; of an earlier version's, which has more keys, a part.

    Attributes:
        command: command line of the user.
        source: MLflow's tags of the command's program and commit, see `source_tags`.
        began: time at which the process began with the run, seconds since 1970.
        cpu_seconds: that the process took to compute the result; None until then.
    """

    command: str = ""
    source: dict[str, str] = field(default_factory=dict)
    began: float | None = None
    cpu_seconds: float | None = None

    @classmethod
    def read(cls, folder: Path) -> Origin:
        """The origin kept in a run's folder; an empty one where the file is missing or damaged."""
        try:
            return read_json(folder / ORIGIN, cls)
        except (OSError, DamagedFileError):
            return cls()

    def write(self, folder: Path) -> None:
        """Write it to a run's folder; raises OSError where that fails."""
        write_text(folder / ORIGIN, json.dumps(asdict(self)) + "\n")


def source_tags() -> dict[str, str]:
    """The tags that `mlflow.start_run` gives a run, for the command of this process.

    The commit is that of the checkout around the working folder, so of the user's project; a run outside a
    checkout has none.
    """
    tags = {
        "mlflow.source.name": sys.argv[0] or "<console>",
        "mlflow.source.type": "LOCAL",
        "mlflow.user": "unknown",
    }
    with suppress(ImportError, KeyError, OSError):  # a user id without a name, as in some containers
        tags["mlflow.user"] = getpass.getuser()
    command = ["git", "rev-parse", "--verify", "--quiet", "HEAD"]
    with suppress(OSError, subprocess.TimeoutExpired):  # without git
        ended = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
        if commit := ended.stdout.strip():
            tags["mlflow.source.git.commit"] = commit
    return tags
