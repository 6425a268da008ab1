"""False labels: what an acceptance reveals is not always what is true."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from fairall.config.world import NoiseConfig
from fairall.data.people import People
from fairall.randomness import SeedStreams
from fairall.worlds.measures import EFFECTIVE_REVEALED_UTILITY
from fairall.worlds.part import Part, WorldSetting


class Noise(Part):
    """Reveals the opposite of a label with a probability that depends on the group and the label.

    Learners get the revealed labels. Measures use the labels of the data, but for
    `effective_revealed_utility`.
    """

    measures = EFFECTIVE_REVEALED_UTILITY
    config: NoiseConfig

    def __init__(self, config: NoiseConfig, setting: WorldSetting) -> None:
        super().__init__(config, setting)
        self.streams = SeedStreams(setting.seeds, "false labels")
        groups = (config.disadvantaged, config.advantaged)
        self.share = torch.tensor([[own.negative, own.positive] for own in groups])
        self._last: Tensor | None = None

    def revealed(self, people: People) -> People:
        """See `Part.revealed`."""
        share = self.share[(people.s > 0).long(), people.label.long()]
        false = self.streams.uniform(people.s.shape[1]) < share
        self._last = torch.where(false, 1.0 - people.label, people.label)
        return replace(people, label=self._last)

    def observed(self) -> dict[str, Tensor]:
        """`revealed_label` of all applicants, accepted or not, shape (E, N)."""
        assert self._last is not None
        return {"revealed_label": self._last}
