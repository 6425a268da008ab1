"""The memory of a run, estimated before it starts."""

from pathlib import Path

import pytest

from fairall.online import training
from fairall.online.training import memory_needed, short_of
from tests.conftest import training_of, typed


def test_it_grows_with_what_a_run_holds() -> None:
    few = memory_needed(training_of("model=random"))
    for words in (
        ["schedule.time_steps=100000"],
        ["seeds=100"],
        ["schedule.applicants=10000"],
        ["schedule.applicants=2000", "world.capacity.number=8"],
    ):
        assert memory_needed(training_of("model=random", *words)) > few + 1e6, words
    long = "schedule.time_steps=10000"
    greedy, random = (memory_needed(training_of(f"model={name}", long)) for name in ("greedy", "random"))
    assert greedy > random


def test_a_run_that_may_not_fit_says_so_before_it_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, told = training_of("model=random"), []
    for available in (None, int(1e12), int(300e6)):
        monkeypatch.setattr(training, "available_memory", lambda of=available: of)
        told += short_of(own)
    assert told == [
        "the run may need 0.5 GB of memory and 0.3 GB are available; "
        "fewer seeds, schedule.time_steps or schedule.applicants take less"
    ]
    said = typed("preset=quick", "model=random", "tracking.enabled=false", cwd=tmp_path).stdout
    assert f"Note: {told[0]}.\n" in said
