"""The parts of a run, by a stopwatch."""

import itertools
from pathlib import Path
from types import SimpleNamespace

import pytest

from benchmarks import probe
from benchmarks.probe import Stopwatch, parts

pytestmark = pytest.mark.whole

SMALL = """
    preset=quick seeds=1 schedule.phase1_epochs=1 schedule.warm_up_epochs=1 schedule.time_steps=2
    evaluation.window=[1,2] tracking.enabled=false
""".split()


def test_the_parts_of_a_run_add_up_to_the_whole(tmp_path: Path) -> None:
    table = parts(["model=fairall_I_II", *SMALL], tmp_path / "parts.csv")
    assert [*table.index] == ["start-up", "Phase I", "Warm-up", "Phase II", "evaluation", "rest", "whole"]
    assert (table > 0).all(axis=None)
    # Only the start and the end of the interpreter are seen from outside alone.
    assert (table.drop("whole").sum() <= table.loc["whole"]).all()


def test_a_part_inside_another_interrupts_it(monkeypatch: pytest.MonkeyPatch) -> None:
    clocks = SimpleNamespace(
        process_time=itertools.count().__next__, perf_counter=itertools.count(step=2).__next__
    )
    monkeypatch.setattr(probe, "time", clocks)
    watch = Stopwatch("start-up")
    with watch.part("outer"), watch.part("inner"):
        pass
    with pytest.raises(ValueError, match="broken"), watch.part("broken"):
        raise ValueError("broken")
    assert watch.running == "rest"
    assert watch.used == {
        "start-up": [1, 2],
        "outer": [2, 4],
        "inner": [1, 2],
        "rest": [1, 2],
        "broken": [1, 2],
    }
