"""Tables on terminals of any width: nothing is lost, no number is cut, and names are in one line."""

import pandas as pd
import pytest

from fairall.display.progress import WIDE
from fairall.display.table import NARROW, print_frame

NUMBERS = {"mean ± std": "16.26 ± 1.31", "95 % interval": "[-0.69, 27.59]", "accept all": "100.00"}
MARKUP = "[bold]a[/bold] :smile: [/]"
NAMES = ["mean_utility", "latent_label_balanced_accuracy", "schedule.warm_up_applicants", MARKUP]
COMMAND = "python -m fairall dataset=credit model=greedy " * 3


@pytest.mark.parametrize("width", [20, 80, 200, None])
def test_numbers_and_names_are_whole_and_lines_fit(
    width: int | None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if width is not None:
        monkeypatch.setenv("COLUMNS", str(width))
    frame = pd.DataFrame([{**NUMBERS, "command": COMMAND}] * len(NAMES), NAMES)
    print_frame(frame, title="[b]", caption="A caption.", first="measure")
    lines = capsys.readouterr().out.splitlines()
    assert (lines[0], lines[-1]) == ("[b]", "A caption.")
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in lines if line.startswith("│")]
    for number in NUMBERS.values():
        assert sum(number in row for row in rows) == len(NAMES)
    blocks = sum(line.startswith("┏") for line in lines)
    names = [row[0] for row in rows if row[0]]
    if width == 20:  # names that are too long are wrapped, and nothing of them is lost
        assert "".join(names).replace(" ", "") == "".join(NAMES * blocks).replace(" ", "")
    else:
        assert names == NAMES * blocks
    assert blocks == {20: 4, 80: 2, 200: 1, None: 1}[width]
    assert max(map(len, lines)) <= max(width or WIDE, 2 * NARROW + 7)
