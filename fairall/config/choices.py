"""Where conf/ and sweeps/ are, and their groups with choices, descriptions and keys, read without Hydra."""

from __future__ import annotations

import functools
import itertools
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).resolve().parent.parent  # of the package
# Groups that users choose from.
MAIN = tuple("model dataset initial_policy fairness exploration world cost protocol preset sweeps".split())
# First words of the command line that are no KEY=VALUE.
VERBS = tuple("run list show compare frontier tune data decide evaluate live mlflow".split())
# Names of verbs in other packages, by the verb here.
VERBS_ALSO_CALLED = {
    "run": "train fit learn",
    "evaluate": "audit",
    "decide": "predict score explain",
    "tune": "sweep optimize optimise",
    "show": "results",
}
OTHERS = "chosen by the other data sets"  # what `hyperparameters` is in `hyperparameters_without`
PACKAGE = "# @package"  # how a line begins that is for Hydra
SHOWN = "# Shown: "  # how the second line of a method begins
LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # in C it is ten times as fast; without tags


Node = dict[str, Any]  # values by key, as plain containers


def configuration_root() -> Path:
    """The folder that holds conf/ and sweeps/."""
    return FOLDER if (FOLDER / "conf").is_dir() else FOLDER.parent


def sweeps_folder() -> Path:
    """The folder sweeps/."""
    return configuration_root() / "sweeps"


def choices(own: str | Path | None = None) -> dict[str, dict[str, Path]]:
    """The YAML file of every choice, by group and name.

    Args:
        own: further folder of the user's (`-cd`). Where it has a choice of the same name as this package,
            the package's file is returned, as Hydra uses it.
    """
    found: defaultdict[str, dict[str, Path]] = defaultdict(dict)
    shipped = configuration_root() / "conf"
    for folder in (shipped, *([] if own is None else [Path(own)])):
        for path in sorted(folder.glob("*/**/*.yaml")):
            # conf/fewer is chosen by protocol and model, conf/hparams by model and dataset.
            chosen = folder == shipped and path.relative_to(folder).parts[0] in ("fewer", "hparams")
            if not (chosen or path.stem.startswith("_")):
                found[path.parent.relative_to(folder).as_posix()].setdefault(path.stem, path)
    for path in sorted(sweeps_folder().glob("[!_]*.yaml")):
        found["sweeps"].setdefault(path.stem, path)
    return found


def description(path: Path) -> str:
    """The comment in the first line of a YAML file, below `# @package`; empty without one."""
    with path.open(encoding="utf-8", errors="replace") as file:
        first = next((line for line in file if not line.startswith(PACKAGE)), "")
    return first.removeprefix("#").strip() if first.startswith("#") else ""


@functools.cache
def shown(method: str) -> dict[str, str]:
    """How tables, figures and model cards show a method of this package; empty for a user's own.

    What follows `SHOWN` in conf/model/<method>.yaml: `label`, and where it has them `page` in docs/methods/,
    `colour` and `mark`.
    """
    path = configuration_root() / "conf" / "model" / f"{method}.yaml"
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    text = next((line.removeprefix(SHOWN) for line in lines if line.startswith(SHOWN)), "{}")
    return yaml.load(text, Loader=LOADER)


def configuration_keys(chosen: Mapping[str, str]) -> list[str]:
    """Dotted keys of the configuration, the groups among them, with the choices `chosen` by group."""
    root = settings()
    defaults = chosen_by(root)
    del root["hydra"], root["defaults"]
    keys = [*flattened(root)]
    files = choices()
    for group in MAIN:
        path = files[group].get(str(chosen.get(group, defaults.get(group))))
        # Values of a preset or a sweep are of other nodes.
        if path is not None and group not in ("preset", "sweeps"):
            defaults |= chosen_by(readable(path))  # a data set chooses the initial policy
            node = with_parents(path, files[group])
            if group == "world":
                node |= readable(path.with_name("_parts.yaml"))
            keys += flattened(node, group)
    return sorted({*MAIN, *(key for key in keys if not key.rpartition(".")[2].startswith("_"))})


