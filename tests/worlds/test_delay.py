"""Delay: when a learner gets which decisions, and with which propensities."""

import itertools
from pathlib import Path
from typing import Any

import pytest
import torch

from fairall.data.people import Decided
from tests.conftest import succeeded
from tests.worlds.conftest import built, close, often, sampled


def come(own: Any, n: int = 2) -> tuple[list[Decided], list[list[Decided]]]:
    """The decisions of each time step, half of them acceptances, and those that come at each.

    x is the time step, from 1.
    """
    decided = []
    due = []
    for time_step in range(1, own.setting.time_steps + 1):
        people = sampled(n, 2)
        accepted = torch.rand(2, n) < 0.5
        one = Decided.reveal(people, torch.full((2, n), 0.5 / time_step), accepted)
        x = torch.full((2, n, 1), float(time_step))
        decided.append(Decided(x, one.s, one.propensity, accepted, one.label))
        due.append(own.due(decided[-1:], time_step))
    return decided, due


def times(due: list[Decided]) -> list[int]:
    return [int(one.x[0, 0, 0]) for one in due]


@pytest.mark.parametrize("steps", [0, 1, 4])
def test_a_constant_delay_gives_what_was_decided_so_many_steps_ago(steps: int) -> None:
    own = built("delay", f"steps={steps}", "censored=1e-9", seeds=[0, 1], steps=10)
    decided, due = come(own, 30)
    assert [times(one) for one in due] == [[t - steps] if t > steps else [] for t in range(1, 11)]
    for late in itertools.chain(*due):
        for name, values in vars(decided[times([late])[0] - 1]).items():
            assert torch.equal(getattr(late, name), values)


def test_a_geometric_delay_has_its_mean_and_its_distribution() -> None:
    n = 6000
    mean = 3.0
    due = [times(one) for one in come(built("delay", f"mean={mean}", seeds=[0, 1], steps=n))[1]]
    assert all(one == sorted(one) for one in due)
    assert max(map(len, due)) > 1
    in_order = [*itertools.chain(*due)]
    assert in_order != sorted(in_order)
    # Without the last time steps, of which only the early labels have come.
    waited = {t: now - t for now, one in enumerate(due, start=1) for t in one}
    steps = torch.tensor([waited[t] for t in range(1, n - 99)]).double()
    assert close(steps.mean(), mean, (mean * (1 + mean) / len(steps)) ** 0.5)
    for k in range(6):
        assert often(steps == k, 0.25 * 0.75**k)


def test_censored_people_count_as_rejected_and_the_weights_know_it() -> None:
    decided, due = come(built("delay", "censored=0.3", seeds=[0, 1], steps=200), 30)
    lost = []
    for before, (after,) in zip(decided, due, strict=True):
        assert not (after.accepted & ~before.accepted).any()
        torch.testing.assert_close(after.propensity, 0.7 * before.propensity)
        assert torch.equal(after.label, torch.where(after.accepted, before.label, 0.0))
        lost.append(~after.accepted[before.accepted])
    assert often(torch.cat(lost), 0.3)


@pytest.mark.parametrize("word", ["steps=3", "mean=2", "mean=40", "censored=0.5", "steps=20", "mean=1e6"])
def test_it_is_told_how_many_labels_come_in_time(word: str) -> None:
    own = built("delay", word, steps=20)
    notes = own.notes(drawn=True)
    warnings = own.warnings(drawn=True)
    in_time = [t for t, due in enumerate(come(own)[1], start=1) for _ in due]
    # The same after a part of the run.
    assert (notes, warnings) == (own.notes(drawn=True), own.warnings(drawn=True))
    shown = [f"world.delay.{word.replace('e6', 'e+06')}: no label of the 20 time steps"] * (not in_time)
    assert [warning.partition(" comes")[0] for warning in warnings] == shown
    if len(in_time) in (0, 20):
        assert notes == []
    else:
        (note,) = notes
        assert f"{len(in_time)} of 20 time steps" in note
        assert f"at time step {in_time[0]}:" in note


def test_labels_that_all_come_too_late_are_a_warning_before_the_run_and_the_numbers(tmp_path: Path) -> None:
    quick = ["preset=quick", "model=random", "tracking.enabled=false", f"outputs_dir={tmp_path}"]
    before, _, _ = succeeded(*quick, "world=delay", cwd=tmp_path).stdout.partition("mean_utility")
    assert before.count("Warning: world.delay.steps=10: ") == 2
