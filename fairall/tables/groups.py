"""Groups of people: the values of the sensitive attribute, and their names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pandas as pd

CROSS = "+"  # between the names, and the values, of attributes whose combinations are the groups


def sides(n_groups: int) -> tuple[float, ...]:
    """The values of s of G groups, in the order in which a configuration lists them.

    Examples:
        >>> sides(2), sides(3)
        ((1.0, -1.0), (0.0, 1.0, 2.0))
    """
    return (1.0, -1.0) if n_groups == 2 else tuple(map(float, range(n_groups)))


def group_name(s: float, values: Sequence[str] = (), n_groups: int = 2) -> str:
    """The group S = s, with its values in the raw data if they are known; of more than two these alone.

    Examples:
        >>> group_name(1, ["male"]), group_name(-1), group_name(2, ["asian"], 4)
        ('S = +1 (male)', 'S = −1', 'asian')
    """
    if n_groups > 2:
        return ", ".join(values)
    sign = "S = +1" if s > 0 else "S = −1"
    return f"{sign} ({', '.join(values)})" if values else sign


@dataclass(frozen=True)
class Sensitive:
    """The raw column of the sensitive attribute.

    Attributes:
        column: name.
        advantaged: values of the first group, as text; of two groups S = +1.
        disadvantaged: values of the second one; of two groups S = −1.
        further: values of each further group.
    """

    column: str
    advantaged: tuple[str, ...]
    disadvantaged: tuple[str, ...]
    further: tuple[tuple[str, ...], ...] = ()

    @property
    def groups(self) -> dict[float, tuple[str, ...]]:
        """The values of each group, by s."""
        words = (self.advantaged, self.disadvantaged, *self.further)
        return dict(zip(sides(len(words)), words, strict=True))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the groups for sentences, in the order of `sides`."""
        if not self.further:
            return ("advantaged", "disadvantaged")
        return tuple(", ".join(values) for values in self.groups.values())

    @property
    def keys(self) -> dict[str, str]:
        """Names of more than two groups in their order, by key in tables and files; empty for two groups."""
        if not self.further:
            return {}
        keys = [re.sub(r"\W+", "_", name.lower()).strip("_") for name in self.names]
        if len({*keys, "all", "column", ""}) < len(keys) + 3:
            keys = [f"group_{number}" for number in range(len(keys))]
        return dict(zip(keys, self.names, strict=True))

    @property
    def meaning(self) -> dict[str, float]:
        """S of each value."""
        return {value: s for s, values in self.groups.items() for value in values}

    @property
    def crossed(self) -> tuple[tuple[str, ...], ...]:
        """The values of each attribute of more than two groups, where these are combinations; else none.

        Examples:
            >>> Sensitive("race+sex", ("a+f",), ("b+f",), (("b+m",),)).crossed
            (('a', 'f'), ('b', 'f'), ('b', 'm'))
        """
        n = len(self.column.split(CROSS))
        parts = tuple(tuple(values[0].split(CROSS)) for values in self.groups.values())
        return parts if n > 1 and self.further and all(len(part) == n for part in parts) else ()

    @classmethod
    def of(cls, column: str, groups: Iterable[Iterable[str]]) -> Sensitive:
        """The groups by their values, of two the advantaged first."""
        first, second, *others = map(tuple, groups)
        return cls(column, first, second, tuple(others))


def join(people: pd.DataFrame, column: str) -> pd.Series:
    """The texts of a column; of one as race+sex, where there are both of its parts, theirs joined."""
    first, *others = (people[name].astype(str) for name in column.split(CROSS))
    return first.str.cat(others, sep=CROSS).rename(column)


def display_name(values: Sequence[str]) -> str:
    """Name of a group by its values, of which those that hold a comma are quoted where there are several.

    Examples:
        >>> display_name(["female", "black"]), display_name(["Asian", "Black, other"])
        ('female, black', 'Asian, "Black, other"')
    """
    if len(values) == 1:
        return values[0]
    return ", ".join(f'"{value}"' if "," in value or '"' in value else value for value in values)
