"""Late labels, and labels that never come."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from fairall.config.world import DelayConfig
from fairall.data.people import Decided
from fairall.randomness import SeedStreams
from fairall.worlds.part import Part, WorldSetting


class Delay(Part):
    """Gives learners the decisions of a time step when its labels come, with the propensities of that step.

    All labels of a step come together, after `steps` or a geometric number of steps of mean m, P(k) =
    (1 − q) q^k with q = m/(1 + m), which is the same in all seeds, so that they stay stacked. A censored
    person counts as not accepted in learning, and all propensities there are multiplied by the share of
    labels that come, which keeps 1/propensity weights unbiased.
    """

    config: DelayConfig

    def __init__(self, config: DelayConfig, setting: WorldSetting) -> None:
        super().__init__(config, setting)
        self.streams = SeedStreams(setting.seeds, "censored labels")
        self.clock = SeedStreams([0], "delay of labels")
        self.waiting: list[tuple[int, Decided]] = []  # with the number of steps to wait
        self._lost: Tensor | None = None

    def due(self, decided: list[Decided]) -> list[Decided]:
        """See `Part.due`; the oldest first."""
        steps = self._steps()
        self.waiting += [(steps, self._with_known(one)) for one in decided]
        due = [one for left, one in self.waiting if left == 0]
        self.waiting = [(left - 1, one) for left, one in self.waiting if left > 0]
        return due

    def observed(self) -> dict[str, Tensor]:
        """`censored`: who was accepted and whose label never comes, shape (E, N), bool."""
        if self.config.censored == 0:
            return {}
        assert self._lost is not None
        return {"censored": self._lost}

    def _with_known(self, decided: Decided) -> Decided:
        """The decisions with censored people as rejected ones."""
        share = 1.0 - self.config.censored
        comes = self.streams.uniform(decided.s.shape[1]) < share
        accepted = decided.accepted & comes
        self._lost = decided.accepted & ~comes
        return replace(
            decided,
            propensity=decided.propensity * share,
            accepted=accepted,
            label=torch.where(accepted, decided.label, 0.0),
        )

    def _steps(self) -> int:
        """Steps until the labels of the current time step come."""
        if self.config.mean is None:
            return self.config.steps
        uniform = float(self.clock.uniform(1))
        return math.floor(math.log1p(-uniform) / math.log(self.config.mean / (1.0 + self.config.mean)))

    def state_dict(self) -> dict[str, Any]:
        """See `Part.state_dict`."""
        waiting = [(steps, dict(vars(one))) for steps, one in self.waiting]
        return super().state_dict() | {"waiting": waiting}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """See `Part.load_state_dict`."""
        super().load_state_dict(state)
        self.waiting = [(steps, Decided(**one)) for steps, one in state["waiting"]]
