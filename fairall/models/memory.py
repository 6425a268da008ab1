"""Memory of decided people, for learners that train on more than one time step."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Literal

import torch
from torch import Tensor

from fairall.data.people import Decided, take
from fairall.runtime.randomness import SeedStreams
from fairall.storage.checkpoint import State

MEMORIES = ("step", "all")  # whether an update trains on the applicants of a time step or on all so far


class Memory:
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
        keep: whom to remember, `accepted` people or `all`.
        limit: the most people of a seed; the oldest are forgotten first. None for no limit.
        of: type of the decided people, `Decided` or a subclass with further tensors (E, B, ...).
    """

    def __init__(
        self, keep: Literal["accepted", "all"], limit: int | None = None, of: type[Decided] = Decided
    ) -> None:
        self.keep = keep
        self.limit = limit
        self.of = of
        self.added = torch.zeros(0, dtype=torch.long)  # people added so far, shape (E,)
        self._columns: dict[str, Tensor] = {}  # by field, shape (E, capacity, ...)

    @property
    def counts(self) -> Tensor:
        """People remembered, shape (E,)."""
        return self.added if self.limit is None else self.added.clamp(max=self.limit)

    def add(self, decided: Decided) -> None:
        """Remember people, fields (E, B, ...)."""
        kept = decided.accepted if self.keep == "accepted" else torch.ones_like(decided.accepted)
        if not self._columns:
            self.added = torch.zeros(len(kept), dtype=torch.long)
        if "weight" in self._columns and decided.weight is None:
            decided = replace(decided, weight=torch.ones_like(decided.label))
        n = kept.sum(-1)
        rank = kept.cumsum(-1) - 1
        if self.limit is not None:
            kept = kept & (rank >= (n - self.limit).unsqueeze(-1))
        # Room for as many people per seed, at least one, for `sample`.
        needed = int((self.added + n).max())
        needed = max(1, needed if self.limit is None else min(needed, self.limit))
        for field in fields(self.of):
            like: Tensor | None = getattr(decided, field.name)
            if like is None:
                continue
            own = self._columns.get(field.name, like[:, :0])
            if own.shape[1] < needed:
                grown = like.new_zeros(len(like), max(needed, 2 * own.shape[1]), *like.shape[2:])
                grown[:, : own.shape[1]] = own
                self._columns[field.name] = grown
        seed, row = kept.nonzero(as_tuple=True)
        place = self.added[seed] + rank[seed, row]
        if self.limit is not None:
            place = place % self.limit
        for name, column in self._columns.items():
            column[seed, place] = getattr(decided, name)[seed, row]
        self.added = self.added + n

    def rows(self) -> Decided:
        """Everybody remembered, fields (E, M, ...), M the largest of `counts`.

        Seeds with fewer than M people are padded with rejected people of propensity 0, x = 0 and s = 0.
        """
        return self.of(**{name: column[:, : len(self)] for name, column in self._columns.items()})

    def sample(self, n: int, streams: SeedStreams) -> Decided:
        """People drawn with replacement, fields (E, n, ...); rows as in `rows` for a seed without any."""
        uniform = streams.uniform(n)
        rows = (
            (uniform * self.counts.unsqueeze(-1))
            .long()
            .clamp(max=(self.counts - 1).clamp(min=0).unsqueeze(-1))
        )
        return self.of(**{name: take(column, rows) for name, column in self._columns.items()})

    def minibatches(self, n_batches: int, size: int, streams: SeedStreams) -> list[Decided]:
        """Several results of `sample`, fields (E, size, ...), drawn together, which is faster."""
        drawn = self.sample(n_batches * size, streams)
        columns = {name: getattr(drawn, name).split(size, dim=1) for name in self._columns}
        return [self.of(**{name: parts[i] for name, parts in columns.items()}) for i in range(n_batches)]

    def replay(self, decided: Decided, n: int, streams: SeedStreams) -> Decided:
        """Remember people (E, B, ...), and draw n times as many as in `sample`."""
        self.add(decided)
        return self.sample(n * decided.s.shape[1], streams)

    def __len__(self) -> int:
        """Largest number of people of a seed."""
        return int(self.counts.max()) if len(self.counts) else 0

    def state_dict(self) -> State:
        """Everybody remembered, as plain containers of tensors."""
        most = max(1, len(self))
        return {
            "added": self.added,
            "columns": {name: column[:, :most].clone() for name, column in self._columns.items()},
        }

    def load_state_dict(self, state: State) -> None:
        """Restore what `state_dict` returned."""
        self.added = state["added"]
        # Copies: `add` writes into them, and the state may be loaded again.
        self._columns = {name: column.clone() for name, column in state["columns"].items()}
