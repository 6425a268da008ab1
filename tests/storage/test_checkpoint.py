"""States that are saved from time to time, and results that runs share."""

import errno
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest

from fairall.runtime.signals import Stopped, _State
from fairall.storage import checkpoint as module
from fairall.storage.checkpoint import Cache, Checkpoint, State


def in_folder(folder: Path, identity: str = "me") -> tuple[Checkpoint, list[str]]:
    """A checkpoint, and the warnings of it."""
    said: list[str] = []
    return Checkpoint(folder / "checkpoint.pt", identity, seconds=0.0, log=said.append), said


def test_the_last_state_of_the_same_computation_is_loaded(tmp_path: Path) -> None:
    checkpoint, said = in_folder(tmp_path)
    assert checkpoint.load() is None
    for step in (1, 2):
        assert checkpoint.save(lambda step=step: {"step": step})  # type: ignore[misc]
        assert checkpoint.load() == {"step": step}
    assert said == []
    other, said = in_folder(tmp_path, "you")
    assert other.load() is None
    reason = "damaged (it is of another computation); it is computed again from the beginning."
    assert said == [f"Warning: {other.path} is {reason}"]


def test_a_full_disk_costs_what_would_be_saved_and_not_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space")

    def make(checkpoint: Checkpoint) -> State:
        monkeypatch.setattr(Path, "write_bytes", full)
        assert not checkpoint.save(lambda: {"step": 2})
        return {"step": 3}

    checkpoint, said = in_folder(tmp_path)
    checkpoint.save(lambda: {"step": 1})
    assert Cache(tmp_path, 0.0, said.append).result("key", make) == {"step": 3}
    assert [line.endswith("could not be saved: No space.") for line in said] == [True, True]
    assert {path.name for path in tmp_path.iterdir()} == {"checkpoint.pt", "key.lock"}
    monkeypatch.setattr(Path, "open", full)
    with pytest.raises(OSError, match="No space"):  # what the system does not give is not damaged
        checkpoint.load()


def test_saving_takes_a_small_share_of_the_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(module.time, "monotonic", lambda: now)
    checkpoint = Checkpoint(tmp_path / "checkpoint.pt", "me", seconds=10.0)
    times: list[float] = []

    def slow() -> State:
        nonlocal now
        times.append(now)
        now += 0.5  # seconds that one takes
        return {}

    while now < 1000:
        now += 1.0
        checkpoint.maybe_save(slow)
    assert times[0] == 10.0
    assert 0.5 * len(times) <= 0.02 * 1000


def test_a_request_to_stop_is_met_with_the_state_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint = Checkpoint(tmp_path / "checkpoint.pt", "me", seconds=3600.0)
    checkpoint.maybe_save(lambda: {"step": 1})
    assert checkpoint.load() is None
    monkeypatch.setattr(_State, "requested", signal.SIGTERM)
    with pytest.raises(Stopped):
        checkpoint.maybe_save(lambda: {"step": 2})
    assert checkpoint.load() == {"step": 2}


def test_a_cached_result_is_made_once_for_each_key_and_part(tmp_path: Path) -> None:
    made: list[str] = []

    def result(name: str) -> str:
        def make(checkpoint: Checkpoint) -> State:
            checkpoint.save(lambda: {"step": -1})
            made.append(name)
            return {"name": name}

        part, key = name.split("/")
        return str(Cache(tmp_path, 0.0).part(part).result(key, make)["name"])

    names = ["a/k", "b/k", "a/m"]
    for name in names * 2:
        assert result(name) == name
    assert made == names
    assert {path.name for path in tmp_path.glob("*/*")} == {"k.pt", "k.lock", "m.pt", "m.lock"}
    # Neither another result nor a checkpoint is one.
    shutil.copy(tmp_path / "a" / "m.pt", tmp_path / "a" / "k.pt")
    Checkpoint(tmp_path / "b" / "k.pt", "k", seconds=0.0).save(lambda: {"name": "b/k"})
    assert [result(name) for name in names] == names
    assert made == [*names, "a/k", "b/k"]
