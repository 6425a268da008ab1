"""What a time step consists of, for applicants of a simulation as for people who apply."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from torch import Tensor

from fairall.config.schema import ExplorationConfig, ExplorationRule
from fairall.data.people import Decided, Decisions, People
from fairall.models.learner import Learner
from fairall.online.exploration import Exploration
from fairall.online.history import Taken
from fairall.runtime.randomness import SeedStreams
from fairall.storage.checkpoint import State

NO_EXPLORATION = ExplorationConfig(ExplorationRule.none, propensity=0.0)


class Process:
    """Decides on applicants by a learner and its exploration, and lets both learn from decisions.

    Who applies, for whom there is a place, and when labels come is up to the caller.

    Args:
        learner: warmed up.
        seeds: the E seeds.
        exploration: rule of exploration.
        taken: the time steps so far, which the caller counts.
        by_rank: whether decisions need margins, since places are given by them.
        uniform: random numbers of the decisions of every time step, shape (E, N); by default each has its
            own.
    """

    def __init__(
        self,
        learner: Learner,
        seeds: Sequence[int],
        *,
        exploration: ExplorationConfig = NO_EXPLORATION,
        taken: Taken,
        n_groups: int,
        by_rank: bool = False,
        uniform: Tensor | None = None,
    ) -> None:
        self.learner = learner
        self.exploration = Exploration(exploration, list(seeds), n_groups)
        self.taken = taken
        self.by_rank = by_rank
        self.decisions = SeedStreams(seeds, "decisions")
        self.uniform = uniform

    def decide(self, applicants: People) -> Decisions:
        """Decisions on applicants (E, N), and on their counterfactuals by the same random numbers."""
        x = applicants.x
        s = applicants.s
        other_x = applicants.counterfactual_x
        same_numbers = self.decisions.copy()
        measured = self.learner.propensity(x, s, self.decisions)
        uniform = self.decisions.uniform(*s.shape[1:]) if self.uniform is None else self.uniform

        def sided(x: Tensor, s: Tensor, measured: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
            margin = self.learner.margin(x, s, same_numbers.copy()) if self.by_rank else None
            raised = self.learner.explore(x, s, measured, uniform)
            propensity = self.exploration.explored(self.learner, x, s, raised, self.taken)
            return propensity, uniform < propensity, margin

        propensity, accepted, margin = sided(x, s, measured)
        if other_x is None:
            return Decisions(propensity, accepted, margin=margin, uniform=uniform)
        other = sided(other_x, -s, self.learner.propensity(other_x, -s, same_numbers.copy()))
        return Decisions(propensity, accepted, *other[:2], margin, other[2], uniform)

    def learn(self, due: Iterable[Decided]) -> None:
        """Update the learner once for each group of people whose labels have become known, (E, B)."""
        for decided in due:
            self.learner.update(decided)
            self.exploration.observe(decided)

    def state_dict(self) -> State:
        """All that later time steps depend on but `taken`, as plain containers of tensors."""
        return {
            "learner": self.learner.training_state(),
            "decisions": self.decisions.state_dict(),
            "exploration": self.exploration.state_dict(),
        }

    def load_state_dict(self, state: State) -> None:
        """Restore what `state_dict` returned."""
        self.learner.load_training_state(state["learner"])
        self.decisions.load_state_dict(state["decisions"])
        self.exploration.load_state_dict(state["exploration"])
