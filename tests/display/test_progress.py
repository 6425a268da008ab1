"""Progress on a terminal: of the phase, of the run, and the time left by units done in this process."""

import io
import re
from contextlib import suppress

import pytest
from rich.console import Console

from fairall.display.progress import Display
from fairall.runtime.steps import doing

PHASES = {"Phase I": 100, "Warm-up": 10, "Phase II": 20}  # 100 + 20 + 80 epochs of Phase I


class Terminal(Console):
    """A terminal that keeps what it shows, with a clock of its own."""

    def __init__(self, *, force_terminal: bool | None = None) -> None:
        self.now = 0.0
        super().__init__(
            file=io.StringIO(), width=80, get_time=lambda: self.now, force_terminal=force_terminal
        )

    def lines(self) -> list[str]:
        """What is shown at the end, without colours."""
        assert isinstance(self.file, io.StringIO)
        return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", self.file.getvalue()).splitlines()


def shown(name: str, *, done: int = 0, resumed: int | None = None, units: int = 3) -> list[str]:
    """The last lines of a phase that is interrupted after some units of 2 seconds each."""
    terminal = Terminal(force_terminal=True)
    display = Display(terminal=terminal)
    display.run_of(PHASES)
    with suppress(KeyboardInterrupt), display.phase(name, PHASES[name], done=done) as advance:
        if resumed is not None:
            terminal.now += 50.0  # a checkpoint is read
            advance(resumed=resumed)
        for _ in range(units):
            terminal.now += 2.0
            advance(validation_loss=2.5)
        raise KeyboardInterrupt
    return terminal.lines()[-2:]


def test_a_terminal_shows_phase_and_run() -> None:
    phase, run = shown("Phase II", units=5)
    assert re.search(r"^Phase II +\S+ +25% 0:00:30 validation loss 2\.5", phase)
    assert re.search(r"^Run +\S+ +70% 0:00:30", run)


def test_what_a_phase_does_is_shown_beside_its_bar() -> None:
    terminal = Terminal(force_terminal=True)
    with suppress(KeyboardInterrupt), Display(terminal=terminal).phase("Fitting", 1):
        doing("fit 7 of 20: label, fold 2")
        raise KeyboardInterrupt
    assert terminal.lines()[-1].endswith("fit 7 of 20: label, fold 2")
    doing("nobody listens")


def test_later_phases_are_estimated_by_the_speed_of_this_one() -> None:
    phase, run = shown("Warm-up", units=5)
    assert "0:00:10" in phase
    assert re.search(r" 55% 0:01:30", run)  # 90 epochs of Phase I, of which 2 take 2 seconds


@pytest.mark.parametrize("how", [{"done": 90}, {"resumed": 90}])
def test_units_of_an_earlier_process_are_no_speed(how: dict[str, int]) -> None:
    phase, run = shown("Phase I", **how, units=4)
    assert " 94% 0:00:12" in phase
    assert " 47% 0:03:32" in run


@pytest.mark.parametrize(("units", "early"), [(41, True), (100, False)])
def test_a_phase_that_ends_early_says_so(units: int, early: bool) -> None:
    terminal = Terminal(force_terminal=True)
    with Display(terminal=terminal).phase("Phase I", 100) as advance:
        for _ in range(units):
            advance(loss=1.0)
    last = terminal.lines()[-1]
    assert f" {units}%" in last
    assert ("stopped early" in last) == early


def test_no_run_is_estimated_from_units_of_another_kind() -> None:
    terminal = Terminal(force_terminal=True)
    display = Display(terminal=terminal)
    display.run_of({"Warm-up": 10, "Phase II": 20})
    with display.phase("Phase I", 5) as advance:
        advance()
    assert not any(line.startswith("Run") for line in terminal.lines())


def test_nothing_is_shown_where_there_is_no_terminal() -> None:
    terminal = Terminal()
    with Display(terminal=terminal).phase("Phase I", 1) as advance:
        advance()
    assert terminal.lines() == []


def test_nothing_is_shown_where_colours_are_forced_without_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    with Display().phase("Phase I", 1) as advance:
        advance()
    assert capsys.readouterr() == ("", "")
