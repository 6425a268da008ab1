"""The `model` node of a configuration, of the type that the method it names declares."""

from __future__ import annotations

import inspect
from dataclasses import is_dataclass
from typing import TYPE_CHECKING

from omegaconf import DictConfig, OmegaConf, open_dict
from omegaconf.errors import ConfigAttributeError, ConfigKeyError, OmegaConfBaseException

from fairall.config.schema import ModelConfig
from fairall.config.target import target_class
from fairall.errors import FairAllError

if TYPE_CHECKING:
    from fairall.models.learner import Learner


def with_typed_model(composed: DictConfig) -> DictConfig:
    """The configuration with its `model` node of the type of `Learner.config_type`.

    Raises:
        FairAllError: where there is no such method, or it knows no such key, or takes no such value.
    """
    method = _method(composed.model)
    try:
        node = OmegaConf.merge(OmegaConf.structured(method.config_type), composed.model)
    except (ConfigKeyError, ConfigAttributeError) as error:
        raise FairAllError(f"model.{error.full_key}: no such key; --help lists them all") from error
    except OmegaConfBaseException as error:
        key = f"model.{error.full_key}" if error.full_key else "model"
        reason = str(error).split("\n")[0]
        raise FairAllError(f"{key}: {reason}") from error
    typed = composed.copy()
    with open_dict(typed):
        typed.model = node
    return typed


def _method(node: DictConfig) -> type[Learner]:
    method: type[Learner] = target_class(node, "model")
    declared = method.config_type
    if not (inspect.isclass(declared) and issubclass(declared, ModelConfig) and is_dataclass(declared)):
        raise FairAllError(
            f"model._target_={node._target_}: its config_type is no dataclass made from "
            "fairall.config.schema.ModelConfig"
        )
    return method
