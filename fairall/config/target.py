"""The class that `_target_` names, and the configuration with the types that the class declares."""

from __future__ import annotations

import inspect
import re
import sys
import traceback
from collections.abc import Collection, Iterator
from dataclasses import fields, is_dataclass
from importlib import import_module
from typing import Any, cast

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import ConfigAttributeError, ConfigKeyError, OmegaConfBaseException

from fairall.config.schema import GROUPS, Config
from fairall.config.words import nearest_key
from fairall.config.world import PartConfig, WorldConfig
from fairall.errors import FairAllError

# By group the base class of its classes, imported by name when needed, and the arguments they are made from.
BASES = {
    "model": ("fairall.models.learner", "Learner", ("config", "setting")),
    "dataset": ("fairall.data.dataset", "Dataset", ("config",)),
    "initial_policy": ("fairall.online.initial_policy", "InitialPolicy", ("config",)),
    "world.further": ("fairall.worlds.part", "Part", ("config", "setting")),
}
CONFIG_TYPES = GROUPS | {"world.further": PartConfig}


def with_types(composed: DictConfig | dict[str, Any], groups: Collection[str] = tuple(GROUPS)) -> DictConfig:
    """The composed configuration with every node of the type that its class declares.

    Args:
        composed: by Hydra, or plain containers.
        groups: the nodes whose types depend on their `_target_`; those left out stay untyped.

    Raises:
        FairAllError: naming the key, where a class is not there or not of the group, a key is unknown, a
            value is of another type, or a node was deleted.
    """
    plain: Any = OmegaConf.to_container(composed) if isinstance(composed, DictConfig) else {**composed}
    for field in fields(Config):
        if field.name not in plain or plain[field.name] == {}:
            raise FairAllError(f"{field.name} was deleted with ~{field.name}, and every run needs it")
    nodes = {group: typed_node(plain.pop(group), group) for group in groups}
    nodes["world"] = _merged(WorldConfig, plain.pop("world"), "world.")
    whole = _merged(Config, plain)
    for group, node in nodes.items():
        whole[group] = node
    return whole


def typed_node(node: Any, group: str, place: str = "") -> DictConfig:
    """The node of a group with the type that its class declares; raises as `with_types`.

    `place` is the key of the node where that is not the group.
    """
    place = place or group
    declared = target_class(node, group, place).config_type
    return _merged(declared, OmegaConf.to_container(OmegaConf.create(node)), f"{place}.")


def _merged(declared: Any, plain: Any, prefix: str = "") -> DictConfig:
    """Plain values in a structured node; raises FairAllError for an unknown key or another type."""
    structured = OmegaConf.structured(declared)
    try:
        return cast(DictConfig, OmegaConf.merge(structured, plain))
    except (ConfigKeyError, ConfigAttributeError) as error:
        key = f"{prefix}{error.full_key}"
        known = [f"{prefix}{name}" for name in keys(OmegaConf.to_container(structured))]
        known += [field.name for field in fields(Config)]
        # A class of the user's that declares no config_type has the keys of all classes of its group only.
        hint = (
            "; for a key of your own the class needs a config_type with that field"
            if declared in CONFIG_TYPES.values()
            else ""
        )
        near = nearest_key(key, known)
        raise FairAllError(f"{key}: no such key{near}; --help lists them all{hint}") from error
    except OmegaConfBaseException as error:
        key = f"{prefix}{error.full_key}".rstrip(".")
        raise FairAllError(f"{key}: {next(iter(str(error).splitlines()))}") from error
    except ValueError as error:  # a value in place of keys
        raise FairAllError(f"{prefix.rstrip('.')}: {next(iter(str(error).splitlines()))}") from error


def keys(plain: Any, prefix: str = "") -> Iterator[str]:
    """Dotted keys of nested dicts."""
    for key, value in plain.items():
        yield f"{prefix}{key}"
        if isinstance(value, dict):
            yield from keys(value, f"{prefix}{key}.")


