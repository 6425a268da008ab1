"""Tables of text for terminals, pages, Markdown, LaTeX and CSV."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

import pandas as pd
from markupsafe import Markup
from rich.cells import cell_len
from rich.table import Table

from fairall.display.progress import AnyConsole

if TYPE_CHECKING:
    from pandas.io.formats.style import Styler  # imports jinja2

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
    Γ $\Gamma$  ε $\varepsilon$  ≥ $\geq$
""".split()
WIDTH = r"\ifdim\width>\textwidth\textwidth\else\width\fi"  # of a table, at most that of the text
LATEX = str.maketrans(dict(zip(_PAIRS[::2], _PAIRS[1::2], strict=True)))


BETWEEN = 3  # characters between two cells on a terminal
NARROW = 24  # characters down to which a cell is wrapped


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


class Format(NamedTuple):
    """How a cell is written: templates of the best value, of its marks, and of what stands beside it."""

    escape: Callable[[str], str]
    best: str
    marks: str
    beside: str

    def cell(self, cell: Cell | str) -> Markdown:
        """A cell with its text escaped."""
        if isinstance(cell, str):
            return Markdown(self.escape(cell))
        text = self.best if cell.best else "{}"
        parts = {text: cell.text, self.marks: cell.marks, self.beside: cell.beside}
        return Markdown("".join(t.format(self.escape(part)) for t, part in parts.items() if part).strip())

    def styler(self, frame: pd.DataFrame) -> Styler:
        """A frame whose cells and headings are written so, as pandas writes files of it."""
        shown = frame.map(self.cell).rename(index=self.escape, columns=self.escape)
        return shown.style.hide(names=True)


FORMATS = {
    "text": Format(str, "{}*", " {}", " ({})"),
    "md": Format(escaped, "**{}**", " {}", " *{}*"),
    "html": Format(escape, "<b>{}</b>", "<sup>{}</sup>", "<i>{}</i>"),
    "tex": Format(
        lambda text: text.translate(LATEX), r"\textbf{{{}}}", r"\textsuperscript{{{}}}", r" \textit{{{}}}"
    ),
}


@dataclass(frozen=True)
class Cell:
    """One value as shown; `str` makes it plain text.

    Attributes:
        text: for instance `20.3 ± 0.5`.
        beside: what it is compared with, for instance a printed value.
        best: whether it is shown bold.
        marks: superscript, for instance `F+` for significantly better than the baseline.
    """

    text: str = ""
    beside: str = ""
    best: bool = False
    marks: str = ""

    def __str__(self) -> str:
        return FORMATS["text"].cell(self)


class Row(NamedTuple):
    """One row; rows of a group, for instance a data set, stand together."""

    group: str
    name: str  # for instance a method
    cells: Sequence[Cell | str]


@dataclass(frozen=True, kw_only=True)
class Item:
    """A table or figure of a page."""

    key: str  # name of its files
    title: str  # one line
    note: str  # units and meaning, or caption and alternative text
    section: str = "Tables"
    lacking: Sequence[tuple[str, str]] = ()  # name of each missing run, and the command that makes it

    @property
    def shown(self) -> bool:
        """Whether there is something to show: rows of a table, or the drawing of a figure."""
        return len(self.frame) > 0 if isinstance(self, PageTable) else getattr(self, "draw", None) is not None


@dataclass(frozen=True, kw_only=True)
class PageTable(Item):
    """A table of a page.

    Attributes:
        frame: what is shown: `Cell` or text, indexed by group and name of the row (see `frame_of`), or by
            names alone.
        records: for the CSV file: a row per value in plain units, with more detail.
        setting: initial policy and protocol, where values stand beside printed ones of the same kind.
    """

    frame: pd.DataFrame
    records: pd.DataFrame
    setting: str = ""


def frame_of(columns: Sequence[str], rows: Iterable[Row]) -> pd.DataFrame:
    """The frame of a `PageTable`.

    Args:
        columns: headings of the cells.
        rows: of the table.
    """
    rows = [*rows]
    index = pd.MultiIndex.from_tuples([row[:2] for row in rows], names=["group", "name"])
    return pd.DataFrame([row.cells for row in rows], index, [*columns], dtype=object)


