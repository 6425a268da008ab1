"""People who come back, changed by what an acceptance did to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from fairall.config.world import FeedbackConfig
from fairall.data.applicants import ApplicantStream, InPasses
from fairall.data.dynamics import Dynamics
from fairall.data.people import People, take
from fairall.errors import FairAllError
from fairall.randomness import SeedStreams
from fairall.worlds.measures import MEAN_SCORES
from fairall.worlds.part import Part, WorldSetting


class Feedback(Part):
    """The same people apply again and again; an accepted one rises who repays, and falls who defaults.

    How they change is known to the data set (`Dynamics`). Evaluation people stay as they are: a policy is
    measured on the people of the beginning, its effect on the applicants in effective measures and in the
    mean scores of the groups (Liu et al. 2018).

    References:
        Liu, L. T., Dean, S., Rolf, E., Simchowitz, M. and Hardt, M. (2018). Delayed impact of fair machine
        learning. ICML.
    """

    measures = MEAN_SCORES
    config: FeedbackConfig

    def __init__(self, config: FeedbackConfig, setting: WorldSetting) -> None:
        super().__init__(config, setting)
        dynamics = setting.data.dynamics
        if dynamics is None:
            raise FairAllError(
                "world.feedback: the data set does not know how people change; dataset=fico and "
                "dataset=synthetic do, or remove world.feedback.people"
            )
        self.dynamics = dynamics

    def arriving(self, stream: ApplicantStream) -> ApplicantStream:
        """See `Part.arriving`."""
        people = self.config.people
        assert people is not None
        setting = self.setting
        return ReturningApplicants(
            self.dynamics, people, stream.size, setting.seeds, one_order=setting.fixed_luck
        )


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
        """See `ApplicantStream.next`."""
        rows = self.rows()
        return self.dynamics.people(take(self.state, rows), self.labels, rows)

    def observe(self, people: People, accepted: Tensor) -> None:
        """See `ApplicantStream.observe`; who came twice changes by the last visit."""
        assert people.person is not None
        changed = self.dynamics.changed(take(self.state, people.person), people.label > 0)
        seeds = torch.arange(len(accepted)).unsqueeze(1).expand_as(accepted)[accepted]
        # numpy, where the last of equal indices wins; torch leaves that open.
        self.state.numpy()[seeds.numpy(), people.person[accepted].numpy()] = changed[accepted].numpy()

    def observed(self) -> dict[str, Tensor]:
        """`group_score`: mean scores of all M people with S = −1 and of those with S = +1, shape (E, 2)."""
        score, s = self.dynamics.score(self.state)
        means = [torch.where(own, score, 0.0).sum(1) / own.sum(1) for own in (s < 0, s > 0)]
        return {"group_score": torch.stack(means, dim=1)}

    def state_dict(self) -> dict[str, Any]:
        """See `ApplicantStream.state_dict`."""
        return super().state_dict() | {"labels": self.labels.state_dict(), "people": self.state}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """See `ApplicantStream.load_state_dict`."""
        super().load_state_dict(state)
        self.labels.load_state_dict(state["labels"])
        self.state = state["people"]
