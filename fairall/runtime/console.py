"""Rich's console for terminals of any encoding and width."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from copy import copy
from dataclasses import replace
from itertools import chain
from typing import Any

from rich.cells import cell_len
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from fairall.runtime.terminal import shown

WIDE = 1000  # columns where the output is no terminal, so that nothing is wrapped
GAP = 2  # columns between those of a table without a frame
NARROW = 16  # columns down to which a text is wrapped


class AnyConsole(Console):
    """A console that prints text as it is, and tables of which nothing is cut off.

    Characters that its encoding lacks are replaced before it computes column widths. In a notebook it prints
    plain text, of which long lines wrap; rich's own HTML cuts them off. In a file, where COLUMNS is not set,
    nothing is wrapped.
    """

    def __init__(self, **options: Any) -> None:
        as_it_is = {"force_jupyter": False, "highlight": False, "markup": False, "emoji": False}
        if not (sys.stdout.isatty() or "COLUMNS" in os.environ):
            options.setdefault("width", WIDE)
        super().__init__(**as_it_is | options)

    def render_str(self, text: str, **options: Any) -> Text:
        """The text with the characters replaced that the encoding lacks."""
        return super().render_str(shown(text, self.encoding), **options)

    def on_broken_pipe(self) -> None:
        """Raise BrokenPipeError, for `run_command`; rich would end the process with code 1."""
        raise BrokenPipeError

    def print_table(self, table: Table) -> None:
        """Print a table with its title and caption; numbers are neither cut nor wrapped.

        A table that is too wide loses its frame, and texts and headings are wrapped; where numbers alone are
        wider than the terminal, so are the lines.
        """
        if table.title:
            self.print(table.title, style="table.title")
        bare, width = copy(table), self.width
        bare.title = bare.caption = None
        bare.columns = [replace(one, no_wrap=True) for one in table.columns]
        wide = self.options.update(max_width=sys.maxsize)
        if self.measure(bare, options=wide).maximum > width:
            bare.box, bare.padding, bare.pad_edge = None, (0, GAP, 0, 0), False
            bare.columns = [self._narrowed(one) for one in table.columns]
            width = max(width, sum((one.min_width or 0) + GAP for one in bare.columns) - GAP)
        console = AnyConsole(width=width, quiet=self.quiet)
        with console.capture() as captured:
            console.print(bare)
        lines = captured.get().splitlines()
        self.file.write("\n".join(line.rstrip() for line in lines) + "\n")
        if table.caption:
            self.print(table.caption, style="table.caption")

    def _narrowed(self, column: Column) -> Column:
        """The column with the least width to which rich may narrow it."""
        heading, *cells = (shown(str(text), self.encoding) for text in (column.header, *column.cells))
        natural = _longest([*heading.splitlines(), *chain(*map(str.splitlines, cells))])
        if any(map(str.isalpha, "".join(cells))):
            least = min(NARROW, natural)
        else:
            least = _longest([*heading.split(), *cells])
        return replace(column, min_width=least, no_wrap=least == natural, overflow="fold")


def say(text: str) -> None:
    """Print one line of plain text on standard output."""
    AnyConsole().print(text, soft_wrap=True)


def _longest(texts: Iterable[str]) -> int:
    return max((cell_len(text.strip()) for text in texts), default=0)
