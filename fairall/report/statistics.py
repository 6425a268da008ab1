"""Paired tests over seeds, and the standing of runs within a column of a table."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from fairall.metrics import Quantity

LEVEL = 0.05  # of significance, after Holm's correction


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
    by_run: Mapping[str, pd.Series], measure: Quantity, baseline: str, untested: Sequence[str] = ()
) -> dict[str, dict[str, Any]]:
    """Compare every run of a column with a baseline and with the best of the others.

    Args:
        by_run: values by seed, plain units, not empty.
        measure: of the column; one without a better direction is not compared.
        baseline: name of a run, which may be absent.
        untested: names of runs that are not compared.

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
    competing = [run for run in by_run if measure.higher_is_better is not None and run not in untested]
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
