"""Requests to stop: when they end a process, with which code, and what it has done by then."""

import os
from pathlib import Path
from textwrap import indent

import pytest

from tests.conftest import CHECKOUT, own_process

LINE = "fairall: interrupted; the same command goes on from what was saved\n"
COMMAND = """
import os, signal, sys, time
from fairall.config.messages import report_error
from fairall.errors import FairAllError
from fairall.runtime import signals
from fairall.runtime.process import run_command
def come(*numbers):
    signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
    for number in numbers: os.kill(os.getpid(), number)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, numbers)
def command(words):
"""
DEFERRED = """
with signals.deferred():
    for numbers in {}: come(*numbers)
    print("saved", flush=True)
"""


def ended(work: str, **options: object) -> tuple[int, str, str]:
    """Exit code, output and errors of a command that does some work."""
    end = "raise SystemExit(run_command(command, []))"
    said = own_process("-c", COMMAND + indent(work.strip(), "    ") + f"\n    return 0\n{end}", **options)
    return said.returncode, said.stdout, said.stderr


@pytest.mark.parametrize(
    ("numbers", "code"),
    [
        ("[15]", 143),
        ("[2]", 130),
        ("[1]", 129),
        ("[1], [1]", 129),  # a closed terminal is never the second request
        ("[15], [1]", 143),
        ("[1], [15]", 143),
        ("[1, 15]", 143),
    ],
)
def test_a_signal_waits_for_the_end_of_a_step(numbers: str, code: int) -> None:
    assert ended(DEFERRED.format(f"[{numbers}]")) == (code, "saved\n", LINE)


WORK = {
    "a second signal leaves at once": (DEFERRED.format([[15], [2]]), (130, "", "")),
    "it ends what is under way": ("come(15); print('never said')", (143, "", LINE)),
    "what is under way tidies up": ("try: come(15)\nfinally: print('tidy')", (143, "tidy\n", LINE)),
    "nohup": (
        "signal.signal(1, signal.SIG_IGN); signals.listen(); come(1); print('goes on')",
        (0, "goes on\n", ""),
    ),
    "becomes another error": (
        "try: come(15)\nexcept BaseException: raise ValueError('half')",
        (143, "", LINE),
    ),
    "an error that it has caused": (
        "assert report_error(FairAllError('no such thing')) == 1\n"
        "with signals.deferred(): come(15); report_error(FairAllError('no such thing'))",
        (143, "", f"fairall: no such thing\n{LINE}"),
    ),
}


@pytest.mark.parametrize("name", WORK)
def test_a_stop_of_a_command_is_told_once_and_in_one_line(name: str) -> None:
    work, expected = WORK[name]
    assert ended(work) == expected


# Sends signals to its own process when a module is about to be imported.
SENDER = """
import os, sys, time
class Sender:
    def find_spec(self, name, path=None, target=None):
        if name == os.environ["WHEN"]:
            for number in os.environ["NUMBERS"].split():
                os.kill(os.getpid(), int(number))
                time.sleep(0.01)
sys.meta_path.insert(0, Sender())
"""


@pytest.mark.parametrize("numbers", ["2 2", "1 1", "15"])
@pytest.mark.parametrize("when", ["fairall.cli.main", pytest.param("torch", marks=pytest.mark.whole)])
def test_a_signal_during_an_import_ends_the_process_in_one_line(
    when: str, numbers: str, tmp_path: Path
) -> None:
    (tmp_path / "sitecustomize.py").write_text(SENDER)
    sent = {"WHEN": when, "NUMBERS": numbers, "PYTHONPATH": f"{tmp_path}{os.pathsep}{CHECKOUT}"}
    words = "-m fairall model=reject_all preset=quick tracking.enabled=false".split()
    said = own_process(*words, cwd=tmp_path, env=os.environ | sent)
    assert (said.returncode, said.stderr) == (128 + int(numbers.split()[0]), LINE)
