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

from fairall.errors import FairAllError
from fairall.tables.applicants import Applicants
from fairall.tables.cells import numbers_of, spelling, taken, words_of
from fairall.tables.features import DISCRETE, MISSING_LEVEL, OTHER_LEVEL
from fairall.tables.roles import require_column

BINS = 10  # of numbers, by the deciles of the earlier people
MOST_LEVELS = 50  # of words; rarer ones are one level
DRIFTED = 0.05  # corrected p below which a column is said to differ
EVERYBODY = "everybody"
CHANCE = 0.95  # quantile of the index without drift that is shown
RARE = 1e-3  # probability of so many new numbers beyond an end, below which they are a bin of their own
FREQUENT = 0.05  # share of the earlier people with a number, from which on it is a bin of its own


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
    if free == 0:
        return Stability(0.0, 0.0, 1.0, names[0], 1.0, 1.0)
    most, index = int(parts.argmax()), float(parts.sum())
    chance, tail = float(scale * chi2.ppf(CHANCE, free)), float(chi2.sf(index / scale, free))
    before, after = (float((bins == most).mean()) for bins in (old, new))
    return Stability(index, chance, tail, names[most], before, after)


def binned(old: pd.Series, new: pd.Series, *, number: bool) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Bins of a column of both tables, with missing cells as one where there are any.

    Args:
        old: cells of earlier people, shape (n,).
        new: of new people, shape (m,).
        number: whether cells are numbers, with bins at the deciles of the earlier people, at numbers that are
            frequent among them, and beyond their range; else words, of which spellings are equivalent
            (`cells.spelling`).

    Returns:
        Numbers of the bins, shapes (n,) and (m,), and names of the bins.
    """
    if number:
        values = [numbers_of(column) for column in (old, new)]
        known = values[0][~np.isnan(values[0])]
        codes, names = (
            _numbers(known, values)
            if len(known)
            else ([np.where(np.isnan(of), -1, 0) for of in values], ["any number"])
        )
    else:
        codes, names = _words(old, new)
    if any((of == -1).any() for of in codes):
        codes = [np.where(of == -1, len(names), of) for of in codes]
        names = [*names, MISSING_LEVEL]
    used = np.unique(np.concatenate(codes))
    before, after = (np.searchsorted(used, of) for of in codes)
    return before, after, [names[k] for k in used]


def _numbers(known: np.ndarray, values: Sequence[np.ndarray]) -> tuple[list[np.ndarray], list[str]]:
    """Bins of numbers by those of the earlier people, `known`; −1 where a number is missing."""
    distinct, times = np.unique(known, return_counts=True)
    frequent = distinct[times > FREQUENT * len(known)]
    # A bin is (low, high]; that of a frequent number is (the number before it, the number].
    below = np.nextafter(frequent, -np.inf)
    inner = np.quantile(known, np.linspace(0, 1, BINS + 1)[1:-1])
    low, high = np.nextafter(distinct[0], -np.inf), distinct[-1]
    ends = np.unique(np.concatenate([[low], inner, below, frequent, [high]]))
    names = [f"below {distinct[0]:.6g}"]
    for start, end in itertools.pairwise(ends):
        first = distinct[0] if start == low else start
        one = end in frequent and np.nextafter(end, -np.inf) == start
        names.append(f"{end:.6g}" if one or first == end else f"{first:.6g} to {end:.6g}")
    codes = [np.where(np.isnan(of), -1, np.searchsorted(ends, of)) for of in values]
    new = codes[1]
    for outer, beside in ((0, 1), (len(ends), len(ends) - 1)):
        # Without drift the greatest and least of all people are new ones in the proportion of new ones.
        if (len(new) / (len(known) + len(new))) ** int((new == outer).sum()) > RARE:
            new[new == outer] = beside
    return codes, [*names, f"above {high:.6g}"]


def _words(old: pd.Series, new: pd.Series) -> tuple[list[np.ndarray], list[str]]:
    """Bins of words, rarer ones together; −1 where a cell is missing."""
    pairs = [words_of(column) for column in (old, new)]
    times = np.bincount(pairs[0][0][pairs[0][0] >= 0], minlength=len(pairs[0][1]))
    order = np.argsort(-times, kind="stable")[:MOST_LEVELS]
    names = [str(word) for word in pairs[0][1][order]]
    place = {spelling(word): k for k, word in reversed(list(enumerate(names)))}
    exact = {word: k for k, word in enumerate(names)}
    codes = []
    for positions, words in pairs:
        bins = [exact.get(word, place.get(spelling(word), len(names))) for word in words]
        codes.append(taken(np.array(bins, dtype=int), positions, -1))
    return codes, [*names, OTHER_LEVEL]


def stabilities(
    old: Applicants, new: pd.DataFrame, path: str
) -> tuple[dict[tuple[str, str], Stability], list[str]]:
    """The stability of each column, of everybody and of each group that both tables have, and notes.

    Columns that are constant or empty in the earlier table are compared as words; identifiers, and columns
    that no feature can hold, are not compared.

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
    groups = {EVERYBODY: [np.ones(len(table), dtype=bool) for table in (before, new)]}
    if sensitive:
        earlier, later, names = binned(before[sensitive], new[sensitive], number=False)
        groups |= {
            name: [earlier == k, later == k]
            for k, name in enumerate(names)
            if (earlier == k).any() and (later == k).any()
        }
    found = {}
    for name, number in numbers.items():
        of_old, of_new, bins = binned(before[name], new[name], number=number)
        for group, (earlier, later) in groups.items():
            if group == EVERYBODY or name != sensitive:
                found[name, group] = stability(of_old[earlier], of_new[later], bins)
    return found, notes
