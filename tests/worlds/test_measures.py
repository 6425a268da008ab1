"""Measures of worlds, against sums written out, and the time of adaptation on curves that are known."""

import numpy as np
import pytest
import torch

from fairall.worlds.measures import adaptation_time, effective_revealed_utility, regret, utility_per_place

COST = 0.3


def test_they_are_of_all_applicants_and_places_so_far() -> None:
    accepted, label, seen = torch.rand(3, 6, 2, 9) < 0.5
    places = torch.tensor([[3.0, 4.0]]) + torch.arange(6).unsqueeze(1)
    found = {
        "place": utility_per_place(accepted, label.float(), COST, places),
        "revealed": effective_revealed_utility(accepted, seen.float(), COST),
        "regret": regret(accepted, label.float(), COST, label),
    }
    for t in range(6):
        for k in range(2):
            n = 9 * (t + 1)
            own, truth, told = (of[: t + 1, k].flatten().numpy() for of in (accepted, label, seen))
            taken, best = (truth[of].astype(float) - COST for of in (own, truth))
            expected = {
                "place": taken.sum() / places[: t + 1, k].sum().item(),
                "revealed": (told[own] - COST).sum() / n,
                "regret": (best.sum() - taken.sum()) / n,
            }
            assert {name: of[t, k].item() for name, of in found.items()} == pytest.approx(expected, abs=1e-6)
    assert (found["regret"] >= 0).all()


def test_adaptation_time_of_an_exponential_recovery() -> None:
    """1 − exp(−k/20) has made up nine tenths of what a window of five steps first shows after 46 steps."""
    k = np.arange(400)
    curve = np.concatenate([np.full(50, 2.0), 1.0 - np.exp(-k / 20.0)])
    # The mean over steps k..k+4 is 1 − g·exp(−k/20) for some g: a tenth of g is left at 20·ln 10 = 46.05.
    assert adaptation_time(curve[:, None], 50).tolist() == [47.0]
    assert adaptation_time(10.0 * curve[:, None] - 3.0, 50).tolist() == [47.0]


def test_adaptation_time_is_of_each_seed() -> None:
    t = np.arange(120)
    nothing, worse = np.full(120, 3.0), np.linspace(3.0, 0.0, 120)
    steps = [np.where(t < 20 + k, 1.0, 5.0) for k in (10, 40)]
    curves = np.stack([*steps, nothing, worse, np.where(t < 90, 3.0, np.nan)], axis=1)
    # A window of five steps is up to nine tenths only where all of it is after the step.
    assert adaptation_time(curves, 20)[:4].tolist() == [10.0, 40.0, 0.0, 0.0]
    assert np.isnan(adaptation_time(curves, 20)[4])
    assert np.isnan(adaptation_time(curves, 116)).all()
    assert np.isnan(adaptation_time(curves, 500)).all()
    # A mean of noise around a constant is no adaptation of a long time for want of being exactly there.
    assert not np.isnan(adaptation_time(curves[:, :4], 115)).any()
