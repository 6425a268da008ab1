"""Columns that tell the decision or the label, as those do that come with the decision or after it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import itemgetter

import numpy as np
import pandas as pd

from fairall.errors import FairAllError
from fairall.tables.features import DISCRETE, Feature
from fairall.tables.infer import name_words

DECIDED, LABEL = "the decision", "the label"  # names of outcomes
SAMPLED = 4000  # rows
TELLS, SCORE_TELLS, TOGETHER = 0.95, 0.75, 0.75  # least AUC of a column, a score, several columns
EXACT = 1 - 1e-6  # but for rounding
DEVIATIONS = 5.0  # of an AUC from ½, in standard deviations under chance
FEWEST = 5  # rows of either outcome
EXCEPTIONS = 0.02  # of a value that tells an outcome, as a share of those that chance would make
# Probability under chance that a value tells an outcome, alone or among several.
CHANCE, CHANCE_TOGETHER = 1e-6, 1e-4
DECISION = {
    *"propensity propensities pscore decision decided outcome approved approval accepted acceptance".split(),
    *"granted rejected refused declined denied hired".split(),
}
SCORE = {*"score rating prob probability prediction proposal pd".split()}
EARLIER = {*"previous prior past since before".split()}  # of other decisions


def telling(
    features: Sequence[Feature],
    cells: pd.DataFrame,
    numbers: Mapping[str, np.ndarray],
    outcomes: Mapping[str, np.ndarray],
) -> dict[tuple[str, ...], str]:
    """Columns that tell the decision or the label, alone or together, with a warning on each.

    The figure of a column is the area under the curve (AUC) of its numbers, or of the rates of its words in
    the other half of the rows, where a missing cell is a word, and all numbers are one. Several columns tell
    the decision together where nearly everybody with certain words of theirs has the same one, as with boxes
    that are ticked after it.

    Args:
        features: of the table.
        cells: of all columns, N rows.
        numbers: of each column by its name, shape (N,).
        outcomes: what may be told, by its name in a sentence: 1, 0 or NaN where unknown, shape (N,). Only the
            first is told by several columns together. `DECIDED` and `LABEL` are names of outcomes.

    Returns:
        A sentence by the names of one or several columns.

    Raises:
        FairAllError: if a column of two values is the label in other words.
    """
    rows = np.random.default_rng(0).permutation(len(cells))[:SAMPLED]
    sample = {what: outcome[rows] for what, outcome in outcomes.items()}
    warnings, boxes = dict[tuple[str, ...], str](), dict[str, np.ndarray]()
    for feature in features:
        name, parts, column = feature.name, {*name_words(feature.name)}, cells[feature.name].iloc[rows]
        codes = pd.factorize(column if feature.kind in DISCRETE else column.isna(), use_na_sentinel=False)[0]
        figures = []
        for what, outcome in sample.items():
            area = _auc(numbers[name][rows], outcome)
            if codes.any():
                area = max(area, _auc(_rates(codes, outcome), outcome))
            if what == LABEL and area > EXACT and len({*codes[~np.isnan(outcome)]}) == 2:
                raise FairAllError(f"column {name!r} is the label in other words: drop={name} leaves it out")
            least = SCORE_TELLS if what == DECIDED and parts & SCORE else TELLS
            figures.append((area - least, area, what))
        excess, area, what = max(figures, key=itemgetter(0))
        if excess >= 0:
            why = f"tells {what} (AUC {area:.2f})"
        elif DECIDED not in sample and _tell(codes, 1.0 * (sample[LABEL] != 1), CHANCE).any():
            why = "has values with which nobody has a positive label, as if they were rejected"
        elif parts & DECISION and not parts & EARLIER:
            why = "is named like a decision or its probability"
        else:
            boxes[name] = codes
            continue
        warnings[name,] = (
            f"column {name!r} {why}: if new people have no such value, drop={name} leaves it out; "
            "declare a past decision by decision=, and its probability by propensity="
        )
    what, outcome = next(iter(sample.items()))
    for side in (outcome, 1.0 - outcome):
        ticked = {name: _tell(codes, side, CHANCE_TOGETHER)[codes] for name, codes in boxes.items()}
        together = [name for name, rows in ticked.items() if rows.any()]
        if len(together) > 1 and _auc(np.any([*ticked.values()], axis=0), side) >= TOGETHER:
            names = ", ".join(together)
            warnings[*together,] = (
                f"columns {names} tell {what} together, by values that nearly always go with the same one: "
                f"if new people have no such values, drop=[{names}] leaves them out"
            )
    return warnings


def _counts(codes: np.ndarray, outcome: np.ndarray, most: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Rows with a known outcome, and with the outcome 1, by codes (N,) up to `most`; shapes (K,)."""
    known = ~np.isnan(outcome)
    return np.bincount(codes, known, most + 1), np.bincount(codes, np.nan_to_num(outcome), most + 1)


def _rates(codes: np.ndarray, outcome: np.ndarray) -> np.ndarray:
    """Share of the outcome 1 among rows of the same code (N,) in the other half of the rows, shape (N,)."""
    half = 2 * codes + np.arange(len(codes)) % 2
    n, ones = _counts(half, outcome, half.max() + 1)
    return ((ones + ones.sum() / max(n.sum(), 1)) / (n + 1))[half ^ 1]


def _auc(scores: np.ndarray, outcome: np.ndarray) -> float:
    """AUC of scores (N,) or of their negative ones, whichever is larger; ½ where it could be by chance."""
    known = ~(np.isnan(outcome) | np.isnan(scores))
    scores, outcome = scores[known], outcome[known]
    n, ones = len(scores), outcome.sum()
    if not FEWEST <= ones <= n - FEWEST:
        return 0.5
    ranks = pd.Series(scores).rank().to_numpy()
    excess = abs((ranks @ outcome / ones - (ones + 1) / 2) / (n - ones) - 0.5)
    by_chance = DEVIATIONS * ranks.std() / np.sqrt(n * ones * (n - ones))
    return 0.5 + float(excess if excess > by_chance else 0)


def _tell(codes: np.ndarray, outcome: np.ndarray, chance: float) -> np.ndarray:
    """Which codes (N,) have the outcome 1 in nearly all rows where it is known, shape (K,), bool."""
    n, ones = _counts(codes, outcome)
    share = ones.sum() / max(n.sum(), 1)
    return (n - ones <= EXCEPTIONS * (1 - share) * n) & (share**n <= chance)
