"""The grid of a study, from the command line and `hydra.sweeper.params`."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override, Transformer

from fairall.errors import FairAllError
from fairall.storage.identity import defines_problem

Value = str | int | float | bool
Point = dict[str, Value]
"""A value for each key of a space, spelt as on the command line."""


@dataclass(frozen=True)
class Space:
    """A grid, whose points are numbered from 0, the last key varying fastest.

    Attributes:
        values: by key, the values to try.
    """

    values: Mapping[str, Sequence[Value]]

    @classmethod
    def parse(cls, params: Mapping[str, str], arguments: Sequence[str]) -> Space:
        """The space of a sweep.

        Args:
            params: `hydra.sweeper.params`: by key a sweep as on the command line, `choice(1, 5, 10)`.
            arguments: words of the command line, which win: `key=1,5` sweeps a key, `key=5` ends that.

        Raises:
            FairAllError: where a swept key has no list of values that Optuna can take, or no key is swept.
        """
        parser = OverridesParser.create()
        swept: dict[str, list[Value]] = {}
        for key, words in params.items():
            override = parser.parse_override(f"{key}={words}")
            swept[key] = _values(override) if override.is_sweep_override() else [_spelt(override)]
        for override in parser.parse_overrides(list(arguments)):
            key = override.get_key_element()
            swept.pop(key, None)
            if override.is_sweep_override():
                swept[key] = _values(override)
        if not swept:
            raise FairAllError("there is nothing to sweep: give a key several values, as model.alpha=1,5,10")
        return cls(swept)

    @property
    def size(self) -> int:
        """How many points there are."""
        return math.prod(len(values) for values in self.values.values())

    @property
    def of_problem(self) -> list[str]:
        """The keys that define the problem, over which nothing is selected."""
        return [key for key in self.values if defines_problem(key.lstrip("+"))]

    @cached_property
    def points(self) -> list[Point]:
        """Every point, by number."""
        return [dict(zip(self.values, of, strict=True)) for of in itertools.product(*self.values.values())]

    def number(self, words: Sequence[str]) -> int:
        """Number of the point that words of a command line set, as Optuna's sweeper writes them."""
        given = dict(word.split("=", 1) for word in words if "=" in word)
        number = 0
        for key, values in self.values.items():
            number = number * len(values) + [str(value) for value in values].index(given[key])
        return number


def words_of(point: Point) -> list[str]:
    """Words of the command line that set a point."""
    return [f"{key}={value}" for key, value in point.items()]


def _values(override: Override) -> list[Value]:
    key = override.key_or_group
    if not (override.is_choice_sweep() or override.is_range_sweep()):
        raise FairAllError(f"{override.input_line}: a sweep needs its values one by one, as {key}=1,5,10")
    values = list(dict.fromkeys(override.sweep_iterator(transformer=Transformer.encode)))
    kinds = {isinstance(value, str) for value in values}
    if None in values or len(kinds) > 1:
        raise FairAllError(
            f"{override.input_line}: Optuna sweeps values of one kind, numbers or texts, and not null"
        )
    return values


def _spelt(override: Override) -> Value:
    value = override.value()
    return value if isinstance(value, int | float | bool) else override.get_value_element_as_str()
