"""Types of the configuration nodes that every run has; their values are in conf/.

The nodes `model`, `dataset` and `initial_policy` and those of the parts of `world` depend on the class that
`_target_` names: its `config_type` is a dataclass derived from that of its base class, beside the class.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Any

from fairall.config.checks import (
    MISSING,
    at_least,
    between,
    check_values,
    limited,
    not_negative,
    one_of,
    open_unit,
    optional,
    plain_name,
    positive_share,
    require,
)
from fairall.runtime.credentials import hidden, withheld

MOST_SEEDS, MOST_THREADS = 10_000, 256
CONSTANT = "intercept"  # in `dataset.gain` and `dataset.loss`, of the part that is the same for everybody


ByName = dict[str, Any]


@dataclass
class LogisticWeightsConfig:
    """Intercept and weight of S = +1 of a logistic initial policy."""

    intercept: float = 0.0
    advantaged: float = 0.0


@dataclass
class InitialPoliciesConfig:
    """Coefficients of the lenient and harsh initial policies, which need a score (appendix D.1)."""

    score: dict[str, float] = field(default_factory=dict)
    lenient: LogisticWeightsConfig = field(default_factory=LogisticWeightsConfig)
    harsh: LogisticWeightsConfig = field(default_factory=LogisticWeightsConfig)


@dataclass
class NodeConfig:
    """A node whose keys depend on the class that it names."""

    _target_: str = MISSING

    def validate(self) -> None:
        """Check conditions beyond types and ranges of fields; an override calls `super().validate()`."""

    @property
    def target(self) -> Any:
        """The class that `_target_` names."""
        from hydra.utils import get_class  # slow, and most users of this module build nothing

        return get_class(self._target_)

    def build(self, *arguments: Any) -> Any:
        """An object of the class, made from this node and `arguments`."""
        return self.target(self, *arguments)


@dataclass
class DatasetConfig(NodeConfig):
    """Keys of every data set; `config_type` of a class in data/ adds its own.

    `gain`, `loss`: what an accepted person brings with label 1 and costs with label 0, in money, by features:
    `{intercept: 20, amount: 0.1}` is 20 + 0.1·amount. They take the place of `cost`; null: the cost. With
    `decide_by: cost` methods decide by the cost, and amounts are measured.
    """

    name: str = plain_name()
    cost: float = open_unit()
    gain: dict[str, float] | None = optional()
    loss: dict[str, float] | None = optional()
    decide_by: str | None = optional(one_of(["cost"]))
    initial_policies: InitialPoliciesConfig = field(default_factory=InitialPoliciesConfig)

    def validate(self) -> None:
        """Check that amounts are given for both labels or for none, and `decide_by` beside them alone."""
        super().validate()
        require(
            (self.gain is None) == (self.loss is None),
            "dataset.gain",
            self.gain,
            "given together with dataset.loss, or neither",
        )
        require(
            self.gain is not None or self.decide_by is None,
            "dataset.decide_by",
            self.decide_by,
            "left out without dataset.gain",
        )


@dataclass
class InitialPolicyConfig(NodeConfig):
    """Keys of every initial policy; `config_type` of its class adds its own."""

    name: str = MISSING


@dataclass
class ModelConfig(NodeConfig):
    """Keys of every method; `config_type` of its class adds its own."""

    name: str = plain_name()


@dataclass
class CostConfig:
    """c, the cost of a positive decision."""

    value: float = open_unit()


# Who is accepted in addition to those whom the policy accepts: conf/exploration/ describes each rule.
ExplorationRule = Enum("ExplorationRule", ["none", "stuck", "epsilon", "bounded"])


@dataclass
class ExplorationConfig:
    """Acceptance of applicants whom the policy rejects, to get their labels.

    `propensity`: acceptance probability of those whom the rule accepts. `decay`: divide it by √t.
    """

    rule: ExplorationRule = MISSING
    propensity: float = MISSING
    after: int | None = None
    decay: bool = False

    def validate(self) -> None:
        """Check the values that the rule needs."""
        if self.rule is not ExplorationRule.none:
            check_values(self.propensity, "exploration.propensity", positive_share())
        if self.rule is ExplorationRule.stuck:
            require((self.after or 0) >= 1, "exploration.after", self.after, "at least 1")


# Rates whose gap between groups is bounded: conf/fairness/ describes each rule.
FairnessRule = Enum("FairnessRule", ["none", "demographic_parity", "equal_opportunity"])


@dataclass
class BoundConfig:
    """Bound on the gap between the groups' rates; `slack` is the largest gap allowed, and 1 is no bound."""

    rule: FairnessRule = MISSING
    slack: float = between(0, 1)


@dataclass
class FairnessConfig(BoundConfig):
    """Thresholds that keep a bound among the people seen last, of number `window`.

    `blind`: whether decisions may not depend on s.
    """

    blind: bool = MISSING
    window: int = at_least(2)


