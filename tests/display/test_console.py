"""Tables on terminals of any width: nothing is lost, and no number is cut."""

import pytest
from rich.table import Table

from fairall.display.console import WIDE, say

NUMBERS = ["16.26 ± 1.31", "[-0.69, 27.59]", "100.00", "20.3 ± 0.5"]
MARKUP = "[bold]a[/bold] :smile: [/]"
NAMES = ["mean_utility", "latent_label_balanced_accuracy", "schedule.warm_up_applicants", MARKUP]


@pytest.mark.parametrize("width", [20, 60, 80, 120, 200, None])
def test_numbers_are_whole_names_complete_and_lines_fit(
    width: int | None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if width is not None:
        monkeypatch.setenv("COLUMNS", str(width))
    made = Table("measure", title="[b]", caption="A caption.")
    for heading in ("mean ± std", "95 % interval", "accept\nall", "paper"):
        made.add_column(heading, justify="right")
    for name in NAMES:
        made.add_row(name, *NUMBERS)
    say(made)
    lines = capsys.readouterr().out.splitlines()
    assert (lines[0], lines[-1]) == ("[b]", "A caption.")
    for number in NUMBERS:
        assert sum(line.count(number) for line in lines) == len(NAMES)
    # Names are wrapped, and nothing of them is lost.
    cells = "".join(line.split("│")[1].strip() for line in lines if "│" in line)
    assert cells.replace(" ", "") == "".join(NAMES).replace(" ", "")
    # Where the numbers alone are wider than the terminal, lines are longer.
    assert max(map(len, lines)) <= max(width or WIDE, 70)
