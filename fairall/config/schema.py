"""Types of every configuration node; the values themselves live in conf/ and nowhere else."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_origin

from omegaconf import MISSING, DictConfig, OmegaConf

SCHEMA_SUFFIX = "_schema"  # marks choices of a group that hold types only


@dataclass
class SplitConfig:
    """How a table is cut: train / validation / test, and the pool of Phase I and warm-up out of train."""

    held_out: float = MISSING
    pool: float = MISSING
    random_state: int = MISSING


@dataclass
class CsvSplitConfig(SplitConfig):
    """The same, or a column that says where each row belongs."""

    column: str | None = MISSING


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
    """What every data set has."""

    _target_: str = MISSING
    name: str = MISSING
    cost: float = MISSING
    encoding: str = MISSING
    initial_policies: InitialPoliciesConfig = field(default_factory=InitialPoliciesConfig)


@dataclass
class TableConfig(DatasetConfig):
    """A table of finitely many people, to be cut."""

    split: SplitConfig = field(default_factory=SplitConfig)


@dataclass
class DownloadConfig:
    """Where a raw file can be had, and how to know it for the right one."""

    url: str = MISSING
    sha256: str | None = MISSING
    size: int | None = MISSING
    terms: str | None = MISSING


@dataclass
class RawTableConfig(TableConfig):
    """A table made from a raw file that is not ours to pass on."""

    raw_file: str | None = MISSING
    known_files: list[str] = MISSING
    rows: int | None = MISSING
    download: DownloadConfig = field(default_factory=DownloadConfig)
    accept_terms: bool = MISSING


@dataclass
class CsvConfig(TableConfig):
    """Anybody's table."""

    path: str = MISSING
    separator: str = MISSING
    text_encoding: str = MISSING
    label: str = MISSING
    positive: str = MISSING
    sensitive: str = MISSING
    advantaged: str = MISSING
    drop: list[str] = MISSING
    kinds: dict[str, str] = MISSING
    missing: list[str] = MISSING
    missing_by_default: list[str] = MISSING
    max_categories: int = MISSING
    max_count: int = MISSING
    decision: str | None = MISSING
    accepted: str = MISSING
    propensity: str | None = MISSING
    split: CsvSplitConfig = field(default_factory=CsvSplitConfig)

    @property
    def no_value(self) -> tuple[str, ...]:
        """All texts of a cell, without surrounding blanks, that mean a missing value."""
        words = (*self.missing_by_default, *self.missing)
        return tuple(dict.fromkeys(["", *(word.strip() for word in words)]))


@dataclass
class StructuralModelConfig:
    """The structural causal model of the synthetic data.

    Each of `variables` has three coefficients: k·K + s·S + noise of standard deviation `std`.
    """

    advantaged_share: float = MISSING
    ground_truth_share: float = MISSING
    k_shift: float = MISSING
    k_std: float = MISSING
    variables: dict[str, dict[str, float]] = MISSING
    label: str = MISSING
    threshold: float = MISSING


@dataclass
class SampleSizesConfig:
    """How many people are drawn for each role."""

    pool: int = MISSING
    validation: int = MISSING
    test: int = MISSING


@dataclass
class SyntheticConfig(DatasetConfig):
    """People drawn from a structural causal model."""

    random_state: int = MISSING
    rows: SampleSizesConfig = field(default_factory=SampleSizesConfig)
    observed: list[str] = MISSING
    structural_model: StructuralModelConfig = field(default_factory=StructuralModelConfig)


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
class LoggedPolicyConfig:
    """The decisions that the data set itself records."""

    _target_: str = MISSING
    name: str = MISSING
    min_propensity: float = MISSING


@dataclass
class CostConfig:
    """c, the cost of a positive decision."""

    value: float = MISSING


@dataclass
class ExplorationConfig:
    """When a policy that accepts nobody is made to look again, and how hard."""

    after: int | None = MISSING
    propensity: float = MISSING


