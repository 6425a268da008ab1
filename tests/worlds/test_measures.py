"""Measures of worlds, against sums written out, and the time of adaptation on curves that are known."""

import numpy as np
import pytest
import torch

from fairall.worlds.measures import adaptation_time, effective_revealed_utility, regret, utility_per_place

COST = 0.3


def drawn(*shape: int) -> torch.Tensor:
    return torch.rand(*shape, generator=torch.Generator().manual_seed(len(shape))) < 0.5


@pytest.fixture
def accepted() -> torch.Tensor:
    return drawn(6, 2, 9)


@pytest.fixture
def label() -> torch.Tensor:
    return (~drawn(6, 2, 9)).roll(1, 0).float()


def test_utility_per_place_is_of_all_places_so_far(accepted: torch.Tensor, label: torch.Tensor) -> None:
    places = torch.tensor([[3.0, 4.0]]) + torch.arange(6).unsqueeze(1)
    found = utility_per_place(accepted, label, COST, places)
    for t in range(6):
        for k in range(2):
            earned = sum(
                label[u, k, i].item() - COST for u in range(t + 1) for i in range(9) if accepted[u, k, i]
            )
            assert found[t, k].item() == pytest.approx(earned / places[: t + 1, k].sum().item(), abs=1e-6)


def test_revealed_utility_and_regret_are_means_over_all_applicants_so_far(
    accepted: torch.Tensor, label: torch.Tensor
) -> None:
    seen, oracle = 1.0 - label, label > 0
    revealed = effective_revealed_utility(accepted, seen, COST)
    lost = regret(accepted, label, COST, oracle)
    for t in range(6):
        for k in range(2):
            so_far = [(u, k, i) for u in range(t + 1) for i in range(9)]
            told = sum(seen[at].item() - COST for at in so_far if accepted[at]) / len(so_far)
            taken = sum(label[at].item() - COST for at in so_far if accepted[at]) / len(so_far)
            best = sum(label[at].item() - COST for at in so_far if oracle[at]) / len(so_far)
            assert revealed[t, k].item() == pytest.approx(told, abs=1e-6)
            assert lost[t, k].item() == pytest.approx(best - taken, abs=1e-6)
    assert (lost >= 0).all()


def test_adaptation_time_of_an_exponential_recovery() -> None:
    """1 − exp(−k/20) has made up nine tenths of what a window of five steps first shows after 46 steps."""
    k = np.arange(400)
    curve = np.concatenate([np.full(50, 2.0), 1.0 - np.exp(-k / 20.0)])
    # The mean over steps k..k+4 is 1 − g·exp(−k/20) for some g: a tenth of g is left at 20·ln 10 = 46.05.
    assert adaptation_time(curve[:, None], 50).tolist() == [47.0]
    assert adaptation_time(10.0 * curve[:, None] - 3.0, 50).tolist() == [47.0]


def test_adaptation_time_is_of_each_seed() -> None:
    after = 100

    def step_at(k: int) -> np.ndarray:
        return np.where(np.arange(20 + after) < 20 + k, 1.0, 5.0)

    nothing, worse, diverged = np.full(120, 3.0), np.linspace(3.0, 0.0, 120), np.full(120, 3.0)
    diverged[90:] = np.nan
    curves = np.stack([step_at(10), step_at(40), nothing, worse, diverged], axis=1)
    # A window of five steps is up to nine tenths only where all of it is after the step.
    assert adaptation_time(curves, 20)[:4].tolist() == [10.0, 40.0, 0.0, 0.0]
    assert np.isnan(adaptation_time(curves, 20)[4])
    assert np.isnan(adaptation_time(curves, 116)).all()
    assert np.isnan(adaptation_time(curves, 500)).all()
    # A mean of noise around a constant is no adaptation of a long time for want of being exactly there.
    assert not np.isnan(adaptation_time(curves[:, :4], 115)).any()
