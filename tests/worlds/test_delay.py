"""Delay: when a learner gets which decisions, and with which propensities."""

import pytest
import torch

from fairall.data.people import Decided
from tests.worlds.conftest import built, often, sampled


@pytest.mark.parametrize("word", ["steps=4", "mean=3"])
def test_decisions_come_at_their_time_the_oldest_first_with_the_weights_of_what_is_known(word: str) -> None:
    own = built("delay", word, "censored=0.3", seeds=[0, 1], steps=200)
    decided, lost = [], []
    for time_step in range(1, 201):
        people = sampled(30, 2)
        accepted = torch.rand(2, 30) < 0.5
        decided.append(Decided.reveal(people, torch.full((2, 30), 0.5 / time_step), accepted))
        due = own.due(decided[-1:], time_step)
        before = [one for one, arrival in zip(decided, own.arrivals, strict=False) if arrival == time_step]
        for one, after in zip(before, due, strict=True):
            torch.testing.assert_close(after.propensity, 0.7 * one.propensity)
            assert not (after.accepted & ~one.accepted).any()
            assert torch.equal(after.label, one.label * after.accepted)
            lost.append(~after.accepted[one.accepted])
    assert often(torch.cat(lost), 0.3)
    assert own.values["censored"].any()
    assert not (own.values["censored"] & ~accepted).any()


def test_a_delay_is_constant_or_geometric() -> None:
    n = 6000
    steps, mean = (
        torch.tensor(built("delay", word, steps=n).arrivals) - torch.arange(1, n + 1)
        for word in ("steps=4", "mean=3")
    )
    assert (steps == 4).all()
    for k in range(9):
        assert often(mean == k, 0.25 * 0.75**k)


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
