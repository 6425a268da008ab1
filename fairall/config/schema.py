"""Types of the configuration nodes that every run has; their values are in conf/.

The nodes `model`, `dataset` and `initial_policy` depend on the class that `_target_` names: its `config_type`
is a dataclass derived from `ModelConfig`, `DatasetConfig` or `InitialPolicyConfig`, beside the class.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from omegaconf import MISSING, OmegaConf


@dataclass
class LogisticWeightsConfig:
    """Intercept and weight of S = +1 of a logistic initial policy."""

    intercept: float = MISSING
    advantaged: float = MISSING


@dataclass
class InitialPoliciesConfig:
    """Coefficients of the lenient and harsh initial policies on a data set (appendix D.1)."""

    score: dict[str, float] = MISSING
    lenient: LogisticWeightsConfig = field(default_factory=LogisticWeightsConfig)
    harsh: LogisticWeightsConfig = field(default_factory=LogisticWeightsConfig)


@dataclass
class DatasetConfig:
    """Keys of every data set; `config_type` of a class in data/ adds its own."""

    _target_: str = MISSING
    name: str = MISSING
    cost: float = MISSING
    initial_policies: InitialPoliciesConfig = field(default_factory=InitialPoliciesConfig)

    def validate(self) -> None:
        """Check what types cannot say; a subclass that overrides it calls `super().validate()`.

        Raises:
            FairAllError: naming the key, its value and what is allowed.
        """


@dataclass
class InitialPolicyConfig:
    """Keys of every initial policy; `config_type` of its class adds its own."""

    _target_: str = MISSING
    name: str = MISSING

    def validate(self) -> None:
        """Check what types cannot say; raises as `DatasetConfig.validate`."""


@dataclass
class ModelConfig:
    """Keys of every method; `config_type` of its class adds its own."""

    _target_: str = MISSING
    name: str = MISSING

    def validate(self) -> None:
        """Check what types cannot say; raises as `DatasetConfig.validate`."""


@dataclass
class CostConfig:
    """c, the cost of a positive decision."""

    value: float = MISSING


class ExplorationRule(Enum):
    """Whom applicants' decisions accept besides those whom the policy accepts."""

    none = "nobody"
    stuck = "everybody, in seeds that have accepted nobody for `after` time steps"
    epsilon = "everybody whom the policy rejects"
    bounded = "those between a lower bound of their group and the threshold (Yang et al. 2022)"


@dataclass
class ExplorationConfig:
    """How decisions on applicants depart from the policy, so that it gets labels of people whom it rejects.

    `propensity`: acceptance probability of those whom the rule accepts. `decay`: divide it by √t.
    """

    rule: ExplorationRule = MISSING
    propensity: float = MISSING
    after: int | None = None
    decay: bool = False


class KL(Enum):
    """KL term of the unlabelled ELBO."""

    density = "estimated from log densities (appendix C.2)"
    cdf = "with distribution functions in place of densities, per dimension (authors' code)"


class PolicyTarget(Enum):
    """Label of the policy net, from p(ũ = 1 | z, s)."""

    hard = "1[p ≥ c]"
    sampled = "a draw of ũ (section 4.2)"


class PolicyLoss(Enum):
    """Loss of policies with a net of their own."""

    cost_sensitive = "cross-entropy with weights c and 1 − c"
    plain = "cross-entropy"


class FairLogPenalty(Enum):
    """FairLog's penalty on demographic-parity unfairness."""

    squared = "½·(λ·DPU)²"
    absolute = "λ·DPU (appendix D.5)"
    fairtorch = "2·(λ·p(S = +1)·DPU)² (authors' code)"


class FairLabWeight(Enum):
    """Weight of the labelled ELBO in FairLab."""

    inverse_propensity = "1/π (appendix D.5)"
    propensity = "π (authors' code)"


class FairLabClassifier(Enum):
    """Training of FairLab's classifier."""

    trained = "on labelled rows, weighted by 1/π"
    untrained = "none: it keeps its initial weights (authors' code)"


class ScalerRows(Enum):
    """Rows that real features are standardised by."""

    training_rows = "the training rows, for everybody"
    each_file = "the people of each role, and those of the warm-up, by themselves (authors' code)"


class NetInputs(Enum):
    """Inputs of the nets for counts and categories; real features are standardised in any case."""

    by_method = "what validation chose for the method (Learner.net_inputs)"
    codes = "counts as they are, codes from 0 on (authors' code)"
    centred = "counts and codes less their training mean"
    standardised = "counts and codes with training mean 0 and standard deviation 1"
    one_hot = "counts as they are, an indicator per code of a category"


class DecisionLuck(Enum):
    """Random numbers that decisions on applicants are drawn with, and the order of applicants."""

    fresh = "new ones at every time step, and a new order in every pass over a finite population"
    fixed = "those of a seed and position, and one order per seed (authors' code)"


class FairLogMinibatches(Enum):
    """Minibatches in which FairLog has its penalty."""

    all = "every one"
    labelled = "those with an accepted applicant (authors' code)"


