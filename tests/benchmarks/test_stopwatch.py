import itertools
from types import SimpleNamespace

import pytest

from benchmarks import stopwatch
from benchmarks.stopwatch import Stopwatch


@pytest.fixture(autouse=True)
def _a_second_per_look(monkeypatch: pytest.MonkeyPatch) -> None:
    clocks = SimpleNamespace(
        process_time=itertools.count().__next__, perf_counter=itertools.count(step=2).__next__
    )
    monkeypatch.setattr(stopwatch, "time", clocks)


def test_a_part_inside_another_interrupts_it() -> None:
    watch = Stopwatch("first")
    with watch.part("outer"), watch.part("inner"):
        pass
    watch.switch("rest")
    assert {part: used.cpu_seconds for part, used in watch.used.items()} == {
        "first": 2,
        "outer": 2,
        "inner": 1,
    }
    assert {part: used.wall_seconds for part, used in watch.used.items()} == {
        "first": 4,
        "outer": 4,
        "inner": 2,
    }


def test_a_part_that_fails_ends_too() -> None:
    watch = Stopwatch("first")
    with pytest.raises(ValueError, match="broken"), watch.part("broken"):
        raise ValueError("broken")
    assert watch.switch("rest") == "first"


def test_peaks_are_those_of_the_part() -> None:
    watch = Stopwatch("small")
    with watch.part("large"):
        held = b"x" * (100 * 2**20)
        del held
    watch.switch("rest")
    assert watch.used["large"].peak_mib > 100
