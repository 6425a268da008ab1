"""Tables as Markdown, read by two libraries, as HTML, LaTeX and CSV."""

from xml.etree import ElementTree

import pytest
from markdown import markdown as python_markdown  # type: ignore[import-untyped]
from markdown_it import MarkdownIt

from fairall.display.table import (
    Cell,
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
    r"C:\new\[x]", "{text} {0} {}",
]  # fmt: skip
RENDER = {
    "Python-Markdown": lambda text: python_markdown(text, extensions=["tables"]),
    "CommonMark": MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).render,
}


def read(html: str) -> tuple[str, list[str], set[str]]:
    """The text of well-formed HTML, the texts of its cells, and the names of its elements."""
    root = ElementTree.fromstring(f"<html>{html.replace('&nbsp;', '')}</html>")
    cells = ["".join(element.itertext()) for element in root.iter() if element.tag in ("td", "th")]
    return "".join(root.itertext()), cells, {element.tag for element in root.iter()} - {"html"}


def table(text: str) -> PageTable:
    return PageTable(
        key="t",
        title=text,
        note=text,
        frame=frame_of([text, "b"], [Row(text, text, [Cell(text, text, best=True), "1"])]),
        records=records_of([{"a": text}]),
    )


@pytest.mark.parametrize("text", HOSTILE)
def test_names_are_shown_as_they_are(text: str) -> None:
    made, line = table(text), " ".join(text.splitlines()).strip()
    for render in RENDER.values():
        shown, cells, elements = read(render(to_markdown(made)))
        assert cells == ["", "", line, "b", line, line, f"{line} {line}", "1"]
        assert elements == {"h3", "p", "table", "thead", "tbody", "tr", "th", "td", "strong", "em"}
        assert shown.count(line) == 7  # title, note, heading, group, name, cell, beside
        shown, _, elements = read(render(f"- from {code(text)}."))
        assert elements <= {"ul", "li", "p", "code"}
        assert line.replace("`", "'") in shown
    _, cells, elements = read(to_html(made))
    assert elements == {"table", "thead", "tbody", "tr", "th", "td", "b", "i"}
    assert [" ".join(cell.split()) for cell in cells[-4:]] == [
        " ".join(part.split()) for part in (text, text, text * 2, "1")
    ]


def test_marks_and_bold_in_every_format(capsys: pytest.CaptureFixture[str]) -> None:
    cell = Cell("20.3 ± 0.5", "19.8", best=True, marks="F+")
    made = PageTable(
        key="my_key",
        title="Title",
        note="Bold: best.",
        frame=frame_of(["utility ↑", "empty"], [Row("A", "x", [cell, ""]), Row("B", "y", ["1", ""])]),
        records=records_of([{"value": 0.203, "seeds": 3}, {"value": None, "seeds": "=1+1"}]),
    )
    assert "<b>20.3 ± 0.5</b><sup>F+</sup><i>19.8</i>" in to_html(made)
    assert "**20.3 ± 0.5** F+ *19.8*" in to_markdown(made)
    latex = to_latex(made)
    assert r"\textbf{20.3 $\pm$ 0.5}\textsuperscript{F+} \textit{19.8}" in latex
    assert r"\label{tab:my-key}" in latex
    assert "\nB & y & 1 &" in latex
    assert r"\textwidth\else\width\fi}{!}{\begin{tabular}" in latex
    assert r"\end{tabular}}" in latex
    assert to_csv(made) == "value,seeds\n0.203,3\n,'=1+1\n"  # a spreadsheet evaluates no text
    print_table(made)
    shown = capsys.readouterr().out
    assert "20.3 ± 0.5* F+ (19.8)" in shown
    assert "empty" not in shown


def test_a_number_and_nothing_are_values() -> None:
    assert (escaped(None), escaped(1.5), escaped(escaped("_"))) == ("", "1.5", r"\_")


def test_a_table_without_rows_keeps_its_columns() -> None:
    assert list(without_empty(frame_of(["a", "b"], [])).columns) == ["a", "b"]
