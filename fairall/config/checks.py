"""Checks of configuration values; each raises FairAllError with the key, the value and what is allowed."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence

from fairall.errors import FairAllError

MOST_COPIES = 1000  # of a net that a method keeps
TRUST = "import the method of a policy from this module or package, which runs its code; repeatable"
"""Help of the option --trust."""


def require(holds: bool, key: str, value: object, allowed: str) -> None:
    """Raise FairAllError, naming the key, the value and what is allowed, unless `holds`."""
    if not holds:
        raise FairAllError(f"{key}={value} is not possible: it must be {allowed}")


def one_of(key: str, value: str, allowed: Sequence[str]) -> None:
    """Raise as `require` unless `value` is one of `allowed`."""
    require(value in allowed, key, value, " or ".join(allowed))


def positive(key: str, value: float) -> None:
    """Raise as `require` unless `value` is positive."""
    require(value > 0, key, value, "positive")


def not_negative(key: str, value: float) -> None:
    """Raise as `require` unless `value` is 0 or more."""
    require(value >= 0, key, value, "0 or more")


def at_least(key: str, value: float, least: float) -> None:
    """Raise as `require` unless `value` is `least` or more."""
    require(value >= least, key, value, f"at least {least}")


def copies(key: str, value: int, least: int) -> None:
    """Raise as `require` unless `value` is a possible number of copies of a net, from `least` on."""
    require(least <= value <= MOST_COPIES, key, value, f"from {least} to {MOST_COPIES}")


def even(key: str, value: int) -> None:
    """Raise as `require` unless `value` is a positive even number."""
    require(value >= 2 and value % 2 == 0, key, value, "an even number, at least 2")


def hidden_sizes(key: str, sizes: list[int], *, linear: bool = False) -> None:
    """Raise as `require` unless `sizes` are those of one or more hidden layers, or, if `linear`, of none."""
    holds = (linear or len(sizes) >= 1) and all(isinstance(size, int) and size >= 1 for size in sizes)
    allowed = "a list of sizes of at least 1, as [64,64]"
    require(holds, key, sizes, f"{allowed}, or [] for a linear model" if linear else allowed)


def dropout(key: str, share: float) -> None:
    """Raise as `require` unless `share` of the hidden units can be dropped."""
    require(0 <= share < 1, key, share, "at least 0 and below 1")


def open_unit(key: str, value: float) -> None:
    """Raise as `require` unless 0 < `value` < 1."""
    require(0.0 < value < 1.0, key, value, "between 0 and 1, both excluded")


def random_state(key: str, state: int) -> None:
    """Raise as `require` unless `state` can seed numpy's `RandomState`."""
    require(0 <= state < 2**32, key, state, "at least 0 and below 2**32")


def plain_name(key: str, name: str) -> None:
    """Raise as `require` unless `name` can be that of a folder on every system."""
    plain = re.fullmatch(r"[\w+-][\w+. -]*", name) is not None
    require(plain, key, name, "a plain name of letters, digits, '_', '-', '.', which names a folder")


def whole_number(word: str) -> int:
    """Parse an argument of a command line as an integer of at least 1; a `type` of argparse."""
    if not word.isdecimal() or int(word) < 1:
        raise argparse.ArgumentTypeError(f"it must be a whole number of at least 1, not {word}")
    return int(word)
