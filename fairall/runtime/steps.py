"""What a long computation is doing, in a few words, for whoever shows it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_tell: ContextVar[Callable[[str], object] | None] = ContextVar("tell", default=None)


def doing(what: str) -> None:
    """Say what is done from now on."""
    if (tell := _tell.get()) is not None:
        tell(what)


@contextmanager
def steps_told(tell: Callable[[str], object]) -> Iterator[None]:
    """Have `tell` called with each step that is done inside."""
    token = _tell.set(tell)
    try:
        yield
    finally:
        _tell.reset(token)
