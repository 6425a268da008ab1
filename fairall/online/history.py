"""Decisions taken in Phase II and the measures of the policy over time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from fairall.errors import FairAllError
from fairall.storage.checkpoint import State, Stateful


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
