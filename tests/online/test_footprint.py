"""The memory of a run, estimated before it starts."""

from pathlib import Path

import pytest

from fairall.online import training
from fairall.online.training import memory_needed
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
    words = ["schedule.time_steps=10000"]
    assert memory_needed(training_of("model=greedy", *words)) > memory_needed(
        training_of("model=random", *words)
    )


@pytest.mark.whole
def test_a_run_that_may_not_fit_says_so_before_it_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["preset=quick", "model=random", "tracking.enabled=false"]
    said = {}
    for available in (None, int(300e6), int(1e12)):
        monkeypatch.setattr(training, "available_memory", lambda of=available: of)
        said[available] = typed(*words, "force=true", cwd=tmp_path).stdout
    notes = [line for line in said[int(300e6)].splitlines() if "GB of memory" in line]
    assert notes == [
        "Note: the run may need 0.5 GB of memory and 0.3 GB are available; "
        "fewer seeds, schedule.time_steps or schedule.applicants take less."
    ]
    assert "GB of memory" not in said[None] + said[int(1e12)]
