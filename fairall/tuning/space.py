"""Grid of points from the command line and `hydra.sweeper.params`."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override, Transformer

from fairall.errors import FairAllError
from fairall.storage.identity import defines_problem

Value = str | int | float | bool | None
Point = dict[str, Value]
"""A value for each key of a space, spelt as on the command line."""

Key = frozenset
"""Hashable form of a point."""


def key_of(point: Point) -> Key:
    """Hashable form of a point."""
    return frozenset(point.items())


@dataclass(frozen=True)
class Space:
    """A grid.

    Attributes:
        values: by key, the values to try.
    """

    values: Mapping[str, Sequence[Value]]

    @classmethod
    def parse(cls, params: Mapping[str, str], arguments: Sequence[str]) -> tuple[Space, list[str]]:
        """The space of a sweep, and the words of the command line that are the same for all points.

        Args:
            params: `hydra.sweeper.params`: by key a sweep as on the command line, `choice(1, 5, 10)`.
            arguments: words of the command line, which win: `key=1,5` sweeps a key, `key=5` ends that.

        Raises:
            FairAllError: where a swept key has no list of values, or no key is swept.
        """
        parser = OverridesParser.create()
        swept: dict[str, list[Value]] = {}
        for key, words in params.items():
            override = parser.parse_override(f"{key}={words}")
            swept[key] = _values(override) if override.is_sweep_override() else [_spelt(override)]
        fixed = []
        for override in parser.parse_overrides(list(arguments)):
            key = override.get_key_element()
            swept.pop(key, None)
            if override.is_sweep_override():
                swept[key] = _values(override)
            else:
                fixed.append(str(override.input_line))
        if not swept:
            raise FairAllError("there is nothing to sweep: give a key several values, as model.alpha=1,5,10")
        return cls(swept), fixed

    @property
    def size(self) -> int:
        """How many points there are."""
        return math.prod(len(values) for values in self.values.values())

    @property
    def of_problem(self) -> list[str]:
        """The keys that define the problem, over which nothing is selected."""
        return [key for key in self.values if defines_problem(key.lstrip("+"))]

    def points(self) -> Iterator[Point]:
        """Every point, the last key varying fastest."""
        for chosen in itertools.product(*self.values.values()):
            yield dict(zip(self.values, chosen, strict=True))

    def words(self) -> dict[str, str]:
        """By key, a sweep as on the command line."""
        words = {key: ",".join(map(_word, values)) for key, values in self.values.items()}
        return {key: word if len(self.values[key]) > 1 else f"choice({word})" for key, word in words.items()}


def words_of(point: Point) -> list[str]:
    """Words of the command line that set a point."""
    return [f"{key}={_word(value)}" for key, value in point.items()]


def _word(value: Value) -> str:
    if value is None:
        return "null"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _values(override: Override) -> list[Value]:
    if not (override.is_choice_sweep() or override.is_range_sweep()):
        raise FairAllError(
            f"{override.input_line}: a sweep needs its values one by one, as {override.key_or_group}=1,5,10"
        )
    return list(dict.fromkeys(override.sweep_iterator(transformer=Transformer.encode)))


def _spelt(override: Override) -> Value:
    value = override.value()
    return value if isinstance(value, int | float | bool | None) else override.get_value_element_as_str()
