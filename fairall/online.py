"""Phase II: applicants come, the policy decides, labels of the accepted are revealed, the learner learns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from fairall.config import ExplorationConfig
from fairall.data.applicants import ApplicantStream
from fairall.data.people import Decided, People
from fairall.evaluation import Evaluation
from fairall.models.learner import Advance, Learner
from fairall.randomness import SeedStreams

NO_EXPLORATION = ExplorationConfig(after=None, propensity=0.0)


@dataclass(frozen=True)
class Decisions:
    """What a policy says to the applicants of one time step.

    Attributes:
        propensity: π(d=1 | x, s) each was decided with, shape (E, N).
        accepted: the decisions, shape (E, N), bool.
        counterfactually_accepted: the same had their sensitive attribute been the other and luck the same,
            shape (E, N), bool, or None where counterfactuals are unknown.
    """

    propensity: Tensor
    accepted: Tensor
    counterfactually_accepted: Tensor | None


class History:
    """What happened: measures of the policy at t = 0..T, and applicants with decisions at t = 1..T.

    Attributes:
        measures: per time step from 0, each measure's values, shape (E,).
        s: sensitive attribute of the applicants per step from 1, shape (E, N).
        label: their proxy labels, revealed or not, shape (E, N).
        accepted: the decisions taken, shape (E, N), bool.
        ground_truth: their ground-truth labels, shape (E, N); no step where those are unknown.
        counted: the decisions that effective measures count, shape (E, N), bool; `accepted`, or, where
            `protocol.effective` is `decided_again`, those of the updated policy.
        counterfactually_counted: the same had the sensitive attribute been the other and luck the same,
            shape (E, N), bool; no step where counterfactuals are unknown.
        largest_weight: largest 1/π of the applicants accepted so far, shape (E,).
    """

    def __init__(self, n_seeds: int) -> None:
        self.measures: list[dict[str, Tensor]] = []
        self.s: list[Tensor] = []
        self.label: list[Tensor] = []
        self.accepted: list[Tensor] = []
        self.ground_truth: list[Tensor] = []
        self.counted: list[Tensor] = []
        self.counterfactually_counted: list[Tensor] = []
        self.largest_weight = torch.ones(n_seeds)

    @property
    def steps_done(self) -> int:
        """Time steps completed; −1 before the policy after warm-up has been measured."""
        return len(self.measures) - 1

    def record_decisions(self, applicants: People, taken: Decisions, counted: Decisions) -> None:
        """Keeps one step's applicants, the decisions taken on them, and those to be counted."""
        self.s.append(applicants.s)
        self.label.append(applicants.label)
        self.accepted.append(taken.accepted)
        self.counted.append(counted.accepted)
        if applicants.ground_truth is not None:
            self.ground_truth.append(applicants.ground_truth)
        if counted.counterfactually_accepted is not None:
            self.counterfactually_counted.append(counted.counterfactually_accepted)
        weight = torch.where(taken.accepted, 1.0 / taken.propensity, 1.0).amax(-1)
        self.largest_weight = torch.maximum(self.largest_weight, weight)

    def rejected_all(self, steps: int) -> Tensor:
        """Which seeds have accepted nobody in the last `steps` steps, if there were so many: (E,), bool."""
        recent = self.accepted[-steps:]
        if len(recent) < steps:
            return torch.zeros(len(self.largest_weight), dtype=torch.bool)
        return ~torch.stack(recent).any(0).any(-1)

    def longest_rejection(self) -> Tensor:
        """The most steps in a row in which a seed accepted nobody, shape (E,)."""
        longest = current = torch.zeros(len(self.largest_weight), dtype=torch.long)
        for accepted in self.accepted:
            current = torch.where(accepted.any(-1), 0, current + 1)
            longest = torch.maximum(longest, current)
        return longest

    def with_constant_decisions(self, accepts: bool, measures: dict[str, Tensor]) -> History:
        """The same applicants with everybody accepted, or nobody.

        Args:
            accepts: which of the two.
            measures: of that policy, as at every time step.
        """
        constant = History(len(self.largest_weight))
        constant.measures = [measures] * len(self.measures)
        constant.s, constant.label, constant.ground_truth = self.s, self.label, self.ground_truth
        constant.accepted = [torch.full_like(s, accepts, dtype=torch.bool) for s in self.s]
        constant.counted = constant.accepted
        constant.counterfactually_counted = constant.accepted if self.counterfactually_counted else []
        return constant

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
        exploration: what happens where a policy accepts nobody any more.
        decide_again: whether effective measures count the decisions that the updated policy takes on a step's
            applicants, as in the authors' code, and not those that were taken.
    """

    def __init__(
        self,
        learner: Learner,
        stream: ApplicantStream,
        evaluation: Evaluation,
        seeds: Sequence[int],
        *,
        exploration: ExplorationConfig = NO_EXPLORATION,
        decide_again: bool = False,
    ) -> None:
        self.learner = learner
        self.stream = stream
        self.evaluation = evaluation
        self.exploration = exploration
        self.decide_again = decide_again
        self.decisions = SeedStreams(seeds, "decisions")
        self.history = History(len(seeds))

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
            taken = self._decide(applicants)
            self.learner.update(Decided.reveal(applicants, taken.propensity, taken.accepted))
            history.record_decisions(
                applicants, taken, self._decide(applicants) if self.decide_again else taken
            )
            measures = self.evaluation.measure(self.learner)
            history.measures.append(measures)
            advance(utility=measures["utility"].mean().item(), dpu=measures["dpu"].nanmean().item())
            after_step()
        return history

    def _decide(self, applicants: People) -> Decisions:
        """Decisions on applicants, and on their counterfactuals by the same random numbers."""
        same_luck = self.decisions.copy()
        propensity = self._explored(self.learner.propensity(applicants.x, applicants.s, self.decisions))
        luck = self.decisions.uniform(*propensity.shape[1:])
        if applicants.counterfactual_x is None:
            return Decisions(propensity, luck < propensity, None)
        counterfactual = self._explored(
            self.learner.propensity(applicants.counterfactual_x, -applicants.s, same_luck)
        )
        return Decisions(propensity, luck < propensity, luck < counterfactual)

    def _explored(self, propensity: Tensor) -> Tensor:
        """`propensity` (E, N), raised for seeds that have accepted nobody for long."""
        if self.exploration.after is None:
            return propensity
        stuck = self.history.rejected_all(self.exploration.after).unsqueeze(-1)
        return torch.where(stuck, propensity.clamp(min=self.exploration.propensity), propensity)

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
