"""Types of the node `world`: how the world of a run departs from the paper's; values are in conf/world/."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from omegaconf import MISSING, OmegaConf

from fairall.config.checks import at_least, not_negative, open_unit, positive, require

PARTS = ("feedback", "drift", "capacity", "noise", "delay")  # in the order in which they act


class PlacesRule(Enum):
    """Who is accepted where the policy wants more people than there are places."""

    lottery = "people drawn by lot among those the policy wants"
    top = "those with the greatest acceptance probabilities among them"


class Course(Enum):
    """Extent of a drift over time steps t = 1..T, in [0, 1]."""

    linear = "0 until `start`, then rising to 1 at T"
    step = "0 before `start`, 1 from it on"
    seasonal = "½·(1 − cos 2π(t − start)/period) from `start` on, 0 before"


@dataclass
class QuotasConfig:
    """Shares of the places that only a group can have; both or neither."""

    advantaged: float | None = MISSING
    disadvantaged: float | None = MISSING


@dataclass
class CapacityConfig:
    """The most acceptances of a time step; a share of the applicants or a number, no limit without either."""

    share: float | None = MISSING
    number: int | None = MISSING
    rule: PlacesRule = MISSING
    quotas: QuotasConfig = field(default_factory=QuotasConfig)

    @property
    def active(self) -> bool:
        """Whether there is a limit."""
        return self.share is not None or self.number is not None

    def validate(self) -> None:
        """Raise FairAllError, naming the key, for a value that is not possible."""
        key, quotas = "world.capacity", self.quotas
        if self.share is not None:
            require(0 < self.share <= 1, f"{key}.share", self.share, "above 0 and at most 1")
        if self.number is not None:
            at_least(f"{key}.number", self.number, 1)
            allowed = f"null beside {key}.share={self.share}; for a number instead add {key}.share=null"
            require(self.share is None, f"{key}.number", self.number, allowed)
        given = [quota for quota in vars(quotas).values() if quota is not None]
        if not given:
            return
        require(self.active, f"{key}.quotas", _shown(quotas), f"null without {key}.share or {key}.number")
        require(len(given) == 2, f"{key}.quotas", _shown(quotas), "given for both groups or for neither")
        for name, quota in vars(quotas).items():
            not_negative(f"{key}.quotas.{name}", quota)
        require(
            sum(given) <= 1 + 1e-9, f"{key}.quotas", _shown(quotas), "shares of the places, 1 in sum at most"
        )


@dataclass
class DelayConfig:
    """Time steps between decisions and their labels, and the share of labels that never come."""

    steps: int = MISSING
    mean: float | None = MISSING
    censored: float = MISSING

    @property
    def active(self) -> bool:
        """Whether any label is late or lost."""
        return self.steps > 0 or self.mean is not None or self.censored > 0

    def validate(self) -> None:
        """Raise as `CapacityConfig.validate`."""
        at_least("world.delay.steps", self.steps, 0)
        if self.mean is not None:
            positive("world.delay.mean", self.mean)
            beside = f"world.delay.steps={self.steps}"
            allowed = f"null beside {beside}; for a geometric delay instead add world.delay.steps=0"
            require(self.steps == 0, "world.delay.mean", self.mean, allowed)
        share = self.censored
        require(0 <= share < 1, "world.delay.censored", share, "at least 0 and below 1")


@dataclass
class FlipsConfig:
    """Probabilities that a revealed label is false, by the label."""

    positive: float = MISSING
    negative: float = MISSING


@dataclass
class NoiseConfig:
    """The same by group."""

    advantaged: FlipsConfig = field(default_factory=FlipsConfig)
    disadvantaged: FlipsConfig = field(default_factory=FlipsConfig)

    @property
    def active(self) -> bool:
        """Whether any label can be false."""
        return any(share > 0 for flips in vars(self).values() for share in vars(flips).values())

    def validate(self) -> None:
        """Raise as `CapacityConfig.validate`."""
        for group, flips in vars(self).items():
            for label, share in vars(flips).items():
                require(0 <= share <= 1, f"world.noise.{group}.{label}", share, "from 0 to 1")


@dataclass
class LabelDriftConfig:
    """Probability at full extent that a label 0 becomes 1, or, if negative, that a label 1 becomes 0."""

    advantaged: float = MISSING
    disadvantaged: float = MISSING


@dataclass
class DriftConfig:
    """What moves, and when."""

    course: Course = MISSING
    start: int = MISSING
    period: int = MISSING
    advantaged_share: float | None = MISSING
    features: dict[str, float] = MISSING
    label: LabelDriftConfig = field(default_factory=LabelDriftConfig)

    @property
    def active(self) -> bool:
        """Whether anything moves."""
        moves = [*self.features.values(), *vars(self.label).values()]
        return self.advantaged_share is not None or any(move != 0 for move in moves)

    def validate(self) -> None:
        """Raise as `CapacityConfig.validate`."""
        at_least("world.drift.start", self.start, 0)
        at_least("world.drift.period", self.period, 2)
        if self.advantaged_share is not None:
            open_unit("world.drift.advantaged_share", self.advantaged_share)
        for group, change in vars(self.label).items():
            require(-1 <= change <= 1, f"world.drift.label.{group}", change, "from -1 to 1")


@dataclass
class FeedbackConfig:
    """How many people apply again and again; None for no feedback."""

    people: int | None = MISSING

    @property
    def active(self) -> bool:
        """Whether there is feedback."""
        return self.people is not None

    def validate(self) -> None:
        """Raise as `CapacityConfig.validate`."""
        if self.people is not None:
            at_least("world.feedback.people", self.people, 1)


@dataclass
class PartConfig:
    """Keys of every part of the user's; `config_type` of its class adds its own."""

    _target_: str = MISSING

    def validate(self) -> None:
        """Raise as `CapacityConfig.validate`."""


@dataclass
class WorldConfig:
    """The parts of a world; each does nothing with the values of conf/world/static.yaml.

    `further`: nodes of parts of your own by name, each with `_target_`.
    """

    capacity: CapacityConfig = field(default_factory=CapacityConfig)
    delay: DelayConfig = field(default_factory=DelayConfig)
    noise: NoiseConfig = field(default_factory=NoiseConfig)
    drift: DriftConfig = field(default_factory=DriftConfig)
    feedback: FeedbackConfig = field(default_factory=FeedbackConfig)
    further: dict[str, Any] = MISSING

    @property
    def parts(self) -> list[str]:
        """Names of the parts that depart from the static world, in the order in which they act."""
        return [name for name in PARTS if getattr(self, name).active] + list(self.further)

    def validate(self) -> None:
        """Raise as `CapacityConfig.validate`."""
        for name in PARTS:
            getattr(self, name).validate()
        for name in self.further:
            require(name not in PARTS, "world.further", name, f"another name than {', '.join(PARTS)}")


def world_parts(plain: dict[str, Any] | None) -> list[str]:
    """`WorldConfig.parts` of a node as plain containers; none for runs of versions without worlds."""
    if plain is None:
        return []
    config = OmegaConf.to_object(OmegaConf.merge(OmegaConf.structured(WorldConfig), plain))
    assert isinstance(config, WorldConfig)
    return config.parts


def _shown(quotas: QuotasConfig) -> str:
    return f"[{quotas.advantaged}, {quotas.disadvantaged}]"
