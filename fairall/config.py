"""Types of every configuration node; the values themselves live in conf/ and nowhere else."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any

from omegaconf import MISSING, DictConfig, OmegaConf

from fairall.errors import FairAllError

SCHEMA_SUFFIX = "_schema"  # marks choices of a group that hold types only


@dataclass
class SplitConfig:
    """How a table is cut: train / validation / test, and the pool of Phase I and warm-up out of train."""

    held_out: float = MISSING
    pool: float = MISSING
    random_state: int = MISSING


@dataclass
class LogisticWeightsConfig:
    """w0 and ws of an initial policy."""

    intercept: float = MISSING
    advantaged: float = MISSING


@dataclass
class InitialPoliciesConfig:
    """The closed form of a data set's lenient and harsh policies."""

    score: dict[str, float] = MISSING
    lenient: LogisticWeightsConfig = field(default_factory=LogisticWeightsConfig)
    harsh: LogisticWeightsConfig = field(default_factory=LogisticWeightsConfig)


@dataclass
class DatasetConfig:
    """A data set: where its table comes from and how it is cut."""

    name: str = MISSING
    source: Any = MISSING
    cost: float = MISSING
    split: SplitConfig = field(default_factory=SplitConfig)
    initial_policies: InitialPoliciesConfig = field(default_factory=InitialPoliciesConfig)


@dataclass
class LogisticPolicyConfig:
    """An initial policy with a logistic score."""

    _target_: str = MISSING
    name: str = MISSING
    score: dict[str, float] = MISSING
    slope: float = MISSING
    intercept: float = MISSING
    advantaged: float = MISSING
    random_state: int = MISSING


@dataclass
class RandomPolicyConfig:
    """An initial policy that accepts everybody with the same probability."""

    _target_: str = MISSING
    name: str = MISSING
    acceptance_rate: float = MISSING
    random_state: int = MISSING


@dataclass
class CostConfig:
    """c, the cost of a positive decision."""

    value: float = MISSING


@dataclass
class ProtocolConfig:
    """The switches in which the paper's text and the authors' code differ."""

    name: str = MISSING
    policy_target: str = MISSING
    policy_loss: str = MISSING
    classifier_in_unlabelled_elbo: bool = MISSING


@dataclass
class ScheduleConfig:
    """How long everything lasts."""

    phase1_epochs: int = MISSING
    warm_up_applicants: int = MISSING
    warm_up_epochs: int = MISSING
    time_steps: int = MISSING
    applicants: int = MISSING
    batches_per_epoch: int = MISSING


@dataclass
class EvaluationConfig:
    """What is measured, on whom, and when."""

    split: str = MISSING
    window: list[int] = MISSING
    bootstrap: int = MISSING


@dataclass
class TrackingConfig:
    """Where MLflow keeps its records."""

    enabled: bool = MISSING
    uri: str | None = MISSING
    experiment: str = MISSING


@dataclass
class Phase1Config:
    """Training of the Phase I VAE."""

    batch_size: int = MISSING
    learning_rate: float = MISSING
    beta: float = MISSING
    elbo_samples: int = MISSING
    validate_every: int = MISSING
    validation_samples: int = MISSING


@dataclass
class FairAllConfig:
    """FairAll, with a Phase I where `phase1` is given."""

    _target_: str = MISSING
    name: str = MISSING
    learning_rate: float = MISSING
    latent_size: int = MISSING
    vae_arch: list[int] = MISSING
    clf_arch: list[int] = MISSING
    clf_dropout: float = MISSING
    alpha: float = MISSING
    beta: float = MISSING
    elbo_samples: int = MISSING
    kl_samples: int = MISSING
    propensity_samples: int = MISSING
    phase1: Phase1Config | None = None


@dataclass
class Config:
    """One run."""

    dataset: DatasetConfig = field(default_factory=DatasetConfig)
    model: Any = MISSING
    initial_policy: Any = MISSING
    cost: CostConfig = field(default_factory=CostConfig)
    protocol: ProtocolConfig = field(default_factory=ProtocolConfig)
    schedule: ScheduleConfig = field(default_factory=ScheduleConfig)
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)
    tracking: TrackingConfig = field(default_factory=TrackingConfig)
    seed: int = MISSING
    seeds: int = MISSING
    threads: int = MISSING
    objective: str = MISSING
    outputs_dir: str = MISSING
    force: bool = MISSING
    checkpoint_seconds: float = MISSING


def register_schemas() -> None:
    """Makes the types known to Hydra, under the names that the files of conf/ inherit from."""
    from hydra.core.config_store import ConfigStore

    store = ConfigStore.instance()
    store.store(name="schema", node=Config)
    for group, name, node in (
        ("model", "fairall", FairAllConfig),
        ("initial_policy", "logistic", LogisticPolicyConfig),
        ("initial_policy", "random", RandomPolicyConfig),
    ):
        store.store(group=group, name=name + SCHEMA_SUFFIX, node=node)


def register_sweeps(folder: Path) -> None:
    """Makes the files of sweeps/ choices of the group `sweeps`, which may set any value.

    A search path would have to name the folder above, and Hydra takes everything there for a choice.
    """
    from hydra.core.config_store import ConfigStore

    for path in folder.glob("*.yaml"):
        ConfigStore.instance().store(
            group="sweeps", name=path.stem, node=OmegaConf.load(path), package="_global_"
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


def validate(config: Config) -> None:
    """Checks what types cannot say.

    Raises:
        FairAllError: naming the key, the value given and what is allowed.
    """
    schedule, evaluation = config.schedule, config.evaluation
    _require(config.seeds >= 1, "seeds", config.seeds, "at least 1")
    _require(config.seed >= 0, "seed", config.seed, "0 or more")
    _require(config.threads >= 1, "threads", config.threads, "at least 1")
    _require(0.0 < config.cost.value < 1.0, "cost.value", config.cost.value, "between 0 and 1, both excluded")
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
    for name in ("held_out", "pool"):
        share = getattr(config.dataset.split, name)
        _require(0.0 < share < 1.0, f"dataset.split.{name}", share, "between 0 and 1, both excluded")
    for key, state in (
        ("dataset.split.random_state", config.dataset.split.random_state),
        ("initial_policy.random_state", config.initial_policy.random_state),
    ):
        _require(0 <= state < 2**32, key, state, "at least 0 and below 2**32")
    _one_of("evaluation.split", evaluation.split, ("test", "validation"))
    _one_of("protocol.policy_target", config.protocol.policy_target, ("hard", "sampled"))
    _one_of("protocol.policy_loss", config.protocol.policy_loss, ("cost_sensitive", "plain"))
    _require(evaluation.bootstrap >= 1, "evaluation.bootstrap", evaluation.bootstrap, "at least 1")
    if isinstance(config.model, FairAllConfig):
        _validate_fairall(config.model)
    if isinstance(config.initial_policy, RandomPolicyConfig):
        rate = config.initial_policy.acceptance_rate
        _require(0.0 < rate <= 1.0, "initial_policy.acceptance_rate", rate, "above 0 and at most 1")


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


def _one_of(key: str, value: str, allowed: tuple[str, ...]) -> None:
    _require(value in allowed, key, value, " or ".join(allowed))


def _require(holds: bool, key: str, value: object, allowed: str) -> None:
    if not holds:
        raise FairAllError(f"{key}={value} is not possible: it must be {allowed}")
