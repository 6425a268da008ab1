"""Phase II: decisions on applicants, updates of the learner, measures of the policy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from torch import Tensor

from fairall.config.schema import DecisionLuck, ExplorationConfig, ExplorationRule
from fairall.data.people import Decisions, People
from fairall.models.learner import Learner, ProgressCallback
from fairall.online.evaluation import Evaluator
from fairall.online.exploration import Exploration
from fairall.online.history import History
from fairall.randomness import SeedStreams
from fairall.worlds.world import World

NO_EXPLORATION = ExplorationConfig(ExplorationRule.none, propensity=0.0)


class OnlineLearning:
    """The decision process of one run; it can be stopped and resumed after any step.

    Args:
        learner: warmed up.
        evaluation: of the policy after each step.
        decide_again: whether effective measures count new decisions of the updated policy on a step's
            applicants, as in the authors' code, instead of the decisions taken.
        keep_propensity: whether `history` records the propensities of the decisions taken.
    """

    def __init__(
        self,
        learner: Learner,
        world: World,
        evaluation: Evaluator,
        seeds: Sequence[int],
        *,
        exploration: ExplorationConfig = NO_EXPLORATION,
        decide_again: bool = False,
        luck: DecisionLuck = DecisionLuck.fresh,
        keep_propensity: bool = False,
    ) -> None:
        self.learner = learner
        self.world = world
        self.evaluation = evaluation
        n_groups = world.setting.data.schema.n_groups
        self.exploration = Exploration(exploration, list(seeds), n_groups)
        self.decide_again = decide_again
        self.decisions = SeedStreams(seeds, "decisions")
        self.uniform: Tensor | None = None  # of every time step's decisions, shape (E, N)
        if luck is DecisionLuck.fixed:
            self.uniform = SeedStreams(seeds, "decision luck").uniform(world.setting.applicants)
        self.history = History(len(seeds), keep_propensity=keep_propensity)

    def run(self, time_steps: int, advance: ProgressCallback, after_step: Callable[[], None]) -> History:
        """Decide and learn up to time step T; both functions are called after every step.

        `advance` gets the current utility and DPU, `after_step` may for instance save a checkpoint.
        """
        history, world, people = self.history, self.world, self.evaluation.people
        if history.steps_done < 0:
            history.begin(self.evaluation.of(world.evaluated(people)).measure(self.learner))
        while history.steps_done < time_steps:
            applicants = world.next()
            taken = self._decide(applicants)
            for decided in world.reveal(applicants, taken):
                self.learner.update(decided)
                self.exploration.observe(decided)
            counted = self._decide(applicants) if self.decide_again else taken
            observed = world.observed()
            measures = self.evaluation.of(world.evaluated(people)).measure(self.learner)
            history.record(applicants, taken, counted, observed, measures)
            advance(utility=measures["utility"].mean().item(), dpu=measures["dpu"].nanmean().item())
            after_step()
        return history

    def _decide(self, applicants: People) -> Decisions:
        """Decisions on applicants, and on their counterfactuals by the same random numbers."""
        x, s, same_numbers = applicants.x, applicants.s, self.decisions.copy()
        measured = self.learner.propensity(x, s, self.decisions)
        uniform = self.decisions.uniform(*s.shape[1:]) if self.uniform is None else self.uniform
        propensity = self._explored(x, s, measured, uniform)
        wanted = Decisions(propensity, uniform < propensity, margin=self._margin(x, s, same_numbers))
        if applicants.counterfactual_x is not None:
            x, s = applicants.counterfactual_x, -s
            margin = self._margin(x, s, same_numbers)
            counterfactual = self._explored(x, s, self.learner.propensity(x, s, same_numbers), uniform)
            wanted = replace(
                wanted,
                counterfactual_propensity=counterfactual,
                counterfactually_accepted=uniform < counterfactual,
                counterfactual_margin=margin,
            )
        return self.world.admit(applicants, wanted)

    def _margin(self, x: Tensor, s: Tensor, streams: SeedStreams) -> Tensor | None:
        """Margins (E, N) by the numbers that `streams` draw next, where places are given by them."""
        capacity = self.world.capacity
        if capacity is None or not capacity.by_rank:
            return None
        return self.learner.margin(x, s, streams.copy())

    def _explored(self, x: Tensor, s: Tensor, propensity: Tensor, uniform: Tensor) -> Tensor:
        """Propensities (E, N) of the decisions, given those of the policy."""
        propensity = self.learner.explore(x, s, propensity, uniform)
        return self.exploration.explored(self.learner, x, s, propensity, self.history)

    def state_dict(self) -> dict[str, Any]:
        """All that the remaining steps depend on, as plain containers of tensors."""
        return {
            "learner": self.learner.training_state(),
            "world": self.world.state_dict(),
            "decisions": self.decisions.state_dict(),
            "exploration": self.exploration.state_dict(),
            "history": self.history.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what `state_dict` returned; raises as `History.load_state_dict`."""
        self.history.load_state_dict(state["history"])
        self.learner.load_training_state(state["learner"])
        self.world.load_state_dict(state["world"])
        self.decisions.load_state_dict(state["decisions"])
        self.exploration.load_state_dict(state["exploration"])
