"""A bound on the size of nets that are built from a configuration of unknown origin."""

from __future__ import annotations

from typing import Any

import torch
from torch.overrides import TorchFunctionMode

MAKERS = {torch.empty, torch.zeros, torch.ones, torch.full, torch.rand, torch.randn} | {
    torch.eye,
    torch.arange,
    torch.linspace,
    torch.randperm,
    torch.randint,
}


def _matrix(n: int, m: int | None = None, **options: Any) -> torch.Tensor:
    return torch.empty(n, n if m is None else m, **options)


# On the device "meta" these are Python programs, for which torch imports its compiler and sympy: two seconds.
OF_SIZE = {torch.randn: torch.empty, torch.eye: _matrix}
PER_WEIGHT = 4  # numbers that nets may need in addition to their weights, for each of these
IN_ANY_CASE = 10_000_000
CALLS_PER_WEIGHT, CALLS_IN_ANY_CASE = 20, 1000


class TooLargeError(Exception):
    """A tensor made in a block of `Bounded` is too large."""


class Bounded(TorchFunctionMode):
    """Context in which tensors can be made only in proportion to weights that exist.

    Sizes are computed on torch's device "meta" first, on which nothing is allocated.

    >>> with Bounded(100, 2):
    ...     torch.zeros(10**12)
    Traceback (most recent call last):
    fairall.nn.bounded.TooLargeError

    Args:
        numbers: in the weights that exist.
        tensors: that these are.
    """

    def __init__(self, numbers: int, tensors: int) -> None:
        super().__init__()
        self.numbers = IN_ANY_CASE + PER_WEIGHT * numbers
        self.calls = CALLS_IN_ANY_CASE + CALLS_PER_WEIGHT * tensors

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Call `func`, unless it makes too much."""
        kwargs = kwargs or {}
        if func in MAKERS:
            shape = {key: value for key, value in kwargs.items() if key not in ("generator", "out")}
            self.numbers -= OF_SIZE.get(func, func)(*args, **shape | {"device": "meta"}).numel()
            self.calls -= 1
            if min(self.numbers, self.calls) < 0:
                raise TooLargeError
        return func(*args, **kwargs)
