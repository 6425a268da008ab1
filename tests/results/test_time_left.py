"""Estimates of the time left: by units done in this process, for the phase and for the run."""

import io
import re
from contextlib import suppress

import pytest
from rich.console import Console

from fairall.results.terminal import Display
from fairall.results.time_left import RELATIVE, TimeLeft


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


PHASES = {"Phase I": 100, "Warm-up": 10, "Phase II": 20}


def test_both_are_by_the_speed_of_the_phase() -> None:
    clock = Clock()
    left = TimeLeft(PHASES, clock)
    left.begin("Phase I", 100, 0)
    assert (left.of_phase(), left.of_run(), left.in_words()) == (None, None, "")
    clock.now = 3.0
    left.advance()
    assert left.of_phase() == 297.0
    assert left.of_run() == 297.0 + 3.0 * (10 * RELATIVE["Warm-up"] + 20 * RELATIVE["Phase II"])
    assert left.in_words() == "5 min, run about 10 min left"
    # It ends early, as Phase I does with patience; the last phase is estimated by itself alone.
    left.begin("Phase II", 20, 0)
    clock.now = 5.0
    left.advance()
    assert (left.of_phase(), left.of_run(), left.in_words()) == (38.0, 38.0, "38 s left")


@pytest.mark.parametrize("known_at_the_start", [True, False])
def test_units_of_an_earlier_process_are_no_speed(known_at_the_start: bool) -> None:
    clock = Clock()
    left = TimeLeft(PHASES, clock)
    left.begin("Phase I", 100, 90 if known_at_the_start else 0)
    if not known_at_the_start:
        clock.now = 50.0  # a checkpoint is read
        left.advance(resumed=90)
    for _ in range(2):
        clock.now += 4.0
        left.advance()
    assert left.of_phase() == 8 * 4.0


def test_no_run_is_estimated_from_units_of_another_kind() -> None:
    clock = Clock()
    left = TimeLeft({"Warm-up": 10, "Phase II": 20}, clock)
    left.begin("Phase I", 5, 0)
    clock.now = 2.0
    left.advance()
    assert (left.of_run(), left.in_words()) == (None, "8 s left")
    left.begin("Warm-up", 10, 0)
    clock.now = 3.0
    left.advance()
    assert left.of_run() == 9.0 + 20 * RELATIVE["Phase II"] / RELATIVE["Warm-up"]


def shown(terminal: Console, resumed: int, *, interrupted: bool = True) -> str:
    display = Display(terminal=terminal)
    display.run_of(PHASES)
    with suppress(KeyboardInterrupt), display.phase("Phase I", 100) as advance:
        advance(resumed=resumed)
        advance(validation_loss=2.5)
        if interrupted:
            raise KeyboardInterrupt
    assert isinstance(terminal.file, io.StringIO)
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", terminal.file.getvalue())


def test_a_terminal_shows_phase_and_run() -> None:
    text = shown(Console(force_terminal=True, file=io.StringIO(), width=80), resumed=40)
    assert re.search(
        r"Phase I +\S+ +41/100 \d+ s, run about \d+ s left validation loss 2\.5", text.splitlines()[-1]
    )


@pytest.mark.parametrize(("resumed", "said"), [(40, " 41/100 stopped early "), (99, " 100/100 ")])
def test_a_phase_that_ends_early_says_so(resumed: int, said: str) -> None:
    terminal = Console(force_terminal=True, file=io.StringIO(), width=80)
    last = shown(terminal, resumed, interrupted=False).splitlines()[-1]
    assert said in last
    assert ("stopped early" in last) == (resumed == 40)


def test_nothing_is_shown_where_there_is_no_terminal() -> None:
    assert shown(Console(file=io.StringIO()), resumed=40) == ""


def test_nothing_is_shown_where_colours_are_forced_without_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    with Display().phase("Phase I", 1) as advance:
        advance()
    assert capsys.readouterr() == ("", "")
