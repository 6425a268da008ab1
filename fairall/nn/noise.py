"""Random numbers of training as a function of a seed and a counter, the same compiled and not.

References:
    Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3, SC 2011 (Philox).
    McKay, Beckman, Conover: A comparison of three methods for selecting values of input variables in the
    analysis of output from a computer code, Technometrics 1979 (Latin hypercubes).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from fairall.nn import native
from fairall.runtime.randomness import stream_keys
from fairall.storage.checkpoint import Stateful

BELOW_ONE = 1.0 - 2.0**-24  # the largest number of float32 below 1


class RandomNumbers(Stateful):
    """Uniform and normal numbers of E seeds in float32, by Philox4x32-10.

    A draw advances the counter of each seed. The numbers of a seed do not depend on the other seeds.

    >>> together, alone = RandomNumbers([3, 4], "doctest"), RandomNumbers([4], "doctest")
    >>> torch.equal(together.uniform(2, 5)[1], alone.uniform(2, 5)[0])
    True

    Args:
        seeds: the E seeds, one per replicate.
        purpose: name of the stream, as of `SeedStreams`.
        stratified: whether `samples` are stratified.

    Attributes:
        state: key and counter of each seed, shape (E, 2), int64.
    """

    kept = ("state",)

    def __init__(self, seeds: Sequence[int], purpose: str, *, stratified: bool = False) -> None:
        self.stratified = stratified
        self.state = torch.tensor([[key, 0] for key in stream_keys(seeds, purpose)])

    def uniform(self, *shape: int, counts: Sequence[int] | None = None) -> Tensor:
        """Uniform numbers in (0, 1), shape (E, *shape).

        Args:
            shape: shape of the numbers of one seed.
            counts: number of rows that each seed draws, length E; the other rows are zero. By default every
                seed draws all `shape[0]` rows.
        """
        return self._filled("uniforms", shape, counts)

    def normal(self, *shape: int, counts: Sequence[int] | None = None) -> Tensor:
        """Standard normal numbers, shape (E, *shape); arguments as for `uniform`."""
        return self._filled("normals", shape, counts)

    def samples(self, *shape: int, counts: Sequence[int] | None = None) -> Tensor:
        """Standard normal ε to average over in the last dimension, shape (E, *shape); see `uniform`.

        Where `stratified`, samples are pairs of ε and −ε, whose absolute values are a Latin hypercube: every
        coordinate has one in each of ⌈n/2⌉ strata of equal probability, in an order of its own, and with a
        sign that is drawn. Where n is odd, the last one has no partner. Each sample is standard normal, and
        its coordinates are independent.
        """
        return self._filled("stratified" if self.stratified else "normals", shape, counts)

    def _filled(self, kind: str, shape: Sequence[int], counts: Sequence[int] | None) -> Tensor:
        drawn = torch.zeros(len(self.state), *shape)
        fill = native.fill if native.takes(drawn) else _fill
        for own, state, count in zip(drawn, self.state, counts or [shape[0]] * len(drawn), strict=True):
            if count > 0:
                fill(kind, own[:count].view(-1, shape[-1] if len(shape) > 1 else count), state)
        return drawn


def _fill(kind: str, out: Tensor, state: Tensor) -> None:
    """Fill `out` (rows, n) with numbers of a kind by a seed's key and counter, and advance the counter."""
    out.copy_(_DRAWN[kind](out.shape, state))


def _uniform(shape: Sequence[int], state: Tensor) -> Tensor:
    n = math.prod(shape)
    key, counter = state.tolist()
    words = np.concatenate([philox(key, counter, n // 4), philox(key, counter + n // 4, 1)[: n % 4]])
    state[1] += -(-n // 4)
    # Odd multiples of 2^-24, which float32 has, so that neither 0 nor 1 is drawn.
    return torch.from_numpy(((words >> 9) + 0.5) * 2.0**-23).float().view(*shape)


def _normal(shape: Sequence[int], state: Tensor) -> Tensor:
    return math.sqrt(2.0) * torch.erfinv(2.0 * _uniform(shape, state) - 1.0)


def _stratified(shape: Sequence[int], state: Tensor) -> Tensor:
    rows, n = shape
    half = -(-n // 2)
    within, place = _uniform((2, rows, half), state)
    magnitude = ((torch.arange(half) + within) / half).clamp(max=BELOW_ONE)
    every = torch.arange(rows)
    for j in range(half - 1, 0, -1):  # Fisher and Yates; what is left of a uniform number is uniform
        scaled = place[:, j] * (j + 1)
        other = scaled.long().clamp(max=j)
        place[:, j] = scaled - other
        magnitude[every, j], magnitude[every, other] = magnitude[every, other], magnitude[every, j]
    sign = torch.where(place < 0.5, 1.0, -1.0)
    epsilon = math.sqrt(2.0) * torch.erfinv(sign * magnitude)
    return torch.stack([epsilon, -epsilon], dim=-1).flatten(1)[:, :n]


_DRAWN: dict[str, Callable[[Sequence[int], Tensor], Tensor]] = {
    "uniforms": _uniform,
    "normals": _normal,
    "stratified": _stratified,
}


def philox(key: int, counter: int, n: int) -> np.ndarray:
    """Words of 32 bits of n blocks of Philox4x32-10 from `counter` on, shape (4·n,), uint64.

    First come the first words of all blocks, then their second ones, and so on.

    >>> [hex(word) for word in philox(0, 0, 1)]
    ['0x6627e8d5', '0xe169c58d', '0xbc57ac4c', '0x9b00dbd8']
    """
    low, high = np.uint64(0xFFFFFFFF), np.uint64(32)
    multipliers = np.array([0xD2511F53, 0xCD9E8D57], np.uint64)
    increments = np.array([0x9E3779B9, 0xBB67AE85], np.uint64)
    at = np.uint64(counter) + np.arange(n, dtype=np.uint64)
    a, b, c, d = at & low, at >> high, np.zeros_like(at), np.zeros_like(at)
    keys = np.array([key & 0xFFFFFFFF, key >> 32], np.uint64)
    for _ in range(10):
        first, second = multipliers[0] * a, multipliers[1] * c
        a, b = (second >> high) ^ b ^ keys[0], second & low
        c, d = (first >> high) ^ d ^ keys[1], first & low
        keys = (keys + increments) & low
    return np.concatenate([a, b, c, d])
