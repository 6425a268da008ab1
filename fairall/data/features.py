"""What the columns of a table mean: names and kinds of the features."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from fairall.errors import FairAllError


class Kind(StrEnum):
    """The kind of a feature, which decides its likelihood p(x | z, s)."""

    REAL = "real"
    COUNT = "count"
    BINARY = "binary"
    CATEGORICAL = "categorical"


@dataclass(frozen=True)
class Feature:
    """One column of x.

    Attributes:
        name: the column's name in the table.
        kind: real, count, binary or categorical.
        codes: the values a binary (two) or categorical column can take, ascending; empty otherwise.
    """

    name: str
    kind: Kind
    codes: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        """Raises FairAllError where kind and codes do not go together."""
        n = len(self.codes)
        if self.kind is Kind.BINARY and n != 2:
            raise FairAllError(f"feature {self.name!r} is binary, which takes 2 codes, not {n}")
        if self.kind is Kind.CATEGORICAL and n < 2:
            raise FairAllError(f"feature {self.name!r} is categorical, which takes 2 codes or more, not {n}")


class Schema(Sequence[Feature]):
    """The features of x in column order."""

    def __init__(self, features: Sequence[Feature]) -> None:
        self._features = tuple(features)

    def __getitem__(self, index):  # type: ignore[no-untyped-def]
        return self._features[index]

    def __len__(self) -> int:
        return len(self._features)

    def __iter__(self) -> Iterator[Feature]:
        return iter(self._features)

    @property
    def names(self) -> list[str]:
        """Column names in order."""
        return [feature.name for feature in self]

    def columns(self, kind: Kind) -> list[int]:
        """Positions of the features of one kind."""
        return [i for i, feature in enumerate(self) if feature.kind is kind]
