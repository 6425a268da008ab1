"""Late labels, and labels that never come."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from fairall.config.checks import at_least, below_one, positive, require
from fairall.data.people import Decided
from fairall.runtime.randomness import SeedStreams
from fairall.worlds.part import Part, PartConfig, WorldSetting


@dataclass
class DelayConfig(PartConfig):
    """Time steps between decisions and their labels, and the share of labels that never come."""

    steps: int = at_least(0)
    mean: float | None = positive()
    censored: float = below_one()

    @property
    def active(self) -> bool:
        """Whether any label is late or lost."""
        return self.steps != 0 or self.mean is not None or self.censored != 0

    def validate(self) -> None:
        """Raise FairAllError for two delays at once."""
        if self.mean is not None:
            beside = f"world.delay.steps={self.steps}"
            allowed = f"null beside {beside}; for a geometric delay instead add world.delay.steps=0"
            require(self.steps == 0, "world.delay.mean", self.mean, allowed)


class Delay(Part):
    """Gives learners the decisions of a time step when its labels come, with the propensities of that step.

    All labels of a step come together, after `steps` or a geometric number of steps of mean m, P(k) =
    (1 − q) q^k with q = m/(1 + m), which is the same in all seeds, so that they stay stacked. A censored
    person counts as not accepted in learning, and all propensities there are multiplied by the share of
    labels that come, which keeps 1/propensity weights unbiased.
    """

    config_type = DelayConfig
    two_groups = False
    kept = ("waiting",)
    config: DelayConfig

    def __init__(self, config: DelayConfig, setting: WorldSetting) -> None:
        super().__init__(config, setting)
        self.streams = SeedStreams(setting.seeds, "censored labels")
        self.clock = _clock()
        # Fields of `Decided` with the time step at which the labels come.
        self.waiting: list[tuple[int, dict[str, Tensor]]] = []
        self._lost: Tensor | None = None

    def due(self, decided: list[Decided], time_step: int) -> list[Decided]:
        """The decisions whose labels come at this time step, the oldest first."""
        arrival = time_step + self._steps(self.clock)
        self.waiting += [(arrival, dict(vars(self._with_known(decisions)))) for decisions in decided]
        due = [Decided(**decisions) for arrival, decisions in self.waiting if arrival == time_step]
        self.waiting = [waiting for waiting in self.waiting if waiting[0] > time_step]
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

    def notes(self, *, drawn: bool) -> list[str]:
        """A note on the number of labels that come before the run ends; `warnings` has the case of none."""
        arrivals, last = self._arrivals(), self.setting.time_steps
        if not arrivals or len(arrivals) == last:
            return []
        return [
            f"the labels of {len(arrivals)} of {last} time steps come before the run ends, the first at time"
            f" step {min(arrivals)}: until then the policy is that of the warm-up"
        ]

    def warnings(self, *, drawn: bool) -> list[str]:
        """A warning if no label comes before the run ends."""
        if self._arrivals():
            return []
        key = "steps" if self.config.mean is None else "mean"
        return [
            f"world.delay.{key}={getattr(self.config, key):g}: no label of the {self.setting.time_steps} time"
            " steps comes before the run ends: the policy stays that of the warm-up, and tv_ measures have"
            " nothing to vary with; choose a shorter delay or more schedule.time_steps"
        ]

    def _arrivals(self) -> list[int]:
        """The time steps at which labels come before the run ends, one for each step with such labels."""
        clock, last = _clock(), self.setting.time_steps
        due = [time_step + self._steps(clock) for time_step in range(1, last + 1)]
        return [time_step for time_step in due if time_step <= last]

    def _steps(self, clock: SeedStreams) -> int:
        """Steps until the labels of the next time step of a clock come."""
        if self.config.mean is None:
            return self.config.steps
        uniform = float(clock.uniform(1))
        return math.floor(math.log1p(-uniform) / math.log(self.config.mean / (1.0 + self.config.mean)))


def _clock() -> SeedStreams:
    """Random numbers of the delays, from the first time step on; the same in all runs."""
    return SeedStreams([0], "delay of labels")
