"""The interface between a method and the online loop."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from fairall.config.schema import (
    Config,
    ModelConfig,
    NetInputs,
    ProtocolConfig,
    ScheduleConfig,
    VaeStart,
    WeightGain,
)
from fairall.data.features import Schema
from fairall.data.people import Decided
from fairall.data.prepared import PreparedData
from fairall.errors import FairAllError
from fairall.nn.stacked import RELU_GAIN
from fairall.randomness import SeedStreams
from fairall.storage.cache import Cache

ProgressCallback = Callable[..., None]
"""Reports that one unit of work is done, with current values to display as keywords.

`resumed=n` alone reports n units that an earlier process has done, which do not count for the speed.
"""

DECISIONS = ("sample", "deterministic")  # see `as_decided`


@dataclass(frozen=True)
class Setting:
    """The problem that a learner learns in.

    Attributes:
        schema: the features of x, and how nets see them (`protocol.inputs`).
        cost: c in (0, 1), the cost of a positive decision.
        seeds: the E seeds trained together.
        schedule: numbers of epochs, steps and applicants.
        protocol: choices where the paper's text and the authors' code differ.
    """

    schema: Schema
    cost: float
    seeds: Sequence[int]
    schedule: ScheduleConfig
    protocol: ProtocolConfig

    @property
    def gain(self) -> float:
        """Gain of the initial weights of nets."""
        return RELU_GAIN if self.protocol.weight_gain is WeightGain.relu else 1.0

    @property
    def group_blind(self) -> bool:
        """Whether the weights from s start at zero in VAEs."""
        return self.protocol.vae_start is VaeStart.group_blind

    @classmethod
    def of(cls, schema: Schema, config: Config) -> Setting:
        """The setting of the run that `config` describes."""
        seeds = range(config.seed, config.seed + config.seeds)
        inputs = config.protocol.inputs
        if inputs is NetInputs.by_method:
            inputs = config.model.target.net_inputs
        return cls(schema.seen_as(inputs), config.cost.value, list(seeds), config.schedule, config.protocol)


class Learner(nn.Module, ABC):
    """A policy that learns online from the decisions it takes; E replicates at once.

    A new method subclasses it, takes its own configuration node and a `Setting`, and is chosen by `_target_`.
    Modules, optimisers and streams that are attributes are part of checkpoints; see `training_state`.

    Attributes:
        config_type: dataclass of the configuration node; every key of the node is one of its fields.
        net_inputs: how its nets see counts and categories with `protocol.inputs=by_method`.
        learns: whether it learns from decisions. For one that does not, exploration, warnings about a
            collapsed policy and the note on hyperparameters are omitted.
    """

    config_type: ClassVar[type[ModelConfig]] = ModelConfig
    net_inputs: ClassVar[NetInputs] = NetInputs.codes
    learns: ClassVar[bool] = True

    def __init__(self, config: Any, setting: Setting) -> None:
        super().__init__()
        self.config = config
        self.setting = setting

    def extra_repr(self) -> str:
        """Name of the configuration, seeds and features."""
        return f"{self.config.name}, seeds={list(self.setting.seeds)}, features={self.setting.schema.names}"

    @abstractmethod
    def warm_up_epoch(self, decided: Decided, epoch: int) -> dict[str, float]:
        """Train for one epoch on people decided by the initial policy, before the first own decision.

        Args:
            decided: labelled and unlabelled people, B rows; the same in all epochs.
            epoch: 0 .. `warm_up_epochs()` − 1.

        Returns:
            Values to display, by name.
        """

    def warm_up_epochs(self) -> int:
        """Number of warm-up epochs."""
        return self.setting.schedule.warm_up_epochs

    @abstractmethod
    def propensity(self, x: Tensor, s: Tensor, streams: SeedStreams) -> Tensor:
        """π(d=1 | x, s) of the current policy.

        Args:
            x: features, shape (E, B, D).
            s: sensitive attribute in {−1, +1}, shape (E, B).
            streams: draw the samples that the policy averages over; equal streams give common random numbers.
                A deployed policy gets `FixedSamples`, see `noise_size`.

        Returns:
            Shape (E, B), in [0, 1].
        """

    def explore(self, x: Tensor, s: Tensor, propensity: Tensor, uniform: Tensor) -> Tensor:
        """Acceptance probabilities with which applicants are decided on; those of the policy by default.

        Called for applicants and nowhere else: `propensity` is the policy that is measured and deployed. What
        this returns is recorded as the propensity of the decisions.

        Args:
            x: features, shape (E, N, D).
            s: sensitive attribute in {−1, +1}, shape (E, N).
            propensity: of the policy, shape (E, N).
            uniform: random numbers in [0, 1) of the decisions, shape (E, N): who has one below what is
                returned is accepted. A method that draws candidates compares these with their probability.

        Returns:
            Shape (E, N), in [0, 1].
        """
        return propensity

    @property
    def draws(self) -> bool:
        """Whether decisions on applicants are drawn, from π or by an `explore` of the method's own."""
        return not self.deterministic or type(self).explore is not Learner.explore

    def decision_score(self, x: Tensor, s: Tensor, streams: SeedStreams) -> Tensor:
        """Probability that a deterministic policy accepts from `decision_threshold` on, shape (E, B).

        By default π(d=1 | x, s), see `propensity` for arguments; draws nothing but what that draws.
        """
        return self.propensity(x, s, streams)

    @property
    def decision_threshold(self) -> float:
        """See `decision_score`."""
        return 0.5

    @property
    def deterministic(self) -> bool:
        """Whether π is 0 or 1, the decision itself; by default if `model.decision` says so."""
        return getattr(self.config, "decision", None) == "deterministic"

    def noise_size(self) -> int:
        """Dimensions of the samples that `propensity` draws with `streams.normal_samples`; 0 without any.

        A deployed policy has fixed points of that size. Anything drawn in another way depends on a person's
        row.
        """
        return 0

    @abstractmethod
    def update(self, decided: Decided) -> None:
        """Train on the B applicants of one time step and the decisions taken on them."""

    def pretrain(self, data: PreparedData, cache: Cache, progress: ProgressCallback) -> PretrainCurves | None:
        """Train offline before the warm-up; does nothing by default.

        Args:
            data: all people; a method may use x and s of pool and validation, a reference also labels.
            cache: stores results that other runs can share.
            progress: to be called `pretrain_units` times at most, with values to display as keywords.
        """
        return None

    def pretrain_units(self, data: PreparedData) -> int:
        """Largest number of calls of `progress` in `pretrain`."""
        return 0

    def notes(self, data: PreparedData) -> list[str]:
        """Remarks on the training on `data`, one sentence each, printed by a run and kept in its summary."""
        return []

    def representation(self, x: Tensor, s: Tensor) -> Tensor | None:
        """The latent mean E[z | x, s], shape (E, B, Z), of methods with a latent."""
        return None

    def reconstruction(self, x: Tensor, s: Tensor) -> Tensor | None:
        """X (E, B, D) decoded from the latent mean, of methods with a decoder."""
        return None

    def training_state(self) -> dict[str, Any]:
        """Everything that determines how training continues, as plain containers of tensors.

        Returns:
            `modules`: parameters and buffers; `parts`: the state of everything else with a `state_dict`, such
            as optimisers and streams, by the name of the attribute.

        Raises:
            FairAllError: if an attribute holds state that would not be part of it.
        """
        parts = {name: part.state_dict() for name, part in self._parts().items()}
        return {"modules": self.state_dict(), "parts": parts}

    def load_training_state(self, state: dict[str, Any]) -> None:
        """Restore what `training_state` returned.

        Raises:
            FairAllError: if the learner has other parts than the one whose state it is.
        """
        parts = self._parts()
        if state["parts"].keys() != parts.keys():
            saved, own = (", ".join(sorted(names)) or "nothing" for names in (state["parts"], parts))
            raise FairAllError(
                f"the checkpoint has the state of {saved}, but {type(self).__name__} has {own}; "
                "start anew with force=true"
            )
        self.load_state_dict(state["modules"])
        for name, part in parts.items():
            part.load_state_dict(state["parts"][name])

    def _parts(self) -> dict[str, Any]:
        """Optimisers, streams and whatever else has a `state_dict`, by name, in all modules."""
        parts = {}
        for prefix, module in self.named_modules():
            for attribute in vars(module).keys() - vars(nn.Module()).keys():
                name = f"{prefix}.{attribute}" if prefix else attribute
                value = getattr(module, attribute)
                if hasattr(value, "state_dict"):
                    parts[name] = value
                elif _has_state(value):
                    raise FairAllError(
                        f"{type(self).__name__}.{name} would not be part of a checkpoint: keep tensors with "
                        "register_buffer, modules in a ModuleList, optimisers and SeedStreams as attributes"
                    )
        return dict(sorted(parts.items()))


