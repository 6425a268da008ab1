"""Measures of worlds, against sums written out, and the time of adaptation on curves that are known."""

import numpy as np
import pytest
import torch

from fairall.worlds.measures import adaptation_time, effective_revealed_utility, regret, utility_per_place


def test_they_are_of_all_applicants_and_places_so_far() -> None:
    """Two steps of two applicants, at a cost of ¼."""
    accepted, label, seen = torch.tensor([[[1, 1], [1, 0]], [[1, 0], [1, 1]], [[0, 0], [1, 1]]]).unsqueeze(2)
    places = torch.tensor([[1.0], [2.0]])
    of_places = utility_per_place(accepted, label, 0.25, places)
    revealed = effective_revealed_utility(accepted, seen, 0.25)
    lost = regret(accepted, label, 0.25, label)
    assert of_places.flatten().tolist() == pytest.approx([0.5, 1.25 / 3])
    assert revealed.flatten().tolist() == pytest.approx([-0.5 / 2, 0.25 / 4])
    assert lost.flatten().tolist() == pytest.approx([(0.75 - 0.5) / 2, (2.25 - 1.25) / 4])


def test_adaptation_time_of_an_exponential_recovery() -> None:
    """1 − exp(−k/20) has made up nine tenths of what a window of five steps first shows after 46 steps."""
    k = np.arange(400)
    curve = np.concatenate([np.full(50, 2.0), 1.0 - np.exp(-k / 20.0)])
    # The mean over steps k..k+4 is 1 − g·exp(−k/20) for some g: a tenth of g is left at 20·ln 10 = 46.05.
    assert adaptation_time(curve[:, None], 50).tolist() == [47.0]
    assert adaptation_time(10.0 * curve[:, None] - 3.0, 50).tolist() == [47.0]


def test_adaptation_time_is_of_each_seed() -> None:
    t = np.arange(120)
    nothing = np.full(120, 3.0)
    worse = np.linspace(3.0, 0.0, 120)
    steps = [np.where(t < 20 + k, 1.0, 5.0) for k in (10, 40)]
    curves = np.stack([*steps, nothing, worse, np.where(t < 90, 3.0, np.nan)], axis=1)
    # A window of five steps is up to nine tenths only where all of it is after the step.
    assert adaptation_time(curves, 20)[:4].tolist() == [10.0, 40.0, 0.0, 0.0]
    assert np.isnan(adaptation_time(curves, 20)[4])
    assert np.isnan(adaptation_time(curves, 116)).all()
    assert np.isnan(adaptation_time(curves, 500)).all()
    # A mean of noise around a constant is no adaptation of a long time for want of being exactly there.
    assert not np.isnan(adaptation_time(curves[:, :4], 115)).any()