def records_of(records: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """Records of a `PageTable`; whole numbers stay so in columns with gaps."""
    return pd.DataFrame([*records], dtype=object)


def without_empty(frame: pd.DataFrame) -> pd.DataFrame:
    """A frame without the columns in which no cell has a text.

    Examples:
        >>> list(without_empty(pd.DataFrame({"mean": ["0.2", "0.1"], "paper": ["", ""]})).columns)
        ['mean']
    """
    return frame.loc[:, (frame.map(str) != "").any()] if len(frame) else frame


def code(text: str) -> Markdown:
    """Markdown that shows a text as code, in one line and with apostrophes in place of backticks.

    Examples:
        >>> print(code("sex"))
        `sex`
    """
    return Markdown(f"`{' '.join(text.splitlines()).replace('`', chr(39))}`")


def markdown_rows(head: Sequence[object], rows: Iterable[Sequence[object]]) -> Markdown:
    """Headings and rows as a table in Markdown."""
    lines = [f"| {' | '.join(map(escaped, row))} |" for row in (head, *rows)]
    return Markdown("\n".join([lines[0], "|---" * len(head) + "|", *lines[1:]]))


def to_markdown(table: PageTable) -> Markdown:
    """A table as Markdown, with title and note."""
    write, levels = FORMATS["md"].cell, table.frame.index.nlevels
    rows = (
        [*(index if levels > 1 else [index]), *map(write, cells)]
        for index, *cells in table.frame.itertuples()
    )
    body = markdown_rows([*[""] * levels, *table.frame.columns], rows)
    return Markdown(f"### {escaped(table.title)}\n\n{escaped(table.note)}\n\n{body}\n")


def to_html(table: PageTable) -> Markup:
    """The frame of a table as HTML, rows of a group together."""
    styler = FORMATS["html"].styler(table.frame)
    return Markup(styler.to_html(table_uuid=table.key, cell_ids=False, exclude_styles=True))


def to_latex(table: PageTable) -> str:
    """A `table*` at most as wide as the text, for a document that uses booktabs and graphicx."""
    latex = (
        FORMATS["tex"]
        .styler(table.frame)
        .to_latex(
            environment="table*",
            position="t",
            position_float="centering",
            caption=f"{table.title}. {table.note}".translate(LATEX),
            label=f"tab:{table.key.replace('_', '-')}",
            hrules=True,
            multirow_align="naive",
        )
    )
    latex = latex.replace(r"\begin{tabular}", rf"\resizebox{{{WIDTH}}}{{!}}{{\begin{{tabular}}")
    return latex.replace(r"\end{tabular}", r"\end{tabular}}")


def to_csv(table: PageTable) -> str:
    """The records of a table as CSV, a line per value, in plain units.

    Texts that a spreadsheet would evaluate as a formula start with an apostrophe (OWASP, CSV injection).
    """
    harmless = table.records.astype(object).replace(r"^([=+\-@\t\r])", r"'\1", regex=True)
    return harmless.to_csv(index=False, lineterminator="\n")


def print_frame(frame: pd.DataFrame, *, title: str = "", caption: str = "", first: str = "") -> None:
    """Print a frame on the terminal, without empty columns; columns of numbers are right-aligned.

    Columns that do not fit beside the index follow below, in further blocks with the index. What is longer
    than half the terminal (but at least `NARROW`) is wrapped.

    Args:
        frame: of `Cell` or text.
        title: above it.
        caption: below it.
        first: heading of the index.
    """
    console, texts = AnyConsole(), without_empty(frame.map(str))
    texts.insert(0, first, texts.index.map(str), allow_duplicates=True)
    most = max(console.width // 2, NARROW)
    widths = [min(max(map(cell_len, [str(name), *cells])), most) for name, cells in texts.items()]
    blocks = [[0]]
    for k, width in enumerate(widths[1:], start=1):
        used = sum(widths[i] + BETWEEN for i in blocks[-1])
        if used + width + BETWEEN >= console.width and blocks[-1] != [0]:
            blocks.append([0])
        blocks[-1].append(k)
    grids = [Table() for _ in blocks]
    for grid, block in zip(grids, blocks, strict=True):
        for k in block:
            is_text = k == 0 or texts.iloc[:, k].str.contains(r"^[^\W\d_]|[^\W\d_]{2}").any()
            grid.add_column(
                str(texts.columns[k]),
                justify="left" if is_text else "right",
                overflow="fold",
                min_width=widths[k],
            )
        for row in texts.iloc[:, block].itertuples(index=False):
            grid.add_row(*row)
    for part in filter(None, [title, *grids, caption]):
        console.print(part, crop=False)


def print_table(table: PageTable) -> None:
    """Print a table group by group, with its title and note."""
    console = AnyConsole()
    console.print(f"{table.title}\n{table.note.replace('Bold:', '*:')}\n")
    for group, frame in table.frame.groupby(level=0, sort=False):
        print_frame(frame.droplevel(0), title=str(group))
    console.print()
