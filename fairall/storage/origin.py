"""What only the process that made a result knew, kept in the run's folder for MLflow and `show`."""

from __future__ import annotations

import getpass
import json
import subprocess
import sys
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

from fairall.runtime.reading import DamagedFileError
from fairall.storage.files import write_text
from fairall.storage.plain import read_json

FILE = "tracking.json"  # of a run's folder
PATIENCE = 10.0  # seconds for git to answer


@dataclass(frozen=True)
class Origin:
    """Content of tracking.json; of the file of an earlier version, which has more keys, what is used.

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
            return read_json(folder / FILE, cls)
        except (OSError, DamagedFileError):
            return cls()

    def write(self, folder: Path) -> None:
        """Write it to a run's folder."""
        write_text(folder / FILE, json.dumps(asdict(self)) + "\n")


def source_tags() -> dict[str, str]:
    """The tags that `mlflow.start_run` gives a run, for the command of this process.

    The commit is that of the checkout around the working folder, so of the user's project; a run outside a
    checkout has none.
    """
    tags = {"mlflow.source.name": sys.argv[0] or "<console>", "mlflow.source.type": "LOCAL"}
    try:
        tags["mlflow.user"] = getpass.getuser()
    except (ImportError, KeyError, OSError):  # a user id without a name, as in some containers
        tags["mlflow.user"] = "unknown"
    command = ["git", "rev-parse", "--verify", "--quiet", "HEAD"]
    with suppress(OSError, subprocess.TimeoutExpired):  # without git
        ended = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
        if commit := ended.stdout.strip():
            tags["mlflow.source.git.commit"] = commit
    return tags
