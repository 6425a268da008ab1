"""People who apply again, changed by earlier acceptances."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from fairall.config.checks import at_least
from fairall.data.people import People, RecycledApplicants, take
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
    purpose = "labels of returning applicants"
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
        number = torch.arange(config.people or 0)
        self.order = RecycledApplicants(
            People(number, number, number),
            setting.applicants,
            setting.seeds,
            "returning applicants",
            one_order=setting.fixed_luck,
        )
        drawn = SeedStreams(setting.seeds, "people who return")
        self.people = self.dynamics.draw(drawn, len(number))  # (E, M, ...)

    def arriving(self, draw: Draw, time_step: int) -> People:
        """The next of the M people in their current state, instead of those of the static world."""
        number = self.order.next().s
        return replace(self.dynamics.people(take(self.people, number), self.streams), person=number)

    def decided(self, people: People, accepted: Tensor, time_step: int) -> None:
        """Change the accepted people by their labels; after several visits the last one counts.

        `values` has `group_score`: mean scores of all M people with S = −1 and of those with S = +1, shape
        (E, 2).
        """
        assert people.person is not None
        changed = self.dynamics.changed(take(self.people, people.person), people.label > 0)
        seeds = accepted.nonzero()[:, 0]
        # numpy, where the last of equal indices wins; torch leaves that open.
        self.people.numpy()[seeds.numpy(), people.person[accepted].numpy()] = changed[accepted].numpy()
        score, s = self.dynamics.score(self.people)
        means = [torch.where(group, score, 0.0).sum(1) / group.sum(1) for group in (s < 0, s > 0)]
        self.values = {"group_score": torch.stack(means, dim=1)}
