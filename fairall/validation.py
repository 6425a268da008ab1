"""What a configuration may say beyond its types, told in one line where it says something else."""

from __future__ import annotations

import math
import re
from dataclasses import fields, is_dataclass
from typing import Any

from omegaconf import DictConfig, OmegaConf

from fairall.config import (
    Config,
    CsvConfig,
    DatasetConfig,
    FairAllConfig,
    LoggedPolicyConfig,
    OptimalConfig,
    RandomPolicyConfig,
    SyntheticConfig,
    TableConfig,
)
from fairall.data.features import Kind
from fairall.errors import FairAllError

_OPEN_UNIT = "between 0 and 1, both excluded"


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
        _require(math.isfinite(node), key, node, "a finite number")


def validate(config: Config) -> None:
    """Checks what types cannot say.

    Raises:
        FairAllError: naming the key, the value given and what is allowed.
    """
    schedule, evaluation = config.schedule, config.evaluation
    _require(config.seeds >= 1, "seeds", config.seeds, "at least 1")
    _require(config.seed >= 0, "seed", config.seed, "0 or more")
    _require(config.threads >= 1, "threads", config.threads, "at least 1")
    _require(0.0 < config.cost.value < 1.0, "cost.value", config.cost.value, _OPEN_UNIT)
    for name, value in vars(schedule).items():
        _require(value >= 1, f"schedule.{name}", value, "at least 1")
    _require(
        schedule.batches_per_epoch <= min(schedule.applicants, schedule.warm_up_applicants),
        "schedule.batches_per_epoch",
        schedule.batches_per_epoch,
        "at most the number of applicants of a step and of the warm-up",
    )
    window = evaluation.window
    _require(
        len(window) == 2 and 0 <= window[0] < window[1] <= schedule.time_steps,
        "evaluation.window",
        window,
        f"[t1, t2] with 0 <= t1 < t2 <= schedule.time_steps, which is {schedule.time_steps}",
    )
    validate_dataset(config.dataset)
    _name("model.name", config.model.name)
    if not isinstance(config.initial_policy, LoggedPolicyConfig):
        _random_state("initial_policy.random_state", config.initial_policy.random_state)
    _one_of("evaluation.split", evaluation.split, ("test", "validation"))
    _one_of("protocol.policy_target", config.protocol.policy_target, ("hard", "sampled"))
    _one_of("protocol.policy_loss", config.protocol.policy_loss, ("cost_sensitive", "plain"))
    _require(evaluation.bootstrap >= 1, "evaluation.bootstrap", evaluation.bootstrap, "at least 1")
    if isinstance(config.model, FairAllConfig):
        _validate_fairall(config.model)
    if isinstance(config.model, OptimalConfig):
        _one_of("model.decision", config.model.decision, ("deterministic", "stochastic"))
        _require(config.model.fit_rows >= 100, "model.fit_rows", config.model.fit_rows, "at least 100")
    if isinstance(config.initial_policy, RandomPolicyConfig):
        rate = config.initial_policy.acceptance_rate
        _require(0.0 < rate <= 1.0, "initial_policy.acceptance_rate", rate, "above 0 and at most 1")
    if isinstance(config.initial_policy, LoggedPolicyConfig):
        least = config.initial_policy.min_propensity
        _require(0.0 < least < 1.0, "initial_policy.min_propensity", least, _OPEN_UNIT)


def validate_dataset(dataset: DatasetConfig) -> None:
    """The part of `validate` that is about the data set."""
    _name("dataset.name", dataset.name)
    _one_of("dataset.encoding", dataset.encoding, ("ordinal", "one_hot"))
    if isinstance(dataset, TableConfig):
        for name in ("held_out", "pool"):
            share = getattr(dataset.split, name)
            _require(0.0 < share < 1.0, f"dataset.split.{name}", share, _OPEN_UNIT)
        _random_state("dataset.split.random_state", dataset.split.random_state)
    if isinstance(dataset, CsvConfig):
        for column, kind in dataset.kinds.items():
            _one_of(f"dataset.kinds.{column}", kind, tuple(Kind))
        _require(len(dataset.separator) == 1, "dataset.separator", dataset.separator, "one character")
        _require(dataset.max_categories >= 2, "dataset.max_categories", dataset.max_categories, "at least 2")
    if isinstance(dataset, SyntheticConfig):
        _validate_synthetic(dataset)


def _validate_synthetic(dataset: SyntheticConfig) -> None:
    _random_state("dataset.random_state", dataset.random_state)
    for name, rows in vars(dataset.rows).items():
        _require(rows >= 10, f"dataset.rows.{name}", rows, "at least 10")
    model = dataset.structural_model
    for name in ("advantaged_share", "ground_truth_share"):
        share = getattr(model, name)
        _require(0.0 < share < 1.0, f"dataset.structural_model.{name}", share, _OPEN_UNIT)
    _require(model.k_std > 0, "dataset.structural_model.k_std", model.k_std, "positive")
    for name, equation in model.variables.items():
        key = f"dataset.structural_model.variables.{name}"
        _require(set(equation) == {"k", "s", "std"}, key, equation, "of the form {k: 4, s: 3.5, std: 0.1}")
        _require(equation["std"] >= 0, f"{key}.std", equation["std"], "0 or more")
    _one_of("dataset.structural_model.label", model.label, tuple(model.variables))
    _require(len(dataset.observed) >= 1, "dataset.observed", dataset.observed, "at least one variable")
    for name in dataset.observed:
        _one_of("dataset.observed", name, ("K", *(key for key in model.variables if key != model.label)))


def _validate_fairall(model: FairAllConfig) -> None:
    for name in ("latent_size", "elbo_samples", "kl_samples", "propensity_samples"):
        _require(getattr(model, name) >= 1, f"model.{name}", getattr(model, name), "at least 1")
    for name in ("vae_arch", "clf_arch"):
        sizes = getattr(model, name)
        _require(
            len(sizes) >= 1 and min(sizes) >= 1,
            f"model.{name}",
            sizes,
            "a list of sizes of at least 1, as [64,64]",
        )
    _require(model.learning_rate > 0, "model.learning_rate", model.learning_rate, "positive")
    _require(0 <= model.clf_dropout < 1, "model.clf_dropout", model.clf_dropout, "at least 0 and below 1")
    for name in ("alpha", "beta"):
        _require(getattr(model, name) >= 0, f"model.{name}", getattr(model, name), "0 or more")
    if model.phase1 is None:
        return
    for name in ("batch_size", "elbo_samples", "validate_every", "validation_samples"):
        value = getattr(model.phase1, name)
        _require(value >= 1, f"model.phase1.{name}", value, "at least 1")
    _require(
        model.phase1.learning_rate > 0, "model.phase1.learning_rate", model.phase1.learning_rate, "positive"
    )
    _require(model.phase1.beta >= 0, "model.phase1.beta", model.phase1.beta, "0 or more")


def _random_state(key: str, state: int) -> None:
    _require(0 <= state < 2**32, key, state, "at least 0 and below 2**32")


def _name(key: str, name: str) -> None:
    plain = re.fullmatch(r"[\w+-][\w+. -]*", name) is not None
    _require(plain, key, name, "a plain name of letters, digits, '_', '-', '.', which names a folder")


def _one_of(key: str, value: str, allowed: tuple[str, ...]) -> None:
    _require(value in allowed, key, value, " or ".join(allowed))


def _require(holds: bool, key: str, value: object, allowed: str) -> None:
    if not holds:
        raise FairAllError(f"{key}={value} is not possible: it must be {allowed}")
