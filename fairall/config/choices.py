"""Where conf/ and sweeps/ are, and their groups with choices, descriptions and keys, read without Hydra."""

from __future__ import annotations

import functools
import itertools
import re
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

# First words of the command line that are no KEY=VALUE.
VERBS = tuple("run list show compare frontier tune data decide evaluate live mlflow".split())
OTHERS = "chosen by the other data sets"  # what `hyperparameters` is in `hyperparameters_without`
SHOWN = "# Shown: "  # how the second line of a method begins
LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # in C it is ten times as fast; without tags


Node = dict[str, Any]  # values by key, as plain containers


def configuration_root() -> Path:
    """The folder that holds conf/ and sweeps/."""
    package = Path(__file__).resolve().parent.parent
    return package if (package / "conf").is_dir() else package.parent


def choices(config_dir: str | Path | None = None) -> dict[str, dict[str, Path]]:
    """The YAML file of every choice, by group and name.

    Args:
        config_dir: further folder, of the user (`-cd`). Where it has a choice of the same name as this
            package, the package's file is returned, as Hydra uses it.
    """
    by_group = defaultdict[str, dict[str, Path]](dict)
    root = configuration_root()
    patterns = {root / "conf": "**/*.yaml", root: "sweeps/*.yaml"}
    if config_dir is not None:
        patterns[Path(config_dir)] = "**/*.yaml"
    for folder, pattern in patterns.items():
        for path in sorted(folder.glob(pattern)):
            group = path.parent.relative_to(folder).as_posix()
            # A file of conf/hparams has the choices of a model, by data set.
            if group not in (".", "hparams") and not path.stem.startswith("_"):
                by_group[group].setdefault(path.stem, path)
    return by_group


def description(path: Path) -> str:
    """The comment in the first line of a YAML file, below `# @package`; empty without one."""
    text = path.read_text(encoding="utf-8", errors="replace")
    comment = re.match(r"(?:# @package.*\n)?#(?! @package) *(.*)", text)
    return comment[1] if comment else ""


@functools.cache
def shown(method: str) -> dict[str, str]:
    """How tables, figures and model cards show a method of this package; empty for a user's own.

    What follows `SHOWN` in conf/model/<method>.yaml: `label`, and where it has them `page` in docs/methods/,
    `colour` and `mark`.
    """
    path = configuration_root() / "conf" / "model" / f"{method}.yaml"
    if not path.is_file():
        return {}
    values = path.read_text(encoding="utf-8").partition(SHOWN)[2].partition("\n")[0]
    return yaml.load(values or "{}", Loader=LOADER)


def settings() -> Node:
    """Content of conf/config.yaml."""
    return load_yaml(configuration_root() / "conf" / "config.yaml")


def with_parents(path: Path, files: Mapping[str, Path]) -> Node:
    """Values of a file over those of the files of its group in its `defaults`, by dotted key."""
    node = load_yaml(path)
    flat: Node = {}
    for parent in node.pop("defaults", []):
        if isinstance(parent, str) and files.get(parent, path) != path:
            flat |= with_parents(files[parent], files)
    return flat | flattened(node)


def hyperparameters(model: str, dataset: str) -> Node:
    """Values of conf/hparams/<model>.yaml for a data set, as plain containers; empty without an entry."""
    return hyperparameters_of(model).get(dataset, {})


def hyperparameters_of(model: str) -> dict[str, Node]:
    """Content of conf/hparams/<model>.yaml, values by data set; empty without such a file."""
    path = configuration_root() / "conf" / "hparams" / f"{model}.yaml"
    return load_yaml(path) if path.is_file() else {}


def hyperparameters_without(model: str, dataset: str) -> Node:
    """What the other data sets of conf/hparams/<model>.yaml choose, so that nothing is tuned to this one.

    Each key has the value that most of them have, by dotted key. Where it is missing or null, which is no
    choice, theirs is that of conf/model/. Of tied values that of conf/model/ goes first, then that of the
    data set which is first in the file. Empty without others.
    """
    others = [flattened(node) for name, node in hyperparameters_of(model).items() if name != dataset]
    if not others:
        return {}
    files = choices()["model"]
    usual = flattened({"model": with_parents(files[model], files)})
    chosen = {}
    for key in dict.fromkeys(itertools.chain(*others)):
        values = [usual.get(key) if node.get(key) is None else node[key] for node in others]
        value = max([usual.get(key), *values], key=values.count)
        if value != usual.get(key):
            chosen[key] = value
    return chosen | {"hyperparameters": OTHERS}


def load_yaml(path: Path) -> Any:
    """Content of a YAML file; an empty dict without one."""
    return yaml.load(path.read_text(encoding="utf-8"), Loader=LOADER) or {}


def targets(node: Any) -> list[str]:
    """All values of `_target_` in nested mappings and lists, in their order."""
    if isinstance(node, Mapping):
        own = [str(node["_target_"])] if "_target_" in node else []
        return own + [name for value in node.values() for name in targets(value)]
    return [name for value in node for name in targets(value)] if isinstance(node, list | tuple) else []


def flattened(config: Any, prefix: str = "") -> Node:
    """Values of a configuration, given as plain containers, by dotted key."""
    if not isinstance(config, dict) or not config:
        return {prefix: config}
    flat: Node = {}
    for key, value in config.items():
        flat |= flattened(value, f"{prefix}.{key}" if prefix else str(key))
    return flat
