"""How far new people differ from earlier ones: the population stability index, and one test of drift.

References:
    Yurdakul, B. and Naranjo, J. (2020). Statistical properties of the population stability index. Journal of
        Risk Model Validation.
    Benjamini, Y. and Hochberg, Y. (1995). Controlling the false discovery rate: a practical and powerful
        approach to multiple testing. Journal of the Royal Statistical Society B.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeVar

import numpy as np
import pandas as pd
from scipy.stats import binom, chi2, false_discovery_control

from fairall.errors import FairAllError
from fairall.tables.applicants import Applicants
from fairall.tables.cells import numbers_of, taken, values_of, words_of
from fairall.tables.features import DISCRETE, MISSING_LEVEL, OTHER_LEVEL
from fairall.tables.roles import require_column

BINS = 10  # of numbers, by quantiles
PEOPLE = 10  # of the smaller table in each bin of numbers, at least
EXPECTED = 4.0  # number in both tables without drift, from which a bin counts in χ²
MOST_LEVELS = 50  # of words; rarer ones are one level
FREQUENT = 0.05  # share of the people with a number, from which on it is a bin of its own
OF_SINGLE = 0.2  # share of the level of the test for single bins
DRIFTED = 0.05  # corrected p below which a column is said to differ
EVERYBODY = "everybody"

Key = TypeVar("Key")


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


def drift_by_column(columns: Mapping[Key, tuple[pd.Series, pd.Series, bool]]) -> dict[Key, Stability]:
    """The stability of each column, with p corrected for all of them (Benjamini and Hochberg 1995).

    Where no column has changed, one or more have p < α with a probability of about α at most.

    Args:
        columns: arguments of `binned`: cells of earlier people, of new ones, and whether they are numbers.
    """
    found = {key: stability(*binned(old, new, number=number)) for key, (old, new, number) in columns.items()}
    corrected = false_discovery_control([one.p for one in found.values()])
    return {key: one._replace(p=float(p)) for (key, one), p in zip(found.items(), corrected, strict=True)}


def stability(old: np.ndarray, new: np.ndarray, names: Sequence[str]) -> Stability:
    """The index of people in bins, and whether they can be of one population.

    Bins must not depend on which table a person is of. Two tests share the level, of which the second has
    `OF_SINGLE`:

    - Pearson's χ² of the bins with at least `EXPECTED` people of either table in expectation; the others
      are one bin where together they have as many.
    - The number of new people in a bin of k people is about binomial of k and the share of new people in
      both tables. The smallest two-sided p of the B bins counts, times B (Bonferroni).

    In the index half a person is added to each bin, so that an empty one has no infinite weight.

    Args:
        old: number of the bin of each earlier person, shape (n,), at least one.
        new: of each new person, shape (m,), at least one.
        names: of the bins.

    Examples:
        >>> same = np.repeat([0, 1], 500)
        >>> stability(same, same, ["f", "m"]).psi
        0.0
        >>> moved = stability(same, np.repeat([0, 1], [400, 600]), ["f", "m"])
        >>> round(moved.psi, 3), moved.p < 1e-4, moved.most
        (0.04, True, 'f')
    """
    counts = np.array([np.bincount(bins, minlength=len(names)) for bins in (old, new)])
    p, q = (counts + 0.5) / (counts.sum(1, keepdims=True) + 0.5 * len(names))
    parts = (q - p) * np.log(q / p)
    most = int(parts.argmax())
    before, after = (counts / counts.sum(1, keepdims=True))[:, most].tolist()
    return Stability(float(parts.sum()), _same(counts), names[most], before, after)


def _same(counts: np.ndarray) -> float:
    """The p of one population, for counts of shape (2, B) of the people of two tables in bins."""
    share = counts.sum(1) / counts.sum()
    together = counts.sum(0)
    tails = [binom.cdf(counts[1], together, share[1]), binom.sf(counts[1] - 1, together, share[1])]
    p_of_single = 2.0 * counts.shape[1] * np.min(tails)
    often = together * share.min() >= EXPECTED
    merged = np.column_stack([counts[:, often], counts[:, ~often].sum(1)])
    merged = merged[:, merged.sum(0) * share.min() >= EXPECTED]
    expected = np.outer(merged.sum(1), merged.sum(0)) / max(merged.sum(), 1)
    p_of_all = chi2.sf(((merged - expected) ** 2 / expected).sum(), max(merged.shape[1] - 1, 1))
    return float(min(1.0, p_of_all / (1.0 - OF_SINGLE), p_of_single / OF_SINGLE))


def binned(old: pd.Series, new: pd.Series, *, number: bool) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Bins of a column, by the people of both tables together, with missing cells as one.

    Bins that depended on one table only would differ from the other without any drift.

    Args:
        old: cells of earlier people, shape (n,).
        new: of new people, shape (m,).
        number: whether cells are numbers, with bins at their deciles (at fewer quantiles where the smaller
            table has fewer than `PEOPLE` in each) and at numbers that are frequent; else words, the
            `MOST_LEVELS` most frequent and the others, of which spellings are equivalent (`cells.spelling`).

    Returns:
        Numbers of the bins, shapes (n,) and (m,), and names of the bins.
    """
    if number:
        values = np.concatenate([numbers_of(old), numbers_of(new)])
        codes, names = _numbers(values, min(len(old), len(new)))
    else:
        texts = [taken(words, codes, None) for codes, words in map(words_of, (old, new))]
        codes, words, _ = values_of(pd.Series(np.concatenate(texts), dtype=object))
        codes, names = np.minimum(codes, MOST_LEVELS), [*map(str, words[:MOST_LEVELS]), OTHER_LEVEL]
    used, codes = np.unique(np.where(codes < 0, len(names), codes), return_inverse=True)
    names = [*names, MISSING_LEVEL]
    return codes[: len(old)], codes[len(old) :], [names[k] for k in used]


