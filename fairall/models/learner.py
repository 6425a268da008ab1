"""The interface between a method and the online loop."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np
import torch
from torch import Tensor, nn

from fairall.config.schema import (
    Config,
    ModelConfig,
    NetInputs,
    ProtocolConfig,
    ScheduleConfig,
)
from fairall.data.features import Schema
from fairall.data.people import Decided
from fairall.data.prepared import Amounts, PreparedData
from fairall.display.progress import ProgressCallback
from fairall.errors import FairAllError
from fairall.runtime.randomness import SeedStreams
from fairall.storage.checkpoint import Cache, State

LEAST = 1e-12  # smaller probabilities are set to this one before taking log odds
MARGIN_DECIMALS = 4  # beyond them is rounding of float32, which depends on other rows
# Of the package.
TAKE_AMOUNTS = (
    "accept_all, oracle, greedy, ensemble, parity_ensemble, fairlog, unfairlog, stacked or estimator"
)
DECISIONS = ("sample", "deterministic")  # `model.decision`: π is the score, or 0 or 1 by a threshold


@dataclass(frozen=True)
class Setting:
    """The problem that a learner learns in.

    Attributes:
        schema: the features of x, and how nets see them (`protocol.inputs`).
        cost: c in (0, 1), the cost of a positive decision.
        seeds: the E seeds trained together.
        splits: K; seed number e has the people of split e mod K.
        schedule: numbers of epochs, steps and applicants.
        protocol: choices where the paper's text and the authors' code differ.
        amounts: gain and loss of each person, in place of `cost`; None where all have the same.
    """

    schema: Schema
    cost: float
    seeds: Sequence[int]
    schedule: ScheduleConfig
    protocol: ProtocolConfig
    splits: int = 1
    amounts: Amounts | None = None

    def stake_and_cost(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Stake of people x (..., D) in units of the mean one, and break-even probability, shapes (...).

        Without amounts these are 1 and c, shapes ().
        """
        if self.amounts is None:
            return torch.ones((), dtype=torch.float64), torch.tensor(self.cost, dtype=torch.float64)
        stake, cost = self.amounts(x)
        return stake / self.amounts.unit, cost

    @classmethod
    def of(cls, schema: Schema, config: Config) -> Setting:
        """The setting of the run that `config` describes."""
        inputs = config.protocol.inputs
        if inputs is NetInputs.by_method:
            inputs = config.model.target.net_inputs
        schema = schema.seen_as(inputs)
        return cls(
            schema,
            config.cost.value,
            range(config.seed, config.seed + config.seeds),
            config.schedule,
            config.protocol,
            config.splits,
            Amounts.of(schema, config.decided_amounts),
        )


@dataclass(frozen=True)
class DecisionRule:
    """How scores become acceptance probabilities π.

    Attributes:
        threshold: score from which on it pays to accept.
        drawn: whether π is the score itself; otherwise π is 1 from `threshold` on, and 0 below.
        certain: score from which on π is 1 where it is drawn.
        amounts: whose break-even probability is the threshold of each person in place of `threshold`.
    """

    threshold: float = 0.5
    drawn: bool = True
    amounts: Amounts | None = None
    certain: float = 1.0

    def least(self, x: Tensor) -> Tensor:
        """Least score accepted of people x (..., D), shape (...), or () where it is that of all."""
        if self.amounts is None:
            return torch.tensor(self.threshold, dtype=torch.float64)
        return self.amounts(x)[1]

    def propensity(self, score: Tensor, x: Tensor) -> Tensor:
        """π of people x (..., D) whose scores (...) are in [0, 1]; of the shape of these.

        >>> score, x = torch.tensor([0.2, 0.7]), torch.zeros(2, 1)
        >>> DecisionRule(0.3).propensity(score, x), DecisionRule(0.3, drawn=False).propensity(score, x)
        (tensor([0.2000, 0.7000]), tensor([0., 1.]))
        >>> DecisionRule(certain=0.5).propensity(score, x)
        tensor([0.2000, 1.0000])
        """
        if self.drawn:
            return torch.where(score >= self.certain, 1.0, score)
        return (score >= self.least(x)).to(score.dtype)


