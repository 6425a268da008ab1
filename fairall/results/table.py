"""Tables as data, and as Markdown, LaTeX and CSV."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import compress
from typing import Any, NamedTuple
from urllib.parse import quote

import pandas as pd

from fairall.errors import count

FORMULA = ("=", "+", "-", "@", "\t", "\r")  # first characters of a cell that a spreadsheet evaluates
# What begins markup in Markdown: backslashes where CommonMark and Python-Markdown both read them, else HTML's
# references.
MARKDOWN = str.maketrans(
    {character: f"\\{character}" for character in "\\`*_[]#!"}
    | {"&": "&amp;", "<": "&lt;", ">": "&gt;", "|": "&#124;", "^": "&#94;", "~": "&#126;", "$": "&#36;"}
)
# Characters that pdflatex lacks without further packages.
LATEX = str.maketrans({
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{",
    "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}",
    ">": r"\textgreater{}", "|": r"\textbar{}", '"': r"\textquotedbl{}", "−": "$-$", "±": r"$\pm$",
    "×": r"$\times$", "↑": r"$\uparrow$", "↓": r"$\downarrow$", "→": r"$\to$", "π": r"$\pi$",
    "λ": r"$\lambda$", "β": r"$\beta$", "μ": r"$\mu$", "†": r"\dag{}", "ỹ": r"$\tilde{y}$",
    "ũ": r"$\tilde{u}$", "Γ": r"$\Gamma$", "ε": r"$\varepsilon$",
})  # fmt: skip


@dataclass(frozen=True)
class Cell:
    """One value as shown."""

    ours: str = ""  # for instance "20.3 (0.5)"
    beside: str = ""  # the printed value and the difference from it
    best: bool = False  # whether it is shown bold
    marks: str = (
        ""  # F+ or F−: significantly better or worse than the baseline; R+ or R−: than the best rival
    )
    tests: str = ""  # what the marks say, in words
    outside: bool = False  # whether the printed value is outside its predictive interval


class Row(NamedTuple):
    """One row; rows of a group, for instance a data set, stand together."""

    group: str
    name: str  # for instance a method
    cells: list[Cell]


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
        """Whether any of its runs is finished."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class Table(Item):
    """A table, without rows where all of its runs are missing."""

    columns: Sequence[str]  # headings of the cells
    rows: Sequence[Row]
    records: Sequence[Mapping[str, Any]]  # one per value in plain units, with more detail, for the CSV
    setting: str = ""  # initial policy and protocol, where values stand beside printed ones of the same kind

    @property
    def shown(self) -> bool:
        """Whether it has rows."""
        return bool(self.rows)


def plus_minus(mean: float, std: float | None) -> str:
    """A mean and its deviation ×100, as the paper prints them.

    Examples:
        >>> plus_minus(0.203, 0.005)
        '20.3 (0.5)'
    """
    return hundredfold(mean) + ("" if std is None else f" ({hundredfold(std)})")


def hundredfold(value: float) -> str:
    """A number ×100 with one decimal, as the paper prints them.

    Examples:
        >>> hundredfold(-0.203), hundredfold(-0.0001)
        ('−20.3', '0.0')
    """
    shown = f"{100 * value:.1f}"
    return "0.0" if shown == "-0.0" else shown.replace("-", "−")


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


def without_empty(head: Sequence[str], rows: Sequence[Sequence[str]]) -> tuple[list[str], list[list[str]]]:
    """Headings and rows without the columns in which no row has a value.

    Examples:
        >>> without_empty(["measure", "mean", "paper"], [["utility", "0.2", ""], ["dpu", "0.1", ""]])
        (['measure', 'mean'], [['utility', '0.2'], ['dpu', '0.1']])
    """
    filled = [any(column) for column in zip(*rows, strict=True)] or [True] * len(head)
    return list(compress(head, filled)), [list(compress(row, filled)) for row in rows]


def markdown_rows(head: Sequence[str], rows: Iterable[Sequence[object]]) -> Markdown:
    """Headings and rows as a table in Markdown."""
    first, *others = (f"| {' | '.join(map(escaped, row))} |" for row in (head, *rows))
    return Markdown("\n".join([first, "|---" * len(head) + "|", *others]))


def markdown(table: Table) -> Markdown:
    """A table as Markdown, with title, note, and a line on what is missing."""

    def shown(cell: Cell) -> Markdown:
        ours = f"**{escaped(cell.ours)}**" if cell.best else escaped(cell.ours)
        beside = f"*{escaped(cell.beside)}*" if cell.beside else ""
        return Markdown(" ".join(filter(None, (ours, escaped(cell.marks), beside))))

    rows = [[row.group, row.name, *map(shown, row.cells)] for row in table.rows]
    lines = [f"### {escaped(table.title)}", "", escaped(table.note), ""]
    lines.append(markdown_rows(["", "", *table.columns], rows))
    if table.lacking.commands:
        names = ", ".join(dict.fromkeys(name for name, _ in table.lacking.commands))
        lines += ["", escaped(f"{table.lacking}: {names}.")]
    return Markdown("\n".join(lines) + "\n")


def latex(table: Table) -> str:
    r"""A `table*` environment for a document that uses booktabs and graphicx.

    Groups are separated by rules; the table is scaled down to the width of the text where it is wider.
    """

    def shown(cell: Cell) -> str:
        ours = cell.ours.translate(LATEX)
        marks = rf"\textsuperscript{{{cell.marks.translate(LATEX)}}}" if cell.marks else ""
        beside = rf" \textit{{{cell.beside.translate(LATEX)}}}" if cell.beside else ""
        return (rf"\textbf{{{ours}}}" if cell.best else ours) + marks + beside

    rows, group = [], None
    for row in table.rows:
        rule = "" if group in (None, row.group) else "\\midrule\n"
        first = "" if row.group == group else rule + row.group.translate(LATEX)
        rows.append([first, row.name.translate(LATEX), *map(shown, row.cells)])
        group = row.group
    frame = pd.DataFrame(rows, columns=["", " ", *(column.translate(LATEX) for column in table.columns)])
    tabular = frame.style.hide(axis="index").to_latex(column_format="l" * frame.shape[1], hrules=True)
    missing = f" {table.lacking}." if table.lacking.commands else ""
    return "\n".join([
        r"\begin{table*}[t]",
        r"\centering\small",
        rf"\caption{{{f'{table.title}. {table.note}{missing}'.translate(LATEX)}}}",
        rf"\label{{tab:{table.key.replace('_', '-')}}}",
        r"\resizebox{\ifdim\width>\textwidth\textwidth\else\width\fi}{!}{%",
        tabular.strip() + "}",
        r"\end{table*}",
        "",
    ])  # fmt: skip


def comma_separated(table: Table) -> str:
    """The records of a table as CSV, a line per value, in plain units.

    Texts that a spreadsheet would evaluate as a formula start with an apostrophe (OWASP, CSV injection).
    """

    def harmless(value: object) -> object:
        return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value

    records = [{key: harmless(value) for key, value in record.items()} for record in table.records]
    # As objects, since a column of whole numbers with gaps would become floats.
    return pd.DataFrame(records, dtype=object).to_csv(index=False, lineterminator="\n")
