"""People as tensors: a population with its labels, streams of applicants, and decisions on them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from fairall.config.checks import not_negative
from fairall.runtime.randomness import SeedStreams
from fairall.storage.checkpoint import Stateful


@dataclass(frozen=True)
class People:
    """N people with all their attributes; callers hide from learners what these may not see.

    Where replicates have people of their own, as applicants or with `splits`, every field has a leading axis
    of E replicates.

    Attributes:
        x: features, shape (N, D); real ones standardised, counts as they are, categories as their codes.
        s: sensitive attribute in {−1, +1}, +1 the advantaged group, shape (N,); of more than two groups the
            number of the group, from 0.
        label: proxy label ỹ in {0, 1}, shape (N,).
        ground_truth: y in {0, 1}, shape (N,), if known (synthetic data).
        counterfactual_x: x had s been −s, shape (N, D), if known (synthetic data).
        label_weight: weight of each label in means over the population, shape (N,), 0 for an unknown label;
            None if all labels are known (`Table.label_weight`).
        stratum: number, from 0, of the stratum that each person was sampled from, shape (N,); None if people
            were not stratified.
        person: number of each person in a population that comes back, shape (N,); None elsewhere.
        counterfactual_x_y_held: x had s been −s and y as it is, shape (N, D); None where that is
            `counterfactual_x`, since y does not depend on s, or is not known.
    """

    x: Tensor
    s: Tensor
    label: Tensor
    ground_truth: Tensor | None = None
    counterfactual_x: Tensor | None = None
    label_weight: Tensor | None = None
    stratum: Tensor | None = None
    person: Tensor | None = None
    counterfactual_x_y_held: Tensor | None = None

    def __len__(self) -> int:
        return self.s.shape[-1]

    @property
    def by_replicate(self) -> bool:
        """Whether replicates have people of their own."""
        return self.s.dim() > 1

    @property
    def labelled(self) -> Tensor:
        """Whose label is known, shape (N,), bool."""
        if self.label_weight is None:
            return torch.ones_like(self.label, dtype=torch.bool)
        return self.label_weight > 0

    def rows(self, index: Tensor) -> People:
        """The people at `index` of any shape (...); x becomes (..., D).

        Where replicates have people of their own, `index` has shape (n,), or (E, n) with a row for each.
        """
        if not self.by_replicate:
            return self._each(lambda values: values[index])
        return self._each(lambda values: take(values, index.expand(len(values), -1)))

    def replicate(self, e: int) -> People:
        """The people of a replicate, fields of shape (N, ...)."""
        return self._each(lambda values: values[e]) if self.by_replicate else self

    def merged(self) -> People:
        """The people of all replicates, fields of shape (E·N, ...)."""
        return self._each(lambda values: values.flatten(0, 1)) if self.by_replicate else self

    def _each(self, change: Callable[[Tensor], Tensor]) -> People:
        """People whose fields, where they are known, are changed."""
        known = {name: values for name, values in vars(self).items() if values is not None}
        return People(**{name: change(values) for name, values in known.items()})


Draw = Callable[[SeedStreams, int], People]
"""Draws n new people per seed: (streams, n) to fields of shape (E, n, ...)."""


class RecycledApplicants(Stateful):
    """`size` applicants per time step of a finite population in random order, reshuffled after each pass.

    With `one_order` every pass has the order of the first, and a person the same position in their time step:
    the last step of a pass is filled up with the first people of the order.
    """

    kept = ("waiting",)

    def __init__(
        self, people: People, size: int, seeds: Sequence[int], purpose: str, *, one_order: bool = False
    ) -> None:
        self.size, self.streams = size, SeedStreams(seeds, purpose)
        self.people, self.one_order = people, one_order
        self.waiting = torch.empty(len(seeds), 0, dtype=torch.long)
        if one_order:
            n = len(people)
            self.waiting = self.streams.permutations(n)[:, torch.arange(math.ceil(n / size) * size) % n]

    def next(self) -> People:
        """The next people in the shuffled order, fields of shape (E, size, ...)."""
        while self.waiting.shape[1] < self.size:
            self.waiting = torch.cat([self.waiting, self.streams.permutations(len(self.people))], dim=1)
        rows, rest = self.waiting[:, : self.size], self.waiting[:, self.size :]
        self.waiting = torch.cat([rest, rows], dim=1) if self.one_order else rest
        return self.people.rows(rows)


class DrawnApplicants(Stateful):
    """`size` new people per time step, drawn on demand."""

    def __init__(self, draw: Draw, size: int, seeds: Sequence[int], purpose: str) -> None:
        self.size, self.streams = size, SeedStreams(seeds, purpose)
        self.draw = draw

    def next(self) -> People:
        """New people, fields of shape (E, size, ...)."""
        return self.draw(self.streams, self.size)


@dataclass
class DynamicsConfig:
    """Changes of the score of an accepted person."""

    rise: float = not_negative()
    fall: float = not_negative()


@dataclass(frozen=True)
class Dynamics:
    """How accepted people change: their score rises after a good label and falls after a bad one.

    People of E seeds have a state, shape (E, n, number of variables), float64: the score, s, and whatever
    else determines them.

    Attributes:
        config: by how much the score changes.
        draw: states of n new people per seed, from (streams, n).
        people: people in these states as they apply, from (states, streams); shapes (E, n, ...). Random
            labels come from the streams.
        greatest: of a score from 0; None: it has no bounds.
    """

    config: DynamicsConfig
    draw: Callable[[SeedStreams, int], Tensor]
    people: Callable[[Tensor, SeedStreams], People]
    greatest: float | None = None

    def changed(self, state: Tensor, good: Tensor) -> Tensor:
        """States of accepted people after their label, `good` (E, n), bool, of the shape of `state`."""
        moved = state.clone()
        moved[..., 0] += torch.where(good, state.new_tensor(self.config.rise), -self.config.fall)
        if self.greatest is not None:
            moved[..., 0].clamp_(0.0, self.greatest)
        return moved

    def score(self, state: Tensor) -> tuple[Tensor, Tensor]:
        """Score, from 0 to 1 where it has bounds, and s of people, shapes (E, n)."""
        return state[..., 0] / (self.greatest or 1.0), state[..., 1]


@dataclass(frozen=True)
class Decisions:
    """Decisions of a policy on the applicants of one time step.

    Attributes:
        propensity: P(d = 1) of each decision, shape (E, N): π(d=1 | x, s), or less where places are few.
        accepted: the decisions, shape (E, N), bool.
        margin: `Learner.margin` of the people, shape (E, N); None where nothing is ordered by it.
        uniform: random numbers in [0, 1) of the decisions, shape (E, N); None where nobody needs them.
        counterfactual: on the counterfactuals by the same random numbers; None where these are unknown.
    """

    propensity: Tensor
    accepted: Tensor
    margin: Tensor | None = None
    uniform: Tensor | None = None
    counterfactual: Decisions | None = None


@dataclass(frozen=True)
class Decided:
    """Applicants after a decision, which reveals the labels of the accepted only.

    Attributes:
        x: features, shape (E, B, D).
        s: sensitive attribute, shape (E, B); see `People`.
        propensity: π(d=1 | x, s) of the deciding policy, shape (E, B).
        accepted: the decisions d, shape (E, B), bool.
        label: ỹ in {0, 1} where accepted, 0 elsewhere, shape (E, B).
        weight: factor of the loss of each label, beside 1/π, not negative, shape (E, B); None where all have
            the factor 1.
    """

    x: Tensor
    s: Tensor
    propensity: Tensor
    accepted: Tensor
    label: Tensor
    weight: Tensor | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        """Let `vars` have tensors alone, and `weight` be that of the class, None."""
        if self.weight is None:
            del vars(self)["weight"]

    @classmethod
    def reveal(
        cls, people: People | Decided, propensity: Tensor, accepted: Tensor, weight: Tensor | None = None
    ) -> Decided:
        """Applicants with the labels that the decisions `accepted` reveal; all shapes (E, B)."""
        revealed = torch.where(accepted, people.label, 0.0)
        return cls(people.x, people.s, propensity, accepted, revealed, weight=weight)

    def minibatches(self, n_batches: int, streams: SeedStreams) -> list[Decided]:
        """All rows, shuffled per replicate, in `n_batches` parts of nearly equal size."""
        order = streams.permutations(self.s.shape[1])
        return [self.rows(rows) for rows in order.tensor_split(n_batches, dim=1)]

    def rows(self, rows: Tensor) -> Decided:
        """The people at `rows` (E, n) of each replicate."""
        return Decided(**{name: take(of, rows) for name, of in vars(self).items()})

    def weighted(self, loss: Tensor) -> Tensor:
        """The loss of each label times its weight, shape (E, B)."""
        return loss if self.weight is None else loss * self.weight


def float32(values: np.ndarray) -> Tensor:
    """An array as a tensor of single precision, of the same shape."""
    return torch.tensor(values, dtype=torch.float32)


def group_index(s: Tensor, n_groups: int) -> Tensor:
    """Number of the group of each person, from 0 to G − 1, of the shape of s; long.

    Of two groups S = −1 is 0 and S = +1 is 1.

    Examples:
        >>> group_index(torch.tensor([1.0, -1.0]), 2), group_index(torch.tensor([0.0, 2.0]), 3)
        (tensor([1, 0]), tensor([0, 2]))
    """
    return (s > 0).long() if n_groups == 2 else s.long()


def take(values: Tensor, rows: Tensor) -> Tensor:
    """Select `rows` (E, n) of each replicate of `values` (E, B, ...); shape (E, n, ...)."""
    return values[torch.arange(len(rows)).unsqueeze(-1), rows]
