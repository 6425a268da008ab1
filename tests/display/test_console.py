"""Tables on terminals of any width: nothing is lost, and no number is cut."""

import pytest
from rich.table import Table
from rich.text import Text

from fairall.display.console import NARROW, WIDE, AnyConsole

NUMBERS = ["16.26 ± 1.31", "[-0.69, 27.59]", "100.00", "20.3 ± 0.5"]
NAMES = ["mean_utility", "latent_label_balanced_accuracy", "schedule.warm_up_applicants", "of two words"]
WIDTHS = [20, 30, 40, 60, 80, 120, 200]


def table(*, title: str = "") -> Table:
    made = Table(title=title, caption="A caption.")
    made.add_column("measure")
    for heading in ("mean ± std", "95 % interval", "accept\nall", "paper"):
        made.add_column(heading, justify="right")
    for name in NAMES:
        made.add_row(name, *NUMBERS)
    return made


def printed(
    width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], of: Table
) -> str:
    monkeypatch.setenv("COLUMNS", str(width))
    AnyConsole().print_table(of)
    return capsys.readouterr().out


@pytest.mark.parametrize("width", WIDTHS)
def test_numbers_are_whole_and_lines_fit(
    width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = printed(width, monkeypatch, capsys, table(title="A title"))
    lines = out.splitlines()
    assert "…" not in out
    for number in NUMBERS:
        assert sum(line.count(number) for line in lines) == len(NAMES)
    assert (lines[0], lines[-1]) == ("A title", "A caption.")
    assert max(map(len, lines)) <= max(width, NARROW + 2 + len("[-0.69, 27.59]"))
    assert ("┃" in out) == (width >= 120)
    # Names are wrapped, and nothing of them is lost; they come again where columns are divided.
    parts = out.split("\n\n")
    assert len(parts) == {20: 4, 30: 4, 40: 3, 60: 2}.get(width, 1)
    cells = ("".join(line.split("  ")[0] for line in part.splitlines()) for part in parts)
    assert width >= 120 or all("".join(NAMES) in part for part in cells)
    assert width < 120 or all(name in out for name in NAMES)


def test_headings_of_numbers_are_wrapped_between_words(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = Table("name", *["effective utility of the applicants"] * 4)
    made.add_row("x", *["12.34"] * 4)
    out = printed(60, monkeypatch, capsys, made)
    assert max(map(len, out.splitlines())) <= 60
    assert out.count("12.34") == out.count("effective") == 4


def test_a_file_has_tables_in_full(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    wide = Table("name", *["a heading"] * 30)
    wide.add_row("x", *["12.34"] * 30)
    assert AnyConsole().width == WIDE
    AnyConsole().print_table(wide)
    assert capsys.readouterr().out.count("12.34") == 30


@pytest.mark.parametrize("text", ["[bold]a[/bold]", ":smile:", "[/]"])
def test_names_are_no_markup(
    text: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = Table(title=text, caption=text)
    made.add_column(text)
    made.add_row(text)
    made.add_row(Text(text))
    for width in (10, 80):
        assert "".join(printed(width, monkeypatch, capsys, made).split()).count(text) >= 4
