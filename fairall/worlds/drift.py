"""Drift of a population: shares of groups, features, and labels given features."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import Enum

import torch
from omegaconf import MISSING
from torch import Tensor

from fairall.config.checks import at_least, between, check_values, one_of, open_unit
from fairall.data.people import People
from fairall.errors import FairAllError
from fairall.runtime.randomness import SeedStreams
from fairall.worlds.part import Draw, Part, PartConfig, WorldSetting, flipped

FURTHEST = 3.0  # standard deviations from the mean, beyond which a feature changes the weight no more
LARGEST_WEIGHT = 100.0  # so many candidates may be needed for one applicant


Course = Enum("Course", ["linear", "step", "seasonal"])  # by which `Drift.extent` goes


@dataclass
class LabelDriftConfig:
    """Probability at full extent that a label 0 becomes 1, or, if negative, that a label 1 becomes 0."""

    advantaged: float = between(-1, 1)
    disadvantaged: float = between(-1, 1)


@dataclass
class DriftConfig(PartConfig):
    """Course and targets of the drift."""

    causes = ("advantaged_share", "features", "label")
    course: Course = MISSING
    start: int = at_least(0)
    period: int = at_least(2)
    advantaged_share: float | None = open_unit()
    features: dict[str, float] = MISSING
    label: LabelDriftConfig = field(default_factory=LabelDriftConfig)


class Drift(Part):
    """Drift by an extent e(t) from 0 to 1 (`extent`), also of the evaluation people.

    A person of features x and group s comes with the weight

        w(x, s) = P_t(s) / P(s) · exp(e(t) Σ_j b_j x_j) / E[exp(e(t) Σ_j b_j x_j) | s],

    P_t(s) going from P(s) to the target, x_j standardised and cut off at `FURTHEST`, E and P of the training
    rows. So the share of the groups and the features within groups move separately, and P(ỹ | x, s) does not.
    The last is moved by labels: with probability e(t)|d| a label 0 becomes 1 (d > 0), or 1 becomes 0 (d < 0).
    Ground truth stays as it is.

    Applicants are candidates of the population without drift, kept with probability w / max w. The number of
    candidates does not depend on their weights, so that the draws of a seed do not depend on other seeds. It
    makes fewer than N kept candidates as likely as a deviation of six standard deviations; then the others
    follow in the order of their uniform numbers divided by their weights. Evaluation people are drawn
    systematically, so that the same ones come unless the weights differ.
    """

    config_type = DriftConfig
    purpose = "drift"
    config: DriftConfig

    def __init__(self, config: DriftConfig, setting: WorldSetting) -> None:
        super().__init__(config, setting)
        names = setting.data.schema.names
        for name in config.features:
            check_values(name, "world.drift.features", one_of(names))
        self.slope = torch.tensor([config.features.get(name, 0.0) for name in names])
        self.train = setting.data.train.merged()
        now = float((self.train.s > 0).double().mean())
        if now in (0, 1):
            raise FairAllError("world.drift: all training rows are of one group")
        shares = (now, config.advantaged_share or now)
        before, target = (torch.tensor([1.0 - share, share]) for share in shares)
        self.gain = target / before - 1.0  # of the groups' shares at extent 1
        self.moves_people = config.advantaged_share is not None or bool(self.slope.any())
        largest = self.largest_weight(1.0)
        if largest > LARGEST_WEIGHT:
            raise FairAllError(
                f"world.drift: some people would be {largest:.0f} times as frequent as before, and "
                f"{LARGEST_WEIGHT:g} is the most: choose smaller numbers in world.drift.features, or a share "
                "of groups nearer to that of the data"
            )
        self.change = torch.tensor([config.label.disadvantaged, config.label.advantaged])
        self.shift = config.start if config.course is Course.step else None

    def extent(self, time_step: int) -> float:
        """e(t) in [0, 1]: 0 before `start`, and from it on by the course.

        `linear` rises to 1 at T, `step` is 1, `seasonal` is ½·(1 − cos 2π(t − start)/period).
        """
        config = self.config
        since = time_step - config.start
        extents = {
            Course.linear: since / max(self.setting.time_steps - config.start, 1),
            Course.step: 1.0,
            Course.seasonal: 0.5 * (1.0 - math.cos(2.0 * math.pi * since / config.period)),
        }
        return extents[config.course] if since >= 0 else 0.0

    def weight(self, people: People, extent: float) -> Tensor:
        """Weights w of people, of the shape of their s."""
        train = self.train
        mean, scale = train.x.mean(0), train.x.std(0).clamp(min=1e-6)
        tilt, own = (
            extent * (((x - mean) / scale).clamp(-FURTHEST, FURTHEST) @ self.slope)
            for x in (train.x, people.x)
        )
        groups = (train.s < 0, train.s > 0)
        log_mean = torch.stack([tilt[of].logsumexp(0) - math.log(int(of.sum())) for of in groups])
        group = (people.s > 0).long()
        return (1.0 + extent * self.gain)[group] * torch.exp(own - log_mean[group])

    def largest_weight(self, extent: float) -> float:
        """The greatest w of a training row."""
        return float(self.weight(self.train, extent).max())

    def relabelled(self, people: People, uniform: Tensor, time_step: int) -> People:
        """The people with changed labels; `uniform` on [0, 1) of the shape of their labels."""
        moved = self.probability(people.label.double(), people.s, time_step) - people.label
        return flipped(people, uniform < moved.abs())

    def arriving(self, draw: Draw, time_step: int) -> People:
        """Applicants of the population at a time step."""
        people = draw()
        extent = self.extent(time_step)
        size = self.setting.applicants
        if extent == 0:
            return people
        if self.moves_people:
            most = self.largest_weight(extent)
            enough = math.ceil(most * (size + 6.0 * math.sqrt(size) + 10.0) / size)
            people = joined([people, *(draw() for _ in range(enough - 1))])
            weight = self.weight(people, extent).clamp(max=most) / most
            uniform = self.streams.uniform(len(people))
            rejected = torch.where(uniform < weight, 0.0, uniform / weight)
            people = people.rows(rejected.argsort(dim=1, stable=True)[:, :size])
        return self.relabelled(people, self.streams.uniform(size), time_step)

    def evaluated(self, people: People, time_step: int) -> People:
        """Evaluation people of the population at a time step."""
        extent = self.extent(time_step)
        n = len(people)
        if extent == 0:
            return people
        uniform = SeedStreams([0], "drift of evaluation people").uniform(n + 1)[0]
        moved = self.relabelled(people, uniform[1:], time_step)
        if not self.moves_people:
            return moved
        share = self.weight(people, extent).double().cumsum(-1)
        points = (torch.arange(n) + uniform[0].double()) / n * share[..., -1:]
        return moved.rows(torch.searchsorted(share, points, right=True).clamp(max=n - 1))

    def probability(self, p: Tensor, s: Tensor, time_step: int) -> Tensor:
        """P(ỹ = 1 | x, s) after the drift of labels up to a time step, of the shape of p."""
        change = (self.extent(time_step) * self.change).to(p.dtype)[(s > 0).long()]
        return torch.where(change > 0, p + (1.0 - p) * change, p * (1.0 + change))

    def notes(self, *, drawn: bool) -> list[str]:
        """A note if the run ends before the drift begins."""
        start = self.config.start
        last = self.setting.time_steps
        note = f"nothing drifts before time step {start} (world.drift.start), and the run ends at {last}"
        return [note] * (start >= last)


def joined(blocks: list[People]) -> People:
    """The people of all blocks, fields of shape (E, N, ...), one after the other."""
    known = [name for name, values in vars(blocks[0]).items() if values is not None]
    return People(**{name: torch.cat([getattr(block, name) for block in blocks], 1) for name in known})
