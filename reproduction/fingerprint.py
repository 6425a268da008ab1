"""Fingerprints of what tables of docs/ are of, to tell when configuration or code has changed since."""

from __future__ import annotations

import ast
import hashlib
import json
import re
from pathlib import Path
from typing import Any

import yaml

from fairall import FairAllError, determining
from reproduction.plan import EVERY, LEADERBOARD, LOGS, SPLITS, SWEEPS
from reproduction.words import words_of

CHECKOUT = Path(__file__).parents[1]
# Files of reproduction/ that name the runs of each command; those of `evidence` are of no configuration.
SWEPT = {"report": (*EVERY, *SPLITS), "leaderboard": LEADERBOARD, "logs": LOGS} | SWEEPS
NAMED_IN = {command: [f"sweeps/{sweep}.yaml" for sweep in sweeps] for command, sweeps in SWEPT.items()}
NAMED_IN |= {command: [f"{command}.yaml"] for command in ("rivals", "reject_inference")}
# Studies of `simulations`, whose fingerprints are of their cases and of code.
SIMULATED = words_of("simulations")
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

    It is of what the files hold that runs are composed from: conf/config.yaml, `SHARED`, and the files of
    conf/ for their methods and data sets. Comments and keys that are `OFF` do not count. That of a simulation
    is of its cases, of the modules of its functions and of the files that it tests, without comments and
    docstrings.

    Args:
        command: of `NAMED_IN`, or `simulations_` and one of `SIMULATED`.
        checkout: with conf/ and reproduction/.

    Raises:
        FairAllError: where a file that it needs cannot be read.
    """
    simulated = SIMULATED.get(command.removeprefix("simulations_"))
    try:
        paths = _tested(simulated) if simulated else _composed_from(command, checkout)
        parts: dict[str, Any] = {path: _content(checkout / path) for path in paths}
    except (OSError, yaml.YAMLError) as error:
        raise FairAllError(f"{checkout}: no configuration to tell tables of docs/ by ({error})") from error
    if simulated:
        parts["cases"] = simulated["usual"], simulated["cases"]
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()[:12]


def _tested(simulated: dict[str, Any]) -> list[str]:
    return [f"reproduction/{simulated['module']}.py", "reproduction/population.py", *simulated["tested"]]


def _composed_from(command: str, checkout: Path) -> list[str]:
    named = [f"reproduction/{name}" for name in NAMED_IN[command]]
    text, conf = "".join((checkout / path).read_text() for path in named), checkout / "conf"
    patterns = ["config.yaml", *(f"{folder}/**/*.yaml" for folder in SHARED)]
    for key in ("dataset", "model"):
        # Values of an axis of a sweep, or in words of commands; and files that they begin with.
        names = ",".join(re.findall(rf"\b{key}(?::\s*|=)([\w,]+)", text)).split(",")
        for name in filter(None, names):
            begins = _content(conf / key / f"{name}.yaml").get("defaults", [])
            names += [one.partition("@")[0] for one in begins if isinstance(one, str) and one[0] != "_"]
            patterns.append(f"{key}/{name}.yaml")
            if command != "rivals":
                patterns.append(f"hparams/{name}.yaml")
    found = [path.relative_to(checkout) for pattern in patterns for path in conf.glob(pattern)]
    return [*named, *map(Path.as_posix, found)]


def _content(path: Path) -> Any:
    """What a file holds: values without those that are `OFF`, or a syntax tree without docstrings."""
    if path.suffix == ".yaml":
        values = yaml.safe_load(path.read_text()) or {}
        return _on(determining({"dataset": {}} | values) if path.name == "config.yaml" else values)
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node):
            node.body = node.body[1:]
    return ast.dump(tree)


def _on(values: Any) -> Any:
    """Nested values without those that are `OFF`."""
    if isinstance(values, dict):
        return {key: value for key, of in values.items() if (value := _on(of)) not in OFF}
    return [one for one in map(_on, values) if one != {}] if isinstance(values, list) else values
