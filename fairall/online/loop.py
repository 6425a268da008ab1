"""Phase II: decisions on applicants, updates of the learner, measures of the policy."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from torch import Tensor

from fairall.config.schema import DecisionLuck, ExplorationConfig
from fairall.data.amounts import costs
from fairall.data.people import Decisions, People
from fairall.display.progress import ProgressCallback
from fairall.models.learner import Learner
from fairall.online.evaluation import Evaluator
from fairall.online.history import History
from fairall.online.process import NO_EXPLORATION, Process
from fairall.runtime.randomness import SeedStreams
from fairall.storage.checkpoint import Stateful
from fairall.worlds.world import World


class OnlineLearning(Stateful):
    """The process of one run, on the applicants of a world; it can be stopped and resumed after any step.

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
        self.world = world
        self.evaluation = evaluation
        self.decide_again = decide_again
        fixed = luck is DecisionLuck.fixed
        self.history = History(len(seeds), keep_propensity=keep_propensity)
        self.process = Process(
            learner,
            seeds,
            exploration=exploration,
            taken=self.history.taken,
            n_groups=world.setting.data.schema.n_groups,
            by_rank=world.capacity is not None and world.capacity.by_rank,
            uniform=SeedStreams(seeds, "decision luck").uniform(world.setting.applicants) if fixed else None,
        )

    def run(self, time_steps: int, advance: ProgressCallback, after_step: Callable[[], None]) -> History:
        """Decide and learn up to time step T; both functions are called after every step.

        `advance` gets the current utility and DPU, `after_step` may for instance save a checkpoint.
        """
        history = self.history
        world = self.world
        people = self.evaluation.people
        learner = self.process.learner

        def measured() -> dict[str, Tensor]:
            return self.evaluation.of(world.evaluated(people, world.time_step)).measure(learner)

        if history.steps_done < 0:
            history.begin(measured())
        while history.steps_done < time_steps:
            applicants = world.next()
            taken = self._decide(applicants)
            self.process.learn(world.reveal(applicants, taken))
            counted = self._decide(applicants) if self.decide_again else taken
            observed = world.observed()
            amounts = self.evaluation.amounts
            if amounts is not None:
                observed |= costs(applicants, self.evaluation.cost, amounts)
            measures = measured()
            history.record(applicants, taken, counted, observed, measures)
            advance(utility=measures["utility"].mean().item(), dpu=measures["dpu"].nanmean().item())
            after_step()
        return history

    def _decide(self, applicants: People) -> Decisions:
        """The decisions on applicants for which the world has places."""
        return self.world.admit(applicants, self.process.decide(applicants))
