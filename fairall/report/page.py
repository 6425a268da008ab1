"""The report as one HTML file that needs nothing else: no network, no scripts; light, dark, wide and narrow."""

from __future__ import annotations

import base64
import itertools
from collections.abc import Iterable, Mapping, Sequence
from html import escape

from fairall.report.contents import SECTIONS, Contents
from fairall.report.drawing import Drawing
from fairall.report.statistics import Comparison
from fairall.report.table import Cell, Row, Table

Pictures = Mapping[str, tuple[bytes, bytes]]  # by figure: light and dark PNG

STYLE = """
:root { color-scheme: light dark; --ink: #1c2128; --soft: #57606a; --paper: #ffffff; --line: #d0d7de;
  --band: #f6f8fa; --accent: #0b5cad; --warn: #9a4a00; }
@media (prefers-color-scheme: dark) { :root { --ink: #d7dae0; --soft: #9aa4b2; --paper: #15181d; --line: #343b46;
  --band: #1d2229; --accent: #6db3f2; --warn: #f0a35e; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 16px/1.55 system-ui, sans-serif; }
main { max-width: 72rem; margin: 0 auto; padding: 1rem 1rem 4rem; }
h1 { font-size: 1.6rem; line-height: 1.25; } h2 { margin-top: 2.6rem; border-bottom: 1px solid var(--line); }
h3 { margin: 1.8rem 0 .3rem; font-size: 1.05rem; }
a { color: var(--accent); } p { max-width: 46rem; } .soft, .note { color: var(--soft); font-size: .85rem; }
nav ul { display: flex; flex-wrap: wrap; gap: .3rem 1.2rem; padding: 0; list-style: none; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; font-size: .88rem; min-width: 34rem; width: 100%; }
th, td { text-align: left; padding: .32rem .7rem .32rem 0; vertical-align: top; }
thead th { border-bottom: 1px solid var(--ink); } tbody tr.first td, tbody tr.first th { border-top: 1px solid var(--line); }
tbody th { font-weight: 500; } td i { display: block; color: var(--soft); font-size: .8rem; }
td { white-space: nowrap; } td.words { white-space: normal; min-width: 8rem; }
sup { color: var(--accent); font-size: .7rem; margin-left: .25rem; } .missing { color: var(--warn); }
.figures { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 27rem), 1fr)); gap: 1.5rem; }
figure { margin: 0; min-width: 0; } figure.wide { grid-column: 1 / -1; } figure img { width: 100%; height: auto; display: block; }
figcaption { font-size: .85rem; color: var(--soft); } figcaption b { color: var(--ink); }
pre { background: var(--band); padding: .7rem; overflow-x: auto; font-size: .8rem; }
details { margin: .5rem 0; } summary { cursor: pointer; color: var(--warn); font-size: .88rem; }
"""
WIDE = ("acceptance",)  # figures of the width of the page


def page(contents: Contents, pictures: Pictures, made: Sequence[tuple[str, str]]) -> str:
    """The whole file.

    Args:
        contents: what it shows.
        pictures: light and dark PNG of every figure that could be drawn.
        made: by what and when, name and value.
    """
    sections = []
    for name in SECTIONS:
        shown = [table for table in contents.tables if table.section == name]
        drawn = [drawing for drawing in contents.drawings if drawing.section == name]
        if not shown and not drawn:
            continue
        body = "".join(map(_table, shown))
        if drawn:
            figures = "".join(_figure(drawing, pictures.get(drawing.key)) for drawing in drawn)
            body += f'<div class="figures">{figures}</div>'
        sections.append((name, f'<h2 id="{_anchor(name)}">{escape(name)}</h2>{body}'))
    links = "".join(f'<li><a href="#{_anchor(name)}">{escape(name)}</a></li>' for name, _ in sections)
    return document(
        "FairAll: the paper's tables and figures",
        f"<p>{escape(contents.opening)}</p><nav><ul>{links}</ul></nav>"
        + "".join(html for _, html in sections)
        + _unused(contents)
        + _made(made),
    )


def document(title: str, body: str) -> str:
    """An HTML document with the report's style."""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<link rel="icon" href="data:,"><title>{escape(title)}</title><style>{STYLE}</style></head>'
        f"<body><main><h1>{escape(title)}</h1>{body}</main></body></html>\n"
    )


def _anchor(name: str) -> str:
    return name.lower().replace(":", "").replace(" ", "-")


def _table(table: Table) -> str:
    files = ", ".join(
        f'<a href="tables/{table.key}.{ending}">{word}</a>'
        for ending, word in (("md", "Markdown"), ("tex", "LaTeX"), ("csv", "CSV"))
    )
    return (
        f'<h3 id="{table.key}">{escape(table.title)}</h3>{grid(table)}'
        f'<p class="note">{escape(table.note)} Also as {files}.</p>{missing(table.commands)}'
    )


def grid(table: Table) -> str:
    """The table itself."""
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
    """Both tests in words, for who points at a mark."""

    def told(comparison: Comparison | None) -> str:
        if comparison is None or comparison.p is None:
            return ""
        side = "better" if comparison.better else "worse"
        return f"{side} than {comparison.rival}, p = {comparison.p:.3g}"

    return "; ".join(filter(None, map(told, (cell.baseline, cell.rival))))


def _figure(drawing: Drawing, picture: tuple[bytes, bytes] | None) -> str:
    wide = ' class="wide"' if drawing.key.startswith(WIDE) else ""
    text = f"<b>{escape(drawing.title)}.</b> {escape(drawing.text)}"
    if picture is None:
        shown = '<p class="missing">missing</p>'
    else:
        light, dark = (f"data:image/png;base64,{base64.b64encode(png).decode()}" for png in picture)
        shown = (
            f'<picture><source media="(prefers-color-scheme: dark)" srcset="{dark}">'
            f'<img src="{light}" alt="{escape(drawing.title)}: {escape(drawing.text)}"></picture>'
        )
        files = f'<a href="figures/{drawing.key}.png">PNG</a>, <a href="figures/{drawing.key}.pdf">PDF</a>'
        text += f" Also as {files}."
    return (
        f'<figure{wide} id="figure-{drawing.key}">{shown}<figcaption>{text}</figcaption>'
        f"{missing(drawing.commands)}</figure>"
    )


def missing(commands: Sequence[str]) -> str:
    """The commands that make what is missing, to be unfolded."""
    if not commands:
        return ""
    lines = escape("\n".join(commands))
    return f"<details><summary>{len(commands)} missing; what makes it</summary><pre>{lines}</pre></details>"


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