@dataclass
class ProtocolConfig:
    """The switches in which the paper's text, the authors' code and ours differ, and our guards."""

    name: str = MISSING
    kl: str = MISSING
    policy_target: str = MISSING
    policy_loss: str = MISSING
    fairlog_penalty: str = MISSING
    fairlab_weight: str = MISSING
    fairlab_classifier: str = MISSING
    scaler: str = MISSING
    effective: str = MISSING
    classifier_in_unlabelled_elbo: bool = MISSING
    weight_gain: str = MISSING
    vae_start: str = MISSING
    latent_frame: str = MISSING
    max_ips_weight: float | None = MISSING
    exploration: ExplorationConfig = field(default_factory=ExplorationConfig)


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
    measures: list[str] = MISSING


@dataclass
class TrackingConfig:
    """Where MLflow keeps its records."""

    enabled: bool = MISSING
    uri: str | None = MISSING
    experiment: str = MISSING


@dataclass
class SweepConfig:
    """How a sweep searches, what it judges a trial by, and where its study is kept."""

    study: str | None = MISSING
    storage: str | None = MISSING
    trial: str = MISSING
    objectives: list[str] = MISSING
    sampler: str = MISSING
    trials: int | None = MISSING
    batch: int | None = MISSING
    attempts: int = MISSING
    retry_failed: bool = MISSING
    grace_seconds: float = MISSING


@dataclass
class ModelConfig:
    """What every method has; a method's own configuration adds to it (`Learner.config_type`)."""

    _target_: str = MISSING
    name: str = MISSING

    def validate(self) -> None:
        """Raises FairAllError, naming the key, where a value is not possible beyond its type."""


@dataclass
class Config:
    """One run."""

    dataset: Any = MISSING
    model: Any = MISSING
    initial_policy: Any = MISSING
    cost: CostConfig = field(default_factory=CostConfig)
    protocol: ProtocolConfig = field(default_factory=ProtocolConfig)
    schedule: ScheduleConfig = field(default_factory=ScheduleConfig)
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)
    tracking: TrackingConfig = field(default_factory=TrackingConfig)
    sweep: SweepConfig = field(default_factory=SweepConfig)
    seed: int = MISSING
    seeds: int = MISSING
    threads: int = MISSING
    objective: str = MISSING
    hyperparameters: str = MISSING
    preset: str | None = MISSING
    outputs_dir: str = MISSING
    force: bool = MISSING
    checkpoint_seconds: float = MISSING


SCHEMAS: dict[str, dict[str, type]] = {
    "dataset": {
        "table": TableConfig,
        "raw_table": RawTableConfig,
        "csv": CsvConfig,
        "synthetic": SyntheticConfig,
    },
    "initial_policy": {
        "random": RandomPolicyConfig,
        "logistic": LogisticPolicyConfig,
        "logged": LoggedPolicyConfig,
    },
}
"""By group, the types that its files inherit from as `<name>_schema`."""


def register_schemas() -> None:
    """Makes the types known to Hydra, under the names that the files of conf/ inherit from."""
    from hydra.core.config_store import ConfigStore

    store = ConfigStore.instance()
    store.store(name="schema", node=Config)
    for group, types in SCHEMAS.items():
        for name, node in types.items():
            store.store(group=group, name=name + SCHEMA_SUFFIX, node=_opened(OmegaConf.structured(node)))


def _opened(node: DictConfig) -> DictConfig:
    """Lets users add entries to the mappings of a node, which Hydra would take for misspelt keys."""
    for key in map(str, node):
        child = node._get_node(key)
        if not isinstance(child, DictConfig) or child._is_none():
            continue
        if get_origin(child._metadata.ref_type) is dict:
            OmegaConf.set_struct(child, False)
        else:
            _opened(child)
    return node


def register_sweeps(folder: Path) -> None:
    """Makes the files of sweeps/ choices of the group `sweeps`, which may set any value.

    A search path would have to name the folder above, and Hydra takes everything there for a choice.
    """
    from hydra.core.config_store import ConfigStore

    for path in folder.glob("*.yaml"):
        ConfigStore.instance().store(
            group="sweeps", name=path.stem, node=OmegaConf.load(path), package="_global_"
        )
