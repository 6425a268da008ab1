"""Multiply-adds of the nets of a run, and the rate at which one core does them."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from typing import Any

SIZE = 256  # of square factors: three float32 matrices take 0.75 MiB
SLICES, SLICE_SECONDS = 10, 0.03


def count_products(count: Callable[[int], None]) -> None:
    """Call `count` with the multiply-adds of every product of a net from now on.

    `fairall.nn` computes layers with a function of torch and with compiled ones, which are replaced here. A
    product that autograd will differentiate counts once more for each factor that has a gradient. Other
    products (alignment of the latent) are not counted.
    """
    import torch

    from fairall.nn.native.calls import kernels

    torch.baddbmm = _counted(torch.baddbmm, count)
    if kernels() is not None:
        for name, of_call in COMPILED.items():
            setattr(kernels(), name, _counted_call(getattr(kernels(), name), of_call, count))


def _of_net(sizes: Any) -> int:
    """Multiply-adds of a net for one person."""
    return int((sizes[:-1] * sizes[1:]).sum())


def _of_epochs(theta: Any, *arguments: Any) -> int:
    noise, encoder, decoder = arguments[4], arguments[9], arguments[10]
    n_people, n_samples = noise.shape[1], noise.shape[3]
    first = int(encoder[0] * encoder[1])  # the encoder's input has no gradient
    return len(theta) * n_people * (3 * (_of_net(encoder) + n_samples * _of_net(decoder)) - first)


COMPILED: dict[str, Callable[..., int]] = {
    "apply": lambda theta, sizes, x, *_: len(theta) * x.shape[2] * _of_net(sizes),
    "average": lambda theta, sizes, loc, scale, noise, *_: (
        noise.shape[0] * noise.shape[1] * loc.shape[2] * noise.shape[3] * _of_net(sizes)
    ),
    "decode": lambda theta, of_theta, sizes, layout, given, *rest: (
        len(theta) * given.shape[2] * _of_net(sizes) * (3 if rest[-1] else 1)
    ),
    "epochs": _of_epochs,
}
"""Multiply-adds of a call of each function of `fairall.nn.native.kernels` that computes nets."""


def _counted_call(function: Any, of_call: Callable[..., int], count: Callable[[int], None]) -> Any:
    def counted(*arguments: Any) -> None:
        count(of_call(*arguments))
        function(*arguments)

    return counted


def _counted(function: Any, count: Callable[[int], None]) -> Any:
    @functools.wraps(function)
    def counted(*tensors: Any) -> Any:
        product = function(*tensors)
        a, b = tensors[-2:]
        times = 1 + a.requires_grad + b.requires_grad if product.requires_grad else 1
        count(times * a.numel() * b.shape[-1])
        return product

    return counted


def reached_rate() -> float:
    """Multiply-adds a second of one core in float32 products that stay in its second-level cache.

    The best of several short slices, since other work on the machine can only make one slower.
    """
    import torch

    torch.set_num_threads(1)
    a, b, product = (torch.ones(SIZE, SIZE) for _ in range(3))

    def slice_rate() -> float:
        n_products, started = 0, time.process_time()
        while (seconds := time.process_time() - started) < SLICE_SECONDS:
            torch.mm(a, b, out=product)
            n_products += 1
        return n_products * SIZE**3 / seconds

    return max(slice_rate() for _ in range(SLICES))
