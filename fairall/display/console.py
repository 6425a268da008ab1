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
NARROW = 18  # columns down to which a text is wrapped


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

        A table that is too wide loses its frame, texts and headings are wrapped, and at last it is divided
        into several tables with the same first column.
        """
        if table.title:
            self.print(table.title, style="table.title")
        for i, part in enumerate(self._fitting(table)):
            if i:
                self.print()
            console = AnyConsole(width=self._natural(part), quiet=self.quiet)
            with console.capture() as captured:
                console.print(part)
            self.file.write("\n".join(map(str.rstrip, captured.get().splitlines())) + "\n")
        if table.caption:
            self.print(table.caption, style="table.caption")

    def _fitting(self, table: Table) -> list[Table]:
        """The table, or where it is too wide tables of some of its columns each."""
        bare = copy(table)
        bare.title = bare.caption = None
        bare.columns = [replace(one, no_wrap=True) for one in table.columns]
        if self._natural(bare) <= self.width:
            return [bare]
        first, *others = map(self._wrapped, table.columns)
        parts = [[first]]
        for one in others:
            if len(parts[-1]) > 1 and _least(parts[-1]) + GAP + (one.min_width or 0) > self.width:
                parts.append([first])
            parts[-1].append(one)
        return [self._narrowed(table, part) for part in parts]

    def _natural(self, table: Table) -> int:
        """Width of a table of which nothing is wrapped."""
        return self.measure(table, options=self.options.update(max_width=sys.maxsize)).maximum

    def _wrapped(self, column: Column) -> Column:
        """The column with its least width, and its width where nothing is wrapped."""
        heading, *cells = (shown(str(text), self.encoding) for text in (column.header, *column.cells))
        natural = _longest([*heading.splitlines(), *chain(*map(str.splitlines, cells))])
        if any(map(str.isalpha, "".join(cells))):
            least = min(NARROW, natural)
        else:
            least = _longest([*heading.split(), *cells])
        return replace(column, min_width=least, width=natural)

    def _narrowed(self, table: Table, columns: list[Column]) -> Table:
        """A table of these columns, the widest of which are narrowed until it fits or has its least width."""
        widths = [one.width or 0 for one in columns]
        while sum(widths) + GAP * (len(widths) - 1) > self.width:
            wide = [
                width if width > (one.min_width or 0) else 0
                for width, one in zip(widths, columns, strict=True)
            ]
            if not any(wide):
                break
            widths[wide.index(max(wide))] -= 1
        part = Table(
            box=None,
            pad_edge=False,
            padding=(0, GAP, 0, 0),
            show_header=table.show_header,
            header_style=table.header_style,
        )
        for one, width in zip(columns, widths, strict=True):
            part.add_column(one.header, width=width, justify=one.justify, overflow="fold")
        for row in zip(*(one.cells for one in columns), strict=True):
            part.add_row(*row)
        return part


def say(what: str | Table) -> None:
    """Print one line of plain text, or a table, on standard output."""
    if isinstance(what, Table):
        AnyConsole().print_table(what)
    else:
        AnyConsole().print(what, soft_wrap=True)


def _least(columns: Iterable[Column]) -> int:
    """Least width of a table without a frame."""
    return sum((one.min_width or 0) + GAP for one in columns) - GAP


def _longest(texts: Iterable[str]) -> int:
    return max((cell_len(text.strip()) for text in texts), default=0)
