"""Checks of a whole configuration beyond its types."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any, cast

from omegaconf import DictConfig, OmegaConf

from fairall.config.checks import at_least, not_negative, one_of, open_unit, plain_name, require
from fairall.config.schema import (
    GROUPS,
    Config,
    DatasetConfig,
    ExplorationConfig,
    ExplorationRule,
    ProtocolConfig,
)
from fairall.config.target import require_trusted, with_types
from fairall.runtime.credentials import hidden_in, withheld

MOST_SEEDS, MOST_THREADS = 10_000, 256


def checked(composed: DictConfig) -> tuple[Config, dict[str, Any]]:
    """The configuration composed by Hydra as dataclasses and as plain containers.

    Plain containers have no user and password of an address; those of `tracking.uri`, which a file may
    have, are withheld (`credentials`).

    Raises:
        FairAllError: naming the key, where a key is unknown or a value is not possible.
        omegaconf.errors.MissingMandatoryValue: where a value is missing.
    """
    node = with_types(composed)
    if node.tracking.uri is not None:
        node.tracking.uri = withheld(node.tracking.uri)
    plain = cast(
        dict[str, Any], OmegaConf.to_container(node, resolve=True, throw_on_missing=True, enum_to_str=True)
    )
    refuse_not_finite(plain)
    config = cast(Config, OmegaConf.to_object(node))
    validate(config)
    return config, hidden_in(plain)


def checked_stored(plain: dict[str, Any], modules: Collection[str]) -> Config:
    """The stored configuration of a run, checked as `checked` does a composed one.

    The nodes of the data set and the initial policy, whose classes no decision needs, stay plain containers;
    `checked_dataset` checks the one where it is used.

    Args:
        plain: by `config.stored.read_stored`.
        modules: see `target.require_trusted`.

    Raises:
        FairAllError: as `checked`, and where the class of the method may not be imported.
        omegaconf.errors.OmegaConfBaseException: where a value is missing or of another type.
    """
    require_trusted(plain.get("model"), "model", modules)
    refuse_not_finite(plain)
    config = cast(Config, OmegaConf.to_object(with_types(plain, ["model"])))
    validate(config, ["model"])
    return config


def checked_dataset(composed: DictConfig | dict[str, Any]) -> DatasetConfig:
    """The `dataset` node of a composed configuration; raises as `checked`."""
    node = with_types(composed, ["dataset"]).dataset
    config = cast(DatasetConfig, OmegaConf.to_object(node))
    refuse_not_finite(OmegaConf.to_container(node), "dataset")
    validate_dataset(config)
    return config


def refuse_not_finite(node: Any, key: str = "") -> None:
    """Raise FairAllError, naming the key, for an infinite number or NaN in plain containers."""
    if isinstance(node, dict):
        for name, child in node.items():
            refuse_not_finite(child, f"{key}.{name}" if key else str(name))
    elif isinstance(node, list):
        for child in node:
            refuse_not_finite(child, key)
    elif isinstance(node, float):
        require(math.isfinite(node), key, node, "a finite number")


def validate(config: Config, groups: Collection[str] = tuple(GROUPS)) -> None:
    """Check what types cannot say.

    Args:
        config: of a run.
        groups: those of its nodes that have a type.

    Raises:
        FairAllError: naming the key, the value given and what is allowed.
    """
    schedule, evaluation = config.schedule, config.evaluation
    require(1 <= config.seeds <= MOST_SEEDS, "seeds", config.seeds, f"from 1 to {MOST_SEEDS}")
    require(0 <= config.seed < 2**63 - MOST_SEEDS, "seed", config.seed, "0 or more, and below 2**63")
    if config.threads is not None:
        require(1 <= config.threads <= MOST_THREADS, "threads", config.threads, f"from 1 to {MOST_THREADS}")
    not_negative("checkpoint_seconds", config.checkpoint_seconds)
    require(config.outputs_dir.strip() != "", "outputs_dir", "", "a folder; here it is `outputs_dir=.`")
    for name, value in vars(schedule).items():
        at_least(f"schedule.{name}", value, 1)
    require(
        schedule.batches_per_epoch <= min(schedule.applicants, schedule.warm_up_applicants),
        "schedule.batches_per_epoch",
        schedule.batches_per_epoch,
        "at most the number of applicants of a step and of the warm-up",
    )
    window = evaluation.window
    require(
        len(window) == 2
        and all(isinstance(step, int) for step in window)
        and 0 <= window[0] < window[1] <= schedule.time_steps,
        "evaluation.window",
        window,
        f"[t1, t2] with 0 <= t1 < t2 <= schedule.time_steps, which is {schedule.time_steps}",
    )
    one_of("evaluation.split", evaluation.split, ("test", "validation"))
    if config.tracking.register is not None:
        plain_name("tracking.register", config.tracking.register)
        require(
            config.tracking.enabled,
            "tracking.register",
            config.tracking.register,
            "null where tracking.enabled=false",
        )
    if "dataset" in groups:  # before the cost, which is the data set's unless given
        validate_dataset(config.dataset)
    open_unit("cost.value", config.cost.value)
    plain_name("model.name", config.model.name)
    config.model.validate()
    if "initial_policy" in groups:
        config.initial_policy.validate()
    config.world.validate()
    _validate_protocol(config.protocol)
    _validate_exploration(config.exploration)


def validate_dataset(config: DatasetConfig) -> None:
    """Check the `dataset` node; raises as `validate`."""
    plain_name("dataset.name", config.name)
    open_unit("dataset.cost", config.cost)
    config.validate()


def _validate_protocol(protocol: ProtocolConfig) -> None:
    most = protocol.max_ips_weight
    require(most is None or most >= 1, "protocol.max_ips_weight", most, "at least 1, or null")


def _validate_exploration(exploration: ExplorationConfig) -> None:
    rule, after, rate = exploration.rule, exploration.after, exploration.propensity
    if rule is ExplorationRule.none:
        return
    require(0 < rate <= 1, "exploration.propensity", rate, "above 0 and at most 1")
    if rule is ExplorationRule.stuck:
        require(after is not None and after >= 1, "exploration.after", after, "at least 1")
