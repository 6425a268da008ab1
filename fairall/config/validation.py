"""The configuration of a run as dataclasses, with every value checked."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from functools import lru_cache
from typing import Any, cast

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import MissingMandatoryValue, OmegaConfBaseException

from fairall.config.checks import check_values
from fairall.config.choices import flattened
from fairall.config.messages import NO_KEY, in_one_line
from fairall.config.schema import GROUPS, Config, DatasetConfig
from fairall.config.target import require_trusted, target_class
from fairall.config.words import nearest_key
from fairall.errors import FairAllError


def checked(composed: DictConfig) -> Config:
    """The composed configuration with checked types and values.

    Raises:
        FairAllError: as `typed`, and where a value is not possible.
    """
    config = typed(composed)
    check_values(config)
    return config


def checked_stored(stored: Config, modules: Collection[str]) -> Config:
    """A stored configuration with the node of the method, whose class is imported, as `checked` has it.

    The data set, the initial policy and the world, whose classes no decision needs, stay plain containers.

    Raises:
        FairAllError: as `target.require_trusted` and `checked_node`.
    """
    require_trusted(stored.model, "model", modules)
    return replace(stored, model=checked_node(stored.model, "model"))


def checked_node(node: dict[str, Any], place: str) -> Any:
    """A node of a class in a stored configuration, of the type that the class declares, with checked values.

    Raises:
        FairAllError: where the class is not there, or the node is not as this version stores it.
    """
    try:
        made = OmegaConf.to_object(structured_node(node, place))
    except MissingMandatoryValue as error:
        raise FairAllError(f"{place} lacks {error.full_key}: this version of fairall stores it") from error
    check_values(made, place)
    return made


def checked_dataset(composed: DictConfig) -> DatasetConfig:
    """The `dataset` node of a composed configuration, of which others may be missing; raises as `checked`."""
    config: DatasetConfig = typed_node(composed, "dataset")
    check_values(config, "dataset")
    return config


def typed(composed: DictConfig) -> Config:
    """The configuration as dataclasses, each node of a class of the type that the class declares.

    Raises:
        FairAllError: naming the key, where a class is not there or not of the group, a key is unknown, or a
            value is missing, refers to another that is not there or is of another type.
    """
    with in_one_line(()):
        return cast(Config, OmegaConf.to_object(_structured(composed, GROUPS)))


def typed_node(composed: DictConfig, group: str) -> Any:
    """A node of a configuration of which other values may be missing, unchecked; raises as `typed`."""
    with in_one_line(()):  # initial policies refer to values of the data set
        return OmegaConf.to_object(_structured(composed, {"dataset", group})[group])


def structured_node(node: Any, place: str) -> DictConfig:
    """A node of a class, with the type that the class declares; `place` is its key. Raises as `typed`."""
    values = OmegaConf.to_container(node) if isinstance(node, DictConfig) else node
    return _merged(target_class(node, place).config_type, values, place)


def _structured(composed: DictConfig, groups: Collection[str]) -> DictConfig:
    """The configuration with the types of `Config` and of the nodes in `groups`."""
    values: Any = OmegaConf.to_container(composed)
    nodes = {group: values.pop(group, None) for group in groups}
    if "world" in groups:
        nodes |= {f"world.{name}": part for name, part in (nodes.pop("world") or {}).items()}
        values["world"] = {}
    structured = {place: structured_node(node, place) for place, node in nodes.items()}
    whole = _merged(Config, values)
    for place, node in structured.items():
        OmegaConf.update(whole, place, node, merge=False, force_add=True)
    return whole


@lru_cache(maxsize=64)
def _declared(config_type: type) -> DictConfig:
    """The structured node of a class, which takes OmegaConf several times as long to make as to copy."""
    return cast(DictConfig, OmegaConf.structured(config_type))


def _merged(declared: Any, values: Any, place: str = "") -> DictConfig:
    """Values in a structured node; raises FairAllError for an unknown key or another type."""
    structured = _declared(declared).copy()
    try:
        return cast(DictConfig, OmegaConf.unsafe_merge(structured, values))
    except (OmegaConfBaseException, ValueError) as error:  # ValueError: a value in place of keys
        key = ".".join(filter(None, (place, str(getattr(error, "full_key", None) or ""))))
        if not isinstance(error, NO_KEY):
            raise FairAllError(f"{key}: {str(error).partition(chr(10))[0]}") from error
        near = nearest_key(key, flattened(OmegaConf.to_container(structured), place))
        raise FairAllError(f"{key}: no such key{near}; --cfg job prints them all") from error
