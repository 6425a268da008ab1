"""Tables as data frames, and on a terminal, as Markdown, HTML, LaTeX and CSV."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any, NamedTuple
from urllib.parse import quote

import pandas as pd
import rich.table

from fairall.display.console import AnyConsole
from fairall.errors import count

FORMULA = ("=", "+", "-", "@", "\t", "\r")  # first characters of a cell that a spreadsheet evaluates
# What begins markup in Markdown: backslashes where CommonMark and Python-Markdown both read them, else HTML's
# references.
MARKDOWN = str.maketrans(
    {character: f"\\{character}" for character in "\\`*_[]#!"}
    | {"&": "&amp;", "<": "&lt;", ">": "&gt;", "|": "&#124;", "^": "&#94;", "~": "&#126;", "$": "&#36;"}
)
# Characters that pdflatex lacks without further packages.
_PAIRS = r"""
    \ \textbackslash{}  & \&  % \%  $ \$  # \#  _ \_  { \{  } \}  ~ \textasciitilde{}  ^ \textasciicircum{}
    < \textless{}  > \textgreater{}  | \textbar{}  " \textquotedbl{}  − $-$  ± $\pm$  × $\times$  ↑ $\uparrow$
    ↓ $\downarrow$  → $\to$  π $\pi$  λ $\lambda$  β $\beta$  μ $\mu$  † \dag{}  ỹ $\tilde{y}$  ũ $\tilde{u}$
    Γ $\Gamma$  ε $\varepsilon$
""".split()
LATEX = str.maketrans(dict(zip(_PAIRS[::2], _PAIRS[1::2], strict=True)))


@dataclass(frozen=True)
class Cell:
    """One value as shown.

    Attributes:
        text: for instance `20.3 ± 0.5`.
        beside: what it is compared with, for instance a printed value.
        best: whether it is shown bold.
        marks: superscript, for instance `F+` for significantly better than the baseline.
        tests: what the marks say, in words.
        outside: whether the printed value is outside its predictive interval.
    """

    text: str = ""
    beside: str = ""
    best: bool = False
    marks: str = ""
    tests: str = ""
    outside: bool = False


class Row(NamedTuple):
    """One row; rows of a group, for instance a data set, stand together."""

    group: str
    name: str  # for instance a method
    cells: Sequence[Cell | str]


@dataclass(frozen=True)
class Lacking:
    """What a table or figure needs and does not have."""

    commands: Sequence[tuple[str, str]] = ()  # name of each missing thing, and the command that makes it
    needed: int = 0
    thing: str = "run"

    def __str__(self) -> str:
        return f"{len(self.commands)} of {count(self.needed, self.thing)} missing"


@dataclass(frozen=True, kw_only=True)
class Item:
    """A table or figure of a page."""

    key: str  # name of its files
    title: str  # one line
    note: str  # units and meaning, or caption and alternative text
    section: str = "Tables"
    lacking: Lacking = field(default_factory=Lacking)

    @property
    def shown(self) -> bool:
        """Whether there is something to show."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class PageTable(Item):
    """A table of a page.

    Attributes:
        frame: what is shown: `Cell` or text, indexed by group and name of the row (see `frame_of`).
        records: for the CSV file: a row per value in plain units, with more detail.
        setting: initial policy and protocol, where values stand beside printed ones of the same kind.
    """

    frame: pd.DataFrame
    records: pd.DataFrame
    setting: str = ""

    @property
    def shown(self) -> bool:
        """Whether it has rows."""
        return len(self.frame) > 0


def frame_of(
    columns: Sequence[str], rows: Iterable[Row | tuple[str, str, Sequence[Cell | str]]]
) -> pd.DataFrame:
    """The frame of a `PageTable`.

    Args:
        columns: headings of the cells.
        rows: of the table.
    """
    rows = list(rows)
    index = pd.MultiIndex.from_tuples([(group, name) for group, name, _ in rows], names=["group", "name"])
    cells = [list(cells) for _, _, cells in rows]
    return pd.DataFrame(cells, index=index, columns=list(columns), dtype=object)


