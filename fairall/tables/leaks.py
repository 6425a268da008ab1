"""Columns that tell the decision or the label, as those do that come with the decision or after it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from fairall.errors import FairAllError
from fairall.tables.features import DISCRETE, Feature
from fairall.tables.infer import Column, name_words

DECIDED, LABEL = "the decision", "the label"  # names of outcomes
SAMPLED = 4000  # rows
TELLS, SCORE_TELLS = 0.95, 0.75  # least AUC of a column, and of a score or several columns
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
    features: Sequence[Feature], columns: Mapping[str, Column], outcomes: Mapping[str, np.ndarray]
) -> dict[tuple[str, ...], str]:
    """Columns that tell the decision or the label, alone or together, with a warning on each.

    The figure of a column is the area under the curve (AUC) of its numbers, or of the rates of its words in
    the other half of the rows, where a missing cell is a word, and all numbers are one. Several columns tell
    the decision together where nearly everybody with certain words of theirs has the same one, as with boxes
    that are ticked after it.

    Args:
        features: of the table.
        columns: by name, of N rows.
        outcomes: what may be told, by its name in a sentence: 1, 0 or NaN where unknown, shape (N,). Only the
            first is told by several columns together. `DECIDED` and `LABEL` are names of outcomes.

    Returns:
        A sentence by the names of one or several columns.

    Raises:
        FairAllError: if a column of two values is the label in other words.
    """
    n_rows = len(next(iter(outcomes.values())))
    rows = np.random.default_rng(0).permutation(n_rows)[:SAMPLED]
    sample = {what: outcome[rows] for what, outcome in outcomes.items()}
    warnings, boxes = dict[tuple[str, ...], str](), dict[str, np.ndarray]()
    for feature in features:
        name, column, parts = feature.name, columns[feature.name], {*name_words(feature.name)}
        numbers = column.numbers[rows]
        codes = np.isnan(numbers).astype(int)
        if feature.kind in DISCRETE:
            codes = column.words[0][rows].astype(int) + 1
        reasons = []
        for what, outcome in sample.items():
            area = max(_auc(numbers, outcome), _auc(_rates(codes, outcome), outcome))
            if what == LABEL and area > 1 - 1e-6 and len({*codes[~np.isnan(outcome)]}) == 2:
                raise FairAllError(f"column {name!r} is the label in other words: drop={name} leaves it out")
            if area >= (SCORE_TELLS if what == DECIDED and parts & SCORE else TELLS):
                reasons.append(f"tells {what} (AUC {area:.2f})")
        if DECIDED not in sample and _tell(codes, 1.0 * (sample[LABEL] != 1), CHANCE).any():
            reasons.append("has values with which nobody has a positive label, as if they were rejected")
        if parts & DECISION and not parts & EARLIER:
            reasons.append("is named like a decision or its probability")
        if not reasons:
            boxes[name] = codes
            continue
        warnings[name,] = (
            f"column {name!r} {reasons[0]}: if new people have no such value, drop={name} leaves it out; "
            "declare a past decision by decision=, and its probability by propensity="
        )
    what, outcome = next(iter(sample.items()))
    for side in (outcome, 1.0 - outcome):
        ticked = {name: _tell(codes, side, CHANCE_TOGETHER) for name, codes in boxes.items()}
        together = [name for name, rows in ticked.items() if rows.any()]
        if len(together) > 1 and _auc(np.any([*ticked.values()], axis=0), side) >= SCORE_TELLS:
            names = ", ".join(together)
            warnings[*together,] = (
                f"columns {names} tell {what} together, by values that nearly always go with the same one: "
                f"if new people have no such values, drop=[{names}] leaves them out"
            )
    return warnings


def _counts(codes: np.ndarray, outcome: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows with a known outcome, and with the outcome 1, by codes (N,); shapes (K + 1,)."""
    size = codes.max() + 2
    return np.bincount(codes, ~np.isnan(outcome), size), np.bincount(codes, np.nan_to_num(outcome), size)


def _rates(codes: np.ndarray, outcome: np.ndarray) -> np.ndarray:
    """Share of the outcome 1 among rows of the same code (N,) in the other half of the rows, shape (N,)."""
    half = 2 * codes + np.arange(len(codes)) % 2
    n, ones = _counts(half, outcome)
    return ((ones + ones.sum() / max(n.sum(), 1)) / (n + 1))[half ^ 1]


def _auc(scores: np.ndarray, outcome: np.ndarray) -> float:
    """AUC of scores (N,) or of their negative ones, whichever is larger; ½ where it could be by chance."""
    known = ~np.isnan(outcome + scores)
    ranks, of_one = pd.Series(scores[known]).rank().to_numpy(), outcome[known] == 1
    n, ones = len(ranks), of_one.sum()
    if not FEWEST <= ones <= n - FEWEST:
        return 0.5
    excess = abs(ranks[of_one].mean() - ranks.mean()) / (n - ones)
    by_chance = DEVIATIONS * ranks.std() / np.sqrt(n * ones * (n - ones))
    return 0.5 + float(excess if excess > by_chance else 0)


def _tell(codes: np.ndarray, outcome: np.ndarray, chance: float) -> np.ndarray:
    """Which rows have a code (N,) that goes with the outcome 1 nearly wherever it is known, shape (N,)."""
    n, ones = _counts(codes, outcome)
    share = ones.sum() / max(n.sum(), 1)
    return ((n - ones <= EXCEPTIONS * (1 - share) * n) & (share**n <= chance))[codes]
