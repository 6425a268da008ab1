"""Tables as data, and as Markdown, LaTeX and CSV."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from fairall.report.plan import Lacking
from fairall.report.statistics import LEVEL

FORMULA = ("=", "+", "-", "@", "\t", "\r")  # first characters of a cell that a spreadsheet evaluates
HTML = str.maketrans({"&": "&amp;", "<": "&lt;", "|": r"\|", "^": r"\^", "_": r"\_"})
# Characters that pdflatex lacks without further packages.
LATEX = str.maketrans({
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{",
    "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}",
    ">": r"\textgreater{}", "|": r"\textbar{}", '"': r"\textquotedbl{}", "−": "$-$", "±": r"$\pm$",
    "×": r"$\times$", "↑": r"$\uparrow$", "↓": r"$\downarrow$", "π": r"$\pi$", "λ": r"$\lambda$",
    "β": r"$\beta$", "ỹ": r"$\tilde{y}$", "ũ": r"$\tilde{u}$",
})  # fmt: skip


@dataclass(frozen=True)
class Cell:
    """One value as shown.

    Attributes:
        ours: for instance "20.3 (0.5)"; empty for no value.
        beside: the printed value and the difference from it.
        best: whether it is shown bold.
        marks: F+ or F−: significantly better or worse than the baseline; R+ or R−: than the best rival.
        tests: both tests in words.
    """

    ours: str = ""
    beside: str = ""
    best: bool = False
    marks: str = ""
    tests: str = ""

    @classmethod
    def of(cls, standing: Mapping[str, Any] | None, beside: str = "") -> Cell:
        """A cell with a standing, of `statistics.standings`, beside a printed value."""
        if standing is None:
            return cls(beside=beside)
        marks, tests = [], []
        for letter, role in (("F", "baseline"), ("R", "rival")):
            p = standing.get(f"p_{role}")
            if p is not None:
                better = standing[f"better_than_{role}"]
                tests.append(f"{'better' if better else 'worse'} than {standing[role]}, p = {p:.3g}")
                marks += [f"{letter}{'+' if better else '−'}"] if p < LEVEL else []
        shown = plus_minus(standing["mean"], standing["std"])
        return cls(shown, beside, standing["best"], " ".join(marks), "; ".join(tests))


@dataclass(frozen=True)
class Row:
    """One row.

    Attributes:
        group: shared by rows of a group, for instance a data set.
        name: of the row, for instance a method.
        cells: one per column.
    """

    group: str
    name: str
    cells: list[Cell]


@dataclass(frozen=True)
class Table:
    """A table.

    Attributes:
        key: name of its files.
        title: one line.
        note: units, and the meaning of cells.
        columns: headings of the cells.
        rows: in order, groups together; none where all runs are missing.
        records: a dict per value in plain units, with more detail, for the CSV.
        section: of the page.
        lacking: what is missing.
        setting: initial policy and protocol, where its values stand beside printed ones of the same kind.
    """

    key: str
    title: str
    note: str
    columns: list[str]
    rows: list[Row]
    records: Sequence[Mapping[str, Any]]
    section: str = "Tables"
    lacking: Lacking = field(default_factory=lambda: Lacking([], 0))
    setting: str = ""


def plus_minus(mean: float, std: float | None) -> str:
    """A mean and its deviation ×100, as the paper prints them.

    Examples:
        >>> plus_minus(0.203, 0.005)
        '20.3 (0.5)'
    """
    return _plain(100 * mean) + ("" if std is None else f" ({_plain(100 * std)})")


def _plain(value: float) -> str:
    return f"{value:.1f}".replace("-0.0", "0.0").replace("-", "−")


def markdown(table: Table) -> str:
    """A table as Markdown, with title, note, and a line on what is missing."""

    def shown(cell: Cell) -> str:
        ours, beside = cell.ours.translate(HTML), cell.beside.translate(HTML)
        parts = (f"**{ours}**" if cell.best else ours, cell.marks, f"*{beside}*" if beside else "")
        return " ".join(filter(None, parts))

    rows = [
        [row.group.translate(HTML), row.name.translate(HTML), *map(shown, row.cells)] for row in table.rows
    ]
    head = f"| | | {' | '.join(column.translate(HTML) for column in table.columns)} |"
    lines = [f"### {table.title}", "", table.note, "", head, "|---" * (len(table.columns) + 2) + "|"]
    lines += [f"| {' | '.join(row)} |" for row in rows]
    if table.lacking.commands:
        names = ", ".join(dict.fromkeys(name for name, _ in table.lacking.commands))
        lines += ["", f"{table.lacking}: {names}."]
    return "\n".join(lines) + "\n"


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
    """The records of a table as CSV, a line per value, in plain units."""
    records = [{key: _harmless(value) for key, value in record.items()} for record in table.records]
    # As objects, since a column of whole numbers with gaps would become floats.
    return pd.DataFrame(records, dtype=object).to_csv(index=False, lineterminator="\n")


def _harmless(value: object) -> object:
    """A cell that no spreadsheet evaluates as a formula (OWASP, CSV injection)."""
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value


def plain(table: Table) -> str:
    """Aligned columns without markup, for a terminal."""
    lines = [["", "", *table.columns]]
    lines += [[row.group, row.name, *(cell.ours for cell in row.cells)] for row in table.rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    padded = [[text.ljust(width) for text, width in zip(line, widths, strict=True)] for line in lines]
    return "\n".join("  ".join(line).rstrip() for line in padded)
