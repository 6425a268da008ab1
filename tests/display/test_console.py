"""Tables on terminals of any width: nothing is lost, and no number is cut."""

import pytest
from rich.table import Table
from rich.text import Text

from fairall.display.console import WIDE, AnyConsole

NUMBERS = ["16.26 ± 1.31", "[-0.69, 27.59]", "100.00", "20.3 ± 0.5"]
NAMES = ["mean_utility", "latent_label_balanced_accuracy", "schedule.warm_up_applicants", "of two words"]


def table(*, title: str = "") -> Table:
    made = Table("measure", title=title, caption="A caption.")
    for heading in ("mean ± std", "95 % interval", "accept\nall", "paper"):
        made.add_column(heading, justify="right")
    for name in NAMES:
        made.add_row(name, *NUMBERS)
    return made


def printed(
    width: int | None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], shown: Table
) -> str:
    if width is not None:
        monkeypatch.setenv("COLUMNS", str(width))
    AnyConsole().print_table(shown)
    return capsys.readouterr().out


@pytest.mark.parametrize("width", [20, 60, 80, 120, 200, None])
def test_numbers_are_whole_names_complete_and_lines_fit(
    width: int | None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = printed(width, monkeypatch, capsys, table(title="A title"))
    lines = out.splitlines()
    assert (lines[0], lines[-1], "…" in out) == ("A title", "A caption.", False)
    for number in NUMBERS:
        assert sum(line.count(number) for line in lines) == len(NAMES)
    # Names are wrapped, and nothing of them is lost.
    cells = "".join(line.split("│")[1].strip() for line in lines if "│" in line)
    assert cells.replace(" ", "") == "".join(NAMES).replace(" ", "")
    # Where the numbers alone are wider than the terminal, lines are longer.
    assert max(map(len, lines)) <= (max(width or WIDE, 70))


@pytest.mark.parametrize("text", ["[bold]a[/bold]", ":smile:", "[/]"])
def test_names_are_no_markup(
    text: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = Table(text, title=text, caption=text)
    made.add_row(text)
    made.add_row(Text(text))
    assert printed(80, monkeypatch, capsys, made).count(text) == 5
