"""Random numbers for stacked replicates: every seed draws from a generator of its own."""

from __future__ import annotations

import copy
import zlib
from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor


class SeedStreams:
    """One generator per seed, drawn from together.

    A stream is named by its purpose, so that, say, the draws of Phase II are the same whether Phase I was
    trained or read from the cache. What one seed draws never depends on which seeds run beside it;
    what is computed from it may, by rounding (docs/reliability.md).

    Args:
        seeds: the E seeds, one per replicate.
        purpose: what the numbers are for; two purposes are independent.
    """

    def __init__(self, seeds: Sequence[int], purpose: str) -> None:
        self.generators = [_generator(seed, purpose) for seed in seeds]

    def __len__(self) -> int:
        return len(self.generators)

    def normal(self, *shape: int, counts: Sequence[int] | None = None) -> Tensor:
        """Standard normal draws, shape (E, *shape); see `uniform` for `counts`."""
        return self._fill(Tensor.normal_, shape, counts)

    def uniform(self, *shape: int, counts: Sequence[int] | None = None) -> Tensor:
        """Uniform draws on [0, 1), shape (E, *shape).

        Args:
            shape: shape of what one seed draws.
            counts: how many of the first `shape[0]` rows each seed draws, length E; the rest are zero.
                Without it every seed draws all.
        """
        return self._fill(Tensor.uniform_, shape, counts)

    def normal_samples(self, n: int, size: int, n_samples: int) -> Tensor:
        """Standard normal ε for averages over a normal variable, antithetic: in pairs of ε and −ε.

        Args:
            n: rows (people).
            size: dimensions of the variable.
            n_samples: ε per row; even.

        Returns:
            Shape (E, n, size, n_samples); `FixedSamples` has its own number of samples.
        """
        noise = self.normal(n, size, n_samples // 2)
        return torch.cat([noise, -noise], dim=-1)

    def permutations(self, n: int) -> Tensor:
        """A permutation of 0..n−1 per seed, shape (E, n)."""
        return torch.stack([torch.randperm(n, generator=generator) for generator in self.generators])

    def choices(self, weight: Tensor, n: int) -> Tensor:
        """`n` indices of `weight` (N,) drawn with replacement in proportion to it, shape (E, n)."""
        drawn = [torch.multinomial(weight, n, replacement=True, generator=g) for g in self.generators]
        return torch.stack(drawn)

    def copy(self) -> SeedStreams:
        """Streams that will draw the same numbers, apart from these."""
        twin = copy.copy(self)
        twin.generators = [generator.clone_state() for generator in self.generators]
        return twin

    def state_dict(self) -> dict[str, Tensor]:
        """The generators' states, shape (E, bytes)."""
        return {"states": torch.stack([generator.get_state() for generator in self.generators])}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Goes on where `state_dict` was taken."""
        for generator, own in zip(self.generators, state["states"], strict=True):
            generator.set_state(own.clone())  # torch reads from the start of the storage, not of the view

    def _fill(
        self, draw: Callable[..., Tensor], shape: tuple[int, ...], counts: Sequence[int] | None
    ) -> Tensor:
        if counts is None:
            drawn = torch.empty(len(self.generators), *shape)
            for own, generator in zip(drawn, self.generators, strict=True):
                draw(own, generator=generator)
            return drawn
        drawn = torch.zeros(len(self.generators), *shape)
        for own, count, generator in zip(drawn, counts, self.generators, strict=True):
            draw(own[:count], generator=generator)
        return drawn


class FixedSamples(SeedStreams):
    """Streams of a deployed policy: averages over a normal variable use the same points for every row.

    A probability that draws nothing but `normal_samples` is then a function of the person alone. All other
    draws are those of `SeedStreams` and depend on the row.

    Args:
        seeds: the E seeds, one per replicate.
        points: standard normal points, shape (size, n).
    """

    def __init__(self, seeds: Sequence[int], points: Tensor) -> None:
        super().__init__(seeds, "deployment")
        self.points = points

    def normal_samples(self, n: int, size: int, n_samples: int) -> Tensor:
        """The points, expanded to shape (E, n, size, number of points), whatever `n_samples` is."""
        if size != len(self.points):
            raise ValueError(f"{size} dimensions are asked for; Learner.noise_size() said {len(self.points)}")
        return self.points.expand(len(self), n, -1, -1)


def normal_points(size: int, n: int) -> Tensor:
    """Scrambled Sobol points through the normal quantile function, shape (size, n), always the same.

    Their average of a smooth function of a standard normal variable is nearer to its expectation than that of
    as many independent draws.

    Args:
        size: dimensions; 0 gives no points.
        n: a power of two, for which the points are balanced.
    """
    if size == 0:
        return torch.zeros(0, n)
    uniform = torch.quasirandom.SobolEngine(size, scramble=True, seed=0).draw(n, dtype=torch.float64)
    return torch.special.ndtri(uniform).T.to(torch.float32).contiguous()


def _generator(seed: int, purpose: str) -> torch.Generator:
    entropy = np.random.SeedSequence([seed, zlib.crc32(purpose.encode())])
    return torch.Generator().manual_seed(int(entropy.generate_state(1, np.uint64)[0] >> np.uint64(1)))
