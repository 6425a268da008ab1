"""How far new people differ from earlier ones: the population stability index, and one test of drift.

References:
    Yurdakul, B. and Naranjo, J. (2020). Statistical properties of the population stability index. Journal of
        Risk Model Validation.
    Benjamini, Y. and Hochberg, Y. (1995). Controlling the false discovery rate: a practical and powerful
        approach to multiple testing. Journal of the Royal Statistical Society B.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import binom, chi2_contingency, false_discovery_control
from scipy.stats.contingency import crosstab

from fairall.errors import Collected
from fairall.tables.applicants import Applicants
from fairall.tables.cells import numbers_of, taken, values_of
from fairall.tables.features import MISSING_LEVEL, OTHER_LEVEL, Kind
from fairall.tables.overlap import BINS, bins_of

PEOPLE = 10  # of the smaller table in each bin of numbers, at least
EXPECTED = 4.0  # number in both tables without drift, from which a bin counts in χ²
MOST_LEVELS = 50  # of words; rarer ones are one level
FREQUENT = 0.05  # share of the people with a number, from which on it is a bin of its own
OF_SINGLE = 0.2  # share of the level of the test for single bins
DRIFTED = 0.05  # corrected p below which a column is said to differ
EVERYBODY = "everybody"


class Stability(NamedTuple):
    """The population stability index of a column.

    Attributes:
        psi: Σ_b (q_b − p_b)·ln(q_b/p_b) over bins b, p_b and q_b the shares of earlier and new people.
        p: of the hypothesis that both are drawn from one population; that of `drift_by_column` is corrected
            for all columns.
        most: the bin that adds most, in words.
        before: its share of earlier people.
        after: of new people.
    """

    psi: float
    p: float
    most: str
    before: float
    after: float


def drift_by_column(columns: Mapping[Any, tuple[pd.Series, pd.Series, bool]]) -> dict[Any, Stability]:
    """The stability of each column, with p corrected for all of them (Benjamini and Hochberg 1995).

    Where no column has changed, one or more have p < α with a probability of about α at most.

    Args:
        columns: arguments of `stability`: cells of earlier people, of new ones, and whether they are numbers.
    """
    single = [stability(*column) for column in columns.values()]
    corrected = false_discovery_control([column.p for column in single]).tolist()
    return {key: column._replace(p=p) for key, column, p in zip(columns, single, corrected, strict=True)}


def stability(old: pd.Series, new: pd.Series, number: bool) -> Stability:
    """The index of a column, and whether the people of both tables can be of one population.

    Bins are those of the people of both tables together, with missing cells as one; bins that depended on one
    table only would differ from the other without any drift. In the index half a person is added to each bin,
    so that an empty one has no infinite weight.

    Args:
        old: cells of earlier people, shape (n,), at least one.
        new: of new people, shape (m,), at least one.
        number: whether cells are numbers, with bins at their deciles (at fewer quantiles where the smaller
            table has fewer than `PEOPLE` in each) and at numbers that are frequent; else words, the
            `MOST_LEVELS` most frequent and the others, of which spellings are equivalent (`cells.spelling`).

    Examples:
        >>> same = pd.Series(np.repeat(["f", "m"], 500))
        >>> stability(same, same, number=False).psi
        0.0
        >>> moved = stability(same, pd.Series(np.repeat(["f", "m"], [400, 600])), number=False)
        >>> round(moved.psi, 3), moved.p < 1e-4, moved.most
        (0.04, True, 'f')
    """
    cells = pd.concat([old, new], ignore_index=True)
    if number:
        values = numbers_of(cells)
        n_bins = np.clip(min(len(old), len(new)) // PEOPLE, 1, BINS)
        bins = bins_of(values, n_bins, FREQUENT)
    else:
        codes, words, _ = values_of(cells)
        bins = np.minimum(codes, MOST_LEVELS)
    (_, used), counts = crosstab(cells.index >= len(old), bins)
    n_people = counts.sum(1)
    p, q = (counts + 0.5) / (n_people[:, None] + 0.5 * len(used))
    parts = (q - p) * np.log(q / p)
    most = parts.argmax()
    if number:
        inside = values[bins == used[most]]
        ends = dict.fromkeys(f"{end:.6g}" for end in (inside.min(), inside.max()))
        name = MISSING_LEVEL if np.isnan(inside).any() else " to ".join(ends)
    else:
        name = [*words[:MOST_LEVELS], OTHER_LEVEL, MISSING_LEVEL][used[most]]
    return Stability(float(parts.sum()), _p(counts), name, *(counts[:, most] / n_people).tolist())


def _p(counts: np.ndarray) -> float:
    """The p of one population, for counts (2, B) of the people of two tables in bins.

    Bins must not depend on which table a person is of. Two tests share the level, of which the second has
    `OF_SINGLE`:

    - Pearson's χ² of the bins with at least `EXPECTED` people of either table in expectation; the others
      are one bin where together they have as many.
    - The number of new people in a bin of k people is about binomial of k and the share of new people in
      both tables. The smallest two-sided p of the B bins counts, times B (Bonferroni).
    """
    n_people, together = counts.sum(1, keepdims=True), counts.sum(0)
    share = n_people / n_people.sum()
    # The upper tail of the new people is the lower one of the earlier.
    p_of_single = 2.0 * len(together) * binom.cdf(counts, together, share).min()
    often = together * share.min() >= EXPECTED
    merged = np.column_stack([counts[:, often], counts[:, ~often].sum(1)])
    merged = merged[:, merged.sum(0) * share.min() >= EXPECTED]
    p_of_all = chi2_contingency(merged, correction=False).pvalue if merged.any(1).all() else 1.0
    return float(min(1.0, p_of_all / (1.0 - OF_SINGLE), p_of_single / OF_SINGLE))


def stabilities(
    old: Applicants, new: pd.DataFrame, path: str
) -> tuple[dict[tuple[str, str], Stability], list[str]]:
    """The stability of each column, of everybody and of each group that both tables have, and notes.

    Columns that are constant or empty in the earlier table are compared as words; identifiers, and columns
    that no feature can hold, are not compared. p is corrected for all columns and groups together.

    Args:
        old: earlier people.
        new: cells of new people.
        path: of their file, for messages.

    Raises:
        FairAllError: where the earlier table lacks a declared column, or the new one a column of the earlier.
    """
    before, where, grouping = old.cells, old.declared.path, old.declared.grouping
    constant = [name for name in old.left_out if before[name].nunique() <= 1]
    names = [*old.kinds, *constant, *grouping]
    lacking = [
        f"{key}={name}: {where} has no such column" for key, name in old.declared.named if name not in before
    ]
    Collected(
        lacking or [f"{path}: no column {name!r}, which {where} has" for name in names if name not in new]
    ).tell()
    tables = {EVERYBODY: (before, new)}
    for name in grouping:
        codes, words, _ = values_of(pd.concat([before[name], new[name]], ignore_index=True))
        earlier, later = np.split(taken(words, codes, MISSING_LEVEL), [len(before)])
        for group in np.intersect1d(earlier, later):
            tables[group] = before[earlier == group], new[later == group]
    columns = {
        (name, group): (earlier[name], later[name], old.kinds.get(name) in (Kind.REAL, Kind.COUNT))
        for name in names
        for group, (earlier, later) in tables.items()
        if group == EVERYBODY or name not in grouping
    }
    notes = [
        f"column {name!r} is not compared: {old.left_out.get(name, 'no feature can hold it')}"
        for name in before
        if name not in names and name not in old.roles
    ]
    if more := sorted({*new} - {*before}):
        notes.append(f"{path} has further columns: {', '.join(more)}")
    return drift_by_column(columns), notes
