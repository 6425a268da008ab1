"""Tables as Markdown, read by two libraries."""

from html.parser import HTMLParser

import pytest
from markdown import markdown as python_markdown  # type: ignore[import-untyped]
from markdown_it import MarkdownIt

from fairall.display.table import (
    Cell,
    Lacking,
    PageTable,
    Row,
    code,
    escaped,
    frame_of,
    print_table,
    records_of,
    to_csv,
    to_html,
    to_latex,
    to_markdown,
    without_empty,
)

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


def table(text: str) -> PageTable:
    return PageTable(
        key="t",
        title=text,
        note=text,
        frame=frame_of([text, "b"], [Row(text, text, [Cell(text, text, best=True), "1"])]),
        records=records_of([{"a": text}]),
        lacking=Lacking([(text, "command")], 1),
    )


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("library", RENDER)
def test_names_are_shown_as_they_are(library: str, text: str) -> None:
    own = table(text)
    read = Read(RENDER[library](to_markdown(own)))
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


@pytest.mark.parametrize("text", HOSTILE)
def test_a_page_shows_names_as_they_are(text: str) -> None:
    read = Read(to_html(table(text)))
    assert read.elements == {"table", "thead", "tbody", "tr", "th", "td", "b", "i"}
    assert read.cells[-4:] == [text, text, text + text, "1"]


def test_marks_and_bold_in_every_format(capsys: pytest.CaptureFixture[str]) -> None:
    cell = Cell("20.3 ± 0.5", "19.8", best=True, marks="F+", tests="better than a", outside=True)
    one = PageTable(
        key="my_key",
        title="Title",
        note="Bold: best.",
        frame=frame_of(["utility ↑", "empty"], [Row("A", "x", [cell, ""]), Row("B", "y", ["1", ""])]),
        records=records_of([{"value": 0.203, "seeds": 3}, {"value": None, "seeds": None}]),
    )
    assert "**20.3 ± 0.5** F+ *19.8*" in to_markdown(one)
    assert '<b>20.3 ± 0.5</b><sup title="better than a">F+</sup><i class="outside">19.8</i>' in to_html(one)
    latex = to_latex(one)
    assert r"\textbf{20.3 $\pm$ 0.5}\textsuperscript{F+} \textit{19.8}" in latex
    assert r"\label{tab:my-key}" in latex
    assert r"\midrule" in latex.split("20.3")[1]
    assert to_csv(one) == "value,seeds\n0.203,3\n,\n"
    print_table(one)
    shown = capsys.readouterr().out
    assert "20.3 ± 0.5* F+ (19.8)" in shown
    assert "empty" not in shown


def test_a_spreadsheet_evaluates_no_text() -> None:
    hostile = PageTable(
        key="t", title="", note="", frame=frame_of([], []), records=records_of([{"a": "=1+1", "b": -1}])
    )
    assert to_csv(hostile) == "a,b\n'=1+1,-1\n"


def test_a_number_and_nothing_are_values() -> None:
    assert (escaped(None), escaped(1.5), escaped(escaped("_"))) == ("", "1.5", r"\_")


def test_a_table_without_rows_keeps_its_columns() -> None:
    assert list(without_empty(frame_of(["a", "b"], [])).columns) == ["a", "b"]
