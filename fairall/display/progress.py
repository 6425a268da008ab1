"""Progress of a long computation, on standard error or in a notebook's cell."""

from __future__ import annotations

import io
import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Column

from fairall.display.console import AnyConsole
from fairall.runtime.steps import steps_told

ProgressCallback = Callable[..., None]
"""Reports that one unit of work is done, with current values to display as keywords.

`resumed=n` alone reports n units that an earlier process has done, which do not count for the speed.
"""

CELL, REFRESHED = 100, 0.2  # columns of a notebook's cell, and seconds between two texts there
# Time of a unit of a phase, in epochs of Phase I. Measured for FairAll and FairLab on three data sets: 0.4 to
# 6 in the warm-up, 2.6 to 6 in Phase II.
EPOCHS = {"Phase I": 1, "Warm-up": 2, "Phase II": 4}


class InCell:
    """Progress in the output of a notebook's cell, as one text that changes and is gone at the end.

    Rich's own needs ipywidgets.

    Args:
        progress: of rich, whose console is the notebook's.
    """

    def __init__(self, progress: Progress) -> None:
        from IPython.display import display

        self.progress, self.told = progress, time.monotonic()
        self.handle = display(self.text(), raw=True, display_id=True)

    def text(self) -> dict[str, str]:
        """The bars as they are now."""
        console = Console(file=io.StringIO(), force_jupyter=False, width=CELL, color_system=None)
        console.print(self.progress.get_renderable())
        assert isinstance(console.file, io.StringIO)
        return {"text/plain": console.file.getvalue().rstrip()}

    def update(self) -> None:
        """Show the bars, unless they were shown a moment ago."""
        if time.monotonic() - self.told >= REFRESHED:
            self.told = time.monotonic()
            self.handle.update(self.text(), raw=True)

    def clear(self) -> None:
        """Show nothing more: a notebook that is saved has no times."""
        self.handle.update({"text/plain": ""}, raw=True)


class Display:
    """Progress on standard error or in a notebook's cell, silent where there is neither; lines on stdout.

    Args:
        progress_only: print no lines and no results, for one trial of many.
        terminal: for progress; standard error by default.
    """

    def __init__(self, *, progress_only: bool = False, terminal: Console | None = None) -> None:
        # Where FORCE_COLOR is set, as in notebooks, rich would take any stream for a terminal.
        self._progress_console = terminal or Console(stderr=True, force_terminal=sys.stderr.isatty())
        self._in_cell = terminal is None and self._progress_console.is_jupyter
        self._console = AnyConsole(quiet=progress_only)
        self.progress_only = progress_only
        self._run: dict[str, int] = {}  # epochs of Phase I that the phases take as long as

    def run_of(self, units: dict[str, int]) -> None:
        """Set the phases of a run in order, with the units of each, so that its end can be estimated."""
        self._run = {name: EPOCHS[name] * number for name, number in units.items()}

    @contextmanager
    def phase(self, name: str, total: int, *, done: int = 0) -> Iterator[ProgressCallback]:
        """A bar of `total` units, `done` of them by an earlier process; yields its `ProgressCallback`.

        Beside it is what `runtime.steps.doing` says. Below it is a bar of the run, in epochs of Phase I, if
        the phase is one of `run_of`.
        """
        progress = Progress(
            TextColumn("{task.description:<9}"),
            BarColumn(bar_width=10),
            TaskProgressColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[measures]}", table_column=Column(no_wrap=True)),
            console=self._progress_console,
            disable=not self._progress_console.is_terminal,
            speed_estimate_period=math.inf,
        )
        names, epochs = list(self._run), EPOCHS.get(name, 0)
        before = sum(self._run[past] for past in names[: names.index(name)]) if name in names else 0
        of_run, behind = sum(self._run.values()), before + epochs * done
        with progress if not self._in_cell else nullcontext():
            task = progress.add_task(name, total=total, completed=done, measures="")
            run = progress.add_task("Run", visible=name in names, total=of_run, completed=behind, measures="")
            cell = InCell(progress) if self._in_cell else None

            def advance(*, resumed: int | None = None, **measures: float) -> None:
                shown = "  ".join(f"{key.replace('_', ' ')} {value:.4g}" for key, value in measures.items())
                for one, units in ((task, 1), (run, epochs)):
                    if resumed is None:
                        progress.advance(one, units)
                    else:  # of an earlier process, which tell nothing about the speed
                        progress.reset(one, completed=int(progress.tasks[one].completed) + units * resumed)
                progress.update(task, measures=shown)
                if cell is not None:
                    cell.update()

            with steps_told(lambda what: progress.update(task, measures=what)):
                yield advance
            if progress.tasks[task].completed < total:
                progress.update(task, measures="stopped early")
            if cell is not None:
                cell.clear()

    def say(self, text: str) -> None:
        """Print one line of plain text."""
        self._console.print(text, soft_wrap=True)
