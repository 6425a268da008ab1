"""The world that a run happens in: its parts, one after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from omegaconf import OmegaConf
from torch import Tensor

from fairall.config.schema import Config, DecisionLuck
from fairall.config.target import target_class, typed_node
from fairall.config.world import PartConfig
from fairall.data.applicants import ApplicantStream
from fairall.data.people import Decided, Decisions, People
from fairall.data.prepared import PreparedData
from fairall.metrics import Measure
from fairall.worlds.capacity import Capacity
from fairall.worlds.delay import Delay
from fairall.worlds.drift import Drift
from fairall.worlds.feedback import Feedback
from fairall.worlds.measures import REGRET
from fairall.worlds.noise import Noise
from fairall.worlds.part import Part, WorldSetting

PARTS: dict[str, Any] = {
    "capacity": Capacity, "delay": Delay, "noise": Noise, "drift": Drift, "feedback": Feedback,
}  # fmt: skip


class World:
    """What happens between applicants, policy and learner, and the applicants themselves.

    Args:
        stream: of applicants of the static world.
        parts: that depart from it, by name, in the order in which they act.
    """

    def __init__(self, stream: ApplicantStream, parts: Mapping[str, Part] = MappingProxyType({})) -> None:
        self.parts = parts
        self.stream = stream
        for part in parts.values():
            self.stream = part.arriving(self.stream)
        self.time_step = 0

    @classmethod
    def of(cls, config: Config, data: PreparedData, seeds: Sequence[int]) -> World:
        """The world of a run.

        Raises:
            FairAllError: where the data do not allow a part, or a class of the user's is none.
        """
        size, world = config.schedule.applicants, config.world
        fixed_luck = config.protocol.decision_luck is DecisionLuck.fixed
        setting = WorldSetting(data, seeds, size, config.schedule.time_steps, fixed_luck)
        parts = {
            name: PARTS[name](getattr(world, name), setting)
            if name in PARTS
            else _own_part(name, world.further[name], setting)
            for name in world.parts
        }
        return cls(data.applicants(size, seeds, one_order=fixed_luck), parts)

    @property
    def capacity(self) -> Capacity | None:
        """The part that limits acceptances, if there is one."""
        part = self.parts.get("capacity")
        return part if isinstance(part, Capacity) else None

    @property
    def moves(self) -> bool:
        """Whether the evaluation people of two time steps may differ."""
        return any(type(part).evaluated is not Part.evaluated for part in self.parts.values())

    @property
    def measures(self) -> tuple[Measure, ...]:
        """What runs in this world report besides the standard measures."""
        found = [measure for part in self.parts.values() for measure in part.measures]
        return (*REGRET, *found) if self.parts else ()

    def next(self) -> People:
        """Begin a time step: its applicants, fields of shape (E, N, ...)."""
        self.time_step += 1
        return self.stream.next()

    def admit(self, people: People, wanted: Decisions) -> Decisions:
        """The decisions that are possible, given those that the policy wants."""
        for part in self.parts.values():
            wanted = part.admit(people, wanted)
        return wanted

    def reveal(self, people: People, taken: Decisions) -> list[Decided]:
        """What learners get at this time step."""
        seen = people
        for part in self.parts.values():
            seen = part.revealed(seen)
        due = [Decided.reveal(seen, taken.propensity, taken.accepted)]
        for part in self.parts.values():
            due = part.due(due)
        self.stream.observe(people, taken.accepted)
        return due

    def evaluated(self, people: People, time_step: int | None = None) -> People:
        """The evaluation people of a time step, by default the current one."""
        for part in self.parts.values():
            people = part.evaluated(people, self.time_step if time_step is None else time_step)
        return people

    def probability(self, p: Tensor, s: Tensor, time_step: int) -> Tensor:
        """P(ỹ = 1 | x, s) at a time step of people (...), given that of the data, p (...)."""
        for part in self.parts.values():
            p = part.probability(p, s, time_step)
        return p

    def observed(self) -> dict[str, Tensor]:
        """Values of this time step for measures, by the names of `metrics.WORLD_DATA`."""
        found = self.stream.observed()
        for part in self.parts.values():
            found |= part.observed()
        return found

    def notes(self, *, drawn: bool) -> list[str]:
        """Remarks of the parts; see `Part.notes`."""
        return [note for part in self.parts.values() for note in part.notes(drawn=drawn)]

    def warnings(self, *, drawn: bool) -> list[str]:
        """Warnings of the parts; see `Part.warnings`."""
        return [warning for part in self.parts.values() for warning in part.warnings(drawn=drawn)]

    def state_dict(self) -> dict[str, Any]:
        """All that later time steps depend on, as plain containers of tensors."""
        parts = {name: part.state_dict() for name, part in self.parts.items()}
        return {"time_step": self.time_step, "stream": self.stream.state_dict(), "parts": parts}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what `state_dict` returned."""
        self.time_step = state["time_step"]
        self.stream.load_state_dict(state["stream"])
        for name, part in self.parts.items():
            part.load_state_dict(state["parts"][name])


def _own_part(name: str, node: Any, setting: WorldSetting) -> Part:
    """A part of `world.further`; raises as `target_class`."""
    place = f"world.further.{name}"
    config = OmegaConf.to_object(typed_node(node, "world.further", place))
    assert isinstance(config, PartConfig)
    config.validate()
    part: Part = target_class(node, "world.further", place)(config, setting)
    return part
