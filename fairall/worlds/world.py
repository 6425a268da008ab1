"""The world that a run happens in: its parts, one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from torch import Tensor

from fairall.config.schema import Config, DecisionLuck
from fairall.data.people import Decided, Decisions, People
from fairall.data.prepared import PreparedData
from fairall.metrics import Measure, registered
from fairall.storage.checkpoint import Stateful
from fairall.worlds.part import Part, WorldSetting

if TYPE_CHECKING:  # a world without it needs no code of it
    from fairall.worlds.capacity import Capacity


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
    def capacity(self) -> Capacity | None:
        """The part that limits acceptances, if there is one."""
        from fairall.worlds.capacity import Capacity

        return next((part for part in self._chain if isinstance(part, Capacity)), None)

    @property
    def share(self) -> float:
        """Places per applicant, at most 1."""
        return self.capacity.places / self.setting.applicants if self.capacity else 1.0

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
