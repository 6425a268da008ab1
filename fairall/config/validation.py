"""What a configuration may say beyond its types, told in one line where it says something else."""

from __future__ import annotations

import math
import re
from dataclasses import fields, is_dataclass
from typing import Any

from omegaconf import DictConfig, OmegaConf

from fairall.config.checks import OPEN_UNIT, at_least, not_negative, one_of, positive, require
from fairall.config.schema import (
    SCHEMA_SUFFIX,
    SCHEMAS,
    Config,
    CsvConfig,
    DatasetConfig,
    LoggedPolicyConfig,
    ProtocolConfig,
    RandomPolicyConfig,
    SyntheticConfig,
    TableConfig,
)
from fairall.data.features import Kind
from fairall.errors import FairAllError

# Enough for anybody, and what neither Python nor the system chokes on.
MOST_SEEDS, MOST_THREADS = 10_000, 256
# Quoted twice: for the shell, which ends a command at ; or |, and for Hydra.
ONE_CHARACTER = """one character, quoted as in 'dataset.separator=";"'"""
# What each switch of conf/protocol/ may say; docs/protocols.md says what it does.
SWITCHES = {
    "kl": ("density", "cdf"),
    "policy_target": ("hard", "sampled"),
    "policy_loss": ("cost_sensitive", "plain"),
    "fairlog_penalty": ("squared", "absolute", "fairtorch"),
    "fairlab_weight": ("inverse_propensity", "propensity"),
    "fairlab_classifier": ("trained", "untrained"),
    "scaler": ("training_rows", "each_file"),
    "effective": ("taken", "decided_again"),
    "weight_gain": ("relu", "one"),
    "vae_start": ("group_blind", "random"),
    "latent_frame": ("matched", "as_learnt"),
}


def refuse_deleted(composed: DictConfig) -> None:
    """Raises FairAllError where the command line has deleted (`~KEY`) what every run needs."""
    for field in fields(Config):
        if field.name not in composed:
            raise FairAllError(f"{field.name} was deleted with ~{field.name}, and every run needs it")


def refuse_untyped(node: Any, group: str) -> None:
    """Raises FairAllError where the file of a group's node inherits none of the schemas of that group."""
    types = SCHEMAS[group]
    if isinstance(node, DictConfig) and OmegaConf.get_type(node) in types.values():
        return
    schemas = [name + SCHEMA_SUFFIX for name in types]
    name = node.get("name") if isinstance(node, DictConfig) else node
    raise FairAllError(
        f"{group}={name}: its file inherits no schema, which says what keys it has: begin it with "
        f"`defaults: [{schemas[0]}, _self_]`, or with {' or '.join(schemas[1:])}"
    )


def refuse_unknown(node: DictConfig, prefix: str = "") -> None:
    """Refuses keys that were added to typed nodes, which `+key=value` would otherwise slip in.

    Raises:
        FairAllError: naming the key.
    """
    node_type = OmegaConf.get_type(node)
    known = {item.name for item in fields(node_type)} if is_dataclass(node_type) else None
    for key in map(str, node):
        if known is not None and key not in known:
            raise FairAllError(f"{prefix}{key}: no such key; --help lists them all")
        child = node._get_node(key)
        if isinstance(child, DictConfig) and not child._is_none() and not child._is_interpolation():
            refuse_unknown(child, f"{prefix}{key}.")


def refuse_not_finite(node: Any, key: str = "") -> None:
    """Refuses infinite numbers and NaN anywhere in plain containers; raises FairAllError naming the key."""
    if isinstance(node, dict):
        for name, child in node.items():
            refuse_not_finite(child, f"{key}.{name}" if key else str(name))
    elif isinstance(node, list):
        for child in node:
            refuse_not_finite(child, key)
    elif isinstance(node, float):
        require(math.isfinite(node), key, node, "a finite number")


