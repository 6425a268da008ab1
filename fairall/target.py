"""From `_target_` to the class it names."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from omegaconf import DictConfig

from fairall.errors import FairAllError


def target_class(node: Any, key: str) -> Any:
    """The class that `node._target_` names, by module and name.

    Args:
        node: of the configuration.
        key: where the node is.

    Raises:
        FairAllError: where there is no such class.
    """
    target = node.get("_target_") if isinstance(node, dict | DictConfig) else node._target_
    if not target:
        raise FairAllError(f"{key}._target_ has no value: it names the class, as {key}._target_=module.Class")
    module, _, name = str(target).rpartition(".")
    if not module:
        raise FairAllError(f"{key}._target_={target}: it names the class with its module, as module.Class")
    try:
        return getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise FairAllError(f"{key}._target_={target}: there is no such class ({error})") from error
