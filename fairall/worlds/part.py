"""The world that a run happens in, and the interface of its parts, which act one after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from fairall.config.choices import flattened
from fairall.config.schema import Config, DecisionLuck, NodeConfig, plain
from fairall.data.people import Decided, Decisions, People
from fairall.data.prepared import PreparedData
from fairall.metrics import Measure, registered
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
        places: most acceptances of a time step; None: no limit.
        by_rank: whether places go to the greatest π and margin, which decisions then need.
        values: of this time step for measures, by the names of `metrics.APPLICANTS_DATA`; shapes (E, ...).

    Raises:
        FairAllError: where the data do not allow such a world.
    """

    config_type: ClassVar[type[PartConfig]] = PartConfig
    measures: ClassVar[tuple[Callable[..., Tensor], ...]] = ()
    purpose: ClassVar[str] = "part of a world"
    two_groups: ClassVar[bool] = True
    shift: int | None = None
    places: int | None = None
    by_rank: bool = False

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


class World(Stateful):
    """The applicants, and the steps between policy and learner: places, labels, delays.

    Args:
        config: of the run.
        data: its people.
        seeds: the E seeds.

    Attributes:
        parts: what departs from the static world, by name, in the order in which it acts.
        time_step: the current one, from 1; 0 before the first.

    Raises:
        FairAllError: where the data do not allow a part.
    """

    kept = ("time_step",)

    def __init__(self, config: Config, data: PreparedData, seeds: Sequence[int]) -> None:
        schedule = config.schedule
        fixed_luck = config.protocol.decision_luck is DecisionLuck.fixed
        setting = WorldSetting(data, seeds, schedule.applicants, schedule.time_steps, fixed_luck)
        self.config = config
        self.setting = setting
        self._built = Stateful()  # its attributes are the parts, so that their states are part of its own
        self.parts: dict[str, Part] = vars(self._built)
        for name, node in config.parts.items():
            if node.target.two_groups:
                data.schema.require_two_groups(f"world.{name}", "leave it out, or ")
            self.parts[name] = node.build(setting)
        self._chain = [*self.parts.values()]
        self.stream = data.applicants(schedule.applicants, seeds, one_order=fixed_luck)
        self.time_step = 0

    def at_first(self) -> World:
        """The same world before its first time step."""
        return World(self.config, self.setting.data, self.setting.seeds)

    @property
    def places(self) -> int | None:
        """Most acceptances of a time step; None: no limit."""
        return next((part.places for part in self._chain if part.places is not None), None)

    @property
    def share(self) -> float:
        """Places per applicant, at most 1."""
        return 1.0 if self.places is None else self.places / self.setting.applicants

    @property
    def by_rank(self) -> bool:
        """Whether places go to the greatest π and margin."""
        return any(part.by_rank for part in self._chain)

    def changes(self, *steps: str) -> bool:
        """Whether a part has methods of its own for one of these steps, such as "admit"."""
        return any(
            getattr(type(part), step) is not getattr(Part, step) for part in self._chain for step in steps
        )

    @property
    def moves(self) -> bool:
        """Whether the evaluation people of two time steps may differ."""
        return self.changes("evaluated")

    @property
    def measures(self) -> tuple[Measure, ...]:
        """Measures that runs in this world report besides the standard ones."""
        from fairall.worlds.measures import regret

        functions = [function for part in self._chain for function in (regret, *part.measures)]
        return tuple(map(registered, dict.fromkeys(functions)))

    def next(self) -> People:
        """Begin a time step: its applicants, fields of shape (E, N, ...)."""
        self.time_step += 1
        draw = self.stream.next
        for part in self._chain:
            draw = partial(part.arriving, draw, self.time_step)
        return draw()

    def admit(self, people: People, wanted: Decisions) -> Decisions:
        """The possible decisions, given those of the policy."""
        for part in self._chain:
            wanted = part.admit(people, wanted, self.time_step)
        return wanted

    def reveal(self, people: People, taken: Decisions) -> list[Decided]:
        """The decisions that learners get at this time step."""
        seen = people
        for part in self._chain:
            seen = part.revealed(seen, self.time_step)
        due = [Decided.reveal(seen, taken.propensity, taken.accepted)]
        for part in self._chain:
            due = part.due(due, self.time_step)
        self.decided(people, taken.accepted)
        return due

    def decided(self, people: People, accepted: Tensor) -> None:
        """Observe the decisions on the applicants, `accepted` (E, N), bool."""
        for part in self._chain:
            part.decided(people, accepted, self.time_step)

    def evaluated(self, people: People, time_step: int) -> People:
        """The evaluation people of a time step."""
        for part in self._chain:
            people = part.evaluated(people, time_step)
        return people

    def probability(self, p: Tensor, s: Tensor, time_step: int) -> Tensor:
        """P(ỹ = 1 | x, s) at a time step of people (...), given that of the data, p (...)."""
        for part in self._chain:
            p = part.probability(p, s, time_step)
        return p

    def observed(self) -> dict[str, Tensor]:
        """Values of this time step for measures, shapes (E, ...), by name in `metrics.APPLICANTS_DATA`."""
        return {name: values for part in self._chain for name, values in part.values.items()}

    def summary(self, utility: np.ndarray) -> dict[str, np.ndarray]:
        """`adaptation_time` after a shift, shape (E,), given the utility at time steps 0..T, (T + 1, E)."""
        from fairall.worlds.measures import adaptation_time

        for part in self._chain:
            if part.shift is not None:
                return {"adaptation_time": adaptation_time(utility, part.shift)}
        return {}

    def notes(self, *, drawn: bool) -> list[str]:
        """Remarks of the parts, as `Part.notes`."""
        return [note for part in self._chain for note in part.notes(drawn=drawn)]

    def warnings(self, *, drawn: bool) -> list[str]:
        """Warnings of the parts, as `Part.warnings`."""
        return [warning for part in self._chain for warning in part.warnings(drawn=drawn)]
