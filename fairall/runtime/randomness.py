"""Random numbers for stacked replicates, with one generator per seed."""

from __future__ import annotations

import copy
import zlib
from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

# Of a deployed policy, others for each seed: the root mean square error of π is at most 0.004 for trained
# policies with latents of 3 to 20, and that of the mean over ten seeds 0.001 (docs/protocols.md).
POINTS = 128


class SeedStreams:
    """Generators of E seeds whose draws are stacked.

    Streams of different purposes are independent: the draws of Phase II, for instance, are the same whether
    Phase I was trained or read from the cache. The draws of a seed do not depend on the other seeds; values
    computed from them may, by rounding (docs/reliability.md).

    >>> together, alone = SeedStreams([3, 4], "doctest"), SeedStreams([4], "doctest")
    >>> torch.equal(together.normal(2, 5)[1], alone.normal(2, 5)[0])
    True
    >>> other = SeedStreams([4], "another purpose")
    >>> torch.equal(other.normal(2, 5), SeedStreams([4], "doctest").normal(2, 5))
    False

    Args:
        seeds: the E seeds, one per replicate.
        purpose: name of the stream.
    """

    def __init__(self, seeds: Sequence[int], purpose: str) -> None:
        self.generators = [torch.Generator().manual_seed(key) for key in stream_keys(seeds, purpose)]

    def __len__(self) -> int:
        return len(self.generators)

    def normal(self, *shape: int, counts: Sequence[int] | None = None) -> Tensor:
        """Standard normal draws, shape (E, *shape); see `uniform` for `counts`."""
        return self._fill(Tensor.normal_, shape, counts)

    def uniform(self, *shape: int, counts: Sequence[int] | None = None) -> Tensor:
        """Uniform draws on [0, 1), shape (E, *shape).

        Args:
            shape: shape of the draws of one seed.
            counts: number of rows that each seed draws, length E; the other rows are zero. By default every
                seed draws all `shape[0]` rows.
        """
        return self._fill(Tensor.uniform_, shape, counts)

    def normal_samples(self, n: int, size: int, n_samples: int) -> Tensor:
        """Standard normal ε in antithetic pairs ε and −ε, shape (E, n, size, n_samples), `n_samples` even.

        They are for averages over a normal variable of `size` dimensions for each of n rows (people);
        `FixedSamples` returns as many samples as it has points.
        """
        noise = self.normal(n, size, n_samples // 2)
        return torch.cat([noise, -noise], dim=-1)

    def permutations(self, n: int) -> Tensor:
        """Permutations of 0..n−1, one per seed, shape (E, n)."""
        return torch.stack([torch.randperm(n, generator=generator) for generator in self.generators])

    def choices(self, weight: Tensor, n: int) -> Tensor:
        """Indices drawn with replacement with probabilities proportional to `weight` (N,), shape (E, n)."""
        drawn = [torch.multinomial(weight, n, replacement=True, generator=g) for g in self.generators]
        return torch.stack(drawn)

    def copy(self) -> SeedStreams:
        """Independent copies of the generators, which draw the same numbers."""
        twin = copy.copy(self)
        twin.generators = [generator.clone_state() for generator in self.generators]
        return twin

    def state_dict(self) -> dict[str, Tensor]:
        """States of the generators, shape (E, bytes)."""
        return {"states": torch.stack([generator.get_state() for generator in self.generators])}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Restore what `state_dict` returned."""
        for generator, seed_state in zip(self.generators, state["states"], strict=True):
            generator.set_state(
                seed_state.clone()
            )  # torch reads from the start of the storage, not of the view

    def _fill(
        self, draw: Callable[..., Tensor], shape: tuple[int, ...], counts: Sequence[int] | None
    ) -> Tensor:
        if counts is None:
            drawn = torch.empty(len(self.generators), *shape)
            for values, generator in zip(drawn, self.generators, strict=True):
                draw(values, generator=generator)
            return drawn
        drawn = torch.zeros(len(self.generators), *shape)
        for values, count, generator in zip(drawn, counts, self.generators, strict=True):
            draw(values[:count], generator=generator)
        return drawn


class FixedSamples(SeedStreams):
    """Streams of a deployed policy, whose `normal_samples` are the same points for every row.

    A probability computed from no other draws is then a function of the person alone. All other draws are
    those of `SeedStreams` and depend on the row.

    Args:
        seeds: the E seeds, one per replicate.
        points: standard normal points of each, shape (E, size, n); by default `POINTS` of the size that is
            asked for first, see `normal_points`.
    """

    def __init__(self, seeds: Sequence[int], points: Tensor | None = None) -> None:
        super().__init__(seeds, "deployment")
        self.seeds = list(seeds)
        self.points = torch.zeros(len(seeds), 0, POINTS) if points is None else points

    def normal_samples(self, n: int, size: int, n_samples: int) -> Tensor:
        """The points, expanded to shape (E, n, size, number of points); `n_samples` is ignored.

        Raises:
            ValueError: where `size` differs from that of the first call.
        """
        if not self.points.shape[1]:
            self.points = torch.stack([normal_points(size, POINTS, seed) for seed in self.seeds])
        if size != self.points.shape[1]:
            raise ValueError(f"{size} dimensions are requested, and the points have {self.points.shape[1]}")
        return self.points.unsqueeze(1).expand(-1, n, -1, -1)


def normal_points(size: int, n: int, seed: int) -> Tensor:
    """Scrambled Sobol points through the normal quantile function, shape (size, n); n is a power of two.

    The average of a smooth function over them is closer to its expectation than over as many independent
    draws.
    """
    uniform = torch.quasirandom.SobolEngine(size, scramble=True, seed=seed).draw(n, dtype=torch.float64)
    return torch.special.ndtri(uniform).T.to(torch.float32).contiguous()


def stream_keys(seeds: Sequence[int], purpose: str) -> list[int]:
    """Numbers of 63 bits that tell the streams of seeds and purposes apart, one per seed."""
    sequences = (np.random.SeedSequence([seed, zlib.crc32(purpose.encode())]) for seed in seeds)
    return [int(sequence.generate_state(1, np.uint64)[0] >> np.uint64(1)) for sequence in sequences]