class Learner(nn.Module, ABC):
    """A policy that learns online from the decisions it takes; E replicates at once.

    A new method subclasses it, takes its own configuration node and a `Setting`, and is chosen by `_target_`.
    Modules, optimisers and streams that are attributes are part of checkpoints; see `training_state`.

    It defines `score` and `update`. It may also set the attributes below and override `warm_up_epoch`,
    `explore`, `log_odds`, `pretrain`, `pretrain_units`, `notes`, `representation` and `reconstruction`, and
    nothing else.

    Attributes:
        config_type: dataclass of the configuration node; every key of the node is one of its fields.
        net_inputs: how its nets see counts and categories with `protocol.inputs=by_method`.
        rule: how its score becomes π; by default π is the score.
        two_groups: whether it is for two groups only, so that a run with more is refused.
        takes_amounts: whether it learns and decides by `Setting.stake_and_cost`, so that a run with amounts
            is not refused.
        estimates_label: whether `log_odds` are an estimate; False where the score is no function of one.
        weighs_labels: whether it learns by `Decided.weight`, so that `sample_weight` is not refused.
        unchanged: whether the last update has left `log_odds` as they were.
        learns: whether it learns online; False for a `FixedPolicy`.
        reads_s: whether a decision can depend on s.
    """

    config_type: ClassVar[type[ModelConfig]] = ModelConfig
    net_inputs: ClassVar[NetInputs] = NetInputs.codes
    estimates_label: ClassVar[bool] = True
    rule: DecisionRule = DecisionRule()
    two_groups: bool = True
    takes_amounts: bool = False
    weighs_labels: ClassVar[bool] = False
    unchanged: bool = False
    learns: ClassVar[bool] = True
    reads_s: ClassVar[bool] = True

    def __init__(self, config: Any, setting: Setting) -> None:
        super().__init__()
        self.config = config
        self.setting = setting

    def warm_up_epoch(self, decided: Decided, epoch: int) -> dict[str, float]:
        """Train for one epoch on people decided by the initial policy, before the first time step.

        By default an epoch is an update.

        Args:
            decided: labelled and unlabelled people, B rows; the same in all epochs.
            epoch: 0 .. `setting.schedule.warm_up_epochs` − 1.

        Returns:
            Values to display, by name.
        """
        self.update(decided)
        return {}

    @abstractmethod
    def update(self, decided: Decided) -> None:
        """Train on the B applicants of one time step and the decisions taken on them."""

    @abstractmethod
    def score(self, x: Tensor, s: Tensor, streams: SeedStreams) -> Tensor:
        """Score in [0, 1], which `rule` turns into π(d=1 | x, s), shape (E, B).

        Args:
            x: features, shape (E, B, D).
            s: sensitive attribute in {−1, +1}, shape (E, B).
            streams: draw the samples that the score is averaged over, by `normal_samples`; equal streams give
                common random numbers. A deployed policy gets `FixedSamples`.
        """

    def log_odds(self, x: Tensor, s: Tensor, streams: SeedStreams) -> Tensor:
        """Estimate of the log odds of p(ỹ = 1 | x, s), shape (E, B), float64; arguments as for `score`.

        By default those of the score, moved so that its `rule.threshold` corresponds to c: a cost-sensitive
        loss moves log odds by a constant (Elkan 2001, theorem 2). `models.fairness` chooses thresholds of it.
        """
        return self._moved(self.score(x, s, streams).double().logit(eps=LEAST), x)

    @final
    def _moved(self, logit: Tensor, x: Tensor) -> Tensor:
        cost, least = self.setting.stake_and_cost(x)[1], self.rule.least(x)
        return logit.double() + (cost.double().logit() - least.double().logit())

    @final
    def require_amounts(self) -> None:
        """Raise FairAllError where the method decides at one cost for everybody."""
        if not self.takes_amounts:
            raise FairAllError(
                f"model={self.config.name} has one cost for everybody, and dataset.gain and dataset.loss are "
                f"amounts by person: choose {TAKE_AMOUNTS}, or dataset.decide_by=cost to only measure them"
            )

    def compared(self, x: Tensor, s: Tensor, streams: SeedStreams) -> tuple[Tensor, Tensor]:
        """The score and, of each person, the least one accepted, shapes (E, B); arguments as for `score`.

        With amounts σ of the expected one of an acceptance, in units of the mean stake, and ½.
        """
        if self.takes_amounts and self.estimates_label and self.setting.amounts is not None:
            stake, cost = self.setting.stake_and_cost(x)
            expected = (stake * (self.log_odds(x, s, streams).sigmoid() - cost)).sigmoid()
            return expected, torch.full_like(expected, 0.5)
        score = self.score(x, s, streams)
        return score, torch.full_like(score, self.rule.threshold)

    @final
    @torch.no_grad()
    def margin(self, x: Tensor, s: Tensor, streams: SeedStreams) -> Tensor:
        """Log odds of the score less those of the least one accepted of that person, shape (E, B), float64.

        It orders people for whom there are too few places, with `MARGIN_DECIMALS` decimals. Arguments as for
        `score`.
        """
        score, least = (of.double().logit(eps=LEAST) for of in self.compared(x, s, streams))
        return (score - least).round(decimals=MARGIN_DECIMALS)

    @final
    @torch.no_grad()
    def propensity(self, x: Tensor, s: Tensor, streams: SeedStreams) -> Tensor:
        """π(d=1 | x, s) of the current policy, shape (E, B), in [0, 1]; arguments as for `score`."""
        return self.rule.propensity(self.score(x, s, streams), x)

    def explore(self, x: Tensor, s: Tensor, propensity: Tensor, uniform: Tensor) -> Tensor:
        """Acceptance probabilities with which applicants are decided on; those of the policy by default.

        Called for applicants and nowhere else: `propensity` is the policy that is measured and deployed. What
        this returns is recorded as the propensity of the decisions.

        Args:
            x: features, shape (E, N, D).
            s: sensitive attribute in {−1, +1}, shape (E, N).
            propensity: of the policy, shape (E, N).
            uniform: random numbers in [0, 1) of the decisions, shape (E, N): applicants whose number is below
                what is returned are accepted. A method that draws candidates compares these with their
                probability.

        Returns:
            Shape (E, N), in [0, 1].
        """
        return propensity

    def pretrain(self, data: PreparedData, cache: Cache, progress: ProgressCallback) -> PretrainCurves | None:
        """Train offline before the warm-up; does nothing by default.

        Args:
            data: all people; a method may use x and s of pool and validation, a reference also labels.
            cache: stores results that other runs can share.
            progress: to be called `pretrain_units` times at most, with values to display as keywords.
        """
        return None

    def pretrain_units(self, data: PreparedData) -> int:
        """Largest number of calls of `progress` in `pretrain`; 0 without pretraining."""
        return 0

    def notes(self, data: PreparedData) -> list[str]:
        """Notes on the training on `data`, one sentence each, printed by a run and kept in its summary."""
        return []

    def representation(self, x: Tensor, s: Tensor) -> Tensor | None:
        """The latent mean E[z | x, s], shape (E, B, Z), of methods with a latent."""
        return None

    def reconstruction(self, x: Tensor, s: Tensor) -> Tensor | None:
        """X (E, B, D) decoded from the latent mean, of methods with a decoder."""
        return None

    @final
    def training_state(self) -> State:
        """Everything that determines how training continues, as plain containers of tensors.

        Returns:
            `modules`: parameters and buffers; `parts`: the state of everything else with a `state_dict`, such
            as optimisers and streams, by the name of the attribute.

        Raises:
            FairAllError: if an attribute holds state that would not be part of it.
        """
        parts = {name: part.state_dict() for name, part in self._parts().items()}
        return {"modules": self.state_dict(), "parts": parts}

    @final
    def load_training_state(self, state: State) -> None:
        """Restore what `training_state` returned.

        Raises:
            FairAllError: if the learner has other parts than the one whose state it is.
        """
        parts = self._parts()
        if state["parts"].keys() != parts.keys():
            raise FairAllError(
                f"the checkpoint is of another {type(self).__name__}: start anew with force=true"
            )
        self.load_state_dict(state["modules"])
        for name, part in parts.items():
            part.load_state_dict(state["parts"][name])

    def _parts(self) -> State:
        """Optimisers, streams and whatever else has a `state_dict`, by name, in all modules."""
        parts = {}
        for prefix, module in self.named_modules():
            for attribute in vars(module).keys() - vars(nn.Module()).keys():
                name, value = f"{prefix}.{attribute}".lstrip("."), getattr(module, attribute)
                if hasattr(value, "state_dict"):
                    parts[name] = value
                elif _has_state(value):
                    raise FairAllError(
                        f"{type(self).__name__}.{name} would not be part of a checkpoint: keep tensors with "
                        "register_buffer, modules in a ModuleList, optimisers and SeedStreams as attributes"
                    )
        return dict(sorted(parts.items()))


