"""Phase II: applicants come, the policy decides, labels of the accepted are revealed, the learner learns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from fairall.data.people import Decided, People
from fairall.evaluation import Evaluation
from fairall.models.learner import Advance, Learner
from fairall.randomness import SeedStreams


class ApplicantStream:
    """Endless applicants from a finite population: shuffled, used up, shuffled anew, seed by seed.

    Args:
        people: the population, N people.
        size: applicants per time step.
        seeds: the E seeds.
    """

    def __init__(self, people: People, size: int, seeds: Sequence[int]) -> None:
        self.people = people
        self.size = size
        self.streams = SeedStreams(seeds, "applicants")
        self.waiting = torch.empty(len(seeds), 0, dtype=torch.long)

    def next(self) -> People:
        """The next applicants, fields of shape (E, size, ...)."""
        while self.waiting.shape[1] < self.size:
            self.waiting = torch.cat([self.waiting, self.streams.permutations(len(self.people))], dim=1)
        rows, self.waiting = self.waiting[:, : self.size], self.waiting[:, self.size :]
        return self.people.rows(rows)

    def state_dict(self) -> dict[str, Any]:
        """Position in the stream."""
        return {"streams": self.streams.state_dict(), "waiting": self.waiting}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Goes on where `state_dict` was taken."""
        self.streams.load_state_dict(state["streams"])
        self.waiting = state["waiting"]


class History:
    """What happened: measures of the policy at t = 0..T, and applicants with decisions at t = 1..T.

    Attributes:
        measures: per time step from 0, each measure's values, shape (E,).
        s: sensitive attribute of the applicants per step from 1, shape (E, N).
        label: their proxy labels, revealed or not, shape (E, N).
        accepted: the decisions taken, shape (E, N), bool.
    """

    def __init__(self) -> None:
        self.measures: list[dict[str, Tensor]] = []
        self.s: list[Tensor] = []
        self.label: list[Tensor] = []
        self.accepted: list[Tensor] = []

    @property
    def steps_done(self) -> int:
        """Time steps completed; −1 before the policy after warm-up has been measured."""
        return len(self.measures) - 1

    def record_decisions(self, applicants: People, accepted: Tensor) -> None:
        """Keeps one step's applicants and the decisions (E, N) taken on them."""
        self.s.append(applicants.s)
        self.label.append(applicants.label)
        self.accepted.append(accepted)

    def state_dict(self) -> dict[str, Any]:
        """All of it."""
        return dict(vars(self))

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Goes on where `state_dict` was taken."""
        vars(self).update(state)


class OnlineLearning:
    """The decision process of one run, which can be stopped after any step and gone on with.

    Args:
        learner: warmed up.
        stream: where applicants come from.
        evaluation: measures the policy.
        seeds: the E seeds.
    """

    def __init__(
        self, learner: Learner, stream: ApplicantStream, evaluation: Evaluation, seeds: Sequence[int]
    ) -> None:
        self.learner = learner
        self.stream = stream
        self.evaluation = evaluation
        self.decisions = SeedStreams(seeds, "decisions")
        self.history = History()

    def run(self, time_steps: int, advance: Advance, after_step: Callable[[], None]) -> History:
        """Decides and learns up to time step T.

        Args:
            time_steps: T.
            advance: told of every step, with the current utility and DPU.
            after_step: called after every step, for instance to save a checkpoint.
        """
        history = self.history
        if history.steps_done < 0:
            history.measures.append(self.evaluation.measure(self.learner))
        while history.steps_done < time_steps:
            applicants = self.stream.next()
            propensity = self.learner.propensity(applicants.x, applicants.s, self.decisions)
            accepted = self.decisions.uniform(*propensity.shape[1:]) < propensity
            self.learner.update(Decided.reveal(applicants, propensity, accepted))
            history.record_decisions(applicants, accepted)
            measures = self.evaluation.measure(self.learner)
            history.measures.append(measures)
            advance(utility=measures["utility"].mean().item(), dpu=measures["dpu"].nanmean().item())
            after_step()
        return history

    def state_dict(self) -> dict[str, Any]:
        """Everything the remaining steps depend on, as plain containers of tensors."""
        return {
            "learner": self.learner.training_state(),
            "stream": self.stream.state_dict(),
            "decisions": self.decisions.state_dict(),
            "history": self.history.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Goes on where `state_dict` was taken."""
        self.learner.load_training_state(state["learner"])
        self.stream.load_state_dict(state["stream"])
        self.decisions.load_state_dict(state["decisions"])
        self.history.load_state_dict(state["history"])
