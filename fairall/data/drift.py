"""How far new people differ from earlier ones: the population stability index, with what chance explains.

References:
    Yurdakul, B. and Naranjo, J. (2020). Statistical properties of the population stability index. Journal of
        Risk Model Validation.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import chi2

from fairall.data.features import MISSING_LEVEL, OTHER_LEVEL, numbers_of

BINS = 10  # of numbers, by the deciles of the earlier people
MOST_LEVELS = 50  # of words; rarer ones are one level
DRIFTED = 0.05  # corrected p below which a column is said to differ
CHANCE = 0.95  # quantile of the index without drift that is shown


class Stability(NamedTuple):
    """The population stability index of a column.

    Attributes:
        psi: Σ_b (q_b − p_b)·ln(q_b/p_b) over bins b, p_b and q_b the shares of earlier and new people.
        chance: its 95 % quantile if both are drawn from one population.
        p: probability of such an index or a larger one without drift.
        most: the bin that adds most, in words.
        before: its share of earlier people.
        after: of new people.
    """

    psi: float
    chance: float
    p: float
    most: str
    before: float
    after: float


def stability(old: np.ndarray, new: np.ndarray, names: Sequence[str]) -> Stability:
    """The index of people in bins.

    Without drift index/(1/n + 1/m) is χ² with B − 1 degrees of freedom for n earlier and m new people. Half a
    person is added to each bin, so that an empty one has no infinite weight.

    Args:
        old: number of the bin of each earlier person, shape (n,), at least one.
        new: of each new person, shape (m,), at least one.
        names: of the bins.

    Examples:
        >>> same = np.repeat([0, 1], 500)
        >>> stability(same, same, ["f", "m"]).psi
        0.0
        >>> moved = stability(same, np.repeat([0, 1], [400, 600]), ["f", "m"])
        >>> round(moved.psi, 3), round(moved.chance, 3), moved.p < 1e-4
        (0.04, 0.008, True)
    """
    shares = []
    for bins in (old, new):
        counts = np.bincount(bins, minlength=len(names))
        shares.append((counts + 0.5) / (counts.sum() + 0.5 * len(names)))
    p, q = shares
    parts = (q - p) * np.log(q / p)
    scale, free = 1.0 / len(old) + 1.0 / len(new), len(names) - 1
    most = int(parts.argmax())
    index = float(parts.sum())
    if free == 0:
        return Stability(0.0, 0.0, 1.0, names[0], 1.0, 1.0)
    return Stability(
        index, float(scale * chi2.ppf(CHANCE, free)), float(chi2.sf(index / scale, free)), names[most],
        float((old == most).mean()), float((new == most).mean()),
    )  # fmt: skip


def binned(old: pd.Series, new: pd.Series, *, number: bool) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Bins of a column of both tables, with missing cells as one where there are any.

    Args:
        old: cells of earlier people, shape (n,).
        new: of new people, shape (m,).
        number: whether cells are numbers, with bins at the deciles of the earlier people; else words.

    Returns:
        Numbers of the bins, shapes (n,) and (m,), and names of the bins.
    """
    columns = old, new
    if number:
        values = [numbers_of(column) for column in columns]
        known = values[0][~np.isnan(values[0])]
        ends = np.unique(np.quantile(known, np.linspace(0, 1, BINS + 1)[1:-1])) if len(known) else np.empty(0)
        names = [f"{low:.6g} to {high:.6g}" for low, high in itertools.pairwise(ends)]
        names = [f"up to {ends[0]:.6g}", *names, f"above {ends[-1]:.6g}"] if len(ends) else ["any number"]
        codes = [np.where(np.isnan(of), -1, np.searchsorted(ends, of)) for of in values]
    else:
        words = old.dropna().astype(str).value_counts().index[:MOST_LEVELS]
        names = [*words, OTHER_LEVEL]
        place = {word: k for k, word in enumerate(words)}
        codes = [
            np.where(column.isna(), -1, column.astype(str).map(place).fillna(len(words))).astype(int)
            for column in columns
        ]
    if any((of == -1).any() for of in codes):
        codes = [np.where(of == -1, len(names), of) for of in codes]
        names.append(MISSING_LEVEL)
    used = np.unique(np.concatenate(codes))
    before, after = (np.searchsorted(used, of) for of in codes)
    return before, after, [names[k] for k in used]
