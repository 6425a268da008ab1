import torch

from fairall.nn.chunks import CHUNK, in_chunks


def test_chunks_are_put_together_in_order() -> None:
    x, s = torch.randn(2, 3 * CHUNK + 5, 4), torch.randn(2, 3 * CHUNK + 5)
    seen = []

    def compute(x: torch.Tensor, s: torch.Tensor) -> torch.Tensor:
        seen.append(s.shape[1])
        return x.sum(-1) * s

    torch.testing.assert_close(in_chunks(compute, x, s), x.sum(-1) * s)
    assert seen == [CHUNK, CHUNK, CHUNK, 5]
