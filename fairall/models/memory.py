"""Memory of decided people, for learners that train on more than one time step."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor
from typing_extensions import override

from fairall.data.people import Decided, take
from fairall.runtime.randomness import SeedStreams
from fairall.storage.checkpoint import State, Stateful

MEMORIES = ("step", "all")  # whether an update trains on the applicants of a time step or on all so far
NO_LIMIT = 1 << 60  # more people than there are


class Memory(Stateful):
    """Decided people of E seeds, of each seed the most recent `limit`.

    An attribute of a learner, it is part of checkpoints.

    >>> memory = Memory("accepted")
    >>> accepted = torch.tensor([[True, False, True], [False, True, False]])
    >>> x, s = torch.arange(6.0).view(2, 3, 1), torch.ones(2, 3)
    >>> memory.add(Decided(x, s, 0.5 * s, accepted, s))
    >>> memory.counts.tolist()
    [2, 1]
    >>> memory.rows().x.squeeze(-1)[memory.rows().accepted].tolist()
    [0.0, 2.0, 4.0]

    Args:
        keep: whom to remember, `accepted` people or `all`; nobody with `step`, with which `replay` gives
            the applicants of the time step.
        limit: the most people of a seed; the oldest are forgotten first.
        of: type of the decided people, `Decided` or a subclass with further tensors (E, B, ...).

    Attributes:
        added: people added so far, shape (E,); (1,) before the first.
        columns: by field, shape (E, M or more, ...), M the largest of `counts`, at least 1. Person number n
            of a seed is in row n mod `limit`.
    """

    kept = "added", "columns"

    def __init__(self, keep: str, limit: int = NO_LIMIT, of: type[Decided] = Decided) -> None:
        self.keep = keep
        self.limit = limit
        self.of = of
        self.added = torch.zeros(1, dtype=torch.long)
        self.columns: dict[str, Tensor] = {}

    @property
    def counts(self) -> Tensor:
        """People remembered, shape (E,)."""
        return self.added.clamp(max=self.limit)

    def add(self, decided: Decided) -> None:
        """Remember people, fields (E, B, ...)."""
        if self.keep == "step":
            return
        if "weight" in self.columns and decided.weight is None:
            decided = replace(decided, weight=torch.ones_like(decided.label))
        kept = decided.accepted | (self.keep == "all")
        number = self.added.unsqueeze(-1) + kept.cumsum(-1) - 1
        self.added = self.added + kept.sum(-1)
        seed, row = (kept & (number >= (self.added - self.limit).unsqueeze(-1))).nonzero(as_tuple=True)
        place = number[seed, row] % self.limit
        size = max(1, len(self))
        for name, values in vars(decided).items():
            column = self.columns.get(name, values[:, :0])
            if column.shape[1] < size:
                # Twice as long, so that a step does not copy everybody before.
                length = max(size, min(2 * column.shape[1], self.limit))
                grown = values.new_zeros(len(values), length, *values.shape[2:])
                grown[:, : column.shape[1]] = column
                self.columns[name] = column = grown
            column[seed, place] = values[seed, row]

    def rows(self) -> Decided:
        """Everybody remembered, fields (E, M, ...), M the largest of `counts`.

        Seeds with fewer than M people are padded with rejected people of propensity 0, x = 0 and s = 0.
        """
        return self.of(**{name: column[:, : len(self)] for name, column in self.columns.items()})

    def sample(self, n: int, streams: SeedStreams) -> Decided:
        """People drawn with replacement, fields (E, n, ...); rows as in `rows` for a seed without any."""
        return self.minibatches(1, n, streams)[0]

    def minibatches(self, n_batches: int, size: int, streams: SeedStreams) -> list[Decided]:
        """Several results of `sample`, fields (E, size, ...), whose random numbers are drawn together."""
        # In float32, too, a number below 1 times a whole one is below that.
        rows = (streams.uniform(n_batches * size) * self.counts.unsqueeze(-1)).long()
        return [
            self.of(**{name: take(column, some) for name, column in self.columns.items()})
            for some in rows.split(size, dim=1)
        ]

    def replay(self, decided: Decided, n: int, streams: SeedStreams) -> Decided:
        """Remember people (E, B, ...), and draw n times as many as in `sample`; with `step` these people."""
        self.add(decided)
        return decided if self.keep == "step" else self.sample(n * decided.s.shape[1], streams)

    def __len__(self) -> int:
        """Largest number of people of a seed."""
        return int(self.counts.max())

    @override
    def state_dict(self) -> State:
        """Everybody remembered, as a copy, since `add` writes into the columns."""
        size = max(1, len(self))
        return {
            "added": self.added,
            "columns": {name: of[:, :size].clone() for name, of in self.columns.items()},
        }
