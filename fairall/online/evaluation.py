"""Measures of a policy on people whom it does not learn from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from fairall.data.amounts import Amounts, costs
from fairall.data.people import People
from fairall.metrics import STANDARD, Measure, dpu_standard_error, utility_standard_error
from fairall.models.learner import Learner
from fairall.runtime.randomness import SeedStreams

UTILITY_ERROR = "utility_standard_error"
DPU_ERROR = "dpu_standard_error"


@dataclass(frozen=True, eq=False)
class Evaluator:
    """Measures of a policy on a fixed group of people.

    All evaluations of a run share their random numbers, and so do a person and their counterfactual: two time
    steps differ by the policy, not by noise.

    Attributes:
        people: whom to measure on, N people with both groups among them.
        cost: c in (0, 1).
        seeds: the E seeds.
        measures: of a policy and of applicants; the former are computed here.
        amounts: of people, in place of `cost`; None for one cost.
    """

    people: People
    cost: float
    seeds: Sequence[int]
    measures: Sequence[Measure] = STANDARD
    amounts: Amounts | None = None

    @cached_property
    def stacked(self) -> People:
        """The people once per seed, fields of shape (E, N, ...)."""
        return self.people.rows(torch.arange(len(self.people)).expand(len(self.seeds), -1))

    @cached_property
    def decision_noise(self) -> Tensor:
        """Random numbers of drawn decisions, shape (E, N)."""
        return SeedStreams(self.seeds, "evaluation decisions").uniform(len(self.people))

    def of(self, people: People) -> Evaluator:
        """The same on as many other people, with the same random numbers; itself if they are the same."""
        return self if people is self.people else replace(self, people=people)

    def measure(self, learner: Learner) -> dict[str, Tensor]:
        """Measures of the current policy by name, shapes (E,).

        Every measure that the people's data allow, the same from drawn decisions (`_sampled`), and
        `UTILITY_ERROR` and `DPU_ERROR`, the standard errors of utility and DPU as estimates for the
        population of the people.
        """
        return self.measure_by(lambda x, s: learner.propensity(x, s, SeedStreams(self.seeds, "evaluation")))

    def measure_by(self, policy: Callable[[Tensor, Tensor], Tensor]) -> dict[str, Tensor]:
        """The same of π as a function of x (E, N, D) and s (E, N), shape (E, N)."""
        people = self.people
        stacked = self.stacked
        inputs = {
            "propensity": (stacked.x, stacked.s),
            "counterfactual": (stacked.counterfactual_x, -stacked.s),
            "counterfactual_y_held": (stacked.counterfactual_x_y_held, -stacked.s),
        }
        needed = {"propensity", *(name for measure in self.measures for name in measure.needs)}
        of_policy = {
            name: policy(x, s) for name, (x, s) in inputs.items() if x is not None and name in needed
        }
        drawn = {name: (self.decision_noise < pi).to(pi.dtype) for name, pi in of_policy.items()}
        data = {"label": people.label, "weight": people.label_weight, "s": people.s}
        data |= costs(people, self.cost, self.amounts)
        if people.ground_truth is not None:
            data["ground_truth"] = people.ground_truth
        measured = {}
        for suffix, by in (("", of_policy), ("_sampled", drawn)):
            for measure in self.measures:
                values = measure(data | by) if measure.of == "policy" else None
                if values is not None:
                    measured[measure.name + suffix] = values
        errors = []
        for e, pi in enumerate(of_policy["propensity"].chunk(len(self.seeds) if people.by_replicate else 1)):
            own = people.replicate(e)
            worth = costs(own, self.cost, self.amounts)
            of_utility = utility_standard_error(
                pi, own.label, weight=own.label_weight, stratum=own.stratum, **worth
            )
            errors.append(torch.stack([of_utility, dpu_standard_error(pi, own.s, own.stratum)]))
        return measured | dict(zip((UTILITY_ERROR, DPU_ERROR), torch.cat(errors, 1), strict=True))
