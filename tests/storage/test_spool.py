"""Steps that are appended to a file, whatever happens to it between two checkpoints."""

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from fairall.errors import FairAllError
from fairall.storage import spool as module
from fairall.storage.checkpoint import Checkpoint
from fairall.storage.spool import Spool


class Work:
    """Steps 1, 2, ..., each of them a record and a state."""

    def __init__(self, folder: Path, said: list[str] | None = None) -> None:
        log = [] if said is None else said
        self.checkpoint = Checkpoint(folder / "checkpoint.pt", "me", seconds=0.0, log=log.append)
        self.steps, self.done = Spool(), 0
        self.steps.path = self.checkpoint.appended
        self.checkpoint.load(self.load)

    def load(self, state: dict[str, Any]) -> None:
        self.steps.load_state_dict(state["steps"])
        self.done = state["done"]

    def state(self) -> dict[str, Any]:
        return {"steps": self.steps.state_dict(), "done": self.done}

    def step(self) -> None:
        self.done += 1
        accepted = torch.arange(5) < self.done
        self.steps.append({"accepted": accepted, "utility": torch.full((2,), float(self.done))})

    def save(self) -> None:
        self.checkpoint.save(self.state)

    def whole(self) -> bool:
        found = self.steps.read()
        expected = torch.arange(1.0, self.done + 1)
        return len(self.steps) == self.done and (
            not self.done
            or (
                torch.equal(found["utility"], expected.unsqueeze(1).expand(-1, 2))
                and torch.equal(found["accepted"].sum(-1), expected.long().clamp(max=5))
            )
        )


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """A folder with states of 2 and of 3 steps, and a fourth step that no state knows of."""
    work = Work(tmp_path)
    for _ in range(3):
        work.step()
        work.save()
    work.step()
    work.steps.state_dict()  # a kill between this and the checkpoint
    assert work.whole()
    return tmp_path


def damaged(change: Callable[[bytes], bytes]) -> Callable[[Path], None]:
    def damage(path: Path) -> None:
        path.write_bytes(change(path.read_bytes()))

    return damage


RECORD = 16  # bytes of a step


@pytest.mark.parametrize(
    ("damage", "goes_on_from"),
    [
        (lambda path: None, 3),
        (damaged(lambda whole: whole[:-7]), 3),  # a torn append
        (damaged(lambda whole: whole + b"more"), 3),
        (damaged(lambda whole: whole[: 3 * RECORD]), 3),
        (damaged(lambda whole: whole[: 3 * RECORD - 1]), 2),
        (damaged(lambda whole: whole[: 2 * RECORD] + b"?" + whole[2 * RECORD + 1 :]), 2),
        (damaged(lambda whole: b"?" + whole[1:]), 0),
        (damaged(lambda whole: b""), 0),
        (Path.unlink, 0),
    ],
)
def test_it_goes_on_from_the_last_state_whose_steps_are_sound(
    damage: Callable[[Path], None], goes_on_from: int, kept: Path
) -> None:
    damage(kept / "checkpoint.steps")
    said: list[str] = []
    work = Work(kept, said)
    assert work.done == goes_on_from
    assert len(said) == {3: 0, 2: 1, 0: 2}[goes_on_from]
    assert all("checkpoint.steps is " in line for line in said)
    for _ in range(3):
        assert work.whole()
        work.step()
        work.save()
    again = Work(kept)
    assert again.done == goes_on_from + 3
    assert again.whole()
    assert (kept / "checkpoint.steps").stat().st_size == RECORD * again.done


def test_states_and_memory_do_not_grow_with_the_steps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work, sizes = Work(tmp_path), []
    for _ in range(100):
        work.step()
        work.save()
        sizes.append((tmp_path / "checkpoint.pt").stat().st_size)
    assert max(sizes) < sizes[0] + 500
    assert (tmp_path / "checkpoint.steps").stat().st_size == 100 * RECORD
    monkeypatch.setattr(module, "MOST_WAITING", 10 * RECORD)
    for _ in range(95):
        work.step()
    assert (tmp_path / "checkpoint.steps").stat().st_size == 190 * RECORD
    assert work.whole()


def test_on_a_full_disk_steps_stay_in_memory(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work = Work(kept)
    with monkeypatch.context() as patched:

        def full(handle: int) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        patched.setattr(os, "fsync", full)
        work.step()
        work.save()
    assert (kept / "checkpoint.steps").stat().st_size == 3 * RECORD
    assert work.whole()
    assert Work(kept).done == 3
    work.step()
    work.save()
    assert (work.done, work.whole()) == (5, True)
    again = Work(kept)
    assert (again.done, again.whole()) == (5, True)


@pytest.mark.parametrize("change", [Path.unlink, damaged(lambda whole: whole[:10])])
def test_a_file_that_others_change_ends_the_run_in_one_line(
    change: Callable[[Path], None], kept: Path
) -> None:
    work = Work(kept)
    change(kept / "checkpoint.steps")
    with pytest.raises(FairAllError, match="was deleted or changed during the run"):
        work.steps.read()
    work.step()
    with pytest.raises(FairAllError, match="was deleted or changed during the run"):
        work.save()


def test_steps_with_other_values_than_before_are_refused(tmp_path: Path) -> None:
    steps = Spool()
    steps.append({"s": torch.zeros(2)})
    for other in ({"s": torch.zeros(3)}, {"t": torch.zeros(2)}, {"s": torch.zeros(2).double()}):
        with pytest.raises(FairAllError, match="time step 2 has other values"):
            steps.append(other)


def test_without_a_file_the_steps_are_part_of_the_state() -> None:
    one, other = Spool(), Spool()
    for step in range(3):
        one.append({"step": torch.tensor(step), "flags": torch.tensor([True, False, step > 1])})
    other.load_state_dict(one.state_dict())
    torch.testing.assert_close(other.read(), one.read(), rtol=0, atol=0)
    assert len(other) == 3
