"""The interface of the parts of a world."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from torch import Tensor

from fairall.config.choices import flattened
from fairall.config.schema import NodeConfig, plain
from fairall.data.people import Decided, Decisions, People
from fairall.data.prepared import PreparedData
from fairall.runtime.randomness import SeedStreams
from fairall.storage.checkpoint import Stateful

Draw = Callable[[], People]
"""Draws the next applicants, fields of shape (E, N, ...)."""


@dataclass(frozen=True)
class WorldSetting:
    """The problem that the parts of a world are built for.

    Attributes:
        data: the people of the run.
        seeds: the E seeds.
        applicants: N, of each time step.
        time_steps: T.
        fixed_luck: whether random numbers of decisions are the same at all time steps, as orders of
            applicants are in all passes (`protocol.decision_luck`).
    """

    data: PreparedData
    seeds: Sequence[int]
    applicants: int
    time_steps: int
    fixed_luck: bool = False


@dataclass
class PartConfig(NodeConfig):
    """Keys of every part of a world; `config_type` of its class adds its own.

    Attributes:
        causes: names of keys, all null or 0 where the part changes nothing; () if it always does.
    """

    causes: ClassVar[tuple[str, ...]] = ()

    @property
    def active(self) -> bool:
        """Whether the part changes anything with these values."""
        values = {name: plain(getattr(self, name)) for name in self.causes}
        return not values or any(flattened(values).values())


class Part(Stateful):
    """One deviation of a world from the paper's; by default each method changes nothing.

    A part is chosen by `world.NAME._target_`. In a time step `arriving`, `admit`, `revealed`, `due`,
    `decided` and `evaluated` are called once each, in this order, with the time step from 1.

    Attributes:
        config_type: dataclass of the node.
        measures: functions decorated with `metrics.measure`, which runs in such a world report.
        purpose: name of its random numbers, `streams`.
        two_groups: whether it is for two groups only, so that a world with more is refused.
        kept: names of attributes that later steps depend on, tensors or plain containers. Attributes that
            have a `state_dict`, such as `SeedStreams`, are kept without being named.
        shift: the first time step after a sudden change, from which `adaptation_time` counts.
        values: of this time step for measures, by the names of `metrics.APPLICANTS_DATA`; shapes (E, ...).

    Raises:
        FairAllError: where the data do not allow such a world.
    """

    config_type: ClassVar[type[PartConfig]] = PartConfig
    measures: ClassVar[tuple[Callable[..., Tensor], ...]] = ()
    purpose: ClassVar[str] = "part of a world"
    two_groups: ClassVar[bool] = True
    shift: int | None = None

    def __init__(self, config: Any, setting: WorldSetting) -> None:
        self.config = config
        self.setting = setting
        self.streams = SeedStreams(setting.seeds, self.purpose)
        self.values: dict[str, Tensor] = {}

    def arriving(self, draw: Draw, time_step: int) -> People:
        """The applicants of a time step; `draw` draws those of the world without this part."""
        return draw()

    def admit(self, people: People, wanted: Decisions, time_step: int) -> Decisions:
        """Decisions on the applicants (E, N), given those that would be taken without this part.

        `propensity` of the result is the probability of being accepted given all applicants.
        """
        return wanted

    def revealed(self, people: People, time_step: int) -> People:
        """The applicants (E, N) with the labels that an acceptance reveals."""
        return people

    def due(self, decided: list[Decided], time_step: int) -> list[Decided]:
        """The decisions that learners get at this time step, given those without this part."""
        return decided

    def decided(self, people: People, accepted: Tensor, time_step: int) -> None:
        """Observe the decisions on the applicants, `accepted` (E, N), bool."""

    def evaluated(self, people: People, time_step: int) -> People:
        """The evaluation people of a time step, as many as `people` (N,) of the population without drift."""
        return people

    def probability(self, p: Tensor, s: Tensor, time_step: int) -> Tensor:
        """P(ỹ = 1 | x, s) at a time step of people (...), given that of the data, p (...)."""
        return p

    def notes(self, *, drawn: bool) -> list[str]:
        """Remarks for the user, one sentence each; `drawn`: whether decisions are left to chance."""
        return []

    def warnings(self, *, drawn: bool) -> list[str]:
        """Reasons why numbers of the run so far need care, one sentence each; `drawn` as for `notes`."""
        return []


def flipped(people: People, false: Tensor) -> People:
    """The people with the opposite label where `false`, bool, of the shape of their labels."""
    return replace(people, label=torch.where(false, 1.0 - people.label, people.label))
