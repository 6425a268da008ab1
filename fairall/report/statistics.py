"""Paired tests over seeds, predictive intervals, and the standing of runs within a column of a table."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from fairall.metrics import Quantity

LEVEL = 0.05  # of significance, after Holm's correction
DRAWS = 10_000  # of a predictive interval
QUANTILES = (0.025, 0.975)  # its ends


class Predictive(NamedTuple):
    """95 % predictive intervals of a sample of given size."""

    mean: tuple[float, float]  # of its mean
    std: tuple[float, float]  # of its standard deviation, with n − 1


def predictive_intervals(values: np.ndarray, size: int) -> Predictive:
    """95 % predictive intervals of the mean and standard deviation of further values, by nested bootstrap.

    Of `DRAWS` populations, each n of the values drawn with replacement, one sample each is drawn with
    replacement. So the intervals contain the variance of a sample of this size and the uncertainty of the n
    values. Each of the two levels of resampling shrinks the variance by (n − 1) / n; residuals are scaled
    by n / (n − 1) to compensate for both. The same values give the same intervals.

    Measured coverage for size = 10, of means and of standard deviations: with n = 50, 0.95 and 0.93 for a
    normal distribution, 0.94 and 0.90 for a gamma distribution of shape 2; with n = 10, 0.92 and 0.86, and
    0.91 and 0.80.

    Args:
        values: finite, shape (n,), at least two.
        size: of the sample, at least two.
    """
    n, centre = len(values), values.mean()
    scaled = centre + (values - centre) * n / (n - 1)
    samples = scaled[_resampled(n, size)]
    low, high = np.quantile([samples.mean(1), samples.std(1, ddof=1)], QUANTILES, axis=1).tolist()
    return Predictive((low[0], high[0]), (low[1], high[1]))


def predictive_pooled_std(series: np.ndarray, size: int) -> tuple[float, float]:
    """95 % predictive interval of the standard deviation of further series, their values pooled.

    By the nested bootstrap of `predictive_intervals` over series, without its scaling of residuals.

    Args:
        series: finite, shape (n, T), n at least two.
        size: number of series that are pooled.
    """
    rows = _resampled(len(series), size)
    # About the overall mean, so that the difference of the moments is exact enough.
    centred = series - series.mean()
    first, second = centred.mean(1)[rows].mean(1), (centred**2).mean(1)[rows].mean(1)
    low, high = np.quantile(np.sqrt(np.maximum(second - first**2, 0.0)), QUANTILES).tolist()
    return low, high


@functools.cache
def _resampled(n: int, size: int) -> np.ndarray:
    """Indices of samples from resampled populations of n values, shape (DRAWS, size)."""
    generator = np.random.default_rng(0)
    populations = generator.integers(n, size=(DRAWS, n))
    return np.take_along_axis(populations, generator.integers(n, size=(DRAWS, size)), axis=1)


def paired_p(first: pd.Series, second: pd.Series) -> float | None:
    """The p-value of the two-sided Wilcoxon signed-rank test of a measure of two runs by seed, uncorrected.

    Seeds that only one of them has are left out, and so are equal pairs. Exact for up to 50 seeds without
    ties or equal pairs, and for up to 13 with them; by the normal approximation otherwise. With ten seeds
    the smallest is 2/1024. None where fewer than two seeds are shared; 1 where all pairs are equal.
    """
    from scipy.stats import wilcoxon

    pairs = pd.concat([first, second], axis=1, join="inner").to_numpy(dtype=float)
    difference = pairs[:, 0] - pairs[:, 1]
    if len(difference) < 2:
        return None
    return float(wilcoxon(difference).pvalue) if np.any(difference) else 1.0


def holm(values: Sequence[float | None]) -> list[float | None]:
    """p-values corrected by Holm's step-down method for all tests of a family; None stays None.

    The i-th smallest of m, from 0, is multiplied by m − i; none gets smaller than one before it, or above 1.

    Examples:
        >>> holm([0.01, None, 0.03])
        [0.02, None, 0.03]
    """
    known = sorted((p, i) for i, p in enumerate(values) if p is not None and not math.isnan(p))
    corrected: list[float | None] = [None] * len(values)
    largest = 0.0
    for rank, (p, i) in enumerate(known):
        largest = max(largest, min(1.0, (len(known) - rank) * p))
        corrected[i] = largest
    return corrected


def standings(
    by_run: Mapping[str, pd.Series], measure: Quantity, baseline: str, references: Sequence[str] = ()
) -> dict[str, dict[str, Any]]:
    """Compare every run of a column with a baseline and with the best of the others.

    Args:
        by_run: values by seed, plain units, not empty.
        measure: of the column; one without a better direction is not compared.
        baseline: name of a run, which may be absent.
        references: names of runs that are not compared.

    Returns:
        By run `seeds`, `mean`, `std` (n − 1; None for one seed) and `best`; of a compared run also
        `baseline` and `rival`, the names of the runs compared with, and for each of the two
        `better_than_baseline` and `p_baseline`, Holm-corrected over the runs; None where no test is possible.
    """
    found: dict[str, dict[str, Any]] = {}
    for run, values in by_run.items():
        std = float(values.std()) if len(values) > 1 else None
        found[run] = {"seeds": len(values), "mean": float(values.mean()), "std": std}
    score = {run: (1 if measure.higher_is_better else -1) * one["mean"] for run, one in found.items()}
    competing = [run for run in by_run if measure.higher_is_better is not None and run not in references]
    best = max((score[run] for run in competing), default=None) if len(competing) > 1 else None
    for run, one in found.items():
        one["best"] = run in competing and score[run] == best
    others = {run: [other for other in competing if other != run] for run in competing}
    rivals = {
        "baseline": {run: baseline for run in competing if baseline in by_run and run != baseline},
        "rival": {run: max(rest, key=score.__getitem__) for run, rest in others.items() if rest},
    }
    for role, pairs in rivals.items():
        # Two runs may be each other's rivals, which is one test.
        tests = list(dict.fromkeys(frozenset(pair) for pair in pairs.items()))
        raw = [paired_p(*(by_run[run] for run in sorted(test))) for test in tests]
        corrected = dict(zip(tests, holm(raw), strict=True))
        for run, rival in pairs.items():
            p = corrected[frozenset((run, rival))]
            found[run] |= {role: rival, f"better_than_{role}": score[run] > score[rival], f"p_{role}": p}
    return found
