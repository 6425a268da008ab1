"""Delay: when a learner gets which decisions, and with which propensities."""

from pathlib import Path
from typing import Any

import pytest
import torch

from fairall.data.people import Decided
from tests.conftest import succeeded
from tests.worlds.conftest import built, often, sampled


def come(own: Any, n: int = 30) -> list[tuple[Decided, list[Decided]]]:
    """The decisions of each time step, half of them acceptances, and those that come at it."""
    steps = []
    for time_step in range(1, own.setting.time_steps + 1):
        accepted = torch.rand(2, n) < 0.5
        one = Decided.reveal(sampled(n, 2), torch.full((2, n), 0.5 / time_step), accepted)
        steps.append((one, own.due([one], time_step)))
    return steps


@pytest.mark.parametrize("word", ["steps=4", "mean=3"])
def test_what_was_decided_comes_at_its_time_step_the_oldest_first(word: str) -> None:
    own = built("delay", word, seeds=[0, 1], steps=40)
    steps = come(own)
    for time_step, (_, due) in enumerate(steps, start=1):
        expected = [steps[t][0] for t, arrival in enumerate(own.arrivals) if arrival == time_step]
        torch.testing.assert_close([*map(vars, due)], [*map(vars, expected)], rtol=0, atol=0)


def test_a_delay_is_constant_or_geometric() -> None:
    n = 6000
    steps, mean = (
        torch.tensor(built("delay", word, steps=n).arrivals) - torch.arange(1, n + 1)
        for word in ("steps=4", "mean=3")
    )
    assert (steps == 4).all()
    for k in range(9):
        assert often(mean == k, 0.25 * 0.75**k)


def test_censored_people_count_as_rejected_and_the_weights_know_it() -> None:
    own = built("delay", "censored=0.3", seeds=[0, 1], steps=200)
    lost = []
    for before, (after,) in come(own):
        assert not (after.accepted & ~before.accepted).any()
        torch.testing.assert_close(after.propensity, 0.7 * before.propensity)
        assert torch.equal(after.label, before.label * after.accepted)
        lost.append(~after.accepted[before.accepted])
    assert often(torch.cat(lost), 0.3)
    assert torch.equal(own.values["censored"], before.accepted & ~after.accepted)


@pytest.mark.parametrize("word", ["steps=3", "mean=2", "mean=40", "censored=0.5", "steps=20", "mean=1e6"])
def test_it_is_told_how_many_labels_come_in_time(word: str) -> None:
    own = built("delay", word, steps=20)
    come = sum(time_step <= 20 for time_step in own.arrivals)
    warned = f"world.delay.{word.replace('e6', 'e+06')}: no label of the 20 time steps"
    warnings = [warning.partition(" comes")[0] for warning in own.warnings(drawn=True)]
    assert warnings == [warned] * (come == 0)
    noted = f"the labels of {come} of 20 time steps come before the run ends, the first at time step"
    notes = [note.partition(":")[0] for note in own.notes(drawn=True)]
    assert notes == [f"{noted} {min(own.arrivals)}"] * (0 < come < 20)


def test_labels_that_all_come_too_late_are_a_warning_before_the_run_and_the_numbers(tmp_path: Path) -> None:
    quick = ["preset=quick", "model=random", "tracking.enabled=false", f"outputs_dir={tmp_path}"]
    before, _, _ = succeeded(*quick, "world=delay", cwd=tmp_path).stdout.partition("mean_utility")
    assert before.count("Warning: world.delay.steps=10: ") == 2
