"""What a time step consists of, for applicants of a simulation as for people who apply."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

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
        x, s, same_numbers = applicants.x, applicants.s, self.decisions.copy()
        measured = self.learner.propensity(x, s, self.decisions)
        uniform = self.decisions.uniform(*s.shape[1:]) if self.uniform is None else self.uniform
        propensity = self._explored(x, s, measured, uniform)
        wanted = Decisions(
            propensity, uniform < propensity, margin=self._margin(x, s, same_numbers), uniform=uniform
        )
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
        return wanted

    def learn(self, due: Iterable[Decided]) -> None:
        """Update the learner once for each group of people whose labels have become known, (E, B)."""
        for decided in due:
            self.learner.update(decided)
            self.exploration.observe(decided)

    def _margin(self, x: Tensor, s: Tensor, streams: SeedStreams) -> Tensor | None:
        """Margins (E, N) by the numbers that `streams` draw next, where places are given by them."""
        return self.learner.margin(x, s, streams.copy()) if self.by_rank else None

    def _explored(self, x: Tensor, s: Tensor, propensity: Tensor, uniform: Tensor) -> Tensor:
        """Propensities (E, N) of the decisions, given those of the policy."""
        propensity = self.learner.explore(x, s, propensity, uniform)
        return self.exploration.explored(self.learner, x, s, propensity, self.taken)

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
