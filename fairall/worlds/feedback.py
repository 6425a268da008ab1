"""People who apply again, changed by earlier acceptances."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from fairall.config.checks import at_least
from fairall.data.applicants import RecycledApplicants
from fairall.data.people import People, take
from fairall.errors import FairAllError
from fairall.runtime.randomness import SeedStreams
from fairall.worlds.measures import mean_score_advantaged, mean_score_disadvantaged, score_gap
from fairall.worlds.part import Draw, Part, PartConfig, WorldSetting


@dataclass
class FeedbackConfig(PartConfig):
    """How many people apply again and again; None for no feedback."""

    causes = ("people",)
    people: int | None = at_least(1)


class Feedback(Part):
    """The same people apply again and again, and an acceptance changes their scores.

    They come in random order, reshuffled after each pass. The score of an accepted person rises after
    repayment and falls after default, as the data set says (`Dynamics`). Evaluation people stay as they are:
    a policy is measured on the people of the beginning, its effect on the applicants in effective measures
    and in the mean scores of the groups (Liu et al. 2018).

    References:
        Liu, L. T., Dean, S., Rolf, E., Simchowitz, M. and Hardt, M. (2018). Delayed impact of fair machine
        learning. ICML.
    """

    config_type = FeedbackConfig
    measures = (mean_score_advantaged, mean_score_disadvantaged, score_gap)
    kept = ("people",)
    config: FeedbackConfig

    def __init__(self, config: FeedbackConfig, setting: WorldSetting) -> None:
        super().__init__(config, setting)
        if setting.data.dynamics is None:
            raise FairAllError(
                "world.feedback: the data set does not know how people change; dataset=fico and "
                "dataset=synthetic do, or remove world.feedback.people"
            )
        self.dynamics = setting.data.dynamics
        seeds = setting.seeds
        n = config.people
        assert n is not None
        nothing = torch.zeros(n)
        numbered = People(nothing.unsqueeze(1), nothing, nothing, person=torch.arange(n))
        self.order = RecycledApplicants(
            numbered, setting.applicants, seeds, "returning applicants", one_order=setting.fixed_luck
        )
        self.labels = SeedStreams(seeds, "labels of returning applicants")
        self.people = self.dynamics.draw(SeedStreams(seeds, "people who return"), n)  # (E, M, ...)

    def arriving(self, draw: Draw, time_step: int) -> People:
        """The next of the M people in their current state, instead of those of the static world."""
        number = self.order.next().person
        assert number is not None
        return replace(self.dynamics.people(take(self.people, number), self.labels), person=number)

    def decided(self, people: People, accepted: Tensor, time_step: int) -> None:
        """Change the accepted people by their labels; after several visits the last one counts."""
        assert people.person is not None
        changed = self.dynamics.changed(take(self.people, people.person), people.label > 0)
        seeds = accepted.nonzero()[:, 0]
        # numpy, where the last of equal indices wins; torch leaves that open.
        self.people.numpy()[seeds.numpy(), people.person[accepted].numpy()] = changed[accepted].numpy()

    def observed(self) -> dict[str, Tensor]:
        """`group_score`: mean scores of all M people with S = −1 and of those with S = +1, shape (E, 2)."""
        score, s = self.dynamics.score(self.people)
        means = [torch.where(group, score, 0.0).sum(1) / group.sum(1) for group in (s < 0, s > 0)]
        return {"group_score": torch.stack(means, dim=1)}
