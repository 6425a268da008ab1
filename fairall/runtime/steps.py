"""What a long computation is doing, in a few words, for whoever shows it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_tell: ContextVar[Callable[[str], object]] = ContextVar("tell", default=lambda what: None)


def doing(what: str) -> None:
    """Say what is done from now on."""
    _tell.get()(what)


@contextmanager
def steps_told(tell: Callable[[str], object]) -> Iterator[None]:
    """Have `tell` called with each step that is done inside."""
    token = _tell.set(tell)
    try:
        yield
    finally:
        _tell.reset(token)
