"""Progress of a long computation, on standard error or in a notebook's cell."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Column

from fairall.display.console import AnyConsole

ProgressCallback = Callable[..., None]
"""Reports that one unit of work is done, with current values to display as keywords.

`resumed=n` alone reports n units that an earlier process has done, which do not count for the speed.
"""

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


REFRESHED = 0.2  # seconds between two texts in a notebook's cell


class InCell:
    """Progress in the output of a notebook's cell, as a text that changes; rich's own needs ipywidgets."""

    def __init__(self) -> None:
        from IPython.display import display

        self.handle, self.updated = display({"text/plain": ""}, raw=True, display_id=True), -math.inf

    def show(self, text: str) -> None:
        """Show a text, unless another one was shown a moment ago; the empty one always."""
        if not text or time.monotonic() - self.updated >= REFRESHED:
            self.updated = time.monotonic()
            self.handle.update({"text/plain": text}, raw=True)


class Display:
    """Progress on standard error or in a notebook's cell, silent where there is neither; lines on stdout.

    Args:
        progress_only: print no lines and no results, for one trial of many.
        terminal: for progress; standard error by default.
    """

    def __init__(self, *, progress_only: bool = False, terminal: Console | None = None) -> None:
        # Where FORCE_COLOR is set, as in notebooks, rich would take any stream for a terminal.
        self._terminal = terminal or Console(stderr=True, force_terminal=sys.stderr.isatty())
        self._in_cell = terminal is None and self._terminal.is_jupyter
        self.progress_only = progress_only

    @contextmanager
    def phase(self, name: str, total: int, *, done: int = 0) -> Iterator[ProgressCallback]:
        """A bar of `total` units, `done` of them by an earlier process; yields its `ProgressCallback`.

        Beside it is what `doing` says.
        """
        progress = Progress(
            TextColumn("{task.description:<9}"),
            BarColumn(bar_width=10),
            TaskProgressColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[text]}", table_column=Column(no_wrap=True)),
            console=self._terminal,
            disable=not self._terminal.is_terminal,
            speed_estimate_period=math.inf,
        )
        cell = InCell() if self._in_cell else None
        task = progress.add_task(name, total=total, completed=done, text="")

        def show(text: str) -> None:
            progress.update(task, text=text)
            if cell is not None:
                cell.show(f"{name} {progress.tasks[0].percentage:.0f} % {text}")

        def advance(*, resumed: int | None = None, **measures: float) -> None:
            if resumed is None:
                progress.advance(task)
            else:  # of an earlier process, which tell nothing about the speed
                progress.reset(task, completed=resumed)
            show("  ".join(f"{key.replace('_', ' ')} {value:.4g}" for key, value in measures.items()))

        with nullcontext() if self._in_cell else progress, steps_told(show):
            yield advance
            if not progress.finished:
                show("stopped early")
        if cell is not None:
            cell.show("")  # a notebook that is saved has no progress

    def say(self, text: str) -> None:
        """Print one line of plain text."""
        AnyConsole(quiet=self.progress_only).print(text, soft_wrap=True)
