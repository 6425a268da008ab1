"""Requests to stop: when they end a process, with which code, and what it has done by then."""

import signal
import subprocess
import sys
from signal import SIGHUP, SIGINT, SIGTERM

import pytest

HEAD = """\
import os, signal, sys
from fairall.errors import FairAllError
from fairall.runtime import signals
signals.listen()
def come(number): os.kill(os.getpid(), number)
try:
"""
TAIL = """
except signals.Stopped as stopped:
    sys.exit(stopped.exit_code)
"""


def ended(work: str, *words: str) -> tuple[int, str, str]:
    """Exit code, output and errors of some work of a command."""
    indented = "".join(f"    {line}\n" for line in work.strip().splitlines())
    command = [sys.executable, "-c", HEAD + indented + TAIL, *words]
    said = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    return said.returncode, said.stdout, said.stderr


DEFERRED = """
both = [signal.SIGTERM, signal.SIGHUP]
with signals.deferred():
    signal.pthread_sigmask(signal.SIG_BLOCK, both if "together" in sys.argv else [])
    for word in sys.argv[1:]:
        if word != "together":
            come(int(word))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, both)
    print("saved", flush=True)
"""


@pytest.mark.parametrize(
    ("numbers", "code"),
    [
        ([SIGTERM], 143),
        ([SIGINT], 130),
        ([SIGHUP], 129),
        ([SIGHUP, SIGHUP], 129),  # a closed terminal is never the second request
        ([SIGTERM, SIGHUP], 143),
        ([SIGHUP, SIGTERM], 143),
        ([SIGHUP, SIGTERM, "together"], 143),
    ],
)
def test_a_signal_waits_for_the_end_of_a_step(numbers: list[int | str], code: int) -> None:
    words = [word if isinstance(word, str) else str(int(word)) for word in numbers]
    assert ended(DEFERRED, *words) == (code, "saved\n", "")


def test_a_second_signal_leaves_at_once() -> None:
    assert ended(DEFERRED, str(int(SIGTERM)), str(int(SIGINT))) == (130, "", "")


def test_outside_of_steps_a_signal_ends_what_is_under_way() -> None:
    assert ended("come(signal.SIGTERM)\nprint('never said')") == (143, "", "")


def test_under_nohup_a_closed_terminal_changes_nothing() -> None:
    ignored = "signal.signal(signal.SIGHUP, signal.SIG_IGN)\nsignals.listen()\ncome(signal.SIGHUP)"
    assert ended(f"{ignored}\nprint(signals.stop_requested())") == (0, "False\n", "")


def test_an_error_that_an_interruption_caused_is_told_as_the_interruption() -> None:
    work = """
from fairall.config.messages import report_error
assert report_error(FairAllError("no such thing"), []) == 1
with signals.deferred():
    come(signal.SIGTERM)
    report_error(FairAllError("no such thing"), [])
"""
    assert ended(work) == (128 + signal.SIGTERM, "", "fairall: no such thing\n")
