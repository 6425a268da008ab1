"""What a run has otherwise than by default, by which runs of a method on a data set are told apart."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from fairall.config.choices import (
    choices,
    chosen_by,
    configuration_root,
    flattened,
    hyperparameters,
    readable,
    settings,
    with_parents,
)
from fairall.config.schema import Config
from fairall.storage.identity import determining

REFERENCE = re.compile(r"\$\{([\w.]+)\}")
# Groups, and the key of their nodes that names the choice, if they have one.
GROUPS = {
    "protocol": "name",
    "model": "name",
    "dataset": "name",
    "initial_policy": "name",
    "fairness": "rule",
    "exploration": "rule",
    "cost": "",
}
CHOICE = {
    "initial_policy.name": "initial_policy",
    "protocol.name": "protocol",
    "fairness.rule": "fairness",
    "exploration.rule": "exploration",
    "cost.value": "cost",
}


def differences(config: Config) -> str:
    """The values of a run that are not the defaults of its method, data set and preset, as KEY=VALUE.

    Keys have their last part alone where that is enough. A value whose default is unknown, as of a method of
    the user's, is left out.
    """
    plain = config.to_plain()
    own, default = flattened(determining(plain)), _defaults(plain)
    found = {
        key: own[key]
        for key, usual in default.items()
        if key in own and not _same(own[key], own.get(_reference(usual) or "", usual))
    }
    names = {key: CHOICE.get(key) or _last_part(key) for key in found}
    several = [name for name in names.values() if [*names.values()].count(name) > 1]
    return " ".join(
        f"{key if name in several and key not in CHOICE else name}={found[key]}"
        for key, name in names.items()
    )


def _last_part(key: str) -> str:
    """The last part of a key; of a part of the world without `world`; whole where a choice has that name."""
    name = key.removeprefix("world.") if key.startswith("world.") else key.rpartition(".")[2]
    return key if name in CHOICE.values() else name


def _defaults(config: Mapping[str, Any]) -> dict[str, Any]:
    """Values of `model=... dataset=... preset=...` by the files of conf/, by dotted key, with references."""
    files, root = choices(), settings()
    chosen, flat = chosen_by(root), flattened(root)
    for group in ("protocol", "model", "dataset"):
        path = files[group].get(config[group]["name"])
        chosen |= chosen_by(readable(path)) if path else {}
    for group, names in GROUPS.items():
        # Its values are compared with those of the choice that the run has, its name with the usual choice.
        path = files[group].get(str(config[group].get(names, chosen[group])))
        values = with_parents(path, files[group]) if path else {}
        if names in values and group not in ("model", "dataset"):
            values[names] = chosen[group]
        flat |= {f"{group}.{key}": value for key, value in values.items()}
    conf, model = configuration_root() / "conf", config["model"]["name"]
    flat |= flattened(readable(conf / "world" / "_parts.yaml"), "world")
    of_protocol = readable(conf / "protocol" / config["protocol"]["name"] / f"_{model}.yaml")
    of_preset = readable(conf / "preset" / f"{config['preset']}.yaml")
    for values in (hyperparameters(model, config["dataset"]["name"]), of_preset, of_protocol):
        flat |= flattened(values)
    return flat


def _reference(value: Any) -> str | None:
    """The key that a value of a file refers to; None where it is a value of its own."""
    found = isinstance(value, str) and REFERENCE.fullmatch(value)
    return found[1] if found else None


def _same(own: Any, usual: Any) -> bool:
    """Whether a value is its default, or the default is not known."""
    if isinstance(usual, str) and ("${" in usual or usual == "???"):
        return True
    try:
        return own == usual or float(own) == float(usual)  # YAML reads 1e-2 as text
    except (TypeError, ValueError):
        return False
