"""Progress on a terminal: of the phase, and the time left by units done in this process."""

import io
import re
from contextlib import suppress

import pytest
from rich.console import Console

from fairall.display.progress import Display, doing


class Terminal(Console):
    """A terminal that keeps what it shows, with a clock of its own."""

    def __init__(self) -> None:
        self.now, self.shown = 0.0, io.StringIO()
        super().__init__(file=self.shown, width=80, get_time=lambda: self.now, force_terminal=True)

    def last(self) -> str:
        """The last line shown, without colours."""
        return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", self.shown.getvalue()).splitlines()[-1]


def shown(*, done: int = 0, resumed: int | None = None, units: int = 5) -> str:
    """What is shown of a phase of 20 units that is interrupted after some units of 2 seconds each."""
    terminal = Terminal()
    with suppress(KeyboardInterrupt), Display(terminal=terminal).phase("Phase II", 20, done=done) as advance:
        if resumed is not None:
            terminal.now += 50.0  # a checkpoint is read
            advance(resumed=resumed)
        for _ in range(units):
            terminal.now += 2.0
            advance(validation_loss=2.5)
        raise KeyboardInterrupt
    return terminal.last()


def test_a_terminal_shows_share_time_left_and_measures() -> None:
    assert re.search(r"^Phase II +\S+ +25% 0:00:30 validation loss 2\.5", shown())


@pytest.mark.parametrize("how", [{"done": 10}, {"resumed": 10}])
def test_units_of_an_earlier_process_are_no_speed(how: dict[str, int]) -> None:
    assert " 75% 0:00:10" in shown(**how)


def test_what_a_phase_does_is_shown_beside_its_bar() -> None:
    terminal = Terminal()
    with suppress(KeyboardInterrupt), Display(terminal=terminal).phase("Fitting", 1):
        doing("fit 7 of 20: label, fold 2")
        raise KeyboardInterrupt
    assert terminal.last().endswith("fit 7 of 20: label, fold 2")
    doing("nobody listens")


@pytest.mark.parametrize(("units", "early"), [(41, True), (100, False)])
def test_a_phase_that_ends_early_says_so(units: int, early: bool) -> None:
    terminal = Terminal()
    with Display(terminal=terminal).phase("Phase I", 100) as advance:
        for _ in range(units):
            advance(loss=1.0)
    assert f" {units}%" in terminal.last()
    assert ("stopped early" in terminal.last()) == early


def test_nothing_is_shown_where_there_is_no_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # which rich takes for a terminal
    with Display().phase("Phase I", 1) as advance:
        advance()
    assert capsys.readouterr() == ("", "")
