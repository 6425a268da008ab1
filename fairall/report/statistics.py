"""How far apart two figures are: in the paper's deviations, and beyond chance over seeds."""

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
        rival: what it was compared with.
        better: whether the first is on the better side, by its mean.
        p: of the two-sided Wilcoxon signed-rank test, Holm-corrected; None where no test is possible.
    """

    rival: str
    better: bool
    p: float | None

    @property
    def significant(self) -> bool:
        """Whether chance alone would rarely do this."""
        return self.p is not None and self.p < LEVEL


def in_deviations(ours: float, printed: tuple[float, float]) -> float | None:
    """How far our mean is from the printed one, in printed standard deviations; None where that is 0."""
    mean, std = printed
    return (ours - mean) / std if std > 0 else None


def paired_p(first: pd.Series, second: pd.Series) -> float | None:
    """The p-value of the two-sided Wilcoxon signed-rank test of two figures by seed, uncorrected.

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
    """
    known = sorted((p, i) for i, p in enumerate(values) if p is not None and not math.isnan(p))
    corrected: list[float | None] = [None] * len(values)
    largest = 0.0
    for rank, (p, i) in enumerate(known):
        largest = max(largest, min(1.0, (len(known) - rank) * p))
        corrected[i] = largest
    return corrected