# Choices of the switches of `ProtocolConfig`: docs/protocols.md says what each of them means.
KL = Enum("KL", ["density", "cdf"])
FairLogPenalty = Enum("FairLogPenalty", ["squared", "fairtorch"])
FairLabWeight = Enum("FairLabWeight", ["inverse_propensity", "propensity"])
FairLabClassifier = Enum("FairLabClassifier", ["trained", "untrained"])
NoiseKind = Enum("NoiseKind", ["stratified", "independent"])
ScalerRows = Enum("ScalerRows", ["training_rows", "each_file"])
NetInputs = Enum("NetInputs", ["by_method", "codes", "centred", "standardised", "one_hot"])
DecisionLuck = Enum("DecisionLuck", ["fresh", "fixed"])
FairLogMinibatches = Enum("FairLogMinibatches", ["all", "labelled"])
EffectiveDecisions = Enum("EffectiveDecisions", ["taken", "decided_again"])
VaeStart = Enum("VaeStart", ["group_blind", "random"])
LatentFrame = Enum("LatentFrame", ["matched", "as_learnt"])


@dataclass
class ProtocolConfig:
    """Switches for differences between the paper's text, the authors' code and this one, and guards.

    docs/protocols.md describes each and its effect. `published_code` is what these switches can give of the
    authors' code; the page lists what they cannot. `max_ips_weight`: bound of 1/π in losses, None for none.
    """

    name: str = MISSING
    kl: KL = MISSING
    fairlog_penalty: FairLogPenalty = MISSING
    fairlog_minibatches: FairLogMinibatches = MISSING
    fairlab_weight: FairLabWeight = MISSING
    fairlab_classifier: FairLabClassifier = MISSING
    inputs: NetInputs = MISSING
    scaler: ScalerRows = MISSING
    decision_luck: DecisionLuck = MISSING
    effective: EffectiveDecisions = MISSING
    vae_start: VaeStart = MISSING
    latent_frame: LatentFrame = MISSING
    noise: NoiseKind = MISSING
    max_ips_weight: float | None = limited("at least 1, or null", lambda weight: weight >= 1)


@dataclass
class ScheduleConfig:
    """Numbers of epochs, time steps and applicants (appendix D.2)."""

    phase1_epochs: int = at_least(1)
    warm_up_applicants: int = at_least(1)
    warm_up_epochs: int = at_least(1)
    time_steps: int = at_least(1)
    applicants: int = at_least(1)
    batches_per_epoch: int = at_least(1)


@dataclass
class EvaluationConfig:
    """The split that measures are computed on, and the window of the temporal ones (definition 2.4).

    `decisions`: whether the run writes decisions.csv.
    """

    split: str = one_of(["test", "validation"])
    window: list[int] = MISSING
    measures: list[str] = MISSING
    decisions: bool = MISSING


@dataclass
class TrackingConfig:
    """The MLflow server or store, the experiment, and the name that the policy is registered under."""

    enabled: bool = MISSING
    uri: str | None = MISSING
    experiment: str = MISSING
    register: str | None = plain_name()

    def __post_init__(self) -> None:
        """Withhold user and password of the address (`credentials`), which a file or an argument may have."""
        self.uri = self.uri and withheld(self.uri)


@dataclass
class SweepConfig:
    """Keys of a sweep beside those of `hydra.sweeper` (docs/sweeps.md)."""

    name: str | None = MISSING
    trial: str | None = MISSING
    grid: ByName = field(default_factory=dict)


