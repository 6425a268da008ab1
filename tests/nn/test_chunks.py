"""People in chunks, whose random numbers do not depend on other replicates."""

import pytest
import torch
from torch import Tensor

from fairall.nn.stacked import AT_ONCE, MULTIPLE, in_chunks
from fairall.runtime.randomness import SeedStreams

ALL = AT_ONCE // 2  # people of each of two replicates in a chunk


@pytest.mark.parametrize(
    ("n_people", "sizes"),
    [(n, [n]) for n in (0, 1, MULTIPLE - 1, ALL, ALL + MULTIPLE - 1)]  # a few join their neighbours
    + [(3 * ALL + MULTIPLE, [ALL, ALL, ALL, MULTIPLE])],
)
def test_chunks_are_put_together_in_order(n_people: int, sizes: list[int]) -> None:
    x, s = torch.randn(2, n_people, 4), torch.randn(2, n_people)
    seen = []

    def compute(x: Tensor, s: Tensor) -> Tensor:
        seen.append(x.shape[1])
        return x.sum(-1) * s

    torch.testing.assert_close(in_chunks(compute, x, s), x.sum(-1) * s)
    assert seen == sizes


@pytest.mark.parametrize(("n_people", "n_numbers"), [(1001, 3), (257, 8), (257, 1), (15, 1)])
@pytest.mark.parametrize("n_seeds", [5, 7, 100])
def test_a_replicate_draws_the_same_however_many_are_beside_it(
    n_people: int, n_numbers: int, n_seeds: int
) -> None:
    drawn = []
    for n in (1, n_seeds):
        streams = SeedStreams(range(n), "evaluation")

        def compute(x: Tensor, streams: SeedStreams = streams) -> Tensor:
            return streams.normal(x.shape[1], n_numbers)

        drawn.append((in_chunks(compute, torch.zeros(n, n_people))[0], streams.uniform(4)[0]))
    torch.testing.assert_close(*drawn, rtol=0, atol=0)
