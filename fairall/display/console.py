"""Rich's console for terminals of any width."""

from __future__ import annotations

import os
import sys

from rich.console import Console

WIDE = 1000  # columns where the output is no terminal, so that nothing is wrapped


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
