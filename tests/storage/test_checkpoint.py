"""States that are saved from time to time, and results that runs share."""

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
from fairall.storage.checkpoint import Cache, Checkpoint


def saved(folder: Path, said: list[str], identity: str = "me") -> int | None:
    state = Checkpoint(folder / "checkpoint.pt", identity, seconds=0.0, log=said.append).load()
    return None if state is None else state["step"]


def test_the_last_state_of_the_same_computation_is_loaded(tmp_path: Path) -> None:
    checkpoint, said = Checkpoint(tmp_path / "checkpoint.pt", "me", seconds=0.0), list[str]()
    assert saved(tmp_path, []) is None
    for step in (1, 2):
        assert checkpoint.save(lambda step=step: {"step": step})  # type: ignore[misc]
        assert saved(tmp_path, said) == step
    assert saved(tmp_path, said, identity="you") is None
    path = checkpoint.path
    path.unlink()
    path.mkdir()
    assert saved(tmp_path, said) is None
    reasons = ("it is of another computation", "is a folder")
    again = "it is computed again from the beginning."
    assert said == [f"Warning: {path} is damaged ({reason}); {again}" for reason in reasons]


def test_a_full_disk_costs_the_state_and_not_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    said: list[str] = []
    checkpoint = Checkpoint(tmp_path / "checkpoint.pt", "me", seconds=0.0, log=said.append)
    checkpoint.save(lambda: {"step": 1})
    with monkeypatch.context() as patched:
        patched.setattr(Path, "write_bytes", full)
        assert not checkpoint.save(lambda: {"step": 2})
        assert Cache(tmp_path, 0.0, said.append).result("key", lambda _: {"step": 3}) == {"step": 3}
    assert [line.endswith("could not be saved: No space left on device.") for line in said] == [True, True]
    assert saved(tmp_path, []) == 1
    assert {path.name for path in tmp_path.iterdir()} == {"checkpoint.pt", "key.lock"}
    monkeypatch.setattr(Path, "open", full)
    with pytest.raises(OSError, match="No space"):  # what the system does not give is not damaged
        checkpoint.load()


def test_saving_takes_a_small_share_of_the_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(module.time, "monotonic", lambda: now)
    checkpoint = Checkpoint(tmp_path / "checkpoint.pt", "me", seconds=10.0)
    times: list[float] = []

    def slow() -> dict[str, Any]:
        nonlocal now
        times.append(now)
        now += 0.5  # seconds that one takes
        return {"step": len(times)}

    while now < 1000:
        now += 1.0
        checkpoint.maybe_save(slow)
    assert times[0] == 10.0
    assert 0.5 * len(times) <= 0.02 * 1000


def test_a_request_to_stop_is_met_after_a_step_with_its_state_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint = Checkpoint(tmp_path / "checkpoint.pt", "me", seconds=3600.0)
    steps: list[int] = []

    def stop() -> None:
        if len(steps) == 3:
            raise Stopped(signal.SIGTERM)

    monkeypatch.setattr(signals, "stop_requested", lambda: len(steps) == 3)
    monkeypatch.setattr(signals, "raise_if_requested", stop)
    with pytest.raises(Stopped):  # noqa: PT012
        while len(steps) < 10:
            steps.append(len(steps) + 1)
            checkpoint.maybe_save(lambda: {"step": steps[-1]})
    assert steps == [1, 2, 3]
    assert saved(tmp_path, []) == 3


def test_a_cached_result_is_made_once_for_each_key_and_part(tmp_path: Path) -> None:
    made: list[int] = []

    def make(checkpoint: Checkpoint) -> dict[str, Any]:
        checkpoint.save(lambda: {"step": -1})
        made.append(len(made))
        return {"weights": torch.full((3,), made[-1])}

    def result(part: str, key: str) -> int:
        return int(Cache(tmp_path, 0.0).part(part).result(key, make)["weights"][0])

    assert [result(*case) for case in ("ak", "bk", "am", "ak", "bk", "am")] == [0, 1, 2, 0, 1, 2]
    (tmp_path / "a" / "k.pt").write_bytes((tmp_path / "a" / "m.pt").read_bytes())
    Checkpoint(tmp_path / "b" / "k.pt", "k", seconds=0.0).save(lambda: {"step": -1})
    assert [result(*case) for case in ("ak", "bk")] == [
        3,
        4,
    ]  # neither another result nor a checkpoint is one
    assert {path.name for path in tmp_path.glob("*/*")} == {"k.pt", "k.lock", "m.pt", "m.lock"}
