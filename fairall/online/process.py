"""What a time step consists of, for applicants of a simulation as for people who apply.

References:
    Yang, Liu, Naghizadeh: Adaptive data debiasing through bounded exploration, NeurIPS 2022.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from itertools import product

import torch
from torch import Tensor

from fairall.config.schema import ExplorationConfig, ExplorationRule
from fairall.data.people import Decided, Decisions, People, group_index
from fairall.models.learner import Learner
from fairall.models.memory import Memory
from fairall.runtime.randomness import SeedStreams
from fairall.storage.checkpoint import State, Stateful

REMEMBERED = 1000  # applicants from whom the lower bounds of `bounded` are estimated
NO_EXPLORATION = ExplorationConfig(ExplorationRule.none, propensity=0.0)


class Taken(Stateful):
    """Time steps that were decided on, and how long each seed has accepted nobody.

    Args:
        n_seeds: E.

    Attributes:
        steps: number of time steps.
        rejections: of the last steps, how many in a row without an acceptance, shape (E,).
    """

    kept = ("steps", "rejections")

    def __init__(self, n_seeds: int) -> None:
        self.steps = 0
        self.rejections = torch.zeros(n_seeds, dtype=torch.long)

    def add(self, accepted: Tensor) -> None:
        """Count a time step with the decisions `accepted`, shape (E, N), bool."""
        self.steps += 1
        self.rejections = (self.rejections + 1) * ~accepted.any(-1)


class Process(Stateful):
    """Decides on applicants by a learner and a rule of exploration, and learns from decisions.

    Who applies, for whom there is a place, and when labels come is up to the caller.

    Args:
        learner: warmed up.
        exploration: the rule; there is none of a policy that learns nothing.
        by_rank: whether decisions need margins, since places are given by them.
        uniform: random numbers of the decisions of every time step, shape (E, N); by default each has its
            own.

    Attributes:
        taken: the time steps so far, which the caller counts.
        memory: the last people that were learnt from, for the rule `bounded`.
    """

    def __init__(
        self,
        learner: Learner,
        exploration: ExplorationConfig,
        *,
        by_rank: bool = False,
        uniform: Tensor | None = None,
    ) -> None:
        self.learner = learner
        self.exploration = exploration if learner.learns else NO_EXPLORATION
        self.by_rank = by_rank
        self.uniform = uniform
        self.seeds = learner.setting.seeds
        self.decisions = SeedStreams(self.seeds, "decisions")
        self.taken = Taken(len(self.seeds))
        self.memory = Memory("all", REMEMBERED)

    def decide(self, applicants: People) -> Decisions:
        """Decisions on applicants (E, N), and on their counterfactuals by the same random numbers."""
        learner = self.learner
        same_numbers = self.decisions.copy()
        measured = learner.propensity(applicants.x, applicants.s, self.decisions)
        uniform = self.decisions.uniform(len(applicants)) if self.uniform is None else self.uniform

        def sided(x: Tensor, s: Tensor, measured: Tensor) -> Decisions:
            propensity = self.explored(x, s, learner.explore(x, s, measured, uniform))
            margin = learner.margin(x, s, same_numbers.copy()) if self.by_rank else None
            return Decisions(propensity, uniform < propensity, margin, uniform)

        decisions = sided(applicants.x, applicants.s, measured)
        if applicants.counterfactual_x is None:
            return decisions
        x, s = applicants.counterfactual_x, -applicants.s
        measured = learner.propensity(x, s, same_numbers.copy())
        return replace(decisions, counterfactual=sided(x, s, measured))

    @torch.no_grad()
    def explored(self, x: Tensor, s: Tensor, propensity: Tensor) -> Tensor:
        """Acceptance probabilities of applicants, shape (E, N), nowhere below those of the policy.

        Args:
            x: features, shape (E, N, D).
            s: sensitive attribute, shape (E, N).
            propensity: of the policy, shape (E, N).
        """
        rate = self.exploration.propensity
        if self.exploration.decay:
            rate /= math.sqrt(self.taken.steps + 1)
        mixed = propensity + (1.0 - propensity) * rate
        match self.exploration.rule:
            case ExplorationRule.epsilon:
                return mixed
            case ExplorationRule.stuck:
                stuck = self.taken.rejections[:, None] >= (self.exploration.after or 0)
                return propensity.clamp(min=rate).where(stuck, propensity)
            case ExplorationRule.bounded:
                score, threshold, group = self._compared(x, s)
                between = (self._lower_bounds().gather(1, group) <= score) & (score < threshold)
                return mixed.where(between, propensity)
        return propensity

    def _compared(self, x: Tensor, s: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Score, least one accepted, and number of the group of people, shapes (E, N).

        All are of one group where decisions may not depend on s.
        """
        compared = self.learner.compared(x, s, SeedStreams(self.seeds, "scores of exploration"))
        return *compared, group_index(s, self.learner.setting.schema.n_groups) * self.learner.reads_s

    def _lower_bounds(self) -> Tensor:
        """The lower bound of each group by `group_index`, shape (E, G); 0 before anybody is remembered.

        A rejected applicant counts as one with ỹ = 0 to the extent that the score says so: nobody has a
        label below the bounds of the time steps before, and from labels alone bounds would rise without end.
        """
        bounds = torch.zeros(len(self.seeds), self.learner.setting.schema.n_groups)
        if len(self.memory):
            known = self.memory.rows()
            score, threshold, group = self._compared(known.x, known.s)
            negative = 1.0 - torch.where(known.accepted, known.label, score)
            for e, number in product(*map(range, bounds.shape)):
                own = (group[e] == number) & (negative[e] > 0)
                if own.any():
                    bounds[e, number] = lower_bound(score[e][own], negative[e][own], threshold[e][own])
        return bounds

    def learn(self, due: Iterable[Decided]) -> None:
        """Update the learner once for each group of people whose labels have become known, (E, B)."""
        for decided in due:
            self.learner.update(decided)
            if self.exploration.rule is ExplorationRule.bounded:
                self.memory.add(decided)

    def state_dict(self) -> State:
        """All that later time steps depend on, as plain containers of tensors."""
        return super().state_dict() | {"learner": self.learner.training_state()}

    def load_state_dict(self, state: State) -> None:
        """Restore what `state_dict` returned."""
        own = dict(state)
        self.learner.load_training_state(own.pop("learner"))
        super().load_state_dict(own)


def lower_bound(score: Tensor, weight: Tensor, threshold: Tensor | float) -> Tensor:
    """The score LB with F₀(LB) = 2·F₀(median of F₀) − F₀(threshold) (Yang et al. 2022, section 3).

    F₀ is the distribution of the scores of people with ỹ = 0. As many of them are between LB and their
    median as between the median and the threshold, so exploration does not move the estimate of the median.

    Args:
        score: of the M people with a weight, at least one, shape (M,).
        weight: of each person in F₀, above 0, shape (M,).
        threshold: least score accepted, one, or that of each person, shape (M,).

    Returns:
        Shape (); the threshold or more, so that nobody is between, where less than half of F₀ is below it.

    Examples:
        >>> lower_bound(torch.tensor([0.1, 0.2, 0.3, 0.4, 0.9]), torch.ones(5), threshold=0.5)
        tensor(0.1000)
    """
    weight = weight.double()
    below = weight[score < threshold].sum() / weight.sum()
    ordered, order = score.sort()
    share = weight[order].cumsum(0) / weight.sum()
    return ordered[torch.searchsorted(share, 1.0 - below - 1e-9)]  # rounding moves it by nobody
