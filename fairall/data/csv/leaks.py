"""Detection of columns that reveal who has a label, or the label itself."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.special import gammaln

from fairall.config.words import typed
from fairall.data.cells import listed, many_values, shown
from fairall.data.csv.config import CsvConfig
from fairall.data.csv.infer import drop_typed
from fairall.data.features import DISCRETE
from fairall.data.table import Table
from fairall.errors import FairAllError

MOST_VALUES = 10  # of a column with more, only whether a cell is empty counts
CHANCE = 1e-6  # largest probability under chance of a column that is reported
NEARLY = 0.02  # most exceptions of a column that tells the label, as a share of the rows of the rarer label


def leaks(
    columns: pd.DataFrame, labelled: np.ndarray, config: CsvConfig, *, who: str = "has a label"
) -> list[str]:
    """Notes on columns that reveal who has a label and should not be features.

    Such a column has only values that are labelled in all rows or in none, or two values of which one is
    never labelled. An empty cell counts as a value. `who` says in words what is true of the `labelled` (N,).
    """
    if labelled.all():
        return []
    notes = (_note(columns[name], labelled, config, who) for name in columns)
    return [note for note in notes if note is not None]


def _note(column: pd.Series, labelled: np.ndarray, config: CsvConfig, who: str) -> str | None:
    value = column.to_numpy()
    if many_values(column, MOST_VALUES):
        value = column.isna().map({True: None, False: "any value"}).to_numpy()
    rows = pd.DataFrame({"value": value, "labelled": labelled})
    groups = rows.groupby("value", dropna=False, sort=True)["labelled"].agg(["sum", "size"])
    none, all_ = groups["sum"] == 0, groups["sum"] == groups["size"]
    if len(groups) < 2 or not none.any() or not ((none | all_).all() or len(groups) == 2):
        return None
    # Probability that as many rows, drawn at random, all lack a label.
    if float(np.mean(~labelled)) ** int(groups["size"][none].sum()) > CHANCE:
        return None
    name = str(column.name)
    remedy = f"leave it out ({drop_typed(name, config)})"
    if config.decision is None and len(groups) == 2 and column.notna().all():
        accepted = str(groups.index[~none][0])
        declared = f"{typed('dataset.decision', name)} {typed('dataset.accepted', accepted)}"
        remedy = f"if it is the past decision, declare it ({declared}), else {remedy}"
    return (
        f"column {name!r} reveals who {who} ({'all' if all_.any() else 'some'} with "
        f"{_values(groups[~none])}, none with {_values(groups[none])}), unknown before deciding: {remedy}"
    )


def _values(groups: pd.DataFrame) -> str:
    words = ["an empty cell" if pd.isna(value) else repr(shown(value, 20)) for value in groups.index]
    return words[0] if len(words) == 1 else listed(words, "value")


def of_label(table: Table, config: CsvConfig) -> list[str]:
    """Warnings on features that predict the label nearly exactly, by their levels or by a threshold.

    Raises:
        FairAllError: if a feature of two levels is the label in other words.
    """
    label = table.label[table.labelled]
    n, n_positive = len(label), int(label.sum())
    most = NEARLY * min(n_positive, n - n_positive)
    warnings = []
    for feature in table.schema:
        x = table.x[feature.name].to_numpy(dtype=float)[table.labelled]
        discrete = feature.kind in DISCRETE
        values, position, total = np.unique(x, return_inverse=True, return_counts=True)
        positive = np.bincount(position, label, len(values))
        wrong, log_rules = _exceptions(positive, total, discrete=discrete)
        # Union bound of the probability that labels in a random order fit one of the rules so well.
        log_chance = log_rules + _log_choose(n, wrong) + np.log(wrong + 1) - _log_choose(n, n_positive)
        if wrong > most or log_chance > np.log(CHANCE):
            continue
        drop = drop_typed(feature.name, config)
        if discrete and wrong == 0 and len(values) == 2:
            named = [feature.levels[feature.codes.index(value)] for value in values[positive.argsort()]]
            raise FairAllError(
                f"column {feature.name!r} encodes the label {config.label!r} ({shown(named[1])!r} "
                f"for {shown(config.positive)!r}, else {shown(named[0])!r}), unknown before deciding: leave "
                f"it out with {drop}"
            )
        warnings.append(
            f"column {feature.name!r} predicts the label {config.label!r} of {n - wrong} of {n} rows: "
            f"if it is computed from the label, or unknown before the decision, leave it out ({drop})"
        )
    return warnings


def _exceptions(positive: np.ndarray, total: np.ndarray, *, discrete: bool) -> tuple[int, float]:
    """Exceptions of the best rule from K values to labels, and the logarithm of the number of rules.

    A rule gives each value of a discrete feature a label, else one label up to a value and the other above.
    `positive` and `total` are the numbers of labels 1 and of rows by ascending value, shape (K,).
    """
    negative = total - positive
    if discrete:
        return int(np.minimum(positive, negative).sum()), len(total) * float(np.log(2))
    # Label 0 up to a value and 1 above it; the other way round all that is right is wrong.
    wrong = positive.cumsum() + negative.sum() - negative.cumsum()
    return int(min(wrong.min(), (total.sum() - wrong).min())), float(np.log(2 * len(total)))


def _log_choose(n: int, k: int) -> float:
    return float(gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1))
