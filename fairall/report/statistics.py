"""Differences between measures: in the paper's standard deviations, and paired tests over seeds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

LEVEL = 0.05  # of significance, after Holm's correction


@dataclass(frozen=True)
class Comparison:
    """A paired test between two runs.

    Attributes:
        rival: the run compared with.
        better: whether the mean is better than the rival's.
        p: of the two-sided Wilcoxon signed-rank test, Holm-corrected; None where no test is possible.
    """

    rival: str
    better: bool
    p: float | None

    @property
    def significant(self) -> bool:
        """Whether p is below `LEVEL`."""
        return self.p is not None and self.p < LEVEL


def in_deviations(ours: float, printed: tuple[float, float]) -> float | None:
    """Our mean less the printed one in printed standard deviations; None where those are 0.

    Examples:
        >>> in_deviations(3.0, (2.0, 0.5))
        2.0
    """
    mean, std = printed
    return (ours - mean) / std if std > 0 else None


def paired_p(first: pd.Series, second: pd.Series) -> float | None:
    """The p-value of the two-sided Wilcoxon signed-rank test of a measure of two runs by seed, uncorrected.

    Seeds that only one of them has are left out. Exact for up to 50 seeds without ties; with ten seeds the
    smallest is 2/1024. None where fewer than two seeds are shared; 1 where all pairs are equal.
    """
    from scipy.stats import wilcoxon

    pairs = pd.concat([first, second], axis=1, join="inner").to_numpy(dtype=float)
    difference = pairs[:, 0] - pairs[:, 1]
    if len(difference) < 2:
        return None
    if not np.any(difference):
        return 1.0
    return float(wilcoxon(difference).pvalue)


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
