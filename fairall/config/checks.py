"""Ranges of configuration values. A field of a dataclass declares its own, as in `epochs: int = at_least(1)`.

Made from `limited` are also `positive()`, `not_negative()`, `positive_share()` (above 0, at most 1),
`open_unit()` (between 0 and 1, both excluded), `below_one()` (from 0), `even()`, `numpy_seed()` and
`plain_name()` (of a folder).
`check_values` checks the fields of a configuration, `check` any other value, and `number` and `whole_number`
arguments of functions.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from dataclasses import field, fields, is_dataclass
from functools import partial
from numbers import Integral, Real
from typing import Any, cast

from fairall.errors import FairAllError

MISSING: Any = "???"  # OmegaConf's word for a value that has to be given
MOST_COPIES = 1000
MOST_SHOWN = 60  # characters of a value that is no number


def require(holds: bool, key: str, value: object, allowed: str) -> None:
    """Raise FairAllError, naming the key, the value and what is allowed, unless `holds`."""
    if not holds:
        raise FairAllError(f"{key}={value} is not possible: it must be {allowed}")


def check(key: str, value: Any, declared: Any) -> None:
    """Raise as `require` unless `value`, or each value of a dict, is None or in the range of a field."""
    if isinstance(value, dict):
        for name, child in value.items():
            check(f"{key}.{name}", child, declared)
    elif value is not None and "holds" in declared.metadata:
        require(bool(declared.metadata["holds"](value)), key, value, declared.metadata["allowed"])


def plain_number(value: object) -> int | float | None:
    """The number of Python that a value equals, int or float by its type; None where it is no number.

    Scalars of NumPy, pandas and torch, and arrays of no dimension, are numbers; truth values and texts are
    none.

    Examples:
        >>> plain_number(0.5), plain_number(True), plain_number("7")
        (0.5, None, None)
    """
    if getattr(value, "ndim", None) == 0:
        value = value.item()  # type: ignore[attr-defined]
    if isinstance(value, bool) or not isinstance(value, Real):
        return None
    return int(value) if isinstance(value, Integral) else float(value)


def number(key: str, value: object, declared: Any) -> float:
    """The number that a value equals; raises FairAllError where it is none, or not in the range of a field.

    Args:
        key: name of the argument.
        value: that was given.
        declared: a field with a range, such as `positive()`.
    """
    equal = plain_number(value)
    shown = " ".join(repr(value if equal is None else equal).split())[:MOST_SHOWN]
    holds = equal is not None and declared.metadata["holds"](equal)
    require(holds, key, shown, declared.metadata["allowed"])
    return cast(float, equal)


def whole_number(key: str, value: object, least: int = 0) -> int:
    """The int that a value equals, as 7, 7.0 and `np.int64(7)` equal 7.

    Raises:
        FairAllError: where a value is no whole number of at least `least`.
    """
    declared = limited(f"a whole number of at least {least}", lambda equal: equal >= least and equal % 1 == 0)
    return int(number(key, value, declared))


def check_values(node: Any, key: str = "") -> None:
    """Check that numbers are finite and fields in their ranges, and call `validate` of nodes that have it."""
    if isinstance(node, float):
        require(math.isfinite(node), key, node, "a finite number")
    elif isinstance(node, list):
        for child in node:
            check_values(child, key)
    elif isinstance(node, dict):
        for name, child in node.items():
            check_values(child, f"{key}.{name}".lstrip("."))
    elif is_dataclass(node):
        for one in fields(node):
            place, value = f"{key}.{one.name}".lstrip("."), getattr(node, one.name)
            check_values(value, place)
            check(place, value, one)
        if hasattr(node, "validate"):
            node.validate()


def limited(allowed: str, holds: Callable[[Any], object], default: Any = MISSING) -> Any:
    """A field for values of which `holds` is true; `allowed` says that in words that follow "it must be"."""
    return field(default=default, metadata={"allowed": allowed, "holds": holds})


def one_of(allowed: Iterable[str]) -> Any:
    """A field for one of the words `allowed`."""
    words = tuple(allowed)
    return limited(" or ".join(words), lambda value: value in words)


positive = partial(limited, "positive", lambda value: value > 0)
not_negative = partial(limited, "0 or more", lambda value: value >= 0)
positive_share = partial(limited, "above 0 and at most 1", lambda value: 0 < value <= 1)
open_unit = partial(limited, "between 0 and 1, both excluded", lambda value: 0 < value < 1)
below_one = partial(limited, "at least 0 and below 1", lambda value: 0 <= value < 1)
even = partial(limited, "an even number, at least 2", lambda value: value >= 2 and value % 2 == 0)
numpy_seed = partial(limited, "at least 0 and below 2**32", lambda state: 0 <= state < 2**32)


def at_least(least: float) -> Any:
    """A field for a number of `least` or more."""
    return limited(f"at least {least}", lambda value: value >= least)


def between(least: float, most: float) -> Any:
    """A field for a number from `least` to `most`."""
    return limited(f"from {least} to {most}", lambda value: least <= value <= most)


def copies(least: int) -> Any:
    """A field for a number of copies of a net, `least` or more."""
    return between(least, MOST_COPIES)


def optional(declared: Any = None) -> Any:
    """A field that is null by default, and not stored with runs where it is.

    Args:
        declared: a field with the range of other values; None: any value.
    """
    metadata = {} if declared is None else declared.metadata
    return field(default=None, metadata={**metadata, "left_out": True})


def groups() -> Any:
    """An `optional` field for the words of two or more groups of people."""
    several = limited(
        "a list of two or more different words, such as [A,B,C]",
        lambda words: isinstance(words, list) and len(words) > 1 and len({*words}) == len(words),
    )
    return optional(several)


def hidden_sizes(least: int = 1) -> Any:
    """A field for the sizes of `least` or more hidden layers; a net without hidden layers is linear."""
    allowed = "a list of sizes of at least 1, as [64,64]"
    return limited(
        allowed if least else f"{allowed}, or [] for a linear model",
        lambda sizes: len(sizes) >= least and all(isinstance(size, int) and size >= 1 for size in sizes),
    )


# A name that a folder can have on every system.
plain_name = partial(
    limited,
    "a plain name of letters, digits, '_', '-', '.', which names a folder",
    lambda name: re.fullmatch(r"[\w+-][\w+. -]*", name) is not None,
)
