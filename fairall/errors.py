"""The exception that reaches the user as one line, and wording that messages share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

MOST_FAULTS = 10  # told at once
MOST_SHOWN = 500  # characters of what code of others raises


class FairAllError(Exception):
    """An error that the user can correct: the message says what is wrong, where, and what to do.

    `args` are the lines of the message, one for each of several errors at once.
    """

    def __str__(self) -> str:
        return "\n".join(map(str, self.args))


@dataclass
class Collected:
    """Errors that are told together."""

    told: list[str] = field(default_factory=list)

    @contextmanager
    def one(self) -> Iterator[None]:
        """A block whose error is collected; what follows the block still runs."""
        try:
            yield
        except FairAllError as error:
            self.told.append(str(error))

    def tell(self) -> None:
        """Raise FairAllError with what was collected; nothing where there is none."""
        more = len(self.told) - MOST_FAULTS
        lines = self.told[:MOST_FAULTS] + [f"{count(more, 'more fault')}: correct these first"] * (more > 0)
        if lines:
            raise FairAllError(*lines)


@contextmanager
def needing(package: str, what: str) -> Iterator[None]:
    """A block that imports a package, for what is named.

    Raises:
        FairAllError: with the command that installs the package, where it is not there.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != package:
            raise
        raise FairAllError(f"{what}: needs {package}; install it with: pip install {package}") from error


@contextmanager
def one_line(what: str) -> Iterator[None]:
    """A block that runs code of others, which may raise anything.

    Raises:
        FairAllError: with `what`, which says what is not possible, and the reason, for any error.
    """
    try:
        yield
    except Exception as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:MOST_SHOWN]
        raise FairAllError(f"{what} ({reason})") from error


def count(n: int, thing: str, things: str | None = None) -> str:
    """`n` with the noun in singular or plural; the plural ends in s unless given."""
    return f"{n} {thing if n == 1 else things or thing + 's'}"
