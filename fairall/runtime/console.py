"""Rich's console for terminals of any encoding and width."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import replace
from typing import Any, NamedTuple

from rich.cells import cell_len
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from fairall.runtime.terminal import shown

WIDE = 1000  # columns where the output is no terminal, so that nothing is wrapped
GAP = 2  # columns between those of a table without a frame
NARROW = 16  # columns down to which a text is wrapped before the table is divided
# Where a text may be wrapped: after a space, `_` or `/`, and before the dots of a key.
BREAK = re.compile(r"(?<=[\s_/])|(?=\.[^\W\d])")


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

        A table that is too wide loses its frame, then texts are wrapped, and at last it is divided into
        several tables with the same first column.
        """
        if table.title:
            self.print(table.title, style="table.title")
        for i, part in enumerate(self._fitting(table)):
            if i:
                self.print()
            with self.capture() as captured:
                self.print(part)
            lines = captured.get().splitlines()
            self.file.write("\n".join(line.rstrip() for line in lines) + "\n")
        if table.caption:
            self.print(table.caption, style="table.caption")

    def _fitting(self, table: Table) -> list[Table]:
        bare = copy(table)
        bare.title = bare.caption = None
        bare.columns = [replace(one, no_wrap=True) for one in table.columns]
        wide = self.options.update(max_width=sys.maxsize)
        if self.measure(bare, options=wide).maximum <= self.width:
            return [bare]
        fitted = [_Fitted.of(one, self.encoding) for one in table.columns]
        return [_without_frame(part, table) for part in _divided(fitted, self.width)]


def say(text: str) -> None:
    """Print one line of plain text on standard output."""
    AnyConsole().print(text, soft_wrap=True)


class _Fitted(NamedTuple):
    """A column of a table: its texts, styles, and the least and present width."""

    texts: Sequence[str]  # heading and cells
    styles: Sequence[Any]  # of the cells
    justify: Any
    least: int
    width: int

    @classmethod
    def of(cls, column: Column, encoding: str) -> _Fitted:
        cells = list(column.cells)
        heading, *values = (shown(str(text), encoding) for text in (column.header, *cells))
        longest = max((_longest(BREAK.split(text)) for text in (heading, *values)), default=1)
        natural = _longest(line for text in (heading, *values) for line in text.splitlines())
        if any(map(str.isalpha, "".join(values))):
            least = max(longest, min(NARROW, natural))
        else:
            least = max(_longest(values), _longest(BREAK.split(heading)))
        styles = [cell.style if isinstance(cell, Text) else "" for cell in cells]
        return cls([heading, *values], styles, column.justify, least, max(natural, 1))


def _divided(columns: Sequence[_Fitted], width: int) -> list[list[_Fitted]]:
    """Columns of one table, or of several that begin with the first column."""
    narrowed = list(columns)
    while sum(one.width + GAP for one in narrowed) - GAP > width:
        slack = [one.width if one.width > one.least else 0 for one in narrowed]
        widest = slack.index(max(slack))
        if not slack[widest]:
            break
        narrowed[widest] = narrowed[widest]._replace(width=slack[widest] - 1)
    else:
        return [narrowed]
    first, *others = (one._replace(width=one.least) for one in columns)
    room = max(1, width - GAP - max(one.width for one in others)) if others else width
    first = first._replace(width=min(columns[0].width, room, max(first.least, width // 3)))
    parts = [[first]]
    for one in others:
        used = sum(other.width + GAP for other in parts[-1])
        if used + one.width > width and len(parts[-1]) > 1:
            parts.append([first])
        parts[-1].append(one)
    return parts


def _without_frame(columns: Sequence[_Fitted], like: Table) -> Table:
    table = Table(
        box=None, pad_edge=False, show_header=like.show_header, header_style=like.header_style or "bold"
    )
    for one in columns:
        table.add_column(_wrapped(one.texts[0], one.width), justify=one.justify, overflow="fold")
    wrapped = [
        [
            Text(_wrapped(text, one.width), style)
            for text, style in zip(one.texts[1:], one.styles, strict=True)
        ]
        for one in columns
    ]
    for row in zip(*wrapped, strict=True):
        table.add_row(*row)
    return table


def _wrapped(text: str, width: int) -> str:
    """A text in lines of at most `width` characters."""
    lines = []
    for paragraph in text.splitlines():
        line = ""
        for part in BREAK.split(paragraph):
            if line and cell_len((line + part).rstrip()) > width:
                lines.append(line.rstrip())
                line = ""
            line += part
            while cell_len(line.rstrip()) > width:
                lines.append(line[:width])
                line = line[width:]
        lines.append(line.rstrip())
    return "\n".join(lines)


def _longest(texts: Iterable[str]) -> int:
    return max((cell_len(text.strip()) for text in texts), default=0)
