"""The report as one HTML file without network access or scripts, for light and dark screens of any width."""

from __future__ import annotations

import base64
import itertools
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib.resources import files

from fairall.errors import count
from fairall.report.contents import SECTIONS, Contents
from fairall.report.figure import ReportFigure
from fairall.report.statistics import Comparison
from fairall.report.table import Cell, Row, Table

Pictures = Mapping[str, tuple[bytes, bytes]]  # by key of the figure: light and dark PNG

OTHERS = "Other runs"
WIDE = ("acceptance",)  # figures of the width of the page


def page(contents: Contents, pictures: Pictures, made: Sequence[tuple[str, str]]) -> str:
    """The report's page.

    Args:
        contents: of the report.
        pictures: light and dark PNG of every figure with runs.
        made: time and versions, as name and value.
    """
    sections = []
    for name in SECTIONS:
        shown = [table for table in contents.tables if table.section == name]
        drawn = [figure for figure in contents.figures if figure.section == name]
        if not shown and not drawn:
            continue
        body = "".join(map(_table, shown))
        if drawn:
            figures = "".join(_figure(figure, pictures.get(figure.key)) for figure in drawn)
            body += f'<div class="figures">{figures}</div>'
        sections.append((name, f'<h2 id="{_anchor(name)}">{escape(name)}</h2>{body}'))
    if contents.others is not None:
        name, body = OTHERS, _table(contents.others)
        if contents.shown:
            body = f"<details><summary>{count(len(contents.others.rows), 'run')}</summary>{body}</details>"
        # First where there is nothing else to show.
        at = len(sections) if contents.shown else 0
        sections.insert(at, (name, f'<h2 id="{_anchor(name)}">{name}</h2>{body}'))
    links = "".join(f'<li><a href="#{_anchor(name)}">{escape(name)}</a></li>' for name, _ in sections)
    return document(
        "FairAll: the paper's tables and figures",
        f"<p>{escape(contents.opening[0])}</p>{_list(contents.opening[1:])}<nav><ul>{links}</ul></nav>"
        + "".join(html for _, html in sections)
        + _unused(contents)
        + _made(made),
    )


def comparison_page(
    tables: Sequence[Table],
    figure: ReportFigure,
    picture: tuple[bytes, bytes],
    made: Sequence[tuple[str, str]],
) -> str:
    """Page of a comparison of runs."""
    body = "".join(map(_table, tables)) + _figure(figure, picture) + _made(made)
    return document("FairAll: runs side by side", body)


def document(title: str, body: str) -> str:
    """An HTML document with the report's style."""
    style = files("fairall.report").joinpath("page.css").read_text()
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<link rel="icon" href="data:,"><title>{escape(title)}</title><style>{style}</style></head>'
        f"<body><main><h1>{escape(title)}</h1>{body}</main></body></html>\n"
    )


def _anchor(name: str) -> str:
    return name.lower().replace(":", "").replace(" ", "-")


def _table(table: Table) -> str:
    shown = '<p class="missing">missing</p>' if table.empty else grid(table)
    links = ", ".join(
        f'<a href="tables/{table.key}.{ending}">{word}</a>'
        for ending, word in (("md", "Markdown"), ("tex", "LaTeX"), ("csv", "CSV"))
    )
    return (
        f'<h3 id="{table.key}">{escape(table.title)}</h3>{shown}'
        f'<p class="note">{escape(table.note)} Also as {links}.</p>{missing(table.commands)}'
    )


def grid(table: Table) -> str:
    """A table as HTML."""
    heads = "".join(f'<th scope="col">{escape(column)}</th>' for column in table.columns)
    rows = []
    for group, lines in itertools.groupby(table.rows, key=lambda row: row.group):
        rows += [_row(row, group if i == 0 else "") for i, row in enumerate(lines)]
    return (
        f'<div class="scroll"><table><thead><tr><th></th><th></th>{heads}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def _row(row: Row, group: str) -> str:
    first = ' class="first"' if group else ""
    cells = "".join(map(_cell, row.cells))
    return f'<tr{first}><td>{escape(group)}</td><th scope="row">{escape(row.name)}</th>{cells}</tr>'


def _cell(cell: Cell) -> str:
    ours = '<span class="missing">missing</span>' if cell.missing else escape(cell.ours)
    if cell.best:
        ours = f"<b>{ours}</b>"
    marks = f'<sup title="{escape(_tests(cell))}">{escape(cell.marks)}</sup>' if cell.marks else ""
    beside = f"<i>{escape(cell.beside)}</i>" if cell.beside else ""
    return f"<td>{ours}{marks}{beside}</td>"


def _tests(cell: Cell) -> str:
    """Both tests as text, for the tooltip of a mark."""

    def in_words(comparison: Comparison | None) -> str:
        if comparison is None or comparison.p is None:
            return ""
        side = "better" if comparison.better else "worse"
        return f"{side} than {comparison.rival}, p = {comparison.p:.3g}"

    return "; ".join(filter(None, map(in_words, (cell.baseline, cell.rival))))


def _figure(figure: ReportFigure, picture: tuple[bytes, bytes] | None) -> str:
    wide = ' class="wide"' if figure.key.startswith(WIDE) else ""
    text = f"<b>{escape(figure.title)}.</b> {escape(figure.text)}"
    if picture is None:
        shown = '<p class="missing">missing</p>'
    else:
        light, dark = (f"data:image/png;base64,{base64.b64encode(png).decode()}" for png in picture)
        shown = (
            f'<picture><source media="(prefers-color-scheme: dark)" srcset="{dark}">'
            f'<img src="{light}" alt="{escape(figure.title)}: {escape(figure.text)}"></picture>'
        )
        links = f'<a href="figures/{figure.key}.png">PNG</a>, <a href="figures/{figure.key}.pdf">PDF</a>'
        text += f" Also as {links}."
    return (
        f'<figure{wide} id="figure-{figure.key}">{shown}<figcaption>{text}</figcaption>'
        f"{missing(figure.commands)}</figure>"
    )


def missing(commands: Sequence[str]) -> str:
    """The commands that make missing runs, folded."""
    if not commands:
        return ""
    lines = escape("\n".join(commands))
    summary = f"{len(commands)} missing; commands that make them"
    return f"<details><summary>{summary}</summary><pre>{lines}</pre></details>"


def _unused(contents: Contents) -> str:
    html = ""
    if contents.left_out:
        html += '<h2 id="left-out">Left out</h2><p>These folders hold no run that can be used.</p>'
        html += _list(f"{path}: {reason}" for path, reason in contents.left_out)
    if contents.passed_over:
        html += '<h2 id="passed-over">Passed over</h2>'
        html += "<p>Of these configurations a run that finished later is shown.</p>"
        html += _list(contents.passed_over)
    return html


def _made(made: Iterable[tuple[str, str]]) -> str:
    return '<p class="soft">' + escape("; ".join(f"{name} {value}" for name, value in made)) + ".</p>"


def _list(lines: Iterable[str]) -> str:
    return "<ul>" + "".join(f"<li>{escape(line)}</li>" for line in lines) + "</ul>"
