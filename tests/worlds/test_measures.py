"""Measures of worlds, against sums written out, and the time of adaptation on curves that are known."""

import numpy as np
import torch

from fairall.worlds.measures import adaptation_time, effective_revealed_utility, regret, utility_per_place


def test_they_are_of_all_applicants_and_places_so_far() -> None:
    """Two steps of two applicants, at a cost of ¼."""
    accepted, label, seen = torch.tensor([[[1, 1], [1, 0]], [[1, 0], [1, 1]], [[0, 0], [1, 1]]]).unsqueeze(2)
    of_places = utility_per_place(accepted, label, 0.25, torch.tensor([[1.0], [2.0]]))
    revealed = effective_revealed_utility(accepted, seen, 0.25)
    lost = regret(accepted, label, 0.25, label)
    found = torch.cat([of_places, revealed, lost], 1)
    expected = [[0.5, -0.5 / 2, (0.75 - 0.5) / 2], [1.25 / 3, 0.25 / 4, (2.25 - 1.25) / 4]]
    torch.testing.assert_close(found, torch.tensor(expected))


def test_adaptation_time_of_an_exponential_recovery() -> None:
    """1 − exp(−k/20) has made up nine tenths of what a window of five steps first shows after 46 steps."""
    curve = 1.0 - np.exp(-np.arange(400) / 20.0)
    # The mean over steps k..k+4 is 1 − g·exp(−k/20) for some g: a tenth of g is left at 20·ln 10 = 46.05.
    assert adaptation_time(curve[:, None], 0) == 47


def test_adaptation_time_is_of_each_seed() -> None:
    t = np.arange(120)
    # A window of five steps is up to nine tenths only where all of it is after the step.
    curves = np.stack(
        [
            np.where(t < 30, 1.0, 5.0),
            np.where(t < 60, 1.0, 5.0),
            np.full(120, 3.0),
            np.linspace(3.0, 0.0, 120),
            np.where(t < 90, 3.0, np.nan),
        ],
        axis=1,
    )
    np.testing.assert_array_equal(adaptation_time(curves, 20), [10.0, 40.0, 0.0, 0.0, np.nan])
    for late in (116, 500):
        assert np.isnan(adaptation_time(curves, late)).all()
    # A mean of noise around a constant is no adaptation of a long time for want of being exactly there.
    assert not np.isnan(adaptation_time(curves[:, :4], 115)).any()
