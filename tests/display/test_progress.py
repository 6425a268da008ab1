"""Progress on a terminal: of the phase, and the time left by units done in this process."""

import io
import sys
from contextlib import redirect_stderr, suppress
from functools import partial

import pytest
import tqdm.std
from rich.console import Console

from fairall.display.progress import Display, doing


class Terminal(io.StringIO):
    """A terminal that keeps what it shows, with a clock of its own."""

    now = 0.0

    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    shown = Terminal()
    monkeypatch.setattr(tqdm.std, "time", lambda: shown.now)
    return shown


@pytest.mark.parametrize(
    ("done", "resumed", "line"),
    [
        (0, None, "5/20 [00:10<00:30,  2.00s/it, validation_loss=2.5]"),
        (10, None, "15/20 [00:10<00:10,  2.00s/it, validation_loss=2.5]"),
        (0, 10, "15/20 [00:10<00:10,  2.00s/it, validation_loss=2.5]"),
    ],
)
def test_a_terminal_shows_share_measures_and_time_left_by_units_of_this_process(
    terminal: Terminal, done: int, resumed: int | None, line: str
) -> None:
    with (
        redirect_stderr(terminal),
        suppress(KeyboardInterrupt),
        Display().phase("Phase II", 20, done=done) as advance,
    ):
        if resumed is not None:
            terminal.now += 50.0  # a checkpoint is read
            advance(resumed=resumed)
        for _ in range(5):
            terminal.now += 2.0
            advance(validation_loss=2.5)
        raise KeyboardInterrupt
    shown = terminal.getvalue().splitlines()[-1]
    assert shown.startswith("Phase II: ")
    assert shown.endswith(f"| {line}")


def test_what_a_phase_does_is_shown_beside_its_bar(terminal: Terminal) -> None:
    with redirect_stderr(terminal), Display().phase("Fitting", 1):
        doing("fit 7 of 20: label, fold 2")
    assert "fit 7 of 20: label, fold 2]" in terminal.getvalue()


@pytest.mark.parametrize("silent", [False, True])
def test_nothing_is_shown_where_there_is_no_terminal_and_where_it_is_silent(
    silent: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: silent)
    with Display(silent=silent).phase("Phase I", 1) as advance:
        advance(loss=1.0)
    assert capsys.readouterr() == ("", "")


def test_a_notebook_shows_progress_and_keeps_none_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairall.display.progress.Console", partial(Console, force_jupyter=True))
    with redirect_stderr(io.StringIO()) as shown, Display().phase("Phase II", 1) as advance:
        advance(loss=1.0)
    first, *_, last, _ = shown.getvalue().split("\r")[1:]
    assert first.startswith("Phase II: ")
    assert not last.strip()  # a bar that has ended is overwritten
