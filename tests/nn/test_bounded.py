"""The bound on the size of nets."""

from collections.abc import Callable

import pytest
import torch

from fairall.nn.bounded import IN_ANY_CASE, Bounded, TooLargeError
from tests.conftest import imported

SIDE = int(IN_ANY_CASE**0.5)


@pytest.mark.parametrize(
    "make", [torch.eye, lambda n: torch.randn(n, n), lambda n: torch.eye(n // 2, m=2 * n)]
)
def test_matrices_are_counted(make: Callable[[int], torch.Tensor]) -> None:
    with Bounded(0, 0):
        assert make(10).numel() == 100
        with pytest.raises(TooLargeError):
            make(SIDE + 2)


def test_sizes_are_computed_without_torchs_compiler() -> None:
    code = "import torch\nfrom fairall.nn.bounded import Bounded\n"
    code += "with Bounded(1, 1): torch.eye(2), torch.randn(2)"
    assert imported(code, "torch._dynamo", "sympy")[1] == []