class FixedPolicy(Learner):
    """A reference policy, which learns nothing online.

    Runs with it have no exploration, no warning about a policy that accepts everybody or nobody, and no note
    on hyperparameters.
    """

    estimates_label = False
    learns = False

    def update(self, decided: Decided) -> None:
        """Do nothing."""


@dataclass(frozen=True)
class PretrainCurves:
    """Losses of Phase I.

    Attributes:
        epochs: the V epochs at which they were measured.
        train: β-weighted negative ELBO on the training rows, shape (V, E), in nats per person.
        validation: the same on validation rows, shape (V, E).
        best_epoch: epoch whose weights were selected, shape (E,); 0 for a seed that has diverged.
        kept_loss: validation loss at `best_epoch`, shape (E,), infinite for a seed that has diverged; after
            its early stop a seed may have had less.
    """

    epochs: Tensor
    train: Tensor
    validation: Tensor
    best_epoch: Tensor
    kept_loss: Tensor


def _has_state(value: object) -> bool:
    """Whether a value is a tensor, a generator, an optimiser or the like, or a container of them."""
    if isinstance(value, dict | list | tuple | set):
        return any(map(_has_state, value.values() if isinstance(value, dict) else value))
    generators = torch.Generator | np.random.Generator | np.random.RandomState | random.Random
    return isinstance(value, Tensor | generators) or hasattr(value, "state_dict")
