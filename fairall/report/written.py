"""Tables as Markdown, LaTeX, CSV and plain text."""

from __future__ import annotations

import csv
import io
import itertools
from collections.abc import Iterator

from fairall.report.table import Cell, Row, Table

MISSING = "missing"
FORMULA = ("=", "+", "-", "@", "\t", "\r")  # first characters of a cell that a spreadsheet evaluates
# Characters that pdflatex lacks without further packages.
LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{",
    "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}",
    ">": r"\textgreater{}", "|": r"\textbar{}", '"': r"\textquotedbl{}", "−": "$-$", "±": r"$\pm$",
    "×": r"$\times$", "↑": r"$\uparrow$", "↓": r"$\downarrow$", "π": r"$\pi$", "λ": r"$\lambda$",
    "β": r"$\beta$", "ỹ": r"$\tilde{y}$", "ũ": r"$\tilde{u}$",
}  # fmt: skip


def markdown(table: Table) -> str:
    """A table as Markdown, with title, note, and the commands of missing runs."""
    lines = [f"### {table.title}", "", table.note, ""]
    lines.append(f"| | | {' | '.join(map(_md, table.columns))} |")
    lines.append("|---" * (len(table.columns) + 2) + "|")
    lines += [
        f"| {_md(row.group)} | {_md(row.name)} | {' | '.join(map(_md_cell, row.cells))} |"
        for row in table.rows
    ]
    if table.commands:
        lines += ["", "Missing; made by:", "", *(f"    {command}" for command in table.commands)]
    return "\n".join(lines) + "\n"


def _md(text: str) -> str:
    plain = text.replace("&", "&amp;").replace("<", "&lt;")
    return plain.replace("|", r"\|").replace("^", r"\^").replace("_", r"\_")


def _md_cell(cell: Cell) -> str:
    ours = MISSING if cell.missing else _md(cell.ours)
    if cell.best:
        ours = f"**{ours}**"
    beside = f"*{_md(cell.beside)}*" if cell.beside else ""
    return " ".join(part for part in (ours, _md(cell.marks), beside) if part)


def latex(table: Table) -> str:
    r"""A `table*` environment for a document that uses booktabs and graphicx.

    Groups are separated by rules; the table is scaled down to the width of the text where it is wider.
    """
    head = " & ".join(["", "", *map(_tex, table.columns)]) + r" \\"
    body: list[str] = []
    for i, (group, rows) in enumerate(_groups(table)):
        if i:
            body.append(r"\midrule")
        for j, row in enumerate(rows):
            cells = " & ".join([_tex(group) if j == 0 else "", _tex(row.name), *map(_tex_cell, row.cells)])
            body.append(cells + r" \\")
    lines = [
        r"\begin{table*}[t]",
        r"\centering\small",
        rf"\caption{{{_tex(table.title)}. {_tex(table.note)}}}",
        rf"\label{{tab:{table.key.replace('_', '-')}}}",
        r"\resizebox{\ifdim\width>\textwidth\textwidth\else\width\fi}{!}{%",
        rf"\begin{{tabular}}{{ll{'l' * len(table.columns)}}}",
        r"\toprule",
        head,
        r"\midrule",
        *body,
        r"\bottomrule",
        r"\end{tabular}}",
        r"\end{table*}",
    ]
    return "\n".join(lines) + "\n"


def _groups(table: Table) -> Iterator[tuple[str, list[Row]]]:
    for group, rows in itertools.groupby(table.rows, key=lambda row: row.group):
        yield group, list(rows)


def _tex(text: str) -> str:
    return "".join(LATEX.get(character, character) for character in text)


def _tex_cell(cell: Cell) -> str:
    ours = MISSING if cell.missing else _tex(cell.ours)
    if cell.best:
        ours = rf"\textbf{{{ours}}}"
    marks = rf"\textsuperscript{{{_tex(cell.marks)}}}" if cell.marks else ""
    beside = rf" \textit{{{_tex(cell.beside)}}}" if cell.beside else ""
    return ours + marks + beside


def plain(table: Table) -> str:
    """Aligned columns without markup, for a terminal."""
    lines = [
        ["", "", *table.columns],
        *([row.group, row.name, *(c.ours for c in row.cells)] for row in table.rows),
    ]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def comma_separated(table: Table) -> str:
    """The records of a table as CSV, a line per value, in plain units."""
    text = io.StringIO()
    if table.records:
        writer = csv.DictWriter(text, list(table.records[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows({key: _harmless(value) for key, value in row.items()} for row in table.records)
    return text.getvalue()


def _harmless(value: object) -> object:
    """A cell that no spreadsheet evaluates as a formula (OWASP, CSV injection)."""
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value
