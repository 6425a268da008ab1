from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from benchmarks.products import COMPILED, count_products, reached_rate
from fairall.data.features import Schema
from fairall.data.people import People
from fairall.models.elbo import phase1_elbo
from fairall.models.phase1 import Unlabelled, phase1_epochs
from fairall.models.vae import ConditionalVAE
from fairall.nn.native import calls
from fairall.nn.stacked import StackedMLP
from fairall.randomness import SeedStreams
from tests.conftest import PHASE1

FORWARD = 2 * 7 * (3 * 5 + 5 * 1)  # two replicates, seven people, layers 3 -> 5 -> 1


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    for owner, names in ((torch, ["baddbmm"]), (calls.kernels(), COMPILED)):
        for name in names:
            monkeypatch.setattr(owner, name, getattr(owner, name))  # restored in the end
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


def test_compiled_products_count_as_those_of_torch(
    schema: Schema, people: Callable[[int], People], counted: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    config = replace(PHASE1, batch_size=4, elbo_samples=3)
    pool = Unlabelled.of(people(10))
    vae = ConditionalVAE(schema, 2, [6, 5], SeedStreams([0, 1], "test"), utility=False, group_blind=False)
    order, noise = SeedStreams([0, 1], "draws").permutations(10), torch.randn(2, 10, 2, 3)
    x, s = pool.x.expand(2, -1, -1), pool.s.expand(2, -1)

    def all_products() -> int:
        counted.clear()
        phase1_epochs(vae, pool, config).epoch(order, noise, torch.zeros(2, dtype=torch.bool))
        with torch.no_grad():
            phase1_elbo(vae, x, s, noise, beta=1.0)
        return sum(counted)

    compiled = all_products()
    monkeypatch.setattr(calls, "kernels", lambda: None)
    assert compiled == all_products()


def test_a_core_multiplies() -> None:
    threads = torch.get_num_threads()
    try:
        assert 1e8 < reached_rate() < 1e12
    finally:
        torch.set_num_threads(threads)
