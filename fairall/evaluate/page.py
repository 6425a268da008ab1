"""What is shown of an evaluation or a comparison: its policies, the verdict, and all analyses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from fairall.evaluate.comparison import Comparison
from fairall.evaluate.evaluation import Evaluation
from fairall.evaluate.log import DecisionLog
from fairall.evaluate.policies import LOGGED


@dataclass
class Shown:
    """An evaluation or a comparison as it is shown.

    Attributes:
        found: what is shown.
        file: the log's.
        folder: written to; None before.
    """

    found: Evaluation | Comparison
    file: Path
    folder: Path | None = None

    @cached_property
    def content(self) -> dict[str, Any]:
        """Content of evaluation.json."""
        return self.found.to_plain()

    @property
    def difference(self) -> Comparison | None:
        """Of a comparison; None for one policy."""
        return self.found if isinstance(self.found, Comparison) else None

    @property
    def evaluations(self) -> dict[str, Evaluation]:
        """One, or the two that are compared, by the name shown."""
        if isinstance(self.found, Evaluation):
            return {self.found.policy: self.found}
        first, second = self.found.first, self.found.second
        return {f"A: {first.policy}": first, f"B: {second.policy}": second}

    @property
    def first(self) -> Evaluation:
        """The first policy, for what all of them share."""
        return next(iter(self.evaluations.values()))

    @property
    def log(self) -> DecisionLog:
        """The log."""
        return self.first.log

    @property
    def refused(self) -> str | None:
        """What cannot be answered, and why."""
        return self.found.refused

    @property
    def failure(self) -> str | None:
        """What is refused although the log has labels: one line, for exit code 1."""
        return None if self.refused is None or not self.log.revealed.any() else f"refused: {self.refused}"

    @property
    def names(self) -> list[str]:
        """Of the policies, short."""
        policies = (one.policy for one in self.evaluations.values())
        return ["decisions" if name == LOGGED else name for name in policies]

    @property
    def title(self) -> str:
        """One line."""
        policies = " and ".join(one.policy for one in self.evaluations.values())
        return f"{'Comparison' if self.difference else 'Evaluation'} of {policies} on {self.file.name}"

    def with_difference(self) -> Iterator[tuple[str, str, Evaluation | Comparison]]:
        """Name and group of rows (none for one policy) of each policy, and of the difference."""
        for name, one in self.evaluations.items():
            yield name, name if self.difference else "", one
        if self.difference is not None:
            yield "B − A", "B − A", self.difference
