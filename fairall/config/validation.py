"""The configuration of a run as dataclasses, with every value checked."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from dataclasses import fields, is_dataclass
from typing import Any, cast

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import ConfigAttributeError, ConfigKeyError, OmegaConfBaseException

from fairall.config.checks import check, positive_share, require
from fairall.config.schema import (
    GROUPS,
    Config,
    DatasetConfig,
    ExplorationRule,
    NodeConfig,
)
from fairall.config.target import require_trusted, target_class
from fairall.config.words import nearest_key
from fairall.errors import FairAllError
from fairall.runtime.credentials import withheld


def checked(composed: DictConfig) -> Config:
    """The composed configuration with checked types and values.

    User and password of `tracking.uri`, which a file may have, are withheld (`credentials`).

    Raises:
        FairAllError: as `typed`, and where a value is not possible.
        omegaconf.errors.MissingMandatoryValue: where a value is missing.
    """
    config = typed(composed)
    if config.tracking.uri is not None:
        config.tracking.uri = withheld(config.tracking.uri)
    validate(config)
    return config


def checked_stored(stored: dict[str, Any], modules: Collection[str]) -> Config:
    """The stored configuration of a run (`read_stored`), checked as `checked` does a composed one.

    The nodes of the data set, the initial policy and the world, whose classes no decision needs, stay plain
    containers; `checked_dataset` checks the first where it is used. The class of the method is imported where
    `target.require_trusted` lets it.
    """
    require_trusted(stored.get("model"), "model", modules)
    config = typed(stored, ["model"])
    validate(config)
    return config


def checked_dataset(composed: DictConfig | dict[str, Any]) -> DatasetConfig:
    """The `dataset` node of a configuration, of which other values may be missing; raises as `checked`."""
    config: DatasetConfig = typed_node(composed, "dataset")
    check_values(config, "dataset")
    return config


def typed(composed: DictConfig | dict[str, Any], groups: Collection[str] = GROUPS) -> Config:
    """The configuration as dataclasses, each node in `groups` of the type that its class declares.

    Raises:
        FairAllError: naming the key, where a class is not there or not of the group, a key is unknown, a
            value is of another type, or a node was deleted.
        omegaconf.errors.MissingMandatoryValue: where a value is missing.
    """
    return cast(Config, OmegaConf.to_object(_structured(composed, groups)))


def typed_node(composed: DictConfig | dict[str, Any], group: str) -> Any:
    """A node of a configuration of which other values may be missing, unchecked; raises as `typed`."""
    groups = {"dataset": None, group: None}  # initial policies refer to values of the data set
    return OmegaConf.to_object(_structured(composed, list(groups))[group])


def structured_node(node: Any, place: str) -> DictConfig:
    """A node of a class, with the type that the class declares; `place` is its key. Raises as `typed`."""
    values = OmegaConf.to_container(node) if isinstance(node, DictConfig) else node
    return _merged(target_class(node, place).config_type, values, place)


def _structured(composed: DictConfig | dict[str, Any], groups: Collection[str]) -> DictConfig:
    """The configuration with types."""
    values: Any = OmegaConf.to_container(composed) if isinstance(composed, DictConfig) else {**composed}
    for field in fields(Config):
        if field.name not in values or (values[field.name] == {} and field.name != "world"):
            raise FairAllError(f"{field.name} was deleted with ~{field.name}, and every run needs it")
    nodes = {group: values.pop(group) for group in groups}
    if "world" in groups:
        parts = nodes.pop("world") or {}
        values["world"] = {}
        nodes |= {f"world.{name}": part for name, part in parts.items()}
    for place, node in nodes.items():
        if place.startswith("world.") and not (isinstance(node, dict) and "_target_" in node):
            near = nearest_key(place, [other for other in nodes if other != place])
            own = f"a part of your own has {place}._target_=module.Class"
            raise FairAllError(f"{place}: no such key{near}; {own}")
        nodes[place] = structured_node(node, place)
    whole = _merged(Config, values)
    for place, node in nodes.items():
        OmegaConf.update(whole, place, node, merge=False, force_add=True)
    return whole


def _merged(declared: Any, values: Any, place: str = "") -> DictConfig:
    """Values in a structured node; raises FairAllError for an unknown key or another type."""
    structured = OmegaConf.structured(declared)
    prefix = f"{place}." if place else ""
    try:
        return cast(DictConfig, OmegaConf.unsafe_merge(structured, values))
    except (OmegaConfBaseException, ValueError) as error:  # ValueError: a value in place of keys
        key = f"{prefix}{getattr(error, 'full_key', None) or ''}".rstrip(".")
        if not isinstance(error, ConfigKeyError | ConfigAttributeError):
            raise FairAllError(f"{key}: {next(iter(str(error).splitlines()))}") from error
        known = [f"{prefix}{name}" for name in keys(OmegaConf.to_container(structured))]
        known += [field.name for field in fields(Config)]
        # A class of the user's that declares no config_type has the keys of all classes of its group only.
        undeclared = NodeConfig in declared.__bases__
        hint = "; for a key of your own the class needs a config_type with that field" if undeclared else ""
        raise FairAllError(
            f"{key}: no such key{nearest_key(key, known)}; --help lists them all{hint}"
        ) from error


def keys(nested: Any, prefix: str = "") -> Iterator[str]:
    """Dotted keys of nested dicts."""
    for key, value in nested.items():
        yield f"{prefix}{key}"
        if isinstance(value, dict):
            yield from keys(value, f"{prefix}{key}.")


def validate(config: Config) -> None:
    """Check conditions beyond types; of nodes that stayed plain containers, only that numbers are finite."""
    check_values(config)
    schedule, evaluation, tracking = config.schedule, config.evaluation, config.tracking
    require(config.splits <= config.seeds, "splits", config.splits, f"at most seeds, which is {config.seeds}")
    key, batches = "schedule.batches_per_epoch", schedule.batches_per_epoch
    fewest = min(schedule.applicants, schedule.warm_up_applicants)
    require(batches <= fewest, key, batches, "at most the number of applicants of a step and of the warm-up")
    window, last = evaluation.window, schedule.time_steps
    whole = len(window) == 2 and all(isinstance(step, int) for step in window)
    allowed = f"[t1, t2] with 0 <= t1 < t2 <= schedule.time_steps, which is {last}"
    require(whole and 0 <= window[0] < window[1] <= last, "evaluation.window", window, allowed)
    possible = tracking.enabled or tracking.register is None
    require(possible, "tracking.register", tracking.register, "null where tracking.enabled=false")
    rule, after, rate = config.exploration.rule, config.exploration.after, config.exploration.propensity
    if rule is not ExplorationRule.none:
        check("exploration.propensity", rate, positive_share())
    if rule is ExplorationRule.stuck:
        require(after is not None and after >= 1, "exploration.after", after, "at least 1")


def check_values(node: Any, key: str = "") -> None:
    """Check that numbers are finite and fields in their ranges, and call `NodeConfig.validate`."""
    if isinstance(node, float):
        require(math.isfinite(node), key, node, "a finite number")
    elif isinstance(node, list):
        for child in node:
            check_values(child, key)
    elif isinstance(node, dict):
        for name, child in node.items():
            check_values(child, f"{key}.{name}".lstrip("."))
    elif is_dataclass(node):
        for field in fields(node):
            place, value = f"{key}.{field.name}".lstrip("."), getattr(node, field.name)
            check_values(value, place)
            check(place, value, field)
        if isinstance(node, NodeConfig):
            node.validate()
