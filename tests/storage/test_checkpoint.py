"""States that are kept from time to time, and found again whatever happened to their files."""

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from fairall.runtime import signals
from fairall.runtime.signals import Stopped
from fairall.storage import checkpoint as module
from fairall.storage.checkpoint import Checkpoint


def state(value: int) -> dict[str, Any]:
    return {"step": value, "weights": torch.full((5,), float(value))}


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """A folder with the states 1, before, and 2, the last."""
    own = Checkpoint(tmp_path / "checkpoint.pt", "me", seconds=0.0)
    for value in (1, 2):
        own.save(lambda value=value: state(value))  # type: ignore[misc]
    assert {path.name for path in tmp_path.iterdir()} == {"checkpoint.pt", "checkpoint.previous.pt"}
    return tmp_path


def found(folder: Path, said: list[str] | None = None, of: str = "me") -> int | None:
    told = [] if said is None else said
    known = Checkpoint(folder / "checkpoint.pt", of, seconds=0.0, log=told.append).load()
    if known is None:
        return None
    assert known["weights"].tolist() == [float(known["step"])] * 5
    return known["step"]


def test_the_last_state_is_found(kept: Path) -> None:
    assert found(kept) == 2


def test_every_flipped_bit_is_noticed_or_harmless(kept: Path) -> None:
    path = kept / "checkpoint.pt"
    whole = path.read_bytes()
    noticed = 0
    for at in range(0, len(whole), 7):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x10]) + whole[at + 1 :])
        said: list[str] = []
        noticed += (step := found(kept, said)) == 1
        assert step == (1 if said else 2)
    assert noticed > 20


@pytest.mark.parametrize("size", [0, 1, 100, 0.5, -1])
def test_the_state_before_a_cut_one_is_taken(size: float, kept: Path) -> None:
    path = kept / "checkpoint.pt"
    whole = path.read_bytes()
    path.write_bytes(whole[: int(size * len(whole)) if size == 0.5 else int(size)])
    said: list[str] = []
    assert found(kept, said) == 1
    assert len(said) == 1
    assert "checkpoint.pt is damaged" in said[0]


def test_a_state_that_is_not_there_is_the_one_before(kept: Path) -> None:
    (kept / "checkpoint.pt").unlink()
    assert found(kept) == 1
    (kept / "checkpoint.previous.pt").unlink()
    assert found(kept) is None


def test_states_of_others_are_not_taken(kept: Path) -> None:
    said: list[str] = []
    assert found(kept, said, of="you") is None
    assert len(said) == 2


def test_a_full_disk_costs_the_state_and_not_the_work(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    said: list[str] = []
    own = Checkpoint(kept / "checkpoint.pt", "me", seconds=0.0, log=said.append)
    with monkeypatch.context() as patched:
        patched.setattr(Path, "write_bytes", full)
        own.save(lambda: state(3))
    assert "No space left on device" in said[0]
    assert found(kept) == 2
    assert {path.name for path in kept.iterdir()} == {"checkpoint.pt", "checkpoint.previous.pt"}
    own.save(lambda: state(4))
    assert found(kept) == 4


def test_a_damaged_state_does_not_take_the_place_of_the_whole_one(
    kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    path = kept / "checkpoint.pt"
    path.write_bytes(path.read_bytes()[:100])
    own = Checkpoint(path, "me", seconds=0.0)
    assert own.load() is not None
    with monkeypatch.context() as patched:
        patched.setattr(Path, "write_bytes", full)
        own.save(lambda: state(3))
    assert found(kept) == 1
    own.save(lambda: state(4))
    own.save(lambda: state(5))
    assert found(kept) == 5
    path.unlink()
    assert found(kept) == 4


def test_a_file_that_the_system_does_not_give_is_not_a_damaged_one(kept: Path) -> None:
    path = kept / "checkpoint.pt"
    path.unlink()
    path.mkdir()
    with pytest.raises(IsADirectoryError):
        found(kept)


def test_keeping_takes_a_small_share_of_the_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(module.time, "monotonic", lambda: now)
    own = Checkpoint(tmp_path / "checkpoint.pt", "me", seconds=10.0)
    keeps: list[float] = []

    def slow() -> dict[str, Any]:
        nonlocal now
        keeps.append(now)
        now += 0.5  # seconds that one takes
        return state(len(keeps))

    while now < 1000:
        now += 1.0
        own.maybe_save(slow)
    assert keeps[0] == 10.0
    assert 0.5 * len(keeps) <= 0.02 * 1000


@pytest.fixture
def listening() -> Any:
    """Signals as in a command, and afterwards as they were."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    signals.listen()
    yield
    for number, handler in before.items():
        signal.signal(number, handler)
    signals._State.requested = None


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGHUP, 129)]
)
@pytest.mark.usefixtures("listening")
def test_a_signal_waits_for_the_end_of_a_step_and_keeps_its_state(
    number: signal.Signals, code: int, tmp_path: Path
) -> None:
    own = Checkpoint(tmp_path / "checkpoint.pt", "me", seconds=3600.0)
    steps: list[int] = []

    def work() -> None:
        with signals.deferred():
            while len(steps) < 10:
                steps.append(len(steps) + 1)
                if steps[-1] == 3:
                    os.kill(os.getpid(), number)
                own.maybe_save(lambda: state(steps[-1]))

    with pytest.raises(Stopped) as stopped:
        work()
    assert signals.exit_code(stopped.value) == code
    assert steps == [1, 2, 3]
    assert found(tmp_path) == 3  # the step in which it came was finished


def test_a_second_signal_leaves_at_once() -> None:
    program = (
        "import os, signal\nfrom fairall.runtime import signals\nsignals.listen()\n"
        "with signals.deferred():\n"
        "    os.kill(os.getpid(), signal.SIGTERM)\n    print('waits', flush=True)\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n    print('never said')\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "waits\n", "")


@pytest.mark.parametrize("first", [signal.SIGHUP, signal.SIGTERM])
def test_a_closed_terminal_is_never_the_second_signal(first: signal.Signals, tmp_path: Path) -> None:
    program = (
        "import os, signal\nfrom fairall.runtime import signals\nsignals.listen()\n"
        f"with signals.deferred():\n    os.kill(os.getpid(), {int(first)})\n"
        "    os.kill(os.getpid(), signal.SIGHUP)\n    print('saved', flush=True)\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert ended.stdout == "saved\n"
    assert "Stopped" in ended.stderr


def test_under_nohup_a_closed_terminal_changes_nothing() -> None:
    program = (
        "import os, signal\nsignal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
        "from fairall.runtime import signals\nsignals.listen()\n"
        "os.kill(os.getpid(), signal.SIGHUP)\nprint(signals.stop_requested())\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stdout) == (0, "False\n")


@pytest.mark.usefixtures("listening")
def test_outside_of_steps_a_signal_ends_what_is_under_way() -> None:
    with pytest.raises(Stopped):
        os.kill(os.getpid(), signal.SIGTERM)
