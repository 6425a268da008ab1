"""Phase II: applicants come, the policy decides, labels of the accepted are revealed, the learner learns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torch import Tensor

from fairall.data.applicants import ApplicantStream
from fairall.data.people import Decided, People
from fairall.evaluation import Evaluation
from fairall.models.learner import Advance, Learner
from fairall.randomness import SeedStreams


class History:
    """What happened: measures of the policy at t = 0..T, and applicants with decisions at t = 1..T.

    Attributes:
        measures: per time step from 0, each measure's values, shape (E,).
        s: sensitive attribute of the applicants per step from 1, shape (E, N).
        label: their proxy labels, revealed or not, shape (E, N).
        accepted: the decisions taken, shape (E, N), bool.
        ground_truth: their ground-truth labels, shape (E, N); no step where those are unknown.
        counterfactually_accepted: the decisions had their sensitive attribute been the other and luck the
            same, shape (E, N), bool; no step where counterfactuals are unknown.
    """

    def __init__(self) -> None:
        self.measures: list[dict[str, Tensor]] = []
        self.s: list[Tensor] = []
        self.label: list[Tensor] = []
        self.accepted: list[Tensor] = []
        self.ground_truth: list[Tensor] = []
        self.counterfactually_accepted: list[Tensor] = []

    @property
    def steps_done(self) -> int:
        """Time steps completed; −1 before the policy after warm-up has been measured."""
        return len(self.measures) - 1

    def record_decisions(
        self, applicants: People, accepted: Tensor, counterfactually_accepted: Tensor | None
    ) -> None:
        """Keeps one step's applicants and the decisions (E, N) taken on them."""
        self.s.append(applicants.s)
        self.label.append(applicants.label)
        self.accepted.append(accepted)
        if applicants.ground_truth is not None:
            self.ground_truth.append(applicants.ground_truth)
        if counterfactually_accepted is not None:
            self.counterfactually_accepted.append(counterfactually_accepted)

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
            propensity, accepted, counterfactually_accepted = self._decide(applicants)
            self.learner.update(Decided.reveal(applicants, propensity, accepted))
            history.record_decisions(applicants, accepted, counterfactually_accepted)
            measures = self.evaluation.measure(self.learner)
            history.measures.append(measures)
            advance(utility=measures["utility"].mean().item(), dpu=measures["dpu"].nanmean().item())
            after_step()
        return history

    def _decide(self, applicants: People) -> tuple[Tensor, Tensor, Tensor | None]:
        """Propensities, decisions, and the decisions on counterfactuals by the same random numbers."""
        same_luck = self.decisions.copy()
        propensity = self.learner.propensity(applicants.x, applicants.s, self.decisions)
        luck = self.decisions.uniform(*propensity.shape[1:])
        if applicants.counterfactual_x is None:
            return propensity, luck < propensity, None
        counterfactual = self.learner.propensity(applicants.counterfactual_x, -applicants.s, same_luck)
        return propensity, luck < propensity, luck < counterfactual

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
