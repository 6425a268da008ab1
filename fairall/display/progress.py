"""Progress of a long computation, on standard error, and rich's console for terminals of any width."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from rich.console import Console
from tqdm import tqdm

WIDE = 1000  # columns where the output is no terminal, so that nothing is wrapped

ProgressCallback = Callable[..., None]
"""Reports that one unit of work is done, with current values to display as keywords.

`resumed=n` alone reports n units that an earlier process has done, which do not count for the speed.
"""

_tell: ContextVar[Callable[[str], object]] = ContextVar("tell", default=lambda what: None)


class AnyConsole(Console):
    """A console that prints text as it is.

    In a notebook it prints plain text, of which long lines wrap; rich's own HTML cuts them off. In a file,
    where COLUMNS is not set, nothing is wrapped.
    """

    def __init__(self) -> None:
        width = None if sys.stdout.isatty() or "COLUMNS" in os.environ else WIDE
        super().__init__(width=width, force_jupyter=False, highlight=False, markup=False, emoji=False)

    def on_broken_pipe(self) -> None:
        """Raise BrokenPipeError, for `run_command`; rich would end the process with code 1."""
        raise BrokenPipeError


def say(line: str) -> None:
    """Print one line of plain text on standard output."""
    AnyConsole().print(line, soft_wrap=True)


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


class Display:
    """Progress on a terminal or below a notebook's cell, silent where there is neither; lines on stdout.

    Args:
        progress_only: print no lines and no results, for one trial of many.
        silent: show no progress either.
    """

    def __init__(self, *, progress_only: bool = False, silent: bool = False) -> None:
        self.progress_only, self.silent = progress_only, silent

    @contextmanager
    def phase(self, name: str, total: int, *, done: int = 0) -> Iterator[ProgressCallback]:
        """A bar of `total` units, `done` of them by an earlier process; yields its `ProgressCallback`.

        Beside it is what `doing` says. Without units there is no bar, nor in a notebook that is saved.
        """
        terminal = sys.stderr.isatty()
        unseen = self.silent or total == 0 or not (terminal or Console().is_jupyter)
        with (
            tqdm(desc=name, total=total, initial=done, smoothing=0, disable=unseen, leave=terminal) as bar,
            steps_told(bar.set_postfix_str),
        ):

            def advance(*, resumed: int | None = None, **measures: float) -> None:
                bar.set_postfix(measures, refresh=False)
                if resumed is None:
                    bar.update()
                else:
                    bar.reset()
                    bar.initial = bar.n = resumed

            yield advance

    def say(self, line: str) -> None:
        """Print one line of plain text on standard output."""
        if not self.progress_only:
            say(line)
