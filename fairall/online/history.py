"""Decisions taken in Phase II and the measures of the policy over time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from fairall.data.people import Decisions, People
from fairall.errors import FairAllError
from fairall.storage.checkpoint import State, Stateful


@dataclass(frozen=True)
class Recorded:
    """What the table of a policy is made of."""

    measures: dict[str, Tensor]  # of the policy by name, at time steps 0..T, shapes (T + 1, E)
    applicants: dict[str, Tensor]  # by name in `metrics.APPLICANTS_DATA`, at 1..T, shapes (T, E, ...)


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
        self.rejections = torch.where(accepted.any(-1), 0, self.rejections + 1)

    def rejected_all(self, steps: int) -> Tensor:
        """Seeds that have accepted nobody in the last `steps` steps, if there were so many; (E,), bool."""
        return self.rejections >= steps


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
        self._blocks: list[dict[str, Tensor]] = []  # in the order of the steps, shapes (steps, ...)
        self._steps = 0

    def __len__(self) -> int:
        """Number of time steps."""
        return self._steps

    def append(self, values: Mapping[str, Tensor]) -> None:
        """Add copies of the values of a time step.

        Raises:
            FairAllError: where names, types or shapes differ from those of the steps before.
        """
        added = {name: value.detach().clone().unsqueeze(0) for name, value in values.items()}
        kinds, *before = (
            {name: (value.dtype, value.shape[1:]) for name, value in block.items()}
            for block in (added, *self._blocks[-1:])
        )
        if before and kinds != before[0]:
            raise FairAllError(f"time step {self._steps + 1} has {kinds}, and those before it {before[0]}")
        self._blocks.append(added)
        self._steps += 1

    def read(self) -> dict[str, Tensor]:
        """The values of all time steps by name, shapes (T, ...); empty before the first one."""
        if len(self._blocks) > 1:
            names = self._blocks[0]
            self._blocks = [{name: torch.cat([block[name] for block in self._blocks]) for name in names}]
        return dict(*self._blocks)

    state_dict = read

    def load_state_dict(self, state: State) -> None:
        """Restore what `read` returned."""
        self._blocks = [state] if state else []
        self._steps = len(next(iter(state.values()), ()))


class History(Stateful):
    """Measures of the policy at t = 0..T, and applicants with the decisions on them at t = 1..T.

    Args:
        n_seeds: E.
        keep_propensity: whether to record `propensity`.

    Attributes:
        measured: the measures of the policy, a record per time step from 0.
        steps: applicants and decisions, a record per time step from 1.
        further: values that the world observes, likewise.
        taken: number of time steps, and rejections in a row.
        largest_weight: largest 1/π of the applicants accepted so far, shape (E,).
        longest_rejection: the most steps in a row in which a seed accepted nobody, shape (E,).
    """

    kept = ("largest_weight", "longest_rejection")

    def __init__(self, n_seeds: int, *, keep_propensity: bool = False) -> None:
        self.keep_propensity = keep_propensity
        self.measured = Records()
        self.steps = Records()
        self.further = Records()
        self.largest_weight = torch.ones(n_seeds)
        self.taken = Taken(n_seeds)
        self.longest_rejection = self.taken.rejections

    @property
    def steps_done(self) -> int:
        """Time steps completed; −1 before the policy after warm-up has been measured."""
        return len(self.measured) - 1

    @property
    def measures(self) -> dict[str, Tensor]:
        """Measures of the policy by name, at the time steps from 0, shapes (T + 1, E)."""
        return self.measured.read()

    @property
    def s(self) -> Tensor:
        """Sensitive attribute of the applicants, shape (T, E, N)."""
        return self.steps.read()["s"]

    @property
    def label(self) -> Tensor:
        """Proxy labels of the applicants, revealed or not, shape (T, E, N)."""
        return self.steps.read()["label"]

    @property
    def accepted(self) -> Tensor:
        """The decisions taken, shape (T, E, N), bool."""
        return self.steps.read()["accepted"]

    @property
    def counted(self) -> Tensor:
        """The decisions that effective measures count, shape (T, E, N), bool.

        `accepted`, or, where `protocol.effective` is `decided_again`, those of the updated policy.
        """
        return self.steps.read().get("counted", self.accepted)

    @property
    def propensity(self) -> Tensor:
        """π(d=1 | x, s) of the decisions taken, if they are kept, shape (T, E, N)."""
        return self.steps.read()["propensity"]

    @property
    def observed(self) -> dict[str, Tensor]:
        """Further values by name (`World.observed`), shapes (T, E, ...)."""
        return self.further.read()

    def begin(self, measures: Mapping[str, Tensor]) -> None:
        """Record the measures of the policy after warm-up, shapes (E,)."""
        self.measured.append(measures)

    def record(
        self,
        applicants: People,
        taken: Decisions,
        counted: Decisions,
        observed: Mapping[str, Tensor],
        measures: Mapping[str, Tensor],
    ) -> None:
        """Record a time step: applicants, fields (E, N, ...), the decisions taken, and those to be counted.

        `observed` are further values, shapes (E, ...), `measures` those of the policy after the step, (E,).
        """
        values = {
            "s": applicants.s,
            "label": applicants.label,
            "accepted": taken.accepted,
            "counted": None if counted is taken else counted.accepted,
            "ground_truth": applicants.ground_truth,
            "counterfactually_accepted": counted.counterfactually_accepted,
            "propensity": taken.propensity if self.keep_propensity else None,
        }
        self.steps.append({name: value for name, value in values.items() if value is not None})
        self.further.append(observed)
        self.measured.append(measures)
        self.taken.add(taken.accepted)
        self.longest_rejection = torch.maximum(self.longest_rejection, self.taken.rejections)
        weight = torch.where(taken.accepted, 1.0 / taken.propensity, 1.0).amax(-1)
        self.largest_weight = torch.maximum(self.largest_weight, weight)

    def recorded(self) -> Recorded:
        """Measures and applicants with the decisions counted."""
        values = self.steps.read() | {"accepted": self.counted}
        applicants = {name: value for name, value in values.items() if name not in ("counted", "propensity")}
        return Recorded(self.measures, applicants | self.observed)

    def of_another_policy(self, decisions: Mapping[str, Tensor], measures: Mapping[str, Tensor]) -> Recorded:
        """The same applicants with the `decisions` (T, E, N) of another policy and its measures (T + 1, E).

        The decisions are `accepted`, and `counterfactually_accepted` where that is known.
        """
        # Scores of groups are what the decisions of this history have made of them.
        of_this_policy = ("accepted", "counterfactually_accepted", "group_score")
        applicants = self.recorded().applicants
        others = {name: value for name, value in applicants.items() if name not in of_this_policy}
        return Recorded(dict(measures), others | dict(decisions))
