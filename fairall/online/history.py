"""Decisions taken in Phase II and the measures of the policy over time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from fairall.data.people import Decisions, People

STATE = (
    "measures", "s", "label", "accepted", "ground_truth", "counted", "counterfactually_counted",
    "propensity", "observed", "largest_weight",
)  # fmt: skip


class History:
    """Measures of the policy at t = 0..T, and applicants with the decisions on them at t = 1..T.

    Args:
        n_seeds: E.
        keep_propensity: whether to record `propensity`.

    Attributes:
        measures: per time step from 0, each measure's values, shape (E,).
        s: sensitive attribute of the applicants per step from 1, shape (E, N).
        label: their proxy labels, revealed or not, shape (E, N).
        accepted: the decisions taken, shape (E, N), bool.
        ground_truth: their ground-truth labels, shape (E, N); no step where those are unknown.
        counted: the decisions that effective measures count, shape (E, N), bool; `accepted`, or, where
            `protocol.effective` is `decided_again`, those of the updated policy.
        counterfactually_counted: the same on the counterfactuals by the same random numbers, shape (E, N),
            bool; no step where counterfactuals are unknown.
        propensity: π(d=1 | x, s) of the decisions taken, shape (E, N); no step unless it is kept.
        observed: further values per step from 1 by name (`World.observed`), shapes (E, ...).
        largest_weight: largest 1/π of the applicants accepted so far, shape (E,).
    """

    def __init__(self, n_seeds: int, *, keep_propensity: bool = False) -> None:
        self.keep_propensity = keep_propensity
        self.measures: list[dict[str, Tensor]] = []
        self.s: list[Tensor] = []
        self.label: list[Tensor] = []
        self.accepted: list[Tensor] = []
        self.ground_truth: list[Tensor] = []
        self.counted: list[Tensor] = []
        self.counterfactually_counted: list[Tensor] = []
        self.propensity: list[Tensor] = []
        self.observed: dict[str, list[Tensor]] = {}
        self.largest_weight = torch.ones(n_seeds)

    @property
    def steps_done(self) -> int:
        """Time steps completed; −1 before the policy after warm-up has been measured."""
        return len(self.measures) - 1

    def record_decisions(
        self, applicants: People, taken: Decisions, counted: Decisions, observed: Mapping[str, Tensor]
    ) -> None:
        """Add one step's applicants, the decisions taken on them, those to be counted, and further values."""
        for name, values in observed.items():
            self.observed.setdefault(name, []).append(values)
        self.s.append(applicants.s)
        self.label.append(applicants.label)
        self.accepted.append(taken.accepted)
        self.counted.append(counted.accepted)
        if applicants.ground_truth is not None:
            self.ground_truth.append(applicants.ground_truth)
        if counted.counterfactually_accepted is not None:
            self.counterfactually_counted.append(counted.counterfactually_accepted)
        if self.keep_propensity:
            self.propensity.append(taken.propensity)
        weight = torch.where(taken.accepted, 1.0 / taken.propensity, 1.0).amax(-1)
        self.largest_weight = torch.maximum(self.largest_weight, weight)

    def rejected_all(self, steps: int) -> Tensor:
        """Seeds that have accepted nobody in the last `steps` steps, if there were so many; (E,), bool."""
        recent = self.accepted[-steps:]
        if len(recent) < steps:
            return torch.zeros(len(self.largest_weight), dtype=torch.bool)
        return ~torch.stack(recent).any(0).any(-1)

    def longest_rejection(self) -> Tensor:
        """The most steps in a row in which a seed accepted nobody, shape (E,)."""
        longest = current = torch.zeros(len(self.largest_weight), dtype=torch.long)
        for accepted in self.accepted:
            current = torch.where(accepted.any(-1), 0, current + 1)
            longest = torch.maximum(longest, current)
        return longest

    def with_decisions(
        self, accepted: list[Tensor], counterfactually: list[Tensor], measures: list[dict[str, Tensor]]
    ) -> History:
        """History of the same applicants with the decisions of another policy.

        Args:
            accepted: its decisions per step from 1, shape (E, N), bool.
            counterfactually: those on the counterfactuals, likewise; none where they are unknown.
            measures: of that policy, per time step from 0.
        """
        other = History(len(self.largest_weight))
        other.measures = measures
        other.s, other.label, other.ground_truth = self.s, self.label, self.ground_truth
        # Scores of groups are what the decisions of this history have made of them.
        other.observed = {name: of for name, of in self.observed.items() if name != "group_score"}
        other.accepted = other.counted = accepted
        other.counterfactually_counted = counterfactually
        return other

    def state_dict(self) -> dict[str, Any]:
        """All that is recorded, as plain containers of tensors."""
        return {name: getattr(self, name) for name in STATE}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what `state_dict` returned."""
        for name in STATE:
            setattr(self, name, state[name])
