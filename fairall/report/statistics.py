"""Paired tests over seeds, and the standing of runs within a column of a table.

References:
    Romano, J. P. and Wolf, M. (2005). Exact and approximate stepdown methods for multiple hypothesis testing.
    Journal of the American Statistical Association 100.
    Phipson, B. and Smyth, G. K. (2010). Permutation p-values should never be zero. Statistical Applications
    in Genetics and Molecular Biology 9.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from fairall.metrics import Quantity, Spread

LEVEL = 0.05  # of significance, after correction
FLIPS = 5000  # of signs, unless there are no more than as many
BLOCK = 2_000_000  # numbers in memory at once


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


def simultaneous_p(differences: np.ndarray) -> np.ndarray:
    """p-values of two-sided tests that means are 0, corrected for all of a family by sign flips.

    The statistic is |Σ d| / ‖d‖, which grows with that of Student's t. Signs are flipped for all hypotheses
    at once, which keeps their dependence, and a p-value is the share of flips whose largest statistic, among
    the hypotheses not rejected before, is as great as the observed one (stepdown, Romano and Wolf 2005).
    If the rows are symmetric about their means, the familywise error rate is exact in small samples. The
    smallest p is 2/2ⁿ, however large the family is.

    Args:
        differences: shape (n, H), rows independent, a column per hypothesis; 0 where there is no value.

    Returns:
        Shape (H,). All flips count for up to 13 rows; else `FLIPS` random ones and the observed signs
        (Phipson and Smyth 2010), the same in every call.
    """
    n, h = differences.shape
    if 2 ** (n - 1) <= FLIPS:
        # A flip of all signs changes no statistic.
        signs = np.array([(1.0, *rest) for rest in itertools.product((1.0, -1.0), repeat=n - 1)])
    else:
        signs = np.random.default_rng(0).choice((-1.0, 1.0), size=(FLIPS + 1, n))
        signs[0] = 1.0
    norm = np.linalg.norm(differences, axis=0)
    scaled = differences / np.where(norm > 0, norm, 1.0)
    observed = np.abs(scaled.sum(0))
    order = np.argsort(observed)
    count = np.zeros(h)
    for some in np.array_split(signs, 1 + len(signs) * h // BLOCK):
        largest = np.maximum.accumulate(np.abs(some @ scaled[:, order]), axis=1)
        count += (largest >= observed[order] - 1e-9).sum(0)
    p = np.empty(h)
    p[order[::-1]] = np.maximum.accumulate(count[::-1] / len(signs))
    return p


def pairwise_p(values: Mapping[str, pd.Series]) -> dict[frozenset[str], float | None]:
    """`simultaneous_p` of the differences of each pair of runs by seed; None where fewer than two are shared.

    Args:
        values: of a measure by run, each by seed.
    """
    table = pd.DataFrame(dict(values))
    pairs = list(itertools.combinations(table, 2))
    if not pairs:
        return {}
    differences = np.stack([(table[one] - table[other]).to_numpy(dtype=float) for one, other in pairs], 1)
    p = simultaneous_p(np.nan_to_num(differences))
    shared = (~np.isnan(differences)).sum(0)
    return {
        frozenset(pair): float(of) if n > 1 else None for pair, of, n in zip(pairs, p, shared, strict=True)
    }


def paired_difference(first: pd.Series, second: pd.Series) -> Spread | None:
    """Mean of first − second over common seeds, with a 95 % interval (paired t); None if none is common."""
    return Spread.over_seeds((first - second).dropna().to_numpy(dtype=float))


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
        `better_than_baseline`, `difference_baseline` and its interval, `low_baseline` and `high_baseline`
        (`paired_difference`), and `p_baseline`; None where no test is possible. p_baseline is of `paired_p`,
        Holm-corrected over the runs. p_rival is of `pairwise_p`: the data say which run is the best, so that
        the test must hold for every pair.
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
    of_pairs = pairwise_p({run: by_run[run] for run in competing})
    tests = {
        "baseline": holm([paired_p(by_run[run], by_run[other]) for run, other in rivals["baseline"].items()]),
        "rival": [of_pairs[frozenset(pair)] for pair in rivals["rival"].items()],
    }
    for role, pairs in rivals.items():
        for (run, other), p in zip(pairs.items(), tests[role], strict=True):
            found[run] |= {role: other, f"better_than_{role}": score[run] > score[other], f"p_{role}": p}
            apart = paired_difference(by_run[run], by_run[other])
            low, high = apart.interval if apart and apart.interval else (None, None)
            found[run] |= {f"difference_{role}": apart.mean if apart else None}
            found[run] |= {f"low_{role}": low, f"high_{role}": high}
    return found
