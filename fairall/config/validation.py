"""The configuration of a run as dataclasses, with every value checked."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from dataclasses import fields
from typing import Any, cast

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import ConfigAttributeError, ConfigKeyError, OmegaConfBaseException

from fairall.config.checks import at_least, not_negative, one_of, open_unit, plain_name, require
from fairall.config.schema import (
    GROUPS,
    Config,
    DatasetConfig,
    ExplorationConfig,
    ExplorationRule,
    NodeConfig,
    plain,
)
from fairall.config.target import require_trusted, target_class
from fairall.config.words import nearest_key
from fairall.errors import FairAllError
from fairall.runtime.credentials import withheld

MOST_SEEDS, MOST_THREADS = 10_000, 256


def checked(composed: DictConfig) -> Config:
    """The configuration composed by Hydra, of types and values that a run can have.

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
    """The stored configuration of a run, checked as `checked` does a composed one.

    The nodes of the data set, the initial policy and the world, whose classes no decision needs, stay plain
    containers; `checked_dataset` checks the first where it is used.

    Args:
        stored: by `config.stored.read_stored`.
        modules: see `target.require_trusted`.

    Raises:
        FairAllError: as `checked`, and where the class of the method may not be imported.
        omegaconf.errors.OmegaConfBaseException: where a value is missing or of another type.
    """
    require_trusted(stored.get("model"), "model", modules)
    config = typed(stored, ["model"])
    validate(config)
    return config


def checked_dataset(composed: DictConfig | dict[str, Any]) -> DatasetConfig:
    """The `dataset` node of a configuration, of which other values may be missing; raises as `checked`."""
    config: DatasetConfig = typed_node(composed, "dataset")
    _refuse_not_finite(plain(config), "dataset")
    _validate_dataset(config)
    return config


def typed(composed: DictConfig | dict[str, Any], groups: Collection[str] = GROUPS) -> Config:
    """The configuration as dataclasses, each node of a class of the type that the class declares.

    Args:
        composed: by Hydra, or plain containers.
        groups: the nodes whose classes are imported; those left out stay plain containers.

    Raises:
        FairAllError: naming the key, where a class is not there or not of the group, a key is unknown, a
            value is of another type, or a node was deleted.
        omegaconf.errors.MissingMandatoryValue: where a value is missing.
    """
    whole, classes = _structured(composed, groups)
    config = cast(Config, OmegaConf.to_object(whole))
    for place, target in classes.items():
        group, _, part = place.partition(".")
        node = config.world[part] if part else getattr(config, group)
        vars(node)["target"] = target
    return config


def typed_node(composed: DictConfig | dict[str, Any], group: str) -> Any:
    """A node of a configuration of which other values may be missing, unchecked; raises as `typed`."""
    groups = {"dataset": None, group: None}  # initial policies refer to values of the data set
    whole, classes = _structured(composed, list(groups))
    config = OmegaConf.to_object(whole[group])
    vars(config)["target"] = classes[group]
    return config


def structured_node(node: Any, place: str) -> tuple[DictConfig, Any]:
    """A node of a class, with the type that the class declares, and the class; raises as `typed`.

    Args:
        node: a DictConfig or a dict.
        place: its key in the configuration.
    """
    target = target_class(node, place)
    values = OmegaConf.to_container(node) if isinstance(node, DictConfig) else node
    return _merged(target.config_type, values, place), target


