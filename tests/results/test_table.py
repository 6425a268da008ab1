"""Tables as Markdown, read by two libraries."""

from html.parser import HTMLParser
from typing import Any

import pytest
from markdown import markdown as python_markdown  # type: ignore[import-untyped]
from markdown_it import MarkdownIt

from fairall.results.page import rendered
from fairall.results.table import Cell, Lacking, Row, Table, code, escaped, markdown, without_empty
from fairall.tracking.page import note_of_run

HOSTILE = [
    "[a](javascript:alert(1))", "![a](https://evil.example/x.png)", "[a]: javascript:b", "[a][b]",
    "<b>a</b>", "<javascript:a>", "a | b", "a\\|b", "`a` ``b``", "*a* **b** _c_ __d__", "~~a~~ a^b^ $a$",
    "a\n\n# b\r\n- c", "\\[a](javascript:b)", "&lt;b&gt; &amp;", "a\\", "# a", "> a", "a\u2028b",
    r"C:\new\[x]",
]  # fmt: skip
RENDER = {
    "Python-Markdown": lambda text: python_markdown(text, extensions=["tables"]),
    "CommonMark": MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).render,
}


class Read(HTMLParser):
    """Cells of a rendered table as text, and the names of all elements."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.cells: list[str] = []
        self.elements: set[str] = set()
        self.text = ""
        self.in_cell = False
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.add(tag)
        if tag in ("td", "th"):
            self.cells.append("")
            self.in_cell = True

    def handle_endtag(self, tag: str) -> None:
        self.in_cell = self.in_cell and tag not in ("td", "th")

    def handle_data(self, data: str) -> None:
        self.text += data
        if self.in_cell:
            self.cells[-1] += data


def table(text: str) -> Table:
    return Table(
        key="t", title=text, note=text, columns=[text, "b"], records=[],
        rows=[Row(text, text, [Cell(text, text, best=True), Cell("1")])],
        lacking=Lacking([(text, "command")], 1),
    )  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("library", RENDER)
def test_names_are_shown_as_they_are(library: str, text: str) -> None:
    own = table(text)
    read = Read(RENDER[library](markdown(own)))
    shown = " ".join(text.splitlines()).strip()
    assert read.cells == ["", "", shown, "b", shown, shown, f"{shown} {shown}", "1"]
    assert read.elements == {"h3", "p", "table", "thead", "tbody", "tr", "th", "td", "strong", "em"}
    assert read.text.count(shown) == 8  # title, note, heading, group, name, cell, beside, missing


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("library", RENDER)
def test_code_is_shown_as_it_is(library: str, text: str) -> None:
    read = Read(RENDER[library](f"- from {code(text)}."))
    assert read.elements <= {"ul", "li", "p", "code"}
    assert " ".join(text.splitlines()).strip() in read.text


@pytest.mark.parametrize("library", RENDER)
def test_templates_escape_what_they_are_given(library: str) -> None:
    text = HOSTILE[0]
    values = {
        "opening": [text, text],
        "setting": text,
        "tables": [table(text)],
        "figures": [],
        "not_run": [text],
    }
    read = Read(RENDER[library](rendered("results.md.jinja", values, "fairall.report")))
    assert "a" not in read.elements
    assert read.text.count(text) == 4 + 8


def test_a_number_and_nothing_are_values() -> None:
    assert (escaped(None), escaped(1.5), escaped(escaped("_"))) == ("", "1.5", r"\_")


def test_a_table_without_rows_keeps_its_columns() -> None:
    assert without_empty(["a", "b"], []) == (["a", "b"], [])


def test_the_note_of_a_run_escapes_names_and_warnings() -> None:
    config: dict[str, Any] = {
        group: {"name": "[a](javascript:b)"} for group in ("model", "dataset", "initial_policy", "protocol")
    }
    config |= {"cost": {"value": 0.5}, "seeds": 1, "preset": None, "schedule": {"time_steps": 8}, "world": {}}
    summary = {"warnings": ["[c](javascript:d)"], "measures": {}, "aggregate": {}, "references": {}}
    read = Read(RENDER["CommonMark"](note_of_run(config, summary, "1", "2")))
    assert "[a](javascript:b) on" in read.text
    assert "[c](javascript:d)" in read.text
