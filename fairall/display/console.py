"""Rich's console for terminals of any width."""

from __future__ import annotations

import os
import sys

from rich.console import Console
from rich.table import Table

WIDE = 1000  # columns where the output is no terminal, so that nothing is wrapped
NARROW = 10  # columns down to which a text is wrapped


class AnyConsole(Console):
    """A console that prints text as it is, and tables of which nothing is cut off.

    In a notebook it prints plain text, of which long lines wrap; rich's own HTML cuts them off. In a file,
    where COLUMNS is not set, nothing is wrapped.
    """

    def __init__(self) -> None:
        width = None if sys.stdout.isatty() or "COLUMNS" in os.environ else WIDE
        super().__init__(width=width, force_jupyter=False, highlight=False, markup=False, emoji=False)

    def on_broken_pipe(self) -> None:
        """Raise BrokenPipeError, for `run_command`; rich would end the process with code 1."""
        raise BrokenPipeError

    def print_table(self, table: Table) -> None:
        """Print a table with its title and caption, once.

        Where it is too wide, texts and headings are wrapped; right-aligned columns, of numbers, are not, and
        lines of too many of them are longer than the terminal is wide.
        """
        for column in table.columns:
            narrow = WIDE if column.justify == "right" else NARROW
            column.min_width = min(max((len(str(cell)) for cell in column.cells), default=0), narrow)
            column.overflow = "fold"
        title, caption, table.title, table.caption = table.title, table.caption, None, None
        for part in filter(None, (title, table, caption)):
            self.print(part, crop=False)


def say(what: str | Table) -> None:
    """Print one line of plain text, or a table, on standard output."""
    if isinstance(what, Table):
        AnyConsole().print_table(what)
    else:
        AnyConsole().print(what, soft_wrap=True)
