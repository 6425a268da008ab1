import pytest
import torch
from torch import Tensor

from fairall.nn.stacked import AT_ONCE, MULTIPLE, in_chunks
from fairall.runtime.randomness import SeedStreams


def test_chunks_are_put_together_in_order() -> None:
    at_once = AT_ONCE // 2
    x, s = torch.randn(2, 3 * at_once + MULTIPLE, 4), torch.randn(2, 3 * at_once + MULTIPLE)
    seen = []

    def compute(x: Tensor, s: Tensor) -> Tensor:
        seen.append(x.shape[1])
        return x.sum(-1) * s

    torch.testing.assert_close(in_chunks(compute, x, s), x.sum(-1) * s)
    assert seen == [at_once, at_once, at_once, MULTIPLE]


@pytest.mark.parametrize("n_people", [0, 1, MULTIPLE - 1, AT_ONCE // 2, AT_ONCE // 2 + MULTIPLE - 1])
def test_a_chunk_of_few_people_joins_its_neighbour(n_people: int) -> None:
    seen = []

    def compute(x: Tensor) -> Tensor:
        seen.append(x.shape[1])
        return x

    x = torch.randn(2, n_people)
    torch.testing.assert_close(in_chunks(compute, x), x, rtol=0, atol=0)
    assert seen == [n_people]


@pytest.mark.parametrize(("n_people", "n_numbers"), [(1001, 3), (257, 8), (257, 1), (15, 1)])
def test_a_replicate_draws_the_same_however_many_are_beside_it(n_people: int, n_numbers: int) -> None:
    def drawn(seeds: range) -> tuple[Tensor, Tensor]:
        streams = SeedStreams(seeds, "evaluation")
        chunks = in_chunks(lambda x: streams.normal(x.shape[1], n_numbers), torch.zeros(len(seeds), n_people))
        return chunks[0], streams.uniform(4)[0]

    alone = drawn(range(1))
    for n_seeds in (5, 7, 100):
        torch.testing.assert_close(drawn(range(n_seeds)), alone, rtol=0, atol=0)
