"""People who come back, changed by what an acceptance did to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from omegaconf import MISSING
from torch import Tensor

from fairall.config.checks import at_least
from fairall.data.applicants import InPasses
from fairall.data.dynamics import Dynamics
from fairall.data.people import People, take
from fairall.errors import FairAllError
from fairall.randomness import SeedStreams
from fairall.worlds.measures import mean_score_advantaged, mean_score_disadvantaged, score_gap
from fairall.worlds.part import Draw, Part, PartConfig, WorldSetting


@dataclass
class FeedbackConfig(PartConfig):
    """How many people apply again and again; None for no feedback."""

    people: int | None = MISSING

    @property
    def active(self) -> bool:
        """Whether there is feedback."""
        return self.people is not None

    def validate(self) -> None:
        """Raise FairAllError for less than one person."""
        if self.people is not None:
            at_least("world.feedback.people", self.people, 1)


class Feedback(Part):
    """The same people apply again and again, and an acceptance changes their scores.

    The score of an accepted person rises after repayment and falls after default.
    The data set says by how much (`Dynamics`). Evaluation people stay as they are: a policy is
    measured on the people of the beginning, its effect on the applicants in effective measures and in the
    mean scores of the groups (Liu et al. 2018).

    References:
        Liu, L. T., Dean, S., Rolf, E., Simchowitz, M. and Hardt, M. (2018). Delayed impact of fair machine
        learning. ICML.
    """

    config_type = FeedbackConfig
    measures = (mean_score_advantaged, mean_score_disadvantaged, score_gap)
    config: FeedbackConfig

    def __init__(self, config: FeedbackConfig, setting: WorldSetting) -> None:
        super().__init__(config, setting)
        dynamics, people = setting.data.dynamics, config.people
        if dynamics is None:
            raise FairAllError(
                "world.feedback: the data set does not know how people change; dataset=fico and "
                "dataset=synthetic do, or remove world.feedback.people"
            )
        assert people is not None
        self.applicants = ReturningApplicants(
            dynamics, people, setting.applicants, setting.seeds, one_order=setting.fixed_luck
        )

    def arriving(self, draw: Draw, time_step: int) -> People:
        """The next of the people who return, instead of those of the static world."""
        return self.applicants.next()

    def decided(self, people: People, accepted: Tensor, time_step: int) -> None:
        """Change those who are accepted, by what their label says."""
        self.applicants.change(people, accepted)

    def observed(self) -> dict[str, Tensor]:
        """`group_score`: mean scores of all M people with S = −1 and of those with S = +1, shape (E, 2)."""
        return {"group_score": self.applicants.group_score()}


class ReturningApplicants(InPasses):
    """People drawn once per seed, who come in random order, anew after each pass, as they are by then.

    Args:
        dynamics: of the data set.
        people: M, per seed.
        size: applicants per time step.
        seeds: the E seeds.
        one_order: see `InPasses`.
    """

    def __init__(
        self, dynamics: Dynamics, people: int, size: int, seeds: Sequence[int], *, one_order: bool = False
    ) -> None:
        super().__init__(people, size, seeds, "returning applicants", one_order=one_order)
        self.dynamics = dynamics
        self.labels = SeedStreams(seeds, "labels of returning applicants")
        self.state = dynamics.draw(SeedStreams(seeds, "people who return"), people)  # (E, M, ...)

    def next(self) -> People:
        """The next applicants, fields of shape (E, size, ...)."""
        rows = self.rows()
        return self.dynamics.people(take(self.state, rows), self.labels, rows)

    def change(self, people: People, accepted: Tensor) -> None:
        """Change the accepted ones of the last applicants; who came twice changes by the last visit."""
        assert people.person is not None
        changed = self.dynamics.changed(take(self.state, people.person), people.label > 0)
        seeds = torch.arange(len(accepted)).unsqueeze(1).expand_as(accepted)[accepted]
        # numpy, where the last of equal indices wins; torch leaves that open.
        self.state.numpy()[seeds.numpy(), people.person[accepted].numpy()] = changed[accepted].numpy()

    def group_score(self) -> Tensor:
        """Mean scores of all people with S = −1 and of those with S = +1, shape (E, 2)."""
        score, s = self.dynamics.score(self.state)
        means = [torch.where(own, score, 0.0).sum(1) / own.sum(1) for own in (s < 0, s > 0)]
        return torch.stack(means, dim=1)

    def state_dict(self) -> dict[str, Any]:
        """Position in the stream, and the people as they are."""
        return super().state_dict() | {"labels": self.labels.state_dict(), "people": self.state}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what `state_dict` returned."""
        super().load_state_dict(state)
        self.labels.load_state_dict(state["labels"])
        self.state = state["people"]