def target_class(node: Any, group: str, place: str = "") -> Any:
    """The class that `node._target_` names, by module and name.

    Args:
        node: a dataclass, a DictConfig or a dict.
        group: model, dataset, initial_policy or world.further.
        place: key of the node where that is not the group.

    Raises:
        FairAllError: where there is no such class, or it is not of the group.
    """
    target = node.get("_target_") if isinstance(node, dict | DictConfig) else getattr(node, "_target_", None)
    place = place or group
    if not target or target == "???":
        raise FairAllError(
            f"{place}._target_ has no value: it names the class, as {place}._target_=module.Class"
        )
    key = f"{place}._target_={target}"
    module, _, name = str(target).rpartition(".")
    if not module:
        raise FairAllError(f"{key}: it names the class with its module, as module.Class")
    try:
        imported = import_module(module)
    except Exception as error:
        if isinstance(error, ModuleNotFoundError) and f"{module}.".startswith(f"{error.name}."):
            reason = f"{error}; the module must be in the current folder, or installed"
            raise FairAllError(f"{key}: there is no such class ({reason})") from error
        raise FairAllError(f"{key}: {module} cannot be imported ({_where(error)})") from error
    try:
        found = getattr(imported, name)
    except AttributeError as error:
        raise FairAllError(f"{key}: there is no such class ({error})") from error
    _require_of_group(found, group, key)
    return found


def require_trusted(node: Any, group: str, modules: Collection[str]) -> None:
    """Check that the class that `node._target_` names may be imported, which runs its module's code.

    These may be: modules of the group's own room of this package, those named in `modules`, and those that
    this process has imported already.

    Args:
        node: see `target_class`; a stored configuration, which somebody else may have written.
        group: likewise.
        modules: names of modules, or of packages for all that is in them.

    Raises:
        FairAllError: where it may not be.
    """
    target = node.get("_target_") if isinstance(node, dict) else None
    if not (isinstance(target, str) and re.fullmatch(r"\w{1,99}(\.\w{1,99}){1,9}", target)):
        raise FairAllError(f"{group}._target_ names no class as module.Class")
    key, module = f"{group}._target_={target}", target.rpartition(".")[0]
    room = BASES[group][0].rpartition(".")[0]
    own = module.startswith(f"{room}.") and not any(part.startswith("_") for part in module.split("."))
    named = any(module == one or module.startswith(f"{one}.") for one in modules)
    if not (own or named or module in sys.modules):
        package = module.partition(".")[0]
        remedy = (
            f"if you trust who wrote {package}, name it: --trust {package}, or "
            f"load_policy(..., modules=[{package!r}])"
        )
        raise FairAllError(f"{key}: would run code of the module {module}, not of fairall; {remedy}")


def _where(error: Exception) -> str:
    """Type, message, file and line of an error raised by an import."""
    if isinstance(error, SyntaxError):
        file, line, reason = error.filename, error.lineno, error.msg
    else:
        frames = traceback.extract_tb(error.__traceback__)
        file, line = [(f.filename, f.lineno) for f in frames if not f.filename.startswith("<frozen")][-1]
        reason = next(iter(str(error).splitlines()), "")
    return f"{type(error).__name__}: {reason}, {file}, line {line}"


def _require_of_group(found: Any, group: str, key: str) -> None:
    """Raise FairAllError unless `found` is a class of the group that a run can make objects of."""
    module, name, arguments = BASES[group]
    base = getattr(import_module(module), name)
    if not (inspect.isclass(found) and issubclass(found, base)):
        raise FairAllError(f"{key}: not a {module}.{name}; derive the class from that, or from one that is")
    if inspect.isabstract(found):
        lacking = ", ".join(sorted(getattr(found, "__abstractmethods__", ())))
        raise FairAllError(f"{key}: it lacks {lacking}, which every {name} has")
    try:
        inspect.signature(found).bind(*arguments)
    except TypeError as error:
        raise FairAllError(
            f"{key}: it is made from {' and '.join(arguments)}, so it begins "
            f"`def __init__(self, {', '.join(arguments)})`; its own does not take them ({error})"
        ) from error
    declared, base_config = getattr(found, "config_type", None), CONFIG_TYPES[group]
    if not (inspect.isclass(declared) and issubclass(declared, base_config) and is_dataclass(declared)):
        raise FairAllError(
            f"{key}: its config_type is no dataclass derived from "
            f"{base_config.__module__}.{base_config.__name__}"
        )
