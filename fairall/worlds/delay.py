"""Late labels, and labels that never come."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from fairall.config.checks import at_least, below_one, positive, require
from fairall.data.people import Decided
from fairall.runtime.randomness import SeedStreams
from fairall.worlds.part import Part, PartConfig, WorldSetting


@dataclass
class DelayConfig(PartConfig):
    """Time steps between decisions and their labels, and the share of labels that never come."""

    causes = ("steps", "mean", "censored")
    steps: int = at_least(0)
    mean: float | None = positive()
    censored: float = below_one()

    def validate(self) -> None:
        """Raise FairAllError for two delays at once."""
        allowed = (
            f"null beside world.delay.steps={self.steps}; for a geometric delay instead add "
            "world.delay.steps=0"
        )
        require(self.mean is None or self.steps == 0, "world.delay.mean", self.mean, allowed)


class Delay(Part):
    """Gives learners the decisions of a time step when its labels come, with the propensities of that step.

    All labels of a step come together, after `steps` or a geometric number of steps of mean m, P(k) =
    (1 − q) q^k with q = m/(1 + m), which is the same in all seeds, so that they stay stacked. A censored
    person counts as not accepted in learning, and all propensities there are multiplied by the share of
    labels that come, which keeps 1/propensity weights unbiased.
    """

    config_type = DelayConfig
    two_groups = False
    purpose = "censored labels"
    kept = ("waiting",)
    config: DelayConfig

    def __init__(self, config: DelayConfig, setting: WorldSetting) -> None:
        super().__init__(config, setting)
        last = setting.time_steps
        steps = torch.tensor(config.steps)
        if config.mean is not None:
            uniform = SeedStreams([0], "delay of labels").uniform(last)[0].double()
            steps = torch.log1p(-uniform) / math.log(config.mean / (1.0 + config.mean))
        # Of each time step, that at which its labels come.
        self.arrivals: list[int] = (torch.arange(1, last + 1) + steps.floor().long()).tolist()
        self.in_time = sum(time_step <= last for time_step in self.arrivals)
        # Fields of `Decided` by the time step at which the labels come.
        self.waiting: dict[int, list[dict[str, Tensor]]] = {}

    def due(self, decided: list[Decided], time_step: int) -> list[Decided]:
        """The decisions whose labels come at this time step, the oldest first.

        Where labels never come, `values` has `censored`: who was accepted without one, shape (E, N), bool.
        """
        share = 1.0 - self.config.censored
        for one in decided:
            comes = self.streams.uniform(one.s.shape[1]) < share
            known = Decided.reveal(one, one.propensity * share, one.accepted & comes, one.weight)
            self.waiting.setdefault(self.arrivals[time_step - 1], []).append(dict(vars(known)))
            if share < 1.0:
                self.values = {"censored": one.accepted & ~comes}
        return [Decided(**fields) for fields in self.waiting.pop(time_step, [])]

    def notes(self, *, drawn: bool) -> list[str]:
        """A note on the number of labels that come before the run ends; `warnings` has the case of none."""
        last = self.setting.time_steps
        note = (
            f"the labels of {self.in_time} of {last} time steps come before the run ends, the first at time"
            f" step {min(self.arrivals)}: until then the policy is that of the warm-up"
        )
        return [note] * (0 < self.in_time < last)

    def warnings(self, *, drawn: bool) -> list[str]:
        """A warning if no label comes before the run ends."""
        key = "steps" if self.config.mean is None else "mean"
        warning = (
            f"world.delay.{key}={getattr(self.config, key):g}: no label of the {self.setting.time_steps} time"
            " steps comes before the run ends: the policy stays that of the warm-up, and tv_ measures have"
            " nothing to vary with; choose a shorter delay or more schedule.time_steps"
        )
        return [warning] * (self.in_time == 0)
