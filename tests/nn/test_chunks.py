import torch
from torch import Tensor

from fairall.nn.chunks import AT_ONCE, in_chunks
from fairall.randomness import SeedStreams


def test_chunks_are_put_together_in_order() -> None:
    at_once = AT_ONCE // 2
    x, s = torch.randn(2, 3 * at_once + 5, 4), torch.randn(2, 3 * at_once + 5)
    seen = []

    def compute(x: Tensor, s: Tensor) -> Tensor:
        seen.append(x.shape[1])
        return x.sum(-1) * s

    torch.testing.assert_close(in_chunks(compute, x, s), x.sum(-1) * s)
    assert seen == [at_once, at_once, at_once, 5]


def test_a_replicate_draws_the_same_however_many_are_beside_it() -> None:
    def drawn(seeds: range) -> Tensor:
        streams = SeedStreams(seeds, "evaluation")
        return in_chunks(lambda x: streams.normal(x.shape[1], 3), torch.zeros(len(seeds), 1001))

    torch.testing.assert_close(drawn(range(1))[0], drawn(range(7))[0], rtol=0, atol=0)
    torch.testing.assert_close(drawn(range(1))[0], drawn(range(100))[0], rtol=0, atol=0)
