"""False labels: an acceptance may reveal the opposite of the label."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch

from fairall.config.checks import between
from fairall.data.people import People
from fairall.worlds.measures import effective_revealed_utility
from fairall.worlds.part import Part, PartConfig, WorldSetting, flipped


@dataclass
class FlipsConfig:
    """Probabilities that a revealed label is false, by the label."""

    positive: float = between(0, 1)
    negative: float = between(0, 1)


@dataclass
class NoiseConfig(PartConfig):
    """`FlipsConfig` for each group."""

    causes = ("advantaged", "disadvantaged")
    advantaged: FlipsConfig = field(default_factory=FlipsConfig)
    disadvantaged: FlipsConfig = field(default_factory=FlipsConfig)


class Noise(Part):
    """Reveals the opposite of a label with a probability by group and label.

    Learners get the revealed labels. Measures use the labels of the data, but for
    `effective_revealed_utility`.
    """

    config_type = NoiseConfig
    purpose = "false labels"
    measures = (effective_revealed_utility,)
    config: NoiseConfig

    def __init__(self, config: NoiseConfig, setting: WorldSetting) -> None:
        super().__init__(config, setting)
        groups = (config.disadvantaged, config.advantaged)
        self.share = torch.tensor([[noise.negative, noise.positive] for noise in groups])

    def revealed(self, people: People, time_step: int) -> People:
        """The applicants with flipped labels; `values` has those of all, accepted or not, shape (E, N)."""
        share = self.share[(people.s > 0).long(), people.label.long()]
        seen = flipped(people, self.streams.uniform(len(people)) < share)
        self.values = {"revealed_label": seen.label}
        return seen
