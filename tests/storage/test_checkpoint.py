"""States that are kept from time to time, and found again whatever happened to their files."""

import errno
import os
import signal
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


def test_the_last_state_is_found_and_otherwise_the_one_before(kept: Path) -> None:
    assert found(kept) == 2
    said: list[str] = []
    assert found(kept, said, of="you") is None
    assert len(said) == 2
    (kept / "checkpoint.pt").unlink()
    assert found(kept) == 1
    (kept / "checkpoint.pt").mkdir()
    assert found(kept, said) == 1
    assert said[-1].startswith(f"Warning: {kept / 'checkpoint.pt'} is damaged (is a folder)")
    (kept / "checkpoint.previous.pt").unlink()
    (kept / "checkpoint.pt").rmdir()
    assert found(kept) is None


def test_what_the_system_does_not_give_is_not_damaged(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(*arguments: object) -> int:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "open", denied)
    with pytest.raises(PermissionError):
        found(kept)


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


@pytest.mark.parametrize("damaged", [False, True])
def test_a_full_disk_costs_the_state_and_not_the_work(
    damaged: bool, kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    path, said = kept / "checkpoint.pt", list[str]()
    if damaged:
        path.write_bytes(path.read_bytes()[:100])
    own = Checkpoint(path, "me", seconds=0.0, log=said.append)
    assert own.load() is not None
    with monkeypatch.context() as patched:
        patched.setattr(Path, "write_bytes", full)
        own.save(lambda: state(3))
    assert "No space left on device" in said[-1]
    # A damaged state does not take the place of the whole one.
    assert found(kept) == (1 if damaged else 2)
    assert {path.name for path in kept.iterdir()} <= {"checkpoint.pt", "checkpoint.previous.pt"}
    own.save(lambda: state(4))
    own.save(lambda: state(5))
    assert found(kept) == 5
    path.unlink()
    assert found(kept) == 4


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


def test_a_request_to_stop_is_met_after_a_step_with_its_state_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = Checkpoint(tmp_path / "checkpoint.pt", "me", seconds=3600.0)
    steps: list[int] = []

    def stop() -> None:
        if len(steps) == 3:
            raise Stopped(signal.SIGTERM)

    monkeypatch.setattr(signals, "stop_requested", lambda: len(steps) == 3)
    monkeypatch.setattr(signals, "raise_if_requested", stop)
    with pytest.raises(Stopped):  # noqa: PT012
        while len(steps) < 10:
            steps.append(len(steps) + 1)
            own.maybe_save(lambda: state(steps[-1]))
    assert steps == [1, 2, 3]
    assert found(tmp_path) == 3
