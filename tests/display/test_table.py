"""Tables as Markdown, read by two libraries, as HTML, LaTeX and CSV, and on terminals of any width."""

from xml.etree import ElementTree

import pandas as pd
import pytest
from markdown import markdown as python_markdown  # type: ignore[import-untyped]
from markdown_it import MarkdownIt
from pytest_regressions.file_regression import FileRegressionFixture

from fairall.display.progress import WIDE
from fairall.display.table import (
    NARROW,
    Cell,
    PageTable,
    Row,
    code,
    escaped,
    frame_of,
    print_frame,
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


def test_marks_and_bold_in_every_format(
    capsys: pytest.CaptureFixture[str], file_regression: FileRegressionFixture
) -> None:
    cell = Cell("20.3 ± 0.5", "19.8", best=True, marks="F+")
    made = PageTable(
        key="my_key",
        title="Title",
        note="Bold: best.",
        frame=frame_of(["utility ↑", "empty"], [Row("A", "x", [cell, ""]), Row("B", "y", ["1", ""])]),
        records=records_of([{"value": 0.203, "seeds": 3}, {"value": None, "seeds": "=1+1"}]),
    )
    for convert in (to_html, to_markdown, to_latex, to_csv):
        print(convert(made))
    print_table(made)
    file_regression.check(capsys.readouterr().out, encoding="utf-8")


NUMBERS = {"mean ± std": "16.26 ± 1.31", "95 % interval": "[-0.69, 27.59]", "accept all": "100.00"}
MARKUP = "[bold]a[/bold] :smile: [/]"
NAMES = ["mean_utility", "latent_label_balanced_accuracy", "schedule.warm_up_applicants", MARKUP]
COMMAND = "python -m fairall dataset=credit model=greedy " * 3


@pytest.mark.parametrize("width", [20, 80, 200, None])
def test_on_a_terminal_of_any_width_nothing_is_lost_and_no_number_is_cut(
    width: int | None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    file_regression: FileRegressionFixture,
) -> None:
    if width is not None:
        monkeypatch.setenv("COLUMNS", str(width))
    frame = pd.DataFrame([{**NUMBERS, "command": COMMAND}] * len(NAMES), NAMES)
    print_frame(frame, title="[b]", caption="A caption.", first="measure")
    shown = capsys.readouterr().out
    assert max(map(len, shown.splitlines())) <= max(width or WIDE, 2 * NARROW + 7)
    file_regression.check(shown, encoding="utf-8")


def test_a_number_and_nothing_are_values() -> None:
    assert (escaped(None), escaped(1.5), escaped(escaped("_"))) == ("", "1.5", r"\_")


def test_a_table_without_rows_keeps_its_columns() -> None:
    assert list(without_empty(frame_of(["a", "b"], [])).columns) == ["a", "b"]