class EffectiveDecisions(Enum):
    """Decisions that effective measures count."""

    taken = "those taken on the applicants"
    decided_again = "those of the updated policy on the same applicants, drawn anew (authors' code)"


class WeightGain(Enum):
    """Factor of Xavier-uniform initial weights."""

    relu = "√2, the gain of ReLUs (authors' code)"
    one = "1"


class VaeStart(Enum):
    """Initial weights of a VAE from s."""

    group_blind = "0"
    random = "drawn as all others"


class LatentFrame(Enum):
    """Latent axes of the two groups after Phase I."""

    matched = "rotated to agree between the groups"
    as_learnt = "as training leaves them"


@dataclass
class ProtocolConfig:
    """Switches in which the paper's text, the authors' code and ours differ, and guards of ours.

    docs/protocols.md describes each and its effect. `classifier_in_unlabelled_elbo`: whether the unlabelled
    ELBO trains the classifier (equation 1). `max_ips_weight`: bound of 1/π in losses, None for none.
    """

    name: str = MISSING
    kl: KL = MISSING
    policy_target: PolicyTarget = MISSING
    policy_loss: PolicyLoss = MISSING
    fairlog_penalty: FairLogPenalty = MISSING
    fairlog_minibatches: FairLogMinibatches = MISSING
    fairlab_weight: FairLabWeight = MISSING
    fairlab_classifier: FairLabClassifier = MISSING
    inputs: NetInputs = MISSING
    scaler: ScalerRows = MISSING
    decision_luck: DecisionLuck = MISSING
    effective: EffectiveDecisions = MISSING
    classifier_in_unlabelled_elbo: bool = MISSING
    weight_gain: WeightGain = MISSING
    vae_start: VaeStart = MISSING
    latent_frame: LatentFrame = MISSING
    max_ips_weight: float | None = MISSING


@dataclass
class ScheduleConfig:
    """Numbers of epochs, time steps and applicants (appendix D.2)."""

    phase1_epochs: int = MISSING
    warm_up_applicants: int = MISSING
    warm_up_epochs: int = MISSING
    time_steps: int = MISSING
    applicants: int = MISSING
    batches_per_epoch: int = MISSING


@dataclass
class EvaluationConfig:
    """The split that measures are computed on, and the window of the temporal ones (definition 2.4).

    `decisions`: whether the run writes decisions.csv.
    """

    split: str = MISSING
    window: list[int] = MISSING
    measures: list[str] = MISSING
    decisions: bool = MISSING


@dataclass
class TrackingConfig:
    """The MLflow server or store, the experiment, and the name that the policy is registered under."""

    enabled: bool = MISSING
    uri: str | None = MISSING
    experiment: str = MISSING
    register: str | None = MISSING


@dataclass
class SweepConfig:
    """What a sweep adds to the keys of `hydra.sweeper` (docs/sweeps.md)."""

    trial: str = MISSING
    attempts: int = MISSING
    retry_failed: bool = MISSING
    grace_seconds: float = MISSING
    grid: dict[str, Any] = field(default_factory=dict)


@dataclass
class Config:
    """Configuration of one run."""

    dataset: Any = MISSING
    model: Any = MISSING
    initial_policy: Any = MISSING
    world: Any = MISSING
    cost: CostConfig = field(default_factory=CostConfig)
    protocol: ProtocolConfig = field(default_factory=ProtocolConfig)
    exploration: ExplorationConfig = field(default_factory=ExplorationConfig)
    schedule: ScheduleConfig = field(default_factory=ScheduleConfig)
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)
    tracking: TrackingConfig = field(default_factory=TrackingConfig)
    sweep: SweepConfig = field(default_factory=SweepConfig)
    seed: int = MISSING
    seeds: int = MISSING
    threads: int | None = MISSING
    objective: Any = MISSING
    hyperparameters: str = MISSING
    preset: str | None = MISSING
    outputs_dir: str = MISSING
    force: bool = MISSING
    checkpoint_seconds: float = MISSING


def objectives_of(objective: str | Sequence[str]) -> list[str]:
    """The measures of `objective`, which is one or a list of them."""
    return [objective] if isinstance(objective, str) else list(objective)


GROUPS = {"model": ModelConfig, "dataset": DatasetConfig, "initial_policy": InitialPolicyConfig}
"""The nodes whose keys depend on their `_target_`, and what each `config_type` is derived from."""


def register_schema() -> None:
    """Register the type of the configuration with Hydra.

    The nodes of `GROUPS` and `world` accept any key here, so that entries can be added to their mappings on
    the command line; `fairall.config.target.with_types` refuses the unknown ones after composition.
    """
    from hydra.core.config_store import ConfigStore

    schema = OmegaConf.structured(Config)
    for group in (*GROUPS, "world"):
        schema[group] = {}
        OmegaConf.set_struct(schema[group], False)
    ConfigStore.instance().store(name="schema", node=schema)
