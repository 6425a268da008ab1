import pytest
import torch

from benchmarks.products import count_products, reached_rate
from fairall.nn.stacked import StackedMLP
from fairall.randomness import SeedStreams

FORWARD = 2 * 7 * (3 * 5 + 5 * 1)  # two replicates, seven people, layers 3 -> 5 -> 1


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    for name in ("baddbmm", "bmm"):
        monkeypatch.setattr(torch, name, getattr(torch, name))  # restored in the end
    found: list[int] = []
    count_products(found.append)
    return found


def test_forward_products_are_those_of_the_layers(counted: list[int]) -> None:
    net = StackedMLP(3, [5], 1, SeedStreams([0, 1], "test"))
    with torch.no_grad():
        net(torch.ones(2, 7, 3))
    assert sum(counted) == FORWARD


def test_products_that_are_differentiated_count_for_their_gradients(counted: list[int]) -> None:
    net = StackedMLP(3, [5], 1, SeedStreams([0, 1], "test"))
    net(torch.ones(2, 7, 3))
    of_input = 2 * 7 * 3 * 5  # the input itself has no gradient
    assert sum(counted) == 3 * FORWARD - of_input


def test_a_core_multiplies() -> None:
    threads = torch.get_num_threads()
    try:
        assert 1e8 < reached_rate() < 1e12
    finally:
        torch.set_num_threads(threads)