def records_of(records: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """Records of a `PageTable`; whole numbers stay so in columns with gaps."""
    return pd.DataFrame(list(records), dtype=object)


def without_empty(frame: pd.DataFrame) -> pd.DataFrame:
    """A frame without the columns in which no cell has a text.

    Examples:
        >>> list(without_empty(pd.DataFrame({"mean": ["0.2", "0.1"], "paper": ["", ""]})).columns)
        ['mean']
    """
    if not len(frame):
        return frame
    return frame.loc[:, [any(cell_text(cell) for cell in frame[name]) for name in frame.columns]]


def cell_text(cell: Cell | str) -> str:
    """A cell as plain text."""
    if isinstance(cell, str):
        return cell
    beside = f"({cell.beside})" if cell.beside else ""
    return " ".join(filter(None, (cell.text + "*" * cell.best, cell.marks, beside)))


class Markdown(str):
    """Text that is Markdown already."""

    __slots__ = ()


def escaped(value: object) -> Markdown:
    r"""A value as Markdown that shows its text, in one line; `Markdown` stays as it is.

    Examples:
        >>> print(escaped("[a](javascript:b)"))
        \[a\](javascript:b)
    """
    if isinstance(value, Markdown):
        return value
    return Markdown("" if value is None else " ".join(str(value).splitlines()).translate(MARKDOWN))


def code(text: str) -> Markdown:
    """Markdown that shows a text as code.

    Examples:
        >>> print(code("sex"), code("a`b"))
        `sex` `` a`b ``
    """
    line = " ".join(text.splitlines())
    longest = max(map(len, re.findall("`+", line)), default=0)
    fence, space = "`" * (longest + 1), " " if longest else ""
    return Markdown(f"{fence}{space}{line}{space}{fence}")


def address(path: str) -> Markdown:
    """A relative path as the address of a link."""
    return Markdown(quote(path))


def markdown_rows(head: Sequence[object], rows: Iterable[Sequence[object]]) -> Markdown:
    """Headings and rows as a table in Markdown."""
    first, *others = (f"| {' | '.join(map(escaped, row))} |" for row in (head, *rows))
    return Markdown("\n".join([first, "|---" * len(head) + "|", *others]))


def to_markdown(table: PageTable) -> Markdown:
    """A table as Markdown, with title, note, and a line on what is missing."""

    def shown(cell: Cell | str) -> Markdown:
        if isinstance(cell, str):
            return escaped(cell)
        ours = f"**{escaped(cell.text)}**" if cell.best else escaped(cell.text)
        beside = f"*{escaped(cell.beside)}*" if cell.beside else ""
        return Markdown(" ".join(filter(None, (ours, escaped(cell.marks), beside))))

    rows = [[*index, *map(shown, cells)] for index, *cells in table.frame.itertuples()]
    lines = [f"### {escaped(table.title)}", "", escaped(table.note), ""]
    lines.append(markdown_rows(["", "", *table.frame.columns], rows))
    if table.lacking.commands:
        names = ", ".join(dict.fromkeys(name for name, _ in table.lacking.commands))
        lines += ["", escaped(f"{table.lacking}: {names}.")]
    return Markdown("\n".join(lines) + "\n")


def to_html(table: PageTable) -> str:
    """The frame of a table as HTML, rows of a group together."""

    def shown(cell: Cell | str) -> str:
        if isinstance(cell, str):
            return escape(cell)
        text = f"<b>{escape(cell.text)}</b>" if cell.best else escape(cell.text)
        marks = f'<sup title="{escape(cell.tests)}">{escape(cell.marks)}</sup>' if cell.marks else ""
        kind = ' class="outside"' if cell.outside else ""
        return text + marks + (f"<i{kind}>{escape(cell.beside)}</i>" if cell.beside else "")

    frame = table.frame.map(shown).rename_axis(index=[None, None])
    style = frame.style.format_index(escape, axis=0).format_index(escape, axis=1)
    return style.to_html(table_uuid=table.key, cell_ids=False, exclude_styles=True)


def to_latex(table: PageTable) -> str:
    r"""A `table*` environment for a document that uses booktabs and graphicx.

    Groups are separated by rules; the table is scaled down to the width of the text where it is wider.
    """

    def shown(cell: Cell | str) -> str:
        if isinstance(cell, str):
            return cell.translate(LATEX)
        ours = cell.text.translate(LATEX)
        marks = rf"\textsuperscript{{{cell.marks.translate(LATEX)}}}" if cell.marks else ""
        beside = rf" \textit{{{cell.beside.translate(LATEX)}}}" if cell.beside else ""
        return (rf"\textbf{{{ours}}}" if cell.best else ours) + marks + beside

    rows, last = [], None
    for (group, name), *cells in table.frame.itertuples():
        rule = "" if last in (None, group) else "\\midrule\n"
        first = "" if group == last else rule + group.translate(LATEX)
        rows.append([first, name.translate(LATEX), *map(shown, cells)])
        last = group
    columns = ["", " ", *(column.translate(LATEX) for column in table.frame.columns)]
    style = pd.DataFrame(rows, columns=columns).style.hide(axis="index")
    tabular = style.to_latex(column_format="l" * len(columns), hrules=True)
    missing = f" {table.lacking}." if table.lacking.commands else ""
    return "\n".join(
        [
            r"\begin{table*}[t]",
            r"\centering\small",
            rf"\caption{{{f'{table.title}. {table.note}{missing}'.translate(LATEX)}}}",
            rf"\label{{tab:{table.key.replace('_', '-')}}}",
            r"\resizebox{\ifdim\width>\textwidth\textwidth\else\width\fi}{!}{%",
            tabular.strip() + "}",
            r"\end{table*}",
            "",
        ]
    )


def to_csv(table: PageTable) -> str:
    """The records of a table as CSV, a line per value, in plain units.

    Texts that a spreadsheet would evaluate as a formula start with an apostrophe (OWASP, CSV injection).
    """

    def harmless(value: object) -> object:
        return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value

    # As objects, since a column of whole numbers with gaps would become floats.
    columns = {name: list(map(harmless, own)) for name, own in table.records.astype(object).items()}
    return pd.DataFrame(columns, dtype=object).to_csv(index=False, lineterminator="\n")


def print_frame(frame: pd.DataFrame, *, title: str = "", caption: str = "", first: str = "") -> None:
    """Print a frame on the terminal, without empty columns; cells are right-aligned, the index is not.

    Args:
        frame: of `Cell` or text.
        title: above it.
        caption: below it.
        first: heading of the index.
    """
    frame = without_empty(frame)
    grid = rich.table.Table(
        title=title or None, title_justify="left", caption=caption or None, caption_justify="left"
    )
    grid.add_column(first)
    for name in frame.columns:
        texts = any(re.match(r"[^\W\d_]", cell_text(cell)) for cell in frame[name])
        grid.add_column(str(name), justify="left" if texts else "right")
    for name, *cells in frame.itertuples():
        grid.add_row(str(name), *map(cell_text, cells))
    AnyConsole().print_table(grid)


def print_table(table: PageTable) -> None:
    """Print a table group by group, with its title and note."""
    console = AnyConsole()
    console.print(table.title, style="bold")
    console.print(f"{table.note.replace('Bold:', '*:')}\n")
    for group, frame in table.frame.groupby(level=0, sort=False):
        print_frame(frame.droplevel(0), title=str(group))
    if table.lacking.commands:
        console.print(f"{table.lacking}.")
    console.print()
