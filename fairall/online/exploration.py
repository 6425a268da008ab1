"""Decisions on applicants whom the policy rejects, so that their labels become known.

References:
    Yang, Liu, Naghizadeh: Adaptive data debiasing through bounded exploration, NeurIPS 2022.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from fairall.config.schema import ExplorationConfig, ExplorationRule
from fairall.data.people import Decided, group_index
from fairall.models.learner import Learner
from fairall.models.memory import Memory
from fairall.online.history import Taken
from fairall.runtime.randomness import SeedStreams
from fairall.storage.checkpoint import Stateful

REMEMBERED = 1000  # applicants from whom the lower bounds of `bounded` are estimated


class Exploration(Stateful):
    """Raises the propensities of a policy by the rule of `exploration.rule`."""

    def __init__(self, config: ExplorationConfig, seeds: list[int], n_groups: int = 2) -> None:
        self.config = config
        self.n_groups = n_groups
        self.memory = Memory("all", REMEMBERED)
        self.streams = SeedStreams(seeds, "scores of exploration")

    def observe(self, decided: Decided) -> None:
        """Take note of applicants, and of the labels that have become known."""
        if self.config.rule is ExplorationRule.bounded:
            self.memory.add(decided)

    @torch.no_grad()
    def explored(self, learner: Learner, x: Tensor, s: Tensor, propensity: Tensor, taken: Taken) -> Tensor:
        """Acceptance probabilities of applicants, shape (E, N), nowhere below those of the policy.

        Args:
            learner: the policy.
            x: features, shape (E, N, D).
            s: sensitive attribute, shape (E, N).
            propensity: of the policy, shape (E, N).
            taken: the time steps before.
        """
        rule = self.config.rule
        rate = self.config.propensity
        if self.config.decay:
            rate /= math.sqrt(taken.steps + 1)
        raised = propensity + (1.0 - propensity) * rate
        if rule is ExplorationRule.stuck:
            assert self.config.after is not None
            raised = torch.where(
                taken.rejected_all(self.config.after)[:, None], propensity.clamp(min=rate), propensity
            )
        elif rule is ExplorationRule.bounded:
            score, threshold = learner.compared(x, s, self.streams.copy())
            bound = self._lower_bounds(learner).gather(1, group_index(s, self.n_groups))
            raised = torch.where((bound <= score) & (score < threshold), raised, propensity)
        return propensity if rule is ExplorationRule.none else raised

    def _lower_bounds(self, learner: Learner) -> Tensor:
        """The lower bound of each group by `group_index`, shape (E, G); 0 before anybody is observed.

        A rejected applicant counts as one with ỹ = 0 to the extent that the score says so: nobody has a
        label below the bounds of the time steps before, and from labels alone bounds would rise without end.
        """
        if len(self.memory) == 0:
            return torch.zeros(len(self.streams), self.n_groups)
        known = self.memory.rows()
        score, threshold = learner.compared(known.x, known.s, self.streams.copy())
        negative = 1.0 - torch.where(known.accepted, known.label, score)
        group = group_index(known.s, self.n_groups)
        by_group = (torch.where(group == number, negative, 0.0) for number in range(self.n_groups))
        return torch.cat([lower_bound(score, weight, threshold) for weight in by_group], dim=1)


def lower_bound(score: Tensor, weight: Tensor, threshold: Tensor | float) -> Tensor:
    """The score LB with F₀(LB) = 2·F₀(median of F₀) − F₀(threshold) (Yang et al. 2022, section 3).

    F₀ is the distribution of the scores of people with ỹ = 0. As many of them are between LB and their
    median as between the median and the threshold, so exploration does not move the estimate of the median.

    Args:
        score: of M people, shape (E, M).
        weight: of each person in F₀, shape (E, M); 0 for all others.
        threshold: least score accepted, the same of all people of positive weight of a replicate.

    Returns:
        Shape (E, 1): the threshold or more, so that nobody is between, where less than half of F₀ is below
        the threshold; 0 without anybody of positive weight.

    Examples:
        >>> score = torch.tensor([[0.1, 0.2, 0.3, 0.4, 0.9]])
        >>> lower_bound(score, torch.ones(1, 5), threshold=0.5)
        tensor([[0.1000]])
    """
    # Double precision, since rounding of the shares could move the bound by a person. Others come last.
    weight = weight.double()
    ordered, order = torch.where(weight > 0, score, torch.inf).sort(dim=-1)
    total = weight.sum(-1, keepdim=True)
    share = (weight.gather(-1, order).cumsum(-1) / total.clamp(min=1e-12)).contiguous()
    below = torch.where(score < threshold, weight, 0.0).sum(-1, keepdim=True) / total.clamp(min=1e-12)
    wanted = (1.0 - below - 1e-9).clamp(min=0.0)
    row = torch.searchsorted(share, wanted).clamp(max=score.shape[1] - 1)
    return torch.where(total > 0, ordered.gather(-1, row), 0.0)