def _structured(
    composed: DictConfig | dict[str, Any], groups: Collection[str]
) -> tuple[DictConfig, dict[str, Any]]:
    """The configuration with types, and the classes by the keys of their nodes; see `typed`."""
    values: Any = OmegaConf.to_container(composed) if isinstance(composed, DictConfig) else {**composed}
    for field in fields(Config):
        if field.name not in values or (values[field.name] == {} and field.name != "world"):
            raise FairAllError(f"{field.name} was deleted with ~{field.name}, and every run needs it")
    nodes = {group: values.pop(group) for group in groups}
    if "world" in groups:
        parts = nodes.pop("world") or {}
        values["world"] = {}
        nodes |= {f"world.{name}": part for name, part in parts.items()}
    classes = {}
    for place, node in nodes.items():
        if place.startswith("world.") and not (isinstance(node, dict) and "_target_" in node):
            near = nearest_key(place, [other for other in nodes if other != place])
            own = f"a part of your own has {place}._target_=module.Class"
            raise FairAllError(f"{place}: no such key{near}; {own}")
        nodes[place], classes[place] = structured_node(node, place)
    whole = _merged(Config, values)
    for place, node in nodes.items():
        OmegaConf.update(whole, place, node, merge=False, force_add=True)
    return whole, classes


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
    """Check what types cannot say, of nodes that stayed plain containers nothing.

    Raises:
        FairAllError: naming the key, the value given and what is allowed.
    """
    _refuse_not_finite(plain(vars(config)))
    schedule, evaluation, tracking = config.schedule, config.evaluation, config.tracking
    require(1 <= config.seeds <= MOST_SEEDS, "seeds", config.seeds, f"from 1 to {MOST_SEEDS}")
    require(0 <= config.seed < 2**63 - MOST_SEEDS, "seed", config.seed, "0 or more, and below 2**63")
    if config.threads is not None:
        require(1 <= config.threads <= MOST_THREADS, "threads", config.threads, f"from 1 to {MOST_THREADS}")
    not_negative("checkpoint_seconds", config.checkpoint_seconds)
    require(config.outputs_dir.strip() != "", "outputs_dir", "", "a folder; here it is `outputs_dir=.`")
    for name, value in vars(schedule).items():
        at_least(f"schedule.{name}", value, 1)
    key, batches = "schedule.batches_per_epoch", schedule.batches_per_epoch
    fewest = min(schedule.applicants, schedule.warm_up_applicants)
    require(batches <= fewest, key, batches, "at most the number of applicants of a step and of the warm-up")
    window, last = evaluation.window, schedule.time_steps
    whole = len(window) == 2 and all(isinstance(step, int) for step in window)
    allowed = f"[t1, t2] with 0 <= t1 < t2 <= schedule.time_steps, which is {last}"
    require(whole and 0 <= window[0] < window[1] <= last, "evaluation.window", window, allowed)
    one_of("evaluation.split", evaluation.split, ("test", "validation"))
    if tracking.register is not None:
        key = "tracking.register"
        plain_name(key, tracking.register)
        require(tracking.enabled, key, tracking.register, "null where tracking.enabled=false")
    if isinstance(config.dataset, DatasetConfig):  # before the cost, which is the data set's unless given
        _validate_dataset(config.dataset)
    open_unit("cost.value", config.cost.value)
    plain_name("model.name", config.model.name)
    most_weight = config.protocol.max_ips_weight
    require(
        most_weight is None or most_weight >= 1, "protocol.max_ips_weight", most_weight, "at least 1, or null"
    )
    _validate_exploration(config.exploration)
    for node in (config.model, config.initial_policy, *config.world.values()):
        if isinstance(node, NodeConfig):
            node.validate()


def _validate_dataset(config: DatasetConfig) -> None:
    plain_name("dataset.name", config.name)
    open_unit("dataset.cost", config.cost)
    config.validate()


def _validate_exploration(exploration: ExplorationConfig) -> None:
    rule, after, rate = exploration.rule, exploration.after, exploration.propensity
    if rule is ExplorationRule.none:
        return
    require(0 < rate <= 1, "exploration.propensity", rate, "above 0 and at most 1")
    if rule is ExplorationRule.stuck:
        require(after is not None and after >= 1, "exploration.after", after, "at least 1")


def _refuse_not_finite(node: Any, key: str = "") -> None:
    """Raise FairAllError, naming the key, for an infinite number or NaN in plain containers."""
    if isinstance(node, dict):
        for name, child in node.items():
            _refuse_not_finite(child, f"{key}.{name}" if key else str(name))
    elif isinstance(node, list):
        for child in node:
            _refuse_not_finite(child, key)
    elif isinstance(node, float):
        require(math.isfinite(node), key, node, "a finite number")
