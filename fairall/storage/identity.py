"""What determines a result, as a short hash: same identity, same numbers."""

from __future__ import annotations

import functools
import hashlib
import inspect
from importlib.metadata import version
from pathlib import Path
from typing import Any

import fairall

# Where results are kept, how they are shown, where the data came from: not what they are.
IRRELEVANT = (
    "outputs_dir", "force", "checkpoint_seconds", "tracking", "sweep", "objective", "hyperparameters",
)  # fmt: skip
IRRELEVANT_OF_DATASET = ("path", "raw_file", "known_files", "download", "accept_terms")
# Folders and files of the package whose code shows results, or asks for them, but does not make them.
DISPLAY = (
    "report", "sweeps", "tracking", "__main__.py", "cli.py", "explain.py", "help.py",
    "overrides.py", "spelling.py", "terminal.py",
)  # fmt: skip


@functools.cache
def code_and_versions() -> str:
    """Hash of the code that computes and of the versions of the numeric libraries beneath it."""
    package = Path(fairall.__file__).parent
    versions = [version(name) for name in ("torch", "numpy", "scipy", "scikit-learn")]
    digest = hashlib.sha256(" ".join(versions).encode())
    for path in sorted(package.rglob("*.py")):
        relative = path.relative_to(package)
        if relative.parts[0] not in DISPLAY:
            digest.update(relative.as_posix().encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()


def determining(config: dict[str, Any]) -> dict[str, Any]:
    """The part of a configuration, as plain containers, that determines a result."""
    relevant = {key: value for key, value in config.items() if key not in IRRELEVANT}
    relevant["dataset"] = {
        key: value for key, value in config["dataset"].items() if key not in IRRELEVANT_OF_DATASET
    }
    # Further measures change none of the others; `run_id` takes their functions.
    relevant["evaluation"] = {key: value for key, value in config["evaluation"].items() if key != "measures"}
    return relevant


def flattened(config: Any, prefix: str = "") -> dict[str, Any]:
    """The values of a configuration, as plain containers, by their dotted keys."""
    if not isinstance(config, dict) or not config:
        return {prefix: config}
    flat: dict[str, Any] = {}
    for key, value in config.items():
        flat |= flattened(value, f"{prefix}.{key}" if prefix else str(key))
    return flat


def run_id(config: dict[str, Any], data_fingerprint: str, *of_users: object) -> str:
    """Identity of a run: 12 hexadecimal digits.

    Args:
        config: the resolved configuration as plain containers.
        data_fingerprint: hash of the data's content.
        of_users: functions, and objects whose classes, a user may have written; the files of those count too.
    """
    own_code = [source for made in of_users for source in _sources(made)]
    determined_by = repr((ordered(determining(config)), data_fingerprint, code_and_versions(), own_code))
    return hashlib.sha256(determined_by.encode()).hexdigest()[:12]


def _sources(made: Any) -> list[str]:
    """Name of a function, and hashes of the files of a user's that it or its class is written in."""
    is_function = inspect.isfunction(made)
    parts = [made] if is_function else type(made).__mro__
    files = {
        inspect.getsourcefile(ancestor)
        for ancestor in parts
        if ancestor.__module__.split(".")[0] not in ("fairall", "torch", "builtins", "abc")
    }
    hashes = sorted(hashlib.sha256(Path(file).read_bytes()).hexdigest() for file in files if file)
    return [made.__qualname__, *hashes] if is_function else hashes


def ordered(node: Any) -> Any:
    """Plain containers with every mapping as a list of items in the order of their keys."""
    if isinstance(node, dict):
        return [(key, ordered(value)) for key, value in sorted(node.items())]
    return node
