"""The measures of the paper (definitions 2.1 to 2.4, D.1, D.2) as pure functions; no state, no files."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from scipy.special import stdtrit
from torch import Tensor


def utility(propensity: Tensor, label: Tensor, cost: float, weight: Tensor | None = None) -> Tensor:
    """UT = mean of π·(ỹ − c) (definition 2.1); with y for ỹ the ground-truth utility.

    With weights the self-normalised inverse-propensity estimate Σ w·π·(ỹ − c) / Σ w (Hájek 1971) of the mean
    over a population of whom only some have a label.

    Args:
        propensity: acceptance probabilities π(d=1 | x, s), or decisions in {0, 1}, shape (E, N).
        label: ỹ or y in {0, 1}, shape (N,) or (E, N).
        cost: c in (0, 1).
        weight: of each label, 0 where it is unknown, shape (N,); None where all are known.

    Returns:
        Shape (E,), in [−c, 1 − c].
    """
    return weighted_mean(propensity * (label - cost), weight)


def utility_standard_error(
    propensity: Tensor, label: Tensor, cost: float, weight: Tensor | None = None
) -> Tensor:
    """Standard error of `utility` as an estimate for the population that the N people were drawn from.

    √(Σ w²·(g − UT)²) / Σ w with g = π·(ỹ − c), times √(n/(n − 1)) for the n labels: the linearised variance
    of a ratio (Särndal, Swensson & Wretman 1992, section 5.7); without weights the standard deviation of g
    over √N.

    Args:
        propensity: as for `utility`.
        label: as for `utility`.
        cost: as for `utility`.
        weight: as for `utility`.

    Returns:
        Shape (E,); NaN for a single label.
    """
    gain = propensity * (label - cost)
    weight = torch.ones_like(gain) if weight is None else weight.expand_as(gain)
    residual = weight * (gain - weighted_mean(gain, weight).unsqueeze(-1))
    n = (weight > 0).sum(-1)
    return residual.square().sum(-1).sqrt() / weight.sum(-1) * (n / (n - 1)).sqrt()


def weighted_mean(values: Tensor, weight: Tensor | None) -> Tensor:
    """Σ w·v / Σ w of values (..., N) with weights (N,); the plain mean without them. Shape (...)."""
    return values.mean(-1) if weight is None else (weight * values).sum(-1) / weight.sum(-1)


def effective_sample_size(weight: np.ndarray) -> float:
    """(Σ w)² / Σ w² of weights (N,), the number of equally weighted people worth as much (Kish 1965).

    0 where no weight is positive.
    """
    total = float((weight**2).sum())
    return float(weight.sum()) ** 2 / total if total > 0 else 0.0


def dpu(propensity: Tensor, s: Tensor) -> Tensor:
    """Demographic-parity unfairness |E[π | S=+1] − E[π | S=−1]| (definition 2.2).

    Args:
        propensity: acceptance probabilities π(d=1 | x, s), or decisions in {0, 1}, shape (..., N).
        s: sensitive attribute in {−1, +1}, shape (N,) or (..., N).

    Returns:
        Shape (...), in [0, 1]; NaN where a group is absent.
    """
    advantaged = (s > 0).to(propensity.dtype).expand_as(propensity)
    disadvantaged = 1.0 - advantaged
    rate_advantaged = (propensity * advantaged).sum(-1) / advantaged.sum(-1)
    rate_disadvantaged = (propensity * disadvantaged).sum(-1) / disadvantaged.sum(-1)
    return (rate_advantaged - rate_disadvantaged).abs()


def cfu(propensity: Tensor, counterfactual: Tensor) -> Tensor:
    """Counterfactual unfairness, mean |π(x, s) − π(x_cf, −s)| (definition 2.3).

    Args:
        propensity: π of the people as they are, shape (E, N).
        counterfactual: π of the same people had their sensitive attribute been the other, shape (E, N).

    Returns:
        Shape (E,), in [0, 1].
    """
    return (propensity - counterfactual).abs().mean(-1)


def effective_utility(accepted: Tensor, label: Tensor, cost: float) -> Tensor:
    """Utility per applicant realised up to each step, Σ over accepted of (ỹ − c) / (N·t) (definition D.1).

    Args:
        accepted: decisions taken, shape (T, E, N), bool.
        label: ỹ of the applicants, shape (T, E, N).
        cost: c in (0, 1).

    Returns:
        Shape (T, E).
    """
    per_step = (accepted * (label - cost)).mean(-1)
    return per_step.cumsum(0) / _steps(per_step)


def effective_dpu(accepted: Tensor, s: Tensor) -> Tensor:
    """Running mean of each step's |difference of acceptance rates| (definition D.2, as printed).

    A step in which a group is absent says nothing and is left out. With N = 64 applicants a policy that
    treats both groups alike still reads about 0.10: see `effective_dpu_pooled`.

    Args:
        accepted: decisions taken, shape (T, E, N), bool.
        s: sensitive attribute of the applicants, shape (T, E, N).

    Returns:
        Shape (T, E), in [0, 1]; NaN until both groups have been seen in one step.
    """
    per_step = dpu(accepted.to(s.dtype), s)
    seen = ~per_step.isnan()
    return per_step.nan_to_num(0.0).cumsum(0) / seen.cumsum(0)


def effective_dpu_pooled(accepted: Tensor, s: Tensor) -> Tensor:
    """|Difference of the acceptance rates pooled over all steps so far|, which has no noise floor.

    Args:
        accepted: decisions taken, shape (T, E, N), bool.
        s: sensitive attribute of the applicants, shape (T, E, N).

    Returns:
        Shape (T, E), in [0, 1]; NaN until both groups have been seen.
    """
    rates = []
    for group in (s > 0, s < 0):
        rates.append((accepted & group).sum(-1).cumsum(0) / group.sum(-1).cumsum(0))
    return (rates[0] - rates[1]).abs()


def acceptance_by_group(accepted: Tensor, s: Tensor) -> tuple[Tensor, Tensor]:
    """Share of the applicants of S = +1, and of those of S = −1, who were accepted at each step.

    Args:
        accepted: decisions taken, shape (T, E, N), bool.
        s: sensitive attribute of the applicants, shape (T, E, N).

    Returns:
        Two of shape (T, E), in [0, 1]; NaN at a step in which the group is absent.
    """
    advantaged, other = ((accepted & group).sum(-1) / group.sum(-1) for group in (s > 0, s < 0))
    return advantaged, other


def effective_cfu(accepted: Tensor, counterfactually_accepted: Tensor) -> Tensor:
    """Share of the applicants so far whom the other sensitive attribute would have given another decision.

    Its expectation is the mean |π(x, s) − π(x_cf, −s)| over applicants (definition 2.3), as both decisions
    of a person are taken with the same random number.

    Args:
        accepted: decisions taken, shape (T, E, N), bool.
        counterfactually_accepted: decisions on the counterfactuals, shape (T, E, N), bool.

    Returns:
        Shape (T, E), in [0, 1].
    """
    per_step = (accepted != counterfactually_accepted).to(torch.get_default_dtype()).mean(-1)
    return per_step.cumsum(0) / _steps(per_step)


def temporal_mean(series: Tensor, window: tuple[int, int]) -> Tensor:
    """μ_M: mean of a measure over time steps t1..t2, both included (definition 2.4).

    Args:
        series: the measure at time steps 0..T, shape (T + 1, E).
        window: (t1, t2) with 0 ≤ t1 < t2 ≤ T.

    Returns:
        Shape (E,).
    """
    return _window(series, window).mean(0)


def temporal_variation(series: Tensor, window: tuple[int, int]) -> Tensor:
    """TV_M: standard deviation over time steps t1..t2 with n − 1 = t2 − t1 below (definition 2.4).

    Args:
        series: the measure at time steps 0..T, shape (T + 1, E).
        window: (t1, t2) with 0 ≤ t1 < t2 ≤ T.

    Returns:
        Shape (E,).
    """
    return _window(series, window).std(0, correction=1)


UNBOUNDED = (-math.inf, math.inf)


@dataclass(frozen=True)
class Spread:
    """A measure over seeds.

    Attributes:
        mean: over seeds.
        std: over seeds, with n − 1; None for one seed.
        interval: 95 % interval of the mean over seeds by Student's t; None for one seed. It says what other
            seeds would give on the same people, not what other people would.
    """

    mean: float
    std: float | None
    interval: tuple[float, float] | None

    @classmethod
    def over_seeds(cls, values: np.ndarray, *, bounds: tuple[float, float] = UNBOUNDED) -> Spread | None:
        """Spread of values (E,); None where a seed has no value, or there is no seed.

        Args:
            values: one per seed.
            bounds: what the measure can be; the interval ends there.
        """
        if len(values) == 0 or not np.isfinite(values).all():
            return None
        if len(values) == 1:
            return cls(float(values[0]), None, None)
        n, mean, std = len(values), float(values.mean()), float(values.std(ddof=1))
        half = float(stdtrit(n - 1, 0.975)) * std / math.sqrt(n)
        lowest, highest = bounds
        return cls(mean, std, (max(mean - half, lowest), min(mean + half, highest)))


def _steps(series: Tensor) -> Tensor:
    return torch.arange(1, len(series) + 1, dtype=series.dtype).unsqueeze(-1)


def _window(series: Tensor, window: tuple[int, int]) -> Tensor:
    first, last = window
    return series[first : last + 1]
