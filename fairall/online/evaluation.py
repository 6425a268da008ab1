"""Measures a policy on people it does not learn from."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from fairall import metrics
from fairall.data.people import People
from fairall.models.learner import Learner
from fairall.randomness import SeedStreams


class Evaluation:
    """Utility, acceptance and unfairness of a policy on a fixed group of people.

    Measures that need no label are those of everybody; utility weighs the known labels by
    `People.label_weight`. All evaluations of a run share their random numbers, those of a person and of their
    counterfactual too: two time steps differ by the policy, not by noise.

    Args:
        people: whom to measure on, N people with both groups among them.
        cost: c in (0, 1).
        seeds: the E seeds.
    """

    def __init__(self, people: People, cost: float, seeds: Sequence[int]) -> None:
        self.people = people
        self.cost = cost
        self.seeds = list(seeds)
        everyone = torch.arange(len(people)).expand(len(self.seeds), -1)
        self.stacked = people.rows(everyone)
        self.decision_noise = SeedStreams(seeds, "evaluation decisions").uniform(len(people))

    def measure(self, learner: Learner) -> dict[str, Tensor]:
        """Every measure the people's data allow, each of shape (E,); `_sampled` ones from drawn decisions."""
        stacked = self.stacked
        propensity = self._propensity(learner, stacked.x, stacked.s)
        if stacked.counterfactual_x is None:
            return self._measures(propensity, None)
        return self._measures(propensity, self._propensity(learner, stacked.counterfactual_x, -stacked.s))

    def measure_constant(self, propensity: float) -> dict[str, Tensor]:
        """The same of a policy that accepts everybody with one probability."""
        constant = torch.full_like(self.stacked.s, propensity)
        return self._measures(constant, None if self.people.counterfactual_x is None else constant)

    def utility_standard_error(self, learner: Learner) -> Tensor:
        """Standard error of the utility as an estimate for the population of the people, shape (E,)."""
        people = self.people
        propensity = self._propensity(learner, self.stacked.x, self.stacked.s)
        return metrics.utility_standard_error(propensity, people.label, self.cost, people.label_weight)

    def _measures(self, propensity: Tensor, counterfactual: Tensor | None) -> dict[str, Tensor]:
        people, measured = self.people, {}
        for suffix, as_decided in (("", _same), ("_sampled", self._sample)):
            accepts = as_decided(propensity)
            measured[f"utility{suffix}"] = metrics.utility(
                accepts, people.label, self.cost, people.label_weight
            )
            measured[f"acceptance{suffix}"] = accepts.mean(-1)
            measured[f"dpu{suffix}"] = metrics.dpu(accepts, people.s)
            if people.ground_truth is not None:
                measured[f"ground_truth_utility{suffix}"] = metrics.utility(
                    accepts, people.ground_truth, self.cost
                )
            if counterfactual is not None:
                measured[f"cfu{suffix}"] = metrics.cfu(accepts, as_decided(counterfactual))
        return measured

    def _propensity(self, learner: Learner, x: Tensor, s: Tensor) -> Tensor:
        return learner.propensity(x, s, SeedStreams(self.seeds, "evaluation"))

    def _sample(self, propensity: Tensor) -> Tensor:
        return (self.decision_noise < propensity).to(propensity.dtype)


def _same(propensity: Tensor) -> Tensor:
    return propensity
