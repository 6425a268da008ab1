"""People in chunks, whose random numbers do not depend on other replicates."""

import pytest
import torch
from torch import Tensor

from fairall.nn.stacked import AT_ONCE, MULTIPLE, in_chunks

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
