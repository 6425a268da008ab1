"""One line for a value that cannot be: which key, which value, what is allowed."""

from __future__ import annotations

import argparse

from fairall.errors import FairAllError

OPEN_UNIT = "between 0 and 1, both excluded"


def require(holds: bool, key: str, value: object, allowed: str) -> None:
    """Raises FairAllError, naming the key, the value given and what is allowed, unless `holds`."""
    if not holds:
        raise FairAllError(f"{key}={value} is not possible: it must be {allowed}")


def one_of(key: str, value: str, allowed: tuple[str, ...]) -> None:
    """Raises as `require` unless `value` is one of `allowed`."""
    require(value in allowed, key, value, " or ".join(allowed))


def positive(key: str, value: float) -> None:
    """Raises as `require` unless `value` is positive."""
    require(value > 0, key, value, "positive")


def not_negative(key: str, value: float) -> None:
    """Raises as `require` unless `value` is 0 or more."""
    require(value >= 0, key, value, "0 or more")


def at_least(key: str, value: float, least: float) -> None:
    """Raises as `require` unless `value` is `least` or more."""
    require(value >= least, key, value, f"at least {least}")


def even(key: str, value: int) -> None:
    """Raises as `require` unless `value` is a positive even number."""
    require(value >= 2 and value % 2 == 0, key, value, "an even number, at least 2")


def hidden_sizes(key: str, sizes: list[int]) -> None:
    """Raises as `require` unless `sizes` are those of one or more hidden layers."""
    holds = len(sizes) >= 1 and min(sizes) >= 1
    require(holds, key, sizes, "a list of sizes of at least 1, as [64,64]")


def dropout(key: str, share: float) -> None:
    """Raises as `require` unless `share` of the hidden units can be dropped."""
    require(0 <= share < 1, key, share, "at least 0 and below 1")


def whole_number(word: str) -> int:
    """An argument of a command line as a number of at least 1; for argparse, which tells its error."""
    if not word.isdecimal() or int(word) < 1:
        raise argparse.ArgumentTypeError(f"it must be a whole number of at least 1, not {word}")
    return int(word)