def settings() -> Node:
    """Content of conf/config.yaml."""
    return readable(configuration_root() / "conf" / "config.yaml")


def chosen_by(node: Mapping[str, Any]) -> Node:
    """What the `defaults` of a file choose, by group."""
    chosen = (item for item in node.get("defaults", []) if isinstance(item, dict))
    return {
        key.removeprefix("override /").partition("@")[0]: name
        for item in chosen
        for key, name in item.items()
    }


def with_parents(path: Path, files: Mapping[str, Path]) -> Node:
    """Content of a file over that of those of its group in its `defaults`."""
    node = readable(path)
    for parent in node.pop("defaults", []):
        if isinstance(parent, str) and parent in files and files[parent] != path:
            node = merged(with_parents(files[parent], files), node)
    return node


def hyperparameters(model: str, dataset: str) -> Node:
    """Values of conf/hparams/<model>.yaml for a data set, as plain containers; empty without an entry."""
    return hyperparameters_of(model).get(dataset, {})


def hyperparameters_of(model: str) -> dict[str, Node]:
    """Content of conf/hparams/<model>.yaml, values by data set; empty without such a file."""
    path = configuration_root() / "conf" / "hparams" / f"{model}.yaml"
    return readable(path)


def hyperparameters_without(model: str, dataset: str) -> Node:
    """What the other data sets of conf/hparams/<model>.yaml choose, so that nothing is tuned to this one.

    Each key has the value that most of them have. Where it is missing or null, which is no choice, theirs is
    that of conf/model/. Of tied values that of conf/model/ goes first, then that of the data set which is
    first in the file. Empty without others.
    """
    others = [flattened(node) for name, node in hyperparameters_of(model).items() if name != dataset]
    if not others:
        return {}
    files = choices()["model"]
    usual = flattened({"model": with_parents(files[model], files)})
    chosen: Node = {}
    for key in dict.fromkeys(itertools.chain(*others)):
        own = usual.get(key)
        values = [own if node.get(key) is None else node[key] for node in others]
        most = max(map(values.count, values))
        tied = [value for value in values if values.count(value) == most]
        value: Any = own if own in tied else tied[0]
        if value != own:
            for part in reversed(key.split(".")):
                value = {part: value}
            chosen = merged(chosen, value)
    return chosen | {"hyperparameters": OTHERS}


def merged(node: Mapping[str, Any], values: Mapping[str, Any]) -> Node:
    """Nested values over others."""
    both = dict(node)
    for key, value in values.items():
        there = both.get(key)
        if isinstance(there, dict) and isinstance(value, dict):
            value = merged(there, value)
        both[key] = value
    return both


def readable(path: Path) -> Node:
    """Content of a YAML file; empty if it cannot be read."""
    try:
        content = load_yaml(path)
    except (OSError, ValueError, yaml.YAMLError):
        return {}
    return content if isinstance(content, dict) else {}


def load_yaml(path: Path) -> Any:
    """Content of a YAML file."""
    return yaml.load(path.read_text(encoding="utf-8"), Loader=LOADER)


def nodes_and_keys(keys: Iterable[str]) -> list[str]:
    """Dotted keys, each after the nodes that it is in."""
    nodes = (itertools.accumulate(key.split("."), "{}.{}".format) for key in keys)
    return list(dict.fromkeys(itertools.chain.from_iterable(nodes)))


def flattened(config: Any, prefix: str = "") -> Node:
    """Values of a configuration, given as plain containers, by dotted key."""
    if not isinstance(config, dict) or not config:
        return {prefix: config}
    flat: Node = {}
    for key, value in config.items():
        flat |= flattened(value, f"{prefix}.{key}" if prefix else str(key))
    return flat
