"""Requests to stop: when they end a process, with which code, and what it has done by then."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from signal import SIGHUP, SIGINT, SIGTERM
from textwrap import indent

import pytest

from tests.conftest import own_process

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
    signals.told()
    sys.exit(stopped.exit_code)
"""


def ended(work: str, *words: str) -> tuple[int, str, str]:
    """Exit code, output and errors of some work of a command."""
    command = [sys.executable, "-c", HEAD + indent(work.strip(), "    ") + TAIL, *words]
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


@pytest.mark.parametrize("number", [SIGTERM, SIGHUP])
def test_an_import_is_never_cut_in_two(number: int, tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(f"import os\nos.kill(os.getpid(), {int(number)})\nprint('whole')\n")
    work = f"""
import time
sys.path.insert(0, {str(tmp_path)!r})
import slow
time.sleep(30)
print("never said")
"""
    assert ended(work) == (128 + number, "whole\n", "")


def test_a_stop_that_is_caught_on_its_way_is_raised_again() -> None:
    work = f"""
import time
try: come({int(SIGHUP)})
except BaseException: print("caught", flush=True)
time.sleep(30)
print("never said")
"""
    assert ended(work) == (128 + SIGHUP, "caught\n", "")


def test_what_is_tidied_up_after_a_stop_is_not_disturbed() -> None:
    work = f"""
import time
try: come({int(SIGTERM)})
finally:
    time.sleep(0.5)
    print("tidy")
"""
    assert ended(work) == (128 + SIGTERM, "tidy\n", "")


COMMAND = """
import os, signal, sys, threading, time
from fairall.runtime.process import run_command
class Slow:
    def __init__(self, stream): self.stream = stream
    def write(self, text): time.sleep(0.2); return self.stream.write(text)
    def flush(self): self.stream.flush()
def command(words):
"""
STOPPED = "os.kill(os.getpid(), signal.SIGTERM)"


@pytest.mark.parametrize(
    "work",
    [
        pytest.param(
            f"""
try: {STOPPED}
except KeyboardInterrupt: raise ValueError("half made")
""",
            id="becomes another error",
        ),
        pytest.param(
            f"""
threading.Thread(target=time.sleep, args=(0.5,)).start()
{STOPPED}
""",
            id="a thread ends later",
        ),
        pytest.param(
            f"""
sys.stderr = Slow(sys.stderr)
try: {STOPPED}
except KeyboardInterrupt: pass
raise ValueError("half made")
""",
            id="comes again while it is told",
        ),
    ],
)
def test_a_stop_of_a_command_is_told_once_and_in_one_line(work: str) -> None:
    said = own_process("-c", COMMAND + indent(work, "    ") + "raise SystemExit(run_command(command, []))")
    assert (said.returncode, said.stdout) == (143, "")
    assert said.stderr == "fairall: interrupted; the same command goes on from what was saved\n"


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


@pytest.mark.whole
@pytest.mark.parametrize("when", ["fairall.cli.main", "hydra", "torch"])
@pytest.mark.parametrize(
    ("numbers", "code"), [([SIGINT], 130), ([SIGINT, SIGINT], 130), ([SIGHUP, SIGHUP], 129), ([SIGTERM], 143)]
)
def test_an_interruption_of_the_first_imports_is_no_traceback(
    when: str, numbers: list[int], code: int, tmp_path: Path
) -> None:
    (tmp_path / "sitecustomize.py").write_text(SENDER)
    root = str(Path(__file__).parents[2])
    said = own_process(
        "-m",
        "fairall",
        "model=reject_all",
        "preset=quick",
        "tracking.enabled=false",
        cwd=tmp_path,
        env=os.environ
        | {
            "PYTHONPATH": f"{tmp_path}{os.pathsep}{root}",
            "WHEN": when,
            "NUMBERS": " ".join(str(int(number)) for number in numbers),
        },
    )
    early = when == "fairall.cli.main"
    # Before the handlers of a command are there, a closed terminal ends it as any other program.
    assert said.returncode == (-SIGHUP if early and SIGHUP in numbers else code), said.stderr
    assert "Traceback" not in said.stderr
    assert said.stderr.count("\n") <= 1