@dataclass
class Config:
    """Configuration of one run.

    `dataset`, `model` and `initial_policy` are nodes of classes; `world` is a dict of those of its parts by
    name, in the order in which they act. In a configuration as it is stored (`stored`), these nodes are plain
    containers, since their types are declared beside code that may be somebody else's.
    """

    dataset: Any = MISSING
    model: Any = MISSING
    initial_policy: Any = MISSING
    world: ByName = MISSING
    cost: CostConfig = field(default_factory=CostConfig)
    protocol: ProtocolConfig = field(default_factory=ProtocolConfig)
    exploration: ExplorationConfig = field(default_factory=ExplorationConfig)
    fairness: FairnessConfig = field(default_factory=FairnessConfig)
    schedule: ScheduleConfig = field(default_factory=ScheduleConfig)
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)
    tracking: TrackingConfig = field(default_factory=TrackingConfig)
    sweep: SweepConfig = field(default_factory=SweepConfig)
    seed: int = limited("0 or more, and below 2**63", lambda seed: 0 <= seed < 2**63 - MOST_SEEDS)
    seeds: int = between(1, MOST_SEEDS)
    splits: int = between(1, MOST_SEEDS)
    threads: int | None = between(1, MOST_THREADS)
    objective: Any = MISSING
    hyperparameters: str = MISSING
    preset: str | None = MISSING
    outputs_dir: str = limited("a folder; here it is `outputs_dir=.`", lambda folder: folder.strip() != "")
    force: bool = MISSING
    checkpoint_seconds: float = not_negative()

    @classmethod
    def of_places(cls, outputs_dir: str | Path, uri: str | None = None) -> Config:
        """A configuration of which the folder of outputs and the address of MLflow alone have values."""
        return cls(outputs_dir=str(outputs_dir), tracking=TrackingConfig(uri=uri))

    @property
    def parts(self) -> ByName:
        """The active parts of `world`, by name; all of a stored configuration."""
        return {name: part for name, part in self.world.items() if getattr(part, "active", True)}

    def name(self, group: str) -> str:
        """Name of the choice of `model`, `dataset`, `initial_policy` or `protocol`."""
        return str(entry(getattr(self, group), "name"))

    @property
    def amounts(self) -> dict[str, dict[str, float]] | None:
        """`gain` and `loss` of the data set, if it has them."""
        gain, loss = entry(self.dataset, "gain"), entry(self.dataset, "loss")
        return None if gain is None else {"gain": gain, "loss": loss}

    @property
    def decided_amounts(self) -> dict[str, dict[str, float]] | None:
        """Those by which methods decide; None where they decide by the cost."""
        return None if entry(self.dataset, "decide_by") == "cost" else self.amounts

    @property
    def worth(self) -> str:
        """What decisions are worth, in words: as ỹ − c, or in money, of which tables have ×100."""
        if self.amounts is None:
            return f"c = {self.cost.value:g}"
        by = f", decided by c = {self.cost.value:g}" if self.decided_amounts is None else ""
        return f"utility in money per 100 people{by}"

    def stored(self) -> Config:
        """The configuration as it is read from a run: nodes of classes as plain containers."""
        whole = self.to_plain()
        return replace(self, **{group: whole[group] for group in GROUPS})

    def to_plain(self) -> ByName:
        """Plain containers, as runs store them: parts of the world that do nothing are left out."""
        whole: ByName = plain(vars(self) | {"world": self.parts})
        return whole

    def validate(self) -> None:
        """Check conditions between values of different nodes."""
        schedule, window, tracking = self.schedule, self.evaluation.window, self.tracking
        require(
            self.decided_amounts is None or self.cost.value == entry(self.dataset, "cost"),
            "cost.value",
            self.cost.value,
            "left out beside dataset.gain, or dataset.decide_by=cost",
        )
        require(
            self.amounts is None or self.protocol.scaler is ScalerRows.training_rows,
            "protocol.scaler",
            self.protocol.scaler.name,
            "training_rows with dataset.gain, whose amounts are of features in the units of these rows",
        )
        require(
            not self.fairness.blind or self.fairness.rule is not FairnessRule.none,
            "fairness.blind",
            self.fairness.blind,
            "false with fairness=none, by which methods decide as they learn; give "
            "fairness=demographic_parity, with fairness.slack=1 for no bound",
        )
        require(self.splits <= self.seeds, "splits", self.splits, f"at most seeds, which is {self.seeds}")
        require(
            schedule.batches_per_epoch <= min(schedule.applicants, schedule.warm_up_applicants),
            "schedule.batches_per_epoch",
            schedule.batches_per_epoch,
            "at most the number of applicants of a step and of the warm-up",
        )
        require(
            len(window) == 2 and 0 <= window[0] < window[1] <= schedule.time_steps,
            "evaluation.window",
            window,
            f"[t1, t2] with 0 <= t1 < t2 <= schedule.time_steps, which is {schedule.time_steps}",
        )
        require(
            tracking.enabled or tracking.register is None,
            "tracking.register",
            tracking.register,
            "null where tracking.enabled=false",
        )


def entry(node: Any, key: str) -> Any:
    """A value of a node, given as a dataclass or a mapping; None where it has no such key."""
    return node.get(key) if isinstance(node, Mapping) else getattr(node, key, None)


def plain(node: Any) -> Any:
    """Plain containers of configuration nodes; enums by name, addresses without user and password.

    Fields that are `optional` are left out where they are None.
    """
    if is_dataclass(node):
        return {
            field.name: plain(value)
            for field in fields(node)
            if (value := getattr(node, field.name)) is not None or "left_out" not in field.metadata
        }
    if isinstance(node, dict):
        return {key: plain(value) for key, value in node.items()}
    if isinstance(node, list):
        return [plain(value) for value in node]
    if isinstance(node, Enum):
        return node.name
    return hidden(node) if isinstance(node, str) else node


def objectives_of(objective: Any) -> list[str]:
    """The measures of `objective`, which is one or a list of them."""
    is_list = isinstance(objective, Sequence) and not isinstance(objective, str)
    return [*map(str, objective if is_list else [objective])]


GROUPS = {
    "model": ModelConfig,
    "dataset": DatasetConfig,
    "initial_policy": InitialPolicyConfig,
    "world": NodeConfig,
}
"""The nodes whose keys depend on classes, by the type from which those of the classes derive."""