def validate(config: Config) -> None:
    """Checks what types cannot say.

    Raises:
        FairAllError: naming the key, the value given and what is allowed.
    """
    schedule, evaluation = config.schedule, config.evaluation
    require(1 <= config.seeds <= MOST_SEEDS, "seeds", config.seeds, f"from 1 to {MOST_SEEDS}")
    require(0 <= config.seed < 2**63 - MOST_SEEDS, "seed", config.seed, "0 or more, and below 2**63")
    require(1 <= config.threads <= MOST_THREADS, "threads", config.threads, f"from 1 to {MOST_THREADS}")
    not_negative("checkpoint_seconds", config.checkpoint_seconds)
    require(config.outputs_dir.strip() != "", "outputs_dir", "", "a folder; here it is `outputs_dir=.`")
    require(0.0 < config.cost.value < 1.0, "cost.value", config.cost.value, OPEN_UNIT)
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
        len(window) == 2 and 0 <= window[0] < window[1] <= schedule.time_steps,
        "evaluation.window",
        window,
        f"[t1, t2] with 0 <= t1 < t2 <= schedule.time_steps, which is {schedule.time_steps}",
    )
    validate_dataset(config.dataset)
    plain_name("model.name", config.model.name)
    config.model.validate()
    if not isinstance(config.initial_policy, LoggedPolicyConfig):
        _random_state("initial_policy.random_state", config.initial_policy.random_state)
    one_of("evaluation.split", evaluation.split, ("test", "validation"))
    _validate_protocol(config.protocol)
    if isinstance(config.initial_policy, RandomPolicyConfig):
        rate = config.initial_policy.acceptance_rate
        require(0.0 < rate <= 1.0, "initial_policy.acceptance_rate", rate, "above 0 and at most 1")
    if isinstance(config.initial_policy, LoggedPolicyConfig):
        least = config.initial_policy.min_propensity
        require(0.0 < least < 1.0, "initial_policy.min_propensity", least, OPEN_UNIT)


def validate_dataset(dataset: DatasetConfig) -> None:
    """The part of `validate` that is about the data set."""
    plain_name("dataset.name", dataset.name)
    one_of("dataset.encoding", dataset.encoding, ("ordinal", "one_hot"))
    if isinstance(dataset, TableConfig):
        for name in ("held_out", "pool"):
            share = getattr(dataset.split, name)
            require(0.0 < share < 1.0, f"dataset.split.{name}", share, OPEN_UNIT)
        _random_state("dataset.split.random_state", dataset.split.random_state)
    if isinstance(dataset, CsvConfig):
        for column, kind in dataset.kinds.items():
            one_of(f"dataset.kinds.{column}", kind, tuple(Kind))
        require(len(dataset.separator) == 1, "dataset.separator", dataset.separator, ONE_CHARACTER)
        at_least("dataset.max_categories", dataset.max_categories, 2)
        for name in ("drop", "missing", "missing_by_default"):
            words = getattr(dataset, name)
            require(all(isinstance(word, str) for word in words), f"dataset.{name}", words, "a list of words")
    if isinstance(dataset, SyntheticConfig):
        _validate_synthetic(dataset)


def _validate_protocol(protocol: ProtocolConfig) -> None:
    for name, choices in SWITCHES.items():
        one_of(f"protocol.{name}", getattr(protocol, name), choices)
    most = protocol.max_ips_weight
    require(most is None or most >= 1, "protocol.max_ips_weight", most, "at least 1, or null")
    after, rate = protocol.exploration.after, protocol.exploration.propensity
    require(after is None or after >= 1, "protocol.exploration.after", after, "at least 1, or null")
    require(0 < rate <= 1, "protocol.exploration.propensity", rate, "above 0 and at most 1")


def _validate_synthetic(dataset: SyntheticConfig) -> None:
    _random_state("dataset.random_state", dataset.random_state)
    for name, rows in vars(dataset.rows).items():
        at_least(f"dataset.rows.{name}", rows, 10)
    model = dataset.structural_model
    for name in ("advantaged_share", "ground_truth_share"):
        share = getattr(model, name)
        require(0.0 < share < 1.0, f"dataset.structural_model.{name}", share, OPEN_UNIT)
    positive("dataset.structural_model.k_std", model.k_std)
    for name, equation in model.variables.items():
        key = f"dataset.structural_model.variables.{name}"
        require(set(equation) == {"k", "s", "std"}, key, equation, "of the form {k: 4, s: 3.5, std: 0.1}")
        not_negative(f"{key}.std", equation["std"])
    one_of("dataset.structural_model.label", model.label, tuple(model.variables))
    require(len(dataset.observed) >= 1, "dataset.observed", dataset.observed, "at least one variable")
    for name in dataset.observed:
        one_of("dataset.observed", name, ("K", *(key for key in model.variables if key != model.label)))


def _random_state(key: str, state: int) -> None:
    require(0 <= state < 2**32, key, state, "at least 0 and below 2**32")


def plain_name(key: str, name: str) -> None:
    """Raises FairAllError unless `name` can be that of a folder anywhere."""
    plain = re.fullmatch(r"[\w+-][\w+. -]*", name) is not None
    require(plain, key, name, "a plain name of letters, digits, '_', '-', '.', which names a folder")