@dataclass(frozen=True)
class PretrainCurves:
    """Losses of Phase I.

    Attributes:
        epochs: the V epochs at which they were measured.
        train: β-weighted negative ELBO on the training rows, shape (V, E), in nats per person.
        validation: the same on validation rows, shape (V, E).
        best_epoch: epoch whose weights were selected, shape (E,).
    """

    epochs: Tensor
    train: Tensor
    validation: Tensor
    best_epoch: Tensor

    @property
    def kept_loss(self) -> Tensor:
        """Validation loss at `best_epoch`, shape (E,); after its early stop a seed may have had less."""
        rows = torch.searchsorted(self.epochs, self.best_epoch)
        return self.validation.gather(0, rows.unsqueeze(0)).squeeze(0)


def as_decided(probability: Tensor, decision: str, *, threshold: float) -> Tensor:
    """π(d=1 | x, s) of a policy, given the probability that its model estimates.

    Args:
        probability: estimate of the model, in [0, 1], any shape.
        decision: one of `DECISIONS`: `sample` accepts with that probability, `deterministic` where it is at
            least `threshold`.
        threshold: of a deterministic policy.

    Returns:
        Same shape, in [0, 1].
    """
    if decision == "sample":
        return probability
    return (probability >= threshold).to(probability.dtype)


def _has_state(value: object) -> bool:
    """Whether a value is a tensor, a generator, an optimiser or the like, or a container of them."""
    if isinstance(value, dict | list | tuple | set):
        return any(map(_has_state, value.values() if isinstance(value, dict) else value))
    generators = torch.Generator, np.random.Generator, np.random.RandomState, random.Random
    return isinstance(value, (Tensor, *generators)) or hasattr(value, "state_dict")
