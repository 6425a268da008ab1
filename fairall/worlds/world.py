"""The world that a run happens in: its parts, one after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from torch import Tensor

from fairall.config.schema import Config, DecisionLuck
from fairall.data.people import Decided, Decisions, People
from fairall.data.prepared import PreparedData
from fairall.metrics import Measure, registered
from fairall.storage.checkpoint import Stateful
from fairall.worlds.part import Part, PartConfig, WorldSetting

if TYPE_CHECKING:  # a world without it needs no code of it
    from fairall.worlds.capacity import Capacity


class World(Stateful):
    """The applicants, and the steps between policy and learner: places, labels, delays.

    Args:
        nodes: of what departs from the static world, by name, in the order in which they act.

    Attributes:
        time_step: the current one, from 1; 0 before the first.

    Raises:
        FairAllError: where the data do not allow a part.
    """

    kept = ("time_step",)

    def __init__(self, setting: WorldSetting, nodes: Mapping[str, PartConfig] | None = None) -> None:
        self.setting = setting
        self.nodes = nodes or {}
        self._built = Stateful()  # its attributes are the parts, so that their states are part of its own
        self.parts: dict[str, Part] = vars(self._built)
        for name, node in self.nodes.items():
            if node.target.two_groups:
                setting.data.schema.require_two_groups(f"world.{name}", "leave it out, or ")
            self.parts[name] = node.build(setting)
        self._chain = [*self.parts.values()]
        self.stream = setting.data.applicants(setting.applicants, setting.seeds, one_order=setting.fixed_luck)
        self.time_step = 0

    @classmethod
    def of(cls, config: Config, data: PreparedData, seeds: Sequence[int]) -> World:
        """The world of a run; raises as the class."""
        schedule = config.schedule
        fixed_luck = config.protocol.decision_luck is DecisionLuck.fixed
        setting = WorldSetting(data, seeds, schedule.applicants, schedule.time_steps, fixed_luck)
        return cls(setting, config.parts)

    def at_first(self) -> World:
        """The same world before its first time step."""
        return World(self.setting, self.nodes)

    @property
    def capacity(self) -> Capacity | None:
        """The part that limits acceptances, if there is one."""
        from fairall.worlds.capacity import Capacity

        return next((part for part in self._chain if isinstance(part, Capacity)), None)

    @property
    def share(self) -> float:
        """Places per applicant, at most 1."""
        return 1.0 if self.capacity is None else self.capacity.places / self.setting.applicants

    @property
    def moves(self) -> bool:
        """Whether the evaluation people of two time steps may differ."""
        return any(type(part).evaluated is not Part.evaluated for part in self._chain)

    @property
    def measures(self) -> tuple[Measure, ...]:
        """Measures that runs in this world report besides the standard ones."""
        from fairall.worlds.measures import regret

        functions = [function for part in self._chain for function in (regret, *part.measures)]
        return tuple(registered(function) for function in dict.fromkeys(functions))

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

    def evaluated(self, people: People, time_step: int | None = None) -> People:
        """The evaluation people of a time step, by default the current one."""
        time_step = self.time_step if time_step is None else time_step
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
        return {name: values for part in self._chain for name, values in part.observed().items()}

    def summary(self, utility: np.ndarray) -> dict[str, np.ndarray]:
        """Measures of a whole run, shapes (E,), as `Part.summary`."""
        return {key: values for part in self._chain for key, values in part.summary(utility).items()}

    def notes(self, *, drawn: bool) -> list[str]:
        """Remarks of the parts, as `Part.notes`."""
        return [note for part in self._chain for note in part.notes(drawn=drawn)]

    def warnings(self, *, drawn: bool) -> list[str]:
        """Warnings of the parts, as `Part.warnings`."""
        return [warning for part in self._chain for warning in part.warnings(drawn=drawn)]
