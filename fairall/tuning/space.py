"""The values that a study tries, from the command line and `hydra.sweeper.params`."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import IntervalSweep, Override, Transformer

from fairall.config.words import Words
from fairall.errors import FairAllError
from fairall.storage.identity import defines_problem

Value = str | int | float | bool
Point = dict[str, Value]
"""A value for each key of a space, spelt as on the command line."""


@dataclass(frozen=True)
class Range:
    """All numbers from `low` to `high`, or all whole ones where both are of type int.

    Attributes:
        low: the least.
        high: the largest.
        log: whether they are tried on a logarithmic scale.
    """

    low: int | float
    high: int | float
    log: bool

    def __str__(self) -> str:
        """As on the command line."""
        words = f"interval({self.low}, {self.high})"
        words = f"int({words})" if self.whole else words
        return f"tag(log, {words})" if self.log else words

    @property
    def whole(self) -> bool:
        """Whether its numbers are whole ones."""
        return isinstance(self.low, int) and isinstance(self.high, int)

    def read(self, word: str) -> Value:
        """The number that a word of the command line gives, which is in the interval."""
        return int(word) if self.whole else float(word)


Values = Sequence[Value] | Range
"""What is tried of a key."""


@dataclass(frozen=True)
class Space:
    """The values to try by key: a grid, or with intervals, of which an optimiser proposes points.

    Points of a grid are numbered from 0, the last key varying fastest.

    Attributes:
        values: by key, the values to try.
    """

    values: Mapping[str, Values]

    @classmethod
    def parse(cls, params: Mapping[str, str], arguments: Words, *, intervals: bool = False) -> Space:
        """The space of a sweep.

        Args:
            params: `hydra.sweeper.params`: by key a sweep as on the command line, `choice(1, 5, 10)`.
            arguments: words of the command line, which win: `key=1,5` sweeps a key, `key=5` ends that.
            intervals: whether the sampler can try `interval(0, 1)`.

        Raises:
            FairAllError: where a swept key has no values that Optuna can take, or no key is swept.
        """
        parser = OverridesParser.create()
        swept: dict[str, Values] = {}
        for key, words in params.items():
            override = parser.parse_override(f"{key}={words}")
            swept[key] = _values(override, intervals) if override.is_sweep_override() else [_spelt(override)]
        for override in parser.parse_overrides(list(arguments)):
            key = override.get_key_element()
            swept.pop(key, None)
            if override.is_sweep_override():
                swept[key] = _values(override, intervals)
        if not swept:
            raise FairAllError("there is nothing to sweep: give a key several values, as model.alpha=1,5,10")
        return cls(swept)

    @property
    def grid(self) -> dict[str, Sequence[Value]] | None:
        """`values`, where none is an interval; else None."""
        known = {key: of for key, of in self.values.items() if not isinstance(of, Range)}
        return known if len(known) == len(self.values) else None

    @property
    def size(self) -> int | None:
        """How many points there are; None for a space with intervals."""
        return None if self.grid is None else math.prod(map(len, self.grid.values()))

    @property
    def of_problem(self) -> list[str]:
        """The keys that define the problem, over which nothing is selected."""
        return [key for key in self.values if defines_problem(key.lstrip("+"))]

    @property
    def first(self) -> Point:
        """The first value of each key, of an interval the least."""
        return {key: of.low if isinstance(of, Range) else of[0] for key, of in self.values.items()}

    @cached_property
    def points(self) -> list[Point]:
        """Every point of a grid, by number; empty for a space with intervals."""
        if (grid := self.grid) is None:
            return []
        return [dict(zip(grid, of, strict=True)) for of in itertools.product(*grid.values())]

    def point(self, words: Words) -> Point:
        """The point that words of a command line set, as Optuna's sweeper writes them."""
        given = dict(word.split("=", 1) for word in words if "=" in word)
        return {
            key: of.read(given[key]) if isinstance(of, Range) else of[[*map(str, of)].index(given[key])]
            for key, of in self.values.items()
        }


def words_of(point: Point) -> list[str]:
    """Words of the command line that set a point."""
    return [f"{key}={value}" for key, value in point.items()]


def listed(words: Words) -> list[str]:
    """Words of a command line with the values of a range one by one.

    Optuna's sweeper takes the end of a range for one of its values, and adds up steps that are not whole.
    """
    overrides = OverridesParser.create().parse_overrides(list(words))
    found = []
    for word, override in zip(words, overrides, strict=True):
        if override.is_range_sweep():
            values = map(str, override.sweep_iterator(transformer=Transformer.encode))
            word = f"{override.get_key_element()}=choice({','.join(values)})"
        found.append(word)
    return found


def _values(override: Override, intervals: bool) -> Values:
    key, given = override.key_or_group, override.value()
    if isinstance(given, IntervalSweep):
        if not intervals:
            raise FairAllError(
                f"{override.input_line}: a grid needs its values one by one, as {key}=1,5,10; an interval "
                "takes hydra/sweeper/sampler=tpe or random"
            )
        interval = Range(given.start, given.end, "log" in given.tags)
        numbers = all(isinstance(end, int | float) and math.isfinite(end) for end in (given.start, given.end))
        if not numbers or given.start >= given.end or (interval.log and given.start <= 0):
            bounds = "positive ones for log, " * interval.log
            raise FairAllError(
                f"{override.input_line}: an interval is of two numbers, {bounds}the smaller one first"
            )
        return interval
    if not (override.is_choice_sweep() or override.is_range_sweep()):
        raise FairAllError(f"{override.input_line}: a sweep needs its values one by one, as {key}=1,5,10")
    values = list(dict.fromkeys(override.sweep_iterator(transformer=Transformer.encode)))
    if None in values or len({isinstance(value, str) for value in values}) > 1:
        raise FairAllError(
            f"{override.input_line}: Optuna sweeps values of one kind, numbers or texts, and not null"
        )
    return values


def _spelt(override: Override) -> Value:
    value = override.value()
    return value if isinstance(value, int | float) else override.get_value_element_as_str()
