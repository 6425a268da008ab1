"""Fingerprints of what tables of docs/ are of, to tell when configuration or code has changed since."""

from __future__ import annotations

import ast
import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from fairall import FairAllError, determining
from reproduction.plan import EVERY, LEADERBOARD, LOGS, SPLITS, SWEEPS

CHECKOUT = Path(__file__).parents[1]
# Files of reproduction/ that name the runs of each command; those of `evidence` are of no configuration.
NAMED_IN = {
    command: [f"sweeps/{sweep}.yaml" for sweep in sweeps]
    for command, sweeps in (
        ("report", (*EVERY, *SPLITS)),
        ("leaderboard", LEADERBOARD),
        ("logs", LOGS),
        *SWEEPS.items(),
    )
} | {"rivals": ["rivals.yaml"], "reject_inference": ["reject_inference.yaml"]}
# Studies of `simulations`, whose fingerprints are of their cases and of code.
SIMULATED: dict[str, Any] = yaml.safe_load(Path(__file__).with_name("simulations.yaml").read_text())
# Folders of conf/.
SHARED = ("protocol", "initial_policy", "exploration", "fairness", "cost", "world")
# Values of keys that change nothing, which new keys may have.
OFF: tuple[Any, ...] = (None, False, "none", {}, [])
OF = re.compile(r"^<!-- of: (\w+) (\w+) -->\n", re.MULTILINE)  # a command and a fingerprint, in a block
CHANGED = "has changed since"  # said of configuration or code in a block whose fingerprint is not today's


def mark(command: str) -> str:
    """The line of a block that names its command and the configuration of today; empty without one."""
    known = command in NAMED_IN or command.removeprefix("simulations_") in SIMULATED
    return f"<!-- of: {command} {fingerprint(command)} -->\n" if known else ""


def fingerprint(command: str, checkout: Path = CHECKOUT) -> str:
    """Hash of the configuration of a command's runs, or of the code of a simulation: 12 hexadecimal digits.

    It is of the values of the files that they are composed from: conf/config.yaml, `SHARED`, and the files
    of conf/ for their methods and data sets. Comments and keys that are `OFF` do not count. That of a
    simulation is of its cases, of the modules of its functions and of the files that it tests, without
    comments and docstrings.

    Args:
        command: of `NAMED_IN`, or `simulations_` and one of `SIMULATED`.
        checkout: with conf/ and reproduction/.

    Raises:
        FairAllError: where a file that it needs cannot be read.
    """
    try:
        if command in NAMED_IN:
            parts = dict(_parts(command, checkout))
        else:
            parts = dict(_code(command.removeprefix("simulations_"), checkout))
    except (OSError, yaml.YAMLError) as error:
        raise FairAllError(f"{checkout}: no configuration to tell tables of docs/ by ({error})") from error
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()[:12]


def _code(name: str, checkout: Path) -> Iterator[tuple[str, Any]]:
    own = SIMULATED[name]
    yield "cases", [own["usual"], own["cases"]]
    for path in (f"reproduction/{own['module']}.py", "reproduction/population.py", *own["tested"]):
        tree = ast.parse((checkout / path).read_text())
        for node in ast.walk(tree):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node):
                node.body = node.body[1:]
        yield path, ast.dump(tree)


def _parts(command: str, checkout: Path) -> Iterator[tuple[str, Any]]:
    conf = checkout / "conf"
    texts = [(checkout / "reproduction" / name).read_text() for name in NAMED_IN[command]]
    yield "runs", [_on(yaml.safe_load(text)) for text in texts]
    usual = _read(conf / "config.yaml")
    yield (
        "config",
        determining({"dataset": {}} | {k: usual[k] for k in usual if k != "hydra"}),
    )
    for folder in SHARED:
        files = sorted((conf / folder).rglob("*.yaml"))
        yield folder, {path.relative_to(conf / folder).as_posix(): _read(path) for path in files}
    data_sets = _values("dataset", texts)
    for name in data_sets:
        yield f"dataset/{name}", _read(conf / "dataset" / f"{name}.yaml")
    for name in _values("model", texts):
        yield from _of_model(name, conf)
        selected = conf / "hparams" / f"{name}.yaml"
        own = _read(selected) if selected.exists() and command != "rivals" else {}
        of_data = {key: own[key] for key in sorted(data_sets & set(own))}
        yield f"hparams/{name}", {key: values.get("model") for key, values in of_data.items()}


def _of_model(name: str, conf: Path) -> Iterator[tuple[str, Any]]:
    """A method's file, and those that it begins with."""
    own = _read(conf / "model" / f"{name}.yaml")
    yield f"model/{name}", own
    for other in own.get("defaults", []):
        if isinstance(other, str) and other != "_self_":
            yield from _of_model(other.partition("@")[0], conf)


def _values(key: str, texts: list[str]) -> set[str]:
    """Values of a key in files of runs: an axis of a sweep, or words of commands."""
    lines = [found for text in texts for found in re.findall(rf"\b{key}(?::\s*|=)([\w,]+)", text)]
    return {value for line in lines for value in line.split(",") if value}


def _read(path: Path) -> dict[str, Any]:
    return _on(yaml.safe_load(path.read_text()) or {})


def _on(values: Any) -> Any:
    """Nested values without those that are `OFF`."""
    if isinstance(values, dict):
        known = {key: _on(value) for key, value in values.items()}
        return {key: value for key, value in known.items() if not any(value is o or value == o for o in OFF)}
    return [one for one in map(_on, values) if one != {}] if isinstance(values, list) else values
