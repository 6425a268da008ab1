"""Measures of a policy over time, on people whom it does not learn from, and the decisions that it takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from fairall.data.people import People
from fairall.data.prepared import Amounts, costs
from fairall.errors import FairAllError
from fairall.metrics import STANDARD, Measure, dpu_standard_error, utility_standard_error
from fairall.models.learner import Learner
from fairall.runtime.randomness import SeedStreams
from fairall.storage.checkpoint import State, Stateful

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


@dataclass(frozen=True)
class Recorded:
    """What the table of a policy is made of."""

    measures: dict[str, Tensor]  # of the policy by name, at time steps 0..T, shapes (T + 1, E)
    applicants: dict[str, Tensor]  # by name in `metrics.APPLICANTS_DATA`, at 1..T, shapes (T, E, ...)


class Records:
    """Tensors by name, of the same names, types and shapes at each time step.

    Examples:
        >>> records = Records()
        >>> for step in range(2):
        ...     records.append({"accepted": torch.tensor([step > 0]), "utility": torch.tensor(0.5 * step)})
        >>> {name: values.tolist() for name, values in records.read().items()}
        {'accepted': [[False], [True]], 'utility': [0.0, 0.5]}
    """

    def __init__(self) -> None:
        self._blocks: dict[str, list[Tensor]] = {}  # in the order of the steps, shapes (steps, ...)
        self._kinds: dict[str, object] = {}  # of the last step

    def append(self, values: Mapping[str, Tensor]) -> None:
        """Add copies of the values of a time step.

        Raises:
            FairAllError: where names, types or shapes differ from those of the step before.
        """
        kinds: dict[str, object] = {name: (value.dtype, value.shape) for name, value in values.items()}
        if kinds != (self._kinds or kinds):
            raise FairAllError(f"a time step has {kinds}, and the one before it {self._kinds}")
        self._kinds = kinds
        for name, value in values.items():
            self._blocks.setdefault(name, []).append(value.detach().clone().unsqueeze(0))

    def read(self) -> dict[str, Tensor]:
        """The values of all time steps by name, shapes (T, ...); empty before the first one."""
        for blocks in self._blocks.values():
            if len(blocks) > 1:
                blocks[:] = [torch.cat(blocks)]
        return {name: whole for name, (whole,) in self._blocks.items()}

    def __getitem__(self, name: str) -> Tensor:
        """The values of a name at all time steps, shape (T, ...)."""
        return self.read()[name]

    state_dict = read

    def load_state_dict(self, state: State) -> None:
        """Restore what `read` returned."""
        self._blocks = {name: [whole] for name, whole in state.items()}


class History(Stateful):
    """Measures of the policy at t = 0..T, and applicants with the decisions on them at t = 1..T.

    Attributes:
        measured: the measures of the policy, a record per time step from 0.
        steps: applicants, decisions and what the world observes, a record per time step from 1: the data
            `s`, `label`, `ground_truth` of the applicants, whether they were `accepted` and are `counted` as
            such (with `protocol.effective` of `decided_again` by the updated policy),
            `counterfactually_accepted`, the `propensity` of decisions taken, if it is kept, `World.observed`,
            and of each seed the largest 1/π of those accepted, `largest_weight`, and the `rejections` in a
            row.
    """

    def __init__(self) -> None:
        self.measured = Records()
        self.steps = Records()

    def recorded(self) -> Recorded:
        """Measures and applicants with the decisions counted."""
        values = self.steps.read()
        values["accepted"] = values.pop("counted")
        values.pop("propensity", None)
        return Recorded(self.measured.read(), values)
