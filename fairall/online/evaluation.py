"""Measures of a policy on people whom it does not learn from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy

import torch
from torch import Tensor

from fairall.data.amounts import Amounts, costs
from fairall.data.people import People
from fairall.metrics import STANDARD, Measure, dpu_standard_error, utility_standard_error
from fairall.models.learner import Learner
from fairall.runtime.randomness import SeedStreams

UTILITY_ERROR = "utility_standard_error"
DPU_ERROR = "dpu_standard_error"


class Evaluator:
    """Measures of a policy on a fixed group of people.

    All evaluations of a run share their random numbers, and so do a person and their counterfactual: two time
    steps differ by the policy, not by noise.

    Args:
        people: whom to measure on, N people with both groups among them.
        cost: c in (0, 1).
        seeds: the E seeds.
        measures: of a policy and of applicants; the former are computed here.
        amounts: of people, in place of `cost`; None for one cost.
    """

    def __init__(
        self,
        people: People,
        cost: float,
        seeds: Sequence[int],
        measures: Sequence[Measure] = STANDARD,
        amounts: Amounts | None = None,
    ) -> None:
        self.people = people
        self.cost = cost
        self.seeds = list(seeds)
        self.measures = tuple(measures)
        self.amounts = amounts
        self.stacked = self._stacked(people)
        self.decision_noise = SeedStreams(seeds, "evaluation decisions").uniform(len(people))

    def of(self, people: People) -> Evaluator:
        """The same on as many other people, with the same random numbers; itself if they are the same."""
        if people is self.people:
            return self
        other = copy(self)
        other.people = people
        other.stacked = self._stacked(people)
        return other

    def measure(self, learner: Learner) -> dict[str, Tensor]:
        """Measures of the current policy by name, shapes (E,).

        Every measure that the people's data allow, the same from drawn decisions (`_sampled`), and
        `UTILITY_ERROR` and `DPU_ERROR`, the standard errors of utility and DPU as estimates for the
        population of the people.
        """
        return self.measure_by(lambda x, s: learner.propensity(x, s, SeedStreams(self.seeds, "evaluation")))

    def measure_by(self, policy: Callable[[Tensor, Tensor], Tensor]) -> dict[str, Tensor]:
        """The same of π as a function of x (E, N, D) and s (E, N), shape (E, N)."""
        stacked = self.stacked
        others = {
            "counterfactual": stacked.counterfactual_x,
            "counterfactual_y_held": stacked.counterfactual_x_y_held,
        }
        needed = {name for measure in self.measures for name in measure.needs}
        of_policy = {"propensity": policy(stacked.x, stacked.s)} | {
            name: policy(x, -stacked.s) for name, x in others.items() if x is not None and name in needed
        }
        people = self.people
        propensity = of_policy["propensity"]
        measured = {}
        data = {"label": people.label, "weight": people.label_weight, "s": people.s}
        data |= costs(people, self.cost, self.amounts)
        if people.ground_truth is not None:
            data["ground_truth"] = people.ground_truth
        for suffix in ("", "_sampled"):
            data |= {
                name: (self.decision_noise < pi).to(pi.dtype) if suffix else pi
                for name, pi in of_policy.items()
            }
            for measure in self.measures:
                values = measure(data) if measure.of == "policy" else None
                if values is not None:
                    measured[measure.name + suffix] = values
        parts = [(people, propensity)]
        if people.by_replicate:
            parts = [(people.replicate(e), pi.unsqueeze(0)) for e, pi in enumerate(propensity)]
        measured[UTILITY_ERROR] = torch.cat(
            [
                utility_standard_error(
                    pi,
                    part.label,
                    weight=part.label_weight,
                    stratum=part.stratum,
                    **costs(part, self.cost, self.amounts),
                )
                for part, pi in parts
            ]
        )
        measured[DPU_ERROR] = torch.cat([dpu_standard_error(pi, part.s, part.stratum) for part, pi in parts])
        return measured

    def _stacked(self, people: People) -> People:
        """The people once per seed, fields of shape (E, N, ...)."""
        return people.rows(torch.arange(len(people)).expand(len(self.seeds), -1))
