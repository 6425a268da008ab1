"""MLflow's own tags of what made a run: program, user and git commit."""

from __future__ import annotations

import getpass
import subprocess
import sys

PATIENCE = 10.0  # seconds for git to answer


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
    commit = _commit()
    return tags | ({"mlflow.source.git.commit": commit} if commit else {})


def _commit() -> str | None:
    """The commit of the working folder; None outside a checkout, before its first commit, or without git."""
    command = ["git", "rev-parse", "--verify", "--quiet", "HEAD"]
    try:
        ended = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return ended.stdout.strip() or None
