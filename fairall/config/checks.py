"""Ranges of configuration values. A field of a dataclass declares its own, as in `epochs: int = at_least(1)`.

Made from `limited` are also `positive()`, `not_negative()`, `positive_share()` (above 0, at most 1),
`open_unit()` (between 0 and 1, both excluded), `below_one()` (from 0), `even()`, `numpy_seed()` and
`plain_name()` (of a folder).
`check_values` checks configurations and values of them, `number` and `whole_number` arguments of functions.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection
from dataclasses import field, fields, is_dataclass
from functools import partial
from numbers import Integral, Real
from typing import Any

from fairall.errors import FairAllError

MISSING: Any = "???"  # OmegaConf's word for a value that has to be given
MOST_COPIES = 1000
MOST_SHOWN = 60  # characters of a value that is no number


def require(holds: bool, key: str, value: object, allowed: str) -> None:
    """Raise FairAllError, naming the key, the value and what is allowed, unless `holds`."""
    if not holds:
        raise FairAllError(f"{key}={value} is not possible: it must be {allowed}")


def number(key: str, value: object, declared: Any) -> float:
    """The number that a value equals; raises FairAllError where it is none, or not in the range of a field.

    Scalars of NumPy, pandas and torch, and arrays of no dimension, are numbers; truth values are none.

    Args:
        key: name of the argument.
        value: that was given.
        declared: a field with a range, such as `positive()`.
    """
    equal: Any = value.item() if getattr(value, "ndim", None) == 0 else value  # type: ignore[attr-defined]
    is_number = isinstance(equal, Real) and not isinstance(equal, bool)
    shown = " ".join(repr(equal).split())[:MOST_SHOWN]
    require(is_number and declared.metadata["holds"](equal), key, shown, declared.metadata["allowed"])
    return int(equal) if isinstance(equal, Integral) else float(equal)


def whole_number(key: str, value: object, least: int = 0) -> int:
    """The int that a value equals, as 7, 7.0 and `np.int64(7)` equal 7.

    Raises:
        FairAllError: where a value is no whole number of at least `least`.
    """
    declared = limited(f"a whole number of at least {least}", lambda equal: equal >= least and equal % 1 == 0)
    return int(number(key, value, declared))


def check_values(node: Any, key: str = "", declared: Any = None) -> None:
    """Check that numbers are finite and values in their ranges, and call `validate` of nodes that have it.

    Args:
        node: dataclass of the configuration, or a value, list or dict of values.
        key: of the node in messages.
        declared: field with the range of the value, or of each value of a dict; None, which has no range.

    Raises:
        FairAllError: naming the key, the value and what is allowed.
    """
    if is_dataclass(node):
        for child in fields(node):
            check_values(getattr(node, child.name), f"{key}.{child.name}".lstrip("."), child)
        if hasattr(node, "validate"):
            node.validate()
    elif isinstance(node, dict):
        for name, value in node.items():
            check_values(value, f"{key}.{name}".lstrip("."), declared)
    elif node is not None:
        for value in node if isinstance(node, list) else ():
            check_values(value, key)
        require(not isinstance(node, float) or math.isfinite(node), key, node, "a finite number")
        if declared is not None and "holds" in declared.metadata:
            require(declared.metadata["holds"](node), key, node, declared.metadata["allowed"])


def limited(allowed: str, holds: Callable[[Any], object], default: Any = MISSING) -> Any:
    """A field for values of which `holds` is true; `allowed` says that in words that follow "it must be"."""
    return field(default=default, metadata={"allowed": allowed, "holds": holds})


def one_of(allowed: Collection[str]) -> Any:
    """A field for one of the words `allowed`."""
    return limited(" or ".join(allowed), lambda value: value in allowed)


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


copies = partial(between, most=MOST_COPIES)  # of a net


def optional(declared: Any = None) -> Any:
    """A field that is null by default, and not stored with runs where it is.

    Args:
        declared: a field with the range of other values; None: any value.
    """
    return field(default=None, metadata={**(declared.metadata if declared else {}), "left_out": True})


def groups() -> Any:
    """An `optional` field for the words of two or more groups of people."""
    return optional(
        limited(
            "a list of two or more different words, such as [A,B,C]",
            lambda words: isinstance(words, list) and len({*words}) == len(words) > 1,
        )
    )


def hidden_sizes(least: int = 1) -> Any:
    """A field for the sizes of `least` or more hidden layers; a net without hidden layers is linear."""
    return limited(
        "a list of sizes of at least 1, as [64,64]",
        lambda sizes: len(sizes) >= least and all(size >= 1 for size in sizes),
    )


# A name that a folder can have on every system.
plain_name = partial(
    limited,
    "a plain name of letters, digits, '_', '-', '.', which names a folder",
    lambda name: re.fullmatch(r"[\w+-][\w+. -]*", name) is not None,
)