def _numbers(values: np.ndarray, fewest: int) -> tuple[np.ndarray, list[str]]:
    """Bins of numbers (N,), −1 where one is missing, for a smaller table of `fewest` people."""
    known = values[~np.isnan(values)]
    if not len(known):
        return np.full(len(values), -1), []
    distinct, times = np.unique(known, return_counts=True)
    frequent = distinct[times > FREQUENT * len(known)]
    # A bin is (low, high]; that of a frequent number is (the number before it, the number].
    below = np.nextafter(frequent, -np.inf)
    quantiles = np.quantile(known, np.linspace(0, 1, max(1, min(BINS, fewest // PEOPLE)) + 1))
    ends = np.unique(np.concatenate([quantiles[1:], below, frequent]))
    ends = ends[ends >= distinct[0]]
    starts = distinct[np.searchsorted(distinct, [-np.inf, *ends[:-1]], side="right")]
    stops = distinct[np.searchsorted(distinct, ends, side="right") - 1]
    names = [f"{a:.6g}" if a == b else f"{a:.6g} to {b:.6g}" for a, b in zip(starts, stops, strict=True)]
    return np.where(np.isnan(values), -1, np.searchsorted(ends, values)), names


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
        FairAllError: where the new table lacks a column of the earlier one.
    """
    before, sensitive = old.cells, str(old.declared.sensitive or "")
    for key, name in old.declared.named:
        require_column(key, name, list(before), old.declared)
    constant = [name for name in old.left_out if before[name].nunique() <= 1]
    numbers = {name: kind not in DISCRETE for name, kind in old.kinds.items()} | dict.fromkeys(
        constant, False
    )
    numbers |= {sensitive: False} if sensitive in before else {}
    if lacking := [name for name in (*numbers, *[sensitive] * bool(sensitive)) if name not in new]:
        raise FairAllError(
            f"{path}: no column {', '.join(map(repr, lacking))}, which {old.declared.path} has"
        )
    notes = [
        f"column {name!r} is not compared: {old.left_out.get(name, 'no feature can hold it')}"
        for name in before
        if name not in numbers and name not in old.roles
    ]
    groups = {EVERYBODY: (np.ones(len(before), dtype=bool), np.ones(len(new), dtype=bool))}
    if sensitive:
        earlier, later, names = binned(before[sensitive], new[sensitive], number=False)
        groups |= {
            name: (earlier == k, later == k)
            for k, name in enumerate(names)
            if (earlier == k).any() and (later == k).any()
        }
    columns = {
        (name, group): (before[name][earlier], new[name][later], number)
        for name, number in numbers.items()
        for group, (earlier, later) in groups.items()
        if group == EVERYBODY or name != sensitive
    }
    return drift_by_column(columns), notes
