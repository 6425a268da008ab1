"""Stored configurations of runs, read as untrusted data."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from fairall.config.checks import check_values
from fairall.config.choices import LOADER, flattened
from fairall.config.schema import Config
from fairall.errors import FairAllError
from fairall.runtime.reading import read_text
from fairall.storage.plain import MOST_SHOWN, Plain, of_plain

MOST_CHARACTERS = 10_000  # of a value
MOST_TOLD = 500  # characters of a reason
DEEPEST = 20  # nested containers
# Classes by the names that they had up to 0.2.
MOVED = {"fairall.data.csv.dataset.OwnCsv": "fairall.data.own_table.OwnTable"}
# Values of `model.phase1` that were no keys up to 0.2.
BEFORE_PHASE1 = {"share": 1.0, "annealed": False}


def read_stored(path: Path) -> Config:
    """The stored configuration of a run or a policy, of the types of `Config.stored`.

    Runs store resolved values, so interpolations, anchors and tags are nothing that they wrote, and are
    refused: an interpolation could read the environment, and anchors can expand to any size. No code of the
    classes that it names is imported. Of what earlier versions stored, `evaluation.monitor` is left out,
    classes that have moved are named as they are now, and Phase I has the values that were no keys.

    Raises:
        FairAllError: where it is not such a file, or has other keys or impossible values.
        OSError: where it cannot be read.
    """
    plain = _plain(path)
    try:
        for group in ("model", "dataset", "initial_policy"):
            of_plain(_Node, plain.get(group), group)
        if plain["dataset"]["_target_"] in MOVED:
            plain["dataset"]["_target_"] = MOVED[plain["dataset"]["_target_"]]
        if isinstance(evaluation := plain.get("evaluation"), dict):
            evaluation.pop("monitor", None)
        if isinstance(phase1 := plain["model"].get("phase1"), dict):
            plain["model"]["phase1"] = BEFORE_PHASE1 | phase1
        config = of_plain(Config, plain)
        there, here = flattened(plain), flattened(config.to_plain())
        if differing := sorted(here.keys() - there.keys()) or sorted(there.keys() - here.keys()):
            raise ValueError(f"it {'has' if differing[0] in there else 'lacks'} {differing[0][:MOST_SHOWN]}")
        check_values(config)
    except (ValueError, FairAllError) as error:
        raise FairAllError(
            f"{path}: {str(error)[:MOST_TOLD]}; this version of fairall stores nothing like it"
        ) from error
    return config


@dataclass
class _Node:
    """Keys of every node of a class."""

    name: str
    _target_: str


def _plain(path: Path) -> Plain:
    """The content of the file as plain containers; raises as `read_stored`."""
    text = read_text(path)
    try:
        _refuse_expansions(text, path)
        plain = yaml.load(text, Loader=LOADER)
    except (yaml.YAMLError, ValueError) as error:  # ValueError: impossible numbers and dates
        reason = getattr(error, "problem", None) or type(error).__name__
        raise FairAllError(f"{path}: cannot be read as YAML ({reason})") from error
    if not isinstance(plain, dict):
        raise FairAllError(f"{path}: cannot be read as the configuration of a run, which has keys and values")
    _require_plain(plain, path)
    return plain


def _refuse_expansions(text: str, path: Path) -> None:
    """Raise FairAllError for constructs that `read_stored` refuses before parsing the text."""
    depth = 0
    for event in yaml.parse(text, Loader=LOADER):
        where = f"{path}, line {event.start_mark.line + 1}"
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None) is not None:
            raise FairAllError(f"{where}: is an anchor or alias, and the configuration of a run has none")
        if getattr(event, "tag", None) is not None:
            raise FairAllError(f"{where}: has a tag, and the configuration of a run has none")
        if isinstance(event, yaml.ScalarEvent) and len(event.value) > MOST_CHARACTERS:
            raise FairAllError(f"{where}: a value has more than {MOST_CHARACTERS} characters")
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > DEEPEST:
            raise FairAllError(f"{where}: more than {DEEPEST} containers inside each other")


def _require_plain(node: Any, path: Path, key: str = "") -> None:
    """Raise FairAllError for a value that runs do not store, naming its key but not the value."""
    if isinstance(node, dict):
        for name, child in node.items():
            if not isinstance(name, str | int | float):
                raise FairAllError(f"{path}: {key or 'it'} has a key that is not a name")
            _require_plain(child, path, f"{key}.{name}" if key else str(name))
    elif isinstance(node, list):
        for child in node:
            _require_plain(child, path, key)
    elif isinstance(node, str) and "${" in node:
        raise FairAllError(f"{path}: {key} is an interpolation, and the stored values of a run have none")
    elif not isinstance(node, str | int | float | None):
        raise FairAllError(f"{path}: {key} is a {type(node).__name__}, not a plain value")
